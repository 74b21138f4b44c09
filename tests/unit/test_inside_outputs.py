"""Models that write, looked into: what they read, and what patches and ablations move."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from seqcls.engines.member import draw_initial
from seqcls.errors import ConfigError, InvalidStringError
from seqcls.evaluation import distinct_test_strings
from seqcls.interpretability.ablation import ablate, rank, running
from seqcls.interpretability.minimal import minimal_failing, nearest_right, shortest_failing
from seqcls.interpretability.patching import patch
from seqcls.interpretability.readable_model import (
    Output,
    ids_of,
    plain_model,
    target,
    token_ids,
    token_names,
    write_output,
)
from seqcls.interpretability.states_by_strings import (
    Kind,
    attention_kinds,
    attention_patterns,
    has_attention,
    prefix_logits,
    recurrent_units,
)
from seqcls.interpretability.states_of_outputs import likeliest_outputs, output_tokens
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.problem import configuration, resolve
from seqcls.training import train_group
from tests.unit.asked import TWO_BLOCKS, untrained
from tests.unit.test_written_outputs import NETWORKS, SMALL

INPUT, SOURCE = (0, 2, 1), (0, 1, 1)


def model_of(seed: int = 0, **fields: Any) -> TrainedModel:
    """A model with random weights of some size."""
    problem = resolve(configuration({**SMALL, **fields}))
    factor = 40 if problem.config.embeddings_init_strategy == "gpt2" else 3
    drawn = draw_initial([(problem, seed)])[0]
    return TrainedModel(problem, {name: value * factor for name, value in drawn.items()})


TWO_STREAMS = ("encoder_decoder", "recurrent_attention")


SELF: Kind = "self-attention"


def decoder_weights(
    model: TrainedModel, read: list[int], written: list[int]
) -> dict[Kind, np.ndarray]:
    """Both attention weights of a decoder, block by block, of nothing but the stored arrays."""
    stored = {name: value.astype(np.float64) for name, value in model.weights.items()}

    def linear(name: str, x: np.ndarray) -> np.ndarray:
        found: np.ndarray = x @ stored[f"{name}.weight"].T + stored[f"{name}.bias"]
        return found

    def norm(name: str, x: np.ndarray) -> np.ndarray:
        mean_square = (x**2).mean(1, keepdims=True) + model.config.layer_norm_eps
        found: np.ndarray = x / np.sqrt(mean_square) * stored[f"{name}.weight"]
        return found

    def attended(
        name: str, x: np.ndarray, others: np.ndarray, *, causal: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        query, key, value = (
            linear(f"{name}.{part}", y).reshape(len(y), 2, 4).transpose(1, 0, 2)
            for part, y in (("query", x), ("key", others), ("value", others))
        )
        scores = np.exp(query @ key.transpose(0, 2, 1) / 2)
        weights = np.tril(scores) if causal else scores
        weights = weights / weights.sum(2, keepdims=True)
        mixed = (weights @ value).transpose(1, 0, 2).reshape(len(x), 8)
        return linear(f"{name}.output", mixed), weights

    def fed(name: str, x: np.ndarray) -> np.ndarray:
        inner = torch.from_numpy(
            linear(f"{name}.feed_forward.input", norm(f"{name}.feed_forward_norm", x))
        )
        active = torch.nn.functional.gelu(inner).numpy()
        found: np.ndarray = x + linear(f"{name}.feed_forward.output", active)
        return found

    def embedded(side: str, ids: list[int]) -> np.ndarray:
        places = stored[f"{side}.positions.table.weight"][: len(ids)]
        found: np.ndarray = stored["embedding.weight"][ids] + places
        return found

    memory, states = embedded("encoder", read), embedded("decoder", written)
    found: dict[Kind, list[np.ndarray]] = {"cross-attention": [], SELF: []}
    for block in ("blocks.0", "blocks.1"):
        name = f"encoder.{block}"
        normed = norm(f"{name}.attention_norm", memory)
        memory = fed(name, memory + attended(f"{name}.attention", normed, normed)[0])
    for block in ("blocks.0", "blocks.1"):
        name = f"decoder.{block}"
        normed = norm(f"{name}.attention_norm", states)
        added, weights = attended(f"{name}.attention", normed, normed, causal=True)
        found[SELF].append(weights)
        states = states + added
        normed = norm(f"{name}.cross_attention_norm", states)
        added, weights = attended(f"{name}.cross_attention", normed, memory)
        found["cross-attention"].append(weights)
        states = fed(name, states + added)
    return {kind: np.stack(weights) for kind, weights in found.items()}


@pytest.fixture(params=sorted({*NETWORKS} - {*TWO_STREAMS}), name="model")
def _model(request: pytest.FixtureRequest) -> TrainedModel:
    return model_of(**NETWORKS[request.param])


@pytest.fixture(scope="module", name="trained")
def _trained() -> TrainedModel:
    """A model that writes some targets, and others not."""
    fields = {**SMALL, **NETWORKS["rotary"], "train_size": 2048, "learning_rate": 0.01}
    problem = resolve(configuration({**fields, "hidden_size": 16, "max_num_epochs": 6}))
    return TrainedModel(problem, train_group([(problem, 0)])[0].kept_weights)


@torch.no_grad()
def forced(model: TrainedModel, letters: tuple[int, ...], output: Output) -> float:
    """The log-probability of an output, step by step: CLS, the input, SEP, and what is written."""
    end = model.problem.network.vocabulary_size - 1
    read = [0, *(letter + 2 for letter in letters), end - 1]
    total = 0.0
    for token in [*(letter + 2 for letter in output.letters), *([end] if output.ended else [])]:
        outputs: Tensor = plain_model(model)(torch.tensor([read]))
        total += float(outputs[0, -1].log_softmax(dim=0)[token])
        read.append(token)
    return total


def test_a_model_reads_the_input_sep_and_what_it_writes(model: TrainedModel) -> None:
    said = write_output(model, INPUT)
    names = [model.tokenizer.alphabet[letter] for letter in INPUT]
    given = [model.tokenizer.alphabet[letter] for letter in said.read]
    assert token_names(model, INPUT) == ["CLS", *names, "SEP", *given]
    assert token_names(model, INPUT, target(model, INPUT)) == ["CLS", *names, "SEP", *names]
    wide = ids_of(model, [INPUT, (1,)], [target(model, INPUT), target(model, (1,))])
    assert (wide != 1).sum(dim=1).tolist() == [8, 4]
    with pytest.raises(ConfigError, match="look at its output token by token"):
        prefix_logits(model, INPUT)


def test_states_are_those_of_what_is_read(model: TrainedModel) -> None:
    ids = ids_of(model, [INPUT], [Output((1, 0))])
    kept = plain_model(model).activations(ids)
    if not has_attention(model):
        units = recurrent_units(model, INPUT, Output((1, 0)))
        assert units.tokens == ("CLS", "a", "c", "b", "SEP", "b", "a")
        assert torch.equal(
            torch.from_numpy(units.states[0]), kept[plain_model(model).units()[0]["state"]][0]
        )
        return
    found = attention_patterns(model, INPUT, Output((1, 0)))
    assert found.tokens == ("CLS", "a", "c", "b", "SEP", "b", "a")
    first = 0 if not model.config.no_attend_cls else 1
    np.testing.assert_allclose(found.weights.sum(axis=3)[:, :, first:], 1)
    assert torch.equal(torch.from_numpy(found.weights[0]), kept["blocks.0.attention.weights"][0])


def test_the_tokens_of_an_output_multiply_to_its_probability(model: TrainedModel) -> None:
    for output in (write_output(model, INPUT), target(model, INPUT), Output(())):
        tokens = output_tokens(model, INPUT, output)
        assert len(tokens) == len(token_ids(model, output))
        together = np.log([token.probability for token in tokens]).sum()
        assert together == pytest.approx(forced(model, INPUT, output), rel=1e-9)
        assert all(0 < x.runner_up_probability <= 1 - x.probability + 1e-12 for x in tokens)
        assert all(x.runner_up not in (x.token, "SEP") for x in tokens)
    greedy = output_tokens(model, INPUT)
    assert all(x.probability >= x.runner_up_probability for x in greedy)
    if write_output(model, INPUT).ended:
        assert greedy[-1].token == "END"
    best = likeliest_outputs(model, INPUT, 5)
    assert 1 <= len(best) <= 5


def test_an_input_patched_with_itself_is_answered_as_before(model: TrainedModel) -> None:
    found = patch(model, INPUT, INPUT)
    np.testing.assert_allclose(found.logits, found.base_logit, atol=1e-10)
    assert found.base_logit == found.source_logit
    assert not found.flips.any()


@pytest.mark.parametrize("network", TWO_STREAMS)
def test_what_is_written_attends_to_the_inputs_tokens(network: str) -> None:
    model = model_of(**NETWORKS[network])
    found = attention_patterns(model, INPUT, Output((1, 0)))
    assert found.rows == ("SEP", "b", "a")
    assert found.tokens == ("CLS", "a", "c", "b")
    blocks, heads = (2, 2) if network == "encoder_decoder" else (1, 1)
    assert found.weights.shape == (blocks, heads, 3, 4)
    np.testing.assert_allclose(found.weights.sum(axis=3), 1)
    # The state before a token decides what a recurrent decoder reads with it; a block, the token.
    other = attention_patterns(model, INPUT, Output((2, 0)))
    before = 2 if network == "recurrent_attention" else 1
    np.testing.assert_allclose(other.weights[:, :, :before], found.weights[:, :, :before])
    assert not np.allclose(other.weights[:, :, before], found.weights[:, :, before])


def test_weights_of_an_encoder_decoder_are_those_of_a_forward_pass_of_its_own() -> None:
    model = model_of(**NETWORKS["encoder_decoder"])
    expected = decoder_weights(model, [0, *(x + 2 for x in INPUT)], [5, 3, 2])
    for kind in attention_kinds(model):
        found = attention_patterns(model, INPUT, Output((1, 0)), kind)
        np.testing.assert_allclose(found.weights, expected[kind], atol=1e-6)
        np.testing.assert_allclose(found.weights.sum(axis=3), 1)
    assert found.tokens == found.rows == ("SEP", "b", "a")
    assert not np.triu(found.weights, 1).any()


def test_a_decoder_without_attention_says_so() -> None:
    fields = {**NETWORKS["recurrent_attention"], "attention": "none"}
    model = model_of(**fields)
    assert not has_attention(model)
    with pytest.raises(ConfigError, match=r"attention='none'.* has no cross-attention"):
        attention_patterns(model, INPUT)
    with pytest.raises(ConfigError, match="has no self-attention"):
        attention_patterns(model_of(**NETWORKS["recurrent_attention"]), INPUT, kind=SELF)


def test_what_is_moved_is_a_difference_of_log_probabilities(model: TrainedModel) -> None:
    right, said = target(model, INPUT), write_output(model, INPUT)
    found = patch(model, INPUT, SOURCE)
    assert found.base_tokens == ("CLS", "a", "c", "b", "SEP")
    assert found.source_tokens == ("CLS", "a", "b", "b", "SEP")
    for read, number in ((INPUT, found.base_logit), (SOURCE, found.source_logit)):
        expected = forced(model, read, right)
        if said != right:
            expected -= forced(model, read, said)
        assert number == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert ("minus" in found.number) == (said != right)


def test_the_one_token_that_differs_carries_the_whole_difference(trained: TrainedModel) -> None:
    assert trained.answer(INPUT).is_wrong is False
    found = patch(trained, INPUT, SOURCE)
    assert found.number == "log-probability of the target"
    assert found.sites[0].text == "embedding"
    assert found.logits[0, 2] == pytest.approx(found.source_logit, abs=1e-10)
    np.testing.assert_allclose(found.logits[0, [0, 1, 3, 4]], found.base_logit, atol=1e-10)
    assert found.flips[0].tolist() == [False, False, True, False, False]


def test_without_any_ablation_the_sample_is_answered_as_in_the_test(
    trained: TrainedModel,
) -> None:
    backend = running(trained, 10**6)
    whole = ablate(backend, {})
    test = distinct_test_strings(trained.problem.test)
    direct = trained.outputs(test.strings)
    assert 0 < whole.errors == int(direct.wrong.sum()) < len(test.texts)
    assert whole.loss == pytest.approx(-direct.score.mean(), rel=1e-9)
    assert whole.logit_change == 0
    assert whole.confusion is None
    assert (whole.strings.sum(), whole.right.sum()) == (
        len(test.texts),
        len(test.texts) - whole.errors,
    )


def test_a_head_that_is_ablated_is_one_whose_output_is_zero(trained: TrainedModel) -> None:
    weights = {name: value.copy() for name, value in trained.weights.items()}
    weights["blocks.1.attention.output.weight"][:, 4:] = 0
    (head,) = (part for part in running(trained).parts() if part.text == "block 1, head 1")
    ablated = ablate(running(trained, 60), {head: "zero"})
    changed = TrainedModel(trained.problem, weights)
    whole = running(changed, 60)
    expected = ablate(whole, {})
    assert (ablated.errors, ablated.right.tolist()) == (expected.errors, expected.right.tolist())
    assert ablated.loss == pytest.approx(expected.loss, rel=1e-9)
    change = np.abs(whole.before - running(trained, 60).before).mean()
    assert ablated.logit_change == pytest.approx(change, rel=1e-9)
    assert change > 0


@pytest.mark.parametrize("network", ["sinusoidal", "gpt2", "lstm"])
def test_every_part_moves_log_probabilities(network: str) -> None:
    model = model_of(**NETWORKS[network])
    backend = running(model, 20)
    assert len(backend.tested.texts) == 20
    parts = backend.parts()[:3]
    ranked = rank(backend, parts)
    assert all(left.logit_change > 0 for left in ranked)
    strings = backend.tested.strings
    letters = tuple(strings.letters[3, : strings.lengths[3]].tolist())
    before = forced(model, letters, target(model, letters))
    assert backend.before[3] == pytest.approx(before, rel=1e-9)


def test_minimal_strings_are_inputs_of_the_task(trained: TrainedModel) -> None:
    test = distinct_test_strings(trained.problem.test)
    answers = trained.ask(test.strings)
    row = int(np.flatnonzero(answers.wrong)[-1])
    letters = trained.letters(test.texts[row])
    found = minimal_failing(trained, letters)
    assert found.found.is_wrong
    assert found.given.predicted != found.given.label
    smaller = trained.letters(found.found.string)
    ones = [(*smaller[:place], *smaller[place + 1 :]) for place in range(len(smaller))]
    assert not any(trained.answer(one).is_wrong for one in ones if one)
    assert shortest_failing(trained, 200).tried > 0
    near = nearest_right(trained, INPUT, other_answer=True, same_length=True)
    assert near.answer is not None
    assert near.answer.label == near.answer.predicted != trained.answer(INPUT).predicted


def test_strings_that_are_no_inputs_are_not_tried() -> None:
    model = model_of(**NETWORKS["rotary"], distinct=True)
    assert [model.is_input(x) for x in ((0, 1), (0, 0))] == [True, False]
    # Of three tokens there are 3 + 6 + 6 inputs.
    assert shortest_failing(model).tried in (3, 9, 15)
    with pytest.raises(InvalidStringError, match="expected no token twice"):
        write_output(model, (0, 0))
    assert untrained(**TWO_BLOCKS).is_input((0, 0))


def test_what_is_too_long_is_refused() -> None:
    model = model_of(**{**NETWORKS["rotary"], "positions": "learned"})
    # There are places for 6 + 6 tokens, CLS and SEP.
    with pytest.raises(InvalidStringError, match="more than the 13 places"):
        attention_patterns(model, (0,) * 13)
    with pytest.raises(InvalidStringError, match="with SEP and an output"):
        attention_patterns(model, (0,) * 7, target(model, (0,) * 7))
    assert attention_patterns(model, (0,) * 12).tokens[-1] == "SEP"
    plain = model_of(**NETWORKS["rotary"])
    with pytest.raises(InvalidStringError, match="more than the 512"):
        attention_patterns(plain, (0,) * 600)
    with pytest.raises(ConfigError, match="its models write no outputs"):
        output_tokens(untrained(**TWO_BLOCKS), (0, 1))
