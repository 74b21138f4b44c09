"""States, attention and probabilities of models that write outputs.

`tests/contracts/test_questions.py` has what holds for every model.
"""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from seqcls.errors import ConfigError, InvalidStringError
from seqcls.evaluation import distinct_test_strings
from seqcls.interpretability import readable_model
from seqcls.interpretability.ablation import Judge
from seqcls.interpretability.minimal import minimal_failing, nearest_right, shortest_failing
from seqcls.interpretability.patching import patch
from seqcls.interpretability.readable_model import (
    Output,
    name_tokens,
    plain_model,
    read,
    target,
    token_ids,
    write_output,
)
from seqcls.interpretability.states_by_strings import (
    Kind,
    attention_kinds,
    attention_patterns,
    recurrent_units,
)
from seqcls.interpretability.states_of_outputs import output_tokens, output_tree
from seqcls.interpretability.trained_model import Letters, TrainedModel
from tests import zoo

INPUT, SOURCE = (0, 2, 1), (0, 1, 1)
ONE_STREAM = ("rotary", "relative", "gpt2", "lstm", "deltanet")
SELF: Kind = "self-attention"


def writer(name: str) -> TrainedModel:
    return zoo.model(name, writes=True)


@torch.no_grad()
def forced(model: TrainedModel, letters: tuple[int, ...], output: Output) -> float:
    """The log-probability of an output, step by step: CLS, the input, SEP, and the output."""
    end = model.problem.network.vocabulary_size - 1
    read = [0, *(letter + 2 for letter in letters), end - 1]
    total = 0.0
    for token in [*(letter + 2 for letter in output.letters), *([end] if output.ended else [])]:
        outputs: Tensor = plain_model(model)(torch.tensor([read]))
        total += float(outputs[0, -1].log_softmax(dim=0)[token])
        read.append(token)
    return total


@pytest.mark.parametrize("name", ONE_STREAM)
def test_states_cover_input_separator_and_output(name: str) -> None:
    model = writer(name)
    written = write_output(model, INPUT)
    given = [model.tokenizer.alphabet[letter] for letter in written.read]
    tokens = name_tokens(model, read(model, [INPUT]).ids[0].tolist())
    assert tokens == ("CLS", "a", "c", "b", "SEP", *given)
    forced_ids = read(model, [INPUT], [target(model, INPUT)]).ids[0].tolist()
    assert name_tokens(model, forced_ids) == ("CLS", "a", "c", "b", "SEP", "a", "c", "b")
    wide = read(model, [INPUT, (1,)], [target(model, INPUT), target(model, (1,))]).ids
    assert (wide != 1).sum(dim=1).tolist() == [8, 4]
    activations = plain_model(model).activations(read(model, [INPUT]).ids)
    if found := attention_patterns(model, INPUT, "attention"):
        ours, tokens = found.weights[0], found.tokens
        theirs = activations["blocks.0.attention.weights"][0]
    elif name == "lstm":
        units = recurrent_units(model, INPUT)
        assert units is not None
        state = activations[plain_model(model).units()[0]["state"]][0]
        ours, theirs, tokens = units.states[0], state, units.tokens
    else:
        return
    assert tokens == ("CLS", "a", "c", "b", "SEP", *given)
    assert torch.equal(torch.from_numpy(ours), theirs)


@pytest.mark.parametrize("name", ONE_STREAM)
def test_output_probabilities_are_products_of_steps(name: str) -> None:
    model = writer(name)
    right, written = target(model, INPUT), write_output(model, INPUT)
    for output in (written, right, Output(())):
        tokens = output_tokens(model, INPUT, output)
        assert len(tokens) == len(token_ids(model, output))
        together = np.log([token.probability for token in tokens]).sum()
        assert together == pytest.approx(forced(model, INPUT, output), rel=1e-9)
        assert all(0 < x.runner_up_probability <= 1 - x.probability + 1e-12 for x in tokens)
        assert all(x.runner_up not in (x.token, "SEP") for x in tokens)
    greedy = output_tokens(model, INPUT)
    assert all(x.probability >= x.runner_up_probability for x in greedy)
    assert not written.ended or greedy[-1].token == "END"
    assert 1 <= len(output_tree(model, INPUT, 5).leaves) <= 5
    # What is moved by a patch is the target's, less that of what is written instead.
    found = patch(model, INPUT, SOURCE)
    assert found.base_tokens == ("CLS", "a", "c", "b", "SEP")
    assert found.source_tokens == ("CLS", "a", "b", "b", "SEP")
    for given, number in ((INPUT, found.base_logit), (SOURCE, found.source_logit)):
        expected = forced(model, given, right) - (
            forced(model, given, written) if written != right else 0
        )
        assert number == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert ("minus" in found.number) == (written != right)
    judge = Judge(model, 20)
    strings = judge.tested.strings
    letters = tuple(strings.letters[3, : strings.lengths[3]].tolist())
    before = forced(model, letters, target(model, letters))
    assert judge.before[3] == pytest.approx(before, rel=1e-9)


def writing(output: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has every model write this output."""
    monkeypatch.setattr(readable_model, "write_output", lambda *_: output)


def test_attention_of_an_encoder_decoder_is_that_of_its_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    writing(Output((1, 0)), monkeypatch)
    model = writer("encoder_decoder")
    activations = plain_model(model).activations(read(model, [INPUT]).ids)
    names = {SELF: "attention", "cross-attention": "cross_attention"}
    for kind in attention_kinds(model):
        found = attention_patterns(model, INPUT, kind)
        assert found is not None
        expected = [
            activations[f"decoder.blocks.{block}.{names[kind]}.weights"] for block in (0, 1)
        ]
        np.testing.assert_array_equal(found.weights, torch.cat(expected).detach().numpy())
        np.testing.assert_allclose(found.weights.sum(axis=3), 1)
    assert found is not None
    assert found.tokens == found.rows == ("SEP", "b", "a")
    assert not np.triu(found.weights, 1).any()


@pytest.mark.parametrize(
    ("name", "shape", "before"),
    [("encoder_decoder", (2, 2, 3, 4), 1), ("recurrent_attention", (1, 1, 3, 4), 2)],
)
def test_cross_attention_covers_the_input_tokens(
    name: str, shape: tuple[int, ...], before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recurrent decoder attends by the state before a token, a block by the token."""
    model = writer(name)
    writing(Output((1, 0)), monkeypatch)
    found = attention_patterns(model, INPUT, "cross-attention")
    writing(Output((2, 0)), monkeypatch)
    other = attention_patterns(model, INPUT, "cross-attention")
    assert found is not None
    assert other is not None
    assert (found.rows, found.tokens) == (("SEP", "b", "a"), ("CLS", "a", "c", "b"))
    assert found.weights.shape == shape
    np.testing.assert_allclose(found.weights.sum(axis=3), 1)
    np.testing.assert_allclose(other.weights[:, :, :before], found.weights[:, :, :before])
    assert not np.allclose(other.weights[:, :, before], found.weights[:, :, before])


def test_minimal_strings_are_inputs_of_the_task() -> None:
    model = zoo.model("shifted", writes=True, seed=3)
    test = distinct_test_strings(model.problem.test)
    answers = model.ask(test.strings)
    row = int(np.flatnonzero(answers.wrong)[-1])
    found = minimal_failing(model, model.letters(test.texts[row]))
    assert found.minimal.is_wrong
    assert found.given.predicted != found.given.label
    smaller = model.letters(found.minimal.string)
    ones = [(*smaller[:place], *smaller[place + 1 :]) for place in range(len(smaller))]
    assert not any(model.answer(one).is_wrong for one in ones if one)
    assert shortest_failing(model).tried > 0
    near = nearest_right(model, (0,), same_length=True)
    assert near.answer is not None
    assert near.answer.label == near.answer.predicted != model.answer((0,)).predicted


def test_shortest_failing_skips_invalid_inputs() -> None:
    problem = zoo.problem("rotary", writes=True, distinct=True)
    model = TrainedModel(problem, zoo.random_weights(problem))
    assert [model.is_input(x) for x in ((0, 1), (0, 0))] == [True, False]
    # Of three tokens there are 3 + 6 + 6 inputs.
    assert shortest_failing(model).tried in (3, 9, 15)
    with pytest.raises(InvalidStringError, match="token twice"):
        write_output(model, (0, 0))


def test_attention_beyond_positions_or_without_heads_is_refused() -> None:
    learned, lstm = writer("learned"), writer("lstm")
    places = learned.weights["positions.table.weight"].shape[0]
    deaf = zoo.problem("recurrent_attention", writes=True, attention="none")
    silent = TrainedModel(deaf, zoo.random_weights(deaf))

    def look(model: TrainedModel, letters: Letters) -> object:
        return attention_patterns(model, letters, "attention")

    assert not attention_kinds(silent)
    assert attention_kinds(writer("recurrent_attention")) == ("cross-attention",)
    assert attention_patterns(lstm, INPUT, "attention") is None
    refusals: tuple[tuple[Callable[[], object], tuple[str, ...]], ...] = (
        (lambda: look(learned, (0,) * places), (f"{places - 1} places",)),
        (lambda: output_tokens(learned, (0,) * 7, target(learned, (0,) * 7)), ("output",)),
        (lambda: output_tokens(zoo.model("lstm"), (0, 1)), ("write no outputs",)),
    )
    for ask, words in refusals:
        with pytest.raises((ConfigError, InvalidStringError)) as refused:
            ask()
        assert all(word in str(refused.value) for word in words), refused.value
