"""What models write: whatever they keep, the likeliest of all, as teacher forcing says."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from seqcls.decode import (
    RecomputeStepper,
    beam,
    beginnings,
    best_written,
    greedy,
    output_limits,
    score,
    written_beams,
)
from seqcls.engines.base import Member
from seqcls.engines.choice import choose_engine
from seqcls.engines.member import Unfinished, draw_initial
from seqcls.engines.pytorch.computations import OneByOne, Stacked, plain_logits, trimmed_ids
from seqcls.engines.pytorch.groups import FlatGroup, StackedGroup
from seqcls.engines.pytorch.training import GroupTraining, optimizer_of
from seqcls.errors import ConfigError, InvalidStringError
from seqcls.evaluation import evaluate
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.kinds import Examples
from seqcls.kinds.transduction import (
    NO_TARGET,
    TransductionKind,
    edits,
    end_id,
    error_kind,
    first_wrong,
    separator_id,
)
from seqcls.models.base import Classifier
from seqcls.models.batches import Batch
from seqcls.models.initialization import initial_parameters, make_model
from seqcls.models.positions.places import positions_of
from seqcls.prediction import outputs as written_outputs
from seqcls.prediction import predict
from seqcls.problem import Problem, configuration, resolve
from seqcls.results import Weights
from seqcls.sampling.streams import stream
from seqcls.strings.token_strings import TokenStrings
from seqcls.training import train_group
from seqcls.weights import to_bytes

SMALL: dict[str, Any] = {
    "task": "copy", "num_tokens": 3, "train_max_length": 6, "validation_max_length": 6,
    "test_max_length": 9, "train_size": 256, "validation_size": 64, "test_size": 120,
    "hidden_size": 8, "precision": "float64", "max_num_epochs": 2,
}  # fmt: skip
ATTENTION = {"num_attention_heads": 2, "attention_head_size": 4, "feed_forward_size": 16}
NETWORKS: dict[str, dict[str, Any]] = {
    "rotary": {**ATTENTION, "num_blocks": 2, "positions": "rotary"},
    "alibi, post": {
        **ATTENTION, "num_blocks": 3, "positions": "alibi", "norm_placement": "post",
        "biases": True, "attention_scale": "log_length",
    },
    "relative": {
        **ATTENTION, "positions": "relative", "no_attend_cls": True,
        "attention_scale": "learned_log_length",
    },
    "sinusoidal": {**ATTENTION, "num_blocks": 2, "positions": "sinusoidal", "loss_on": "all"},
    "gpt2": {
        **ATTENTION, "num_blocks": 2, "positions": "learned", "position_draw": "shifted",
        "final_norm": True, "tied_embeddings": True, "embeddings_init_strategy": "gpt2",
        "activation": "gelu_tanh", "layer_norm": "nn", "biases": True,
    },
    "encoder_decoder": {
        **ATTENTION, "architecture": "encoder_decoder", "num_blocks": 2, "positions": "learned",
        "biases": True,
    },
    "coupled": {**ATTENTION, "num_blocks": 2, "positions": "coupled"},
    "coupled_marks": {
        **ATTENTION, "num_blocks": 2, "positions": "coupled_marks",
    },
    "recurrent_attention": {"architecture": "recurrent_attention", "num_blocks": 2},
    "rnn": {"architecture": "rnn"},
    "gru": {"architecture": "gru", "biases": True, "num_blocks": 2},
    "lstm": {"architecture": "lstm", "num_blocks": 2, "tied_embeddings": True},
    "deltanet": {
        "architecture": "deltanet", **ATTENTION, "biases": True, "eigenvalue_range": "signed",
    },
    "gated_deltanet": {"architecture": "gated_deltanet", **ATTENTION, "num_blocks": 2},
    "deltaproduct": {"architecture": "deltaproduct", **ATTENTION, "householder_steps": 3},
    "mamba": {"architecture": "mamba", "state_size": 4, "final_norm": True},
    "slstm": {"architecture": "slstm", **ATTENTION, "biases": True, "final_norm": True},
    "linear_attention": {"architecture": "linear_attention", **ATTENTION, "num_blocks": 2},
    "fire": {**ATTENTION, "num_blocks": 2, "positions": "fire"},
}  # fmt: skip


def problem_of(**fields: Any) -> Problem:
    return resolve(configuration({**SMALL, **fields}))


def random_weights(problem: Problem, seed: int = 0) -> Weights:
    """Weights of some size, so that outputs differ."""
    drawn = initial_parameters(problem.network, seed)
    factor = 40 if problem.config.embeddings_init_strategy == "gpt2" else 3
    return {name: value.numpy() * factor for name, value in drawn.items()}


def model_of(problem: Problem, weights: Weights) -> Classifier:
    model = make_model(problem.network).double()
    model.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})
    return model.eval()


def drawn_examples(problem: Problem, strings: int) -> Examples:
    return stream(problem.test).epoch(0).take(np.arange(strings))


@pytest.fixture(params=NETWORKS, name="problem")
def _problem(request: pytest.FixtureRequest) -> Problem:
    return problem_of(**NETWORKS[request.param])


@torch.no_grad()
def test_what_is_kept_changes_nothing(problem: Problem) -> None:
    model, inputs = model_of(problem, random_weights(problem)), drawn_examples(problem, 40).strings
    ids, end = beginnings(problem, inputs), end_id(problem.network)
    limits = torch.from_numpy(output_limits(problem, inputs))
    kept, kept_beams = greedy(model, ids, limits, end), beam(model, ids, limits, end, 4)
    again = {"begin": RecomputeStepper.start}
    plain = greedy(model, ids, limits, end, **again)
    plain_beams = beam(model, ids, limits, end, 4, **again)
    assert len({tuple(x.tokens) for some in kept_beams for x in some}) > 3
    pairs = list(
        zip(
            [*kept, *itertools.chain(*kept_beams)],
            [*plain, *itertools.chain(*plain_beams)],
            strict=True,
        )
    )
    # Of two outputs that are equally likely either may be first, as rounding decides.
    assert sum(one[:2] != other[:2] for one, other in pairs) <= len(pairs) / 4
    for one, other in pairs:
        assert one.log_probability == pytest.approx(other.log_probability, rel=1e-12, abs=1e-12)


@torch.no_grad()
def test_a_beam_of_one_is_greedy(problem: Problem) -> None:
    model, inputs = (
        model_of(problem, random_weights(problem, 1)),
        drawn_examples(problem, 40).strings,
    )
    settings = beginnings(problem, inputs), torch.from_numpy(output_limits(problem, inputs))
    end = end_id(problem.network)
    wide = beam(model, *settings, end, 1)
    for one, (other,) in zip(greedy(model, *settings, end), wide, strict=True):
        assert one[:2] == other[:2]
        assert one.log_probability == pytest.approx(other.log_probability, rel=1e-12)


@pytest.mark.parametrize("network", ["rotary", "lstm"])
@pytest.mark.parametrize("seed", range(4))
@torch.no_grad()
def test_a_beam_of_all_outputs_has_the_likeliest(network: str, seed: int) -> None:
    problem = problem_of(**NETWORKS[network])
    model = model_of(problem, random_weights(problem, seed))
    end, limit = end_id(problem.network), 4
    ids = beginnings(problem, TokenStrings.of_lists(3, [[0, 2]]))
    scores: dict[tuple[int, ...], float] = {}
    for length in range(limit + 1):
        for letters in itertools.product((2, 3, 4), repeat=length):
            said = [*letters, end] if length < limit else list(letters)
            row = torch.tensor([[*ids[0].tolist(), *said[:-1]]])
            steps = model(row)[0, ids.shape[1] - 1 :].log_softmax(dim=1)
            scores[letters] = float(steps[torch.arange(len(said)), said].sum())
    (found,) = beam(model, ids, torch.tensor([limit]), end, len(scores))
    best = max(scores, key=lambda letters: scores[letters])
    assert tuple(found[0].tokens) == best
    assert found[0].log_probability == pytest.approx(scores[best], rel=1e-12)


def test_teacher_forcing_says_which_greedy_outputs_are_right(problem: Problem) -> None:
    (trained,) = train_group([(problem, 3)])
    examples, weights = drawn_examples(problem, 120), trained.kept_weights
    scored, written = (
        score(problem, weights, examples),
        best_written(problem, weights, examples.strings),
    )
    lengths = examples.strings.lengths.tolist()
    rows = zip(written, examples.targets.tolist(), lengths, strict=True)
    right = [
        x.ended and [token - 2 for token in x.tokens] == row[:length] for x, row, length in rows
    ]
    assert right == scored.right.tolist()
    assert all(scored.right_length_given[scored.right])


def test_an_evaluation_says_what_is_written() -> None:
    problem = problem_of(**NETWORKS["rotary"])
    weights = random_weights(problem)
    (found,) = evaluate(problem, [weights])
    examples = stream(problem.test).epoch(0)
    texts = problem.kind.texts(problem.task, examples.targets)
    assert texts is not None
    inputs = [problem.tokenizer.decode(row[row != 1].tolist()) for row in examples.strings.ids]
    said = predict(problem, to_bytes(weights), inputs)
    wrong = [x.answer != text for x, text in zip(said, texts, strict=True)]
    assert found.tested == len(examples)
    assert found.wrong == sum(wrong) > 0
    assert found.outputs is not None
    written = {x.answer for x, is_wrong in zip(said, wrong, strict=True) if is_wrong}
    assert set(found.outputs.texts) == written
    # One each at least.
    assert found.outputs.edits.sum() >= found.wrong
    assert found.outputs.target_tokens.sum() == examples.strings.lengths.sum()
    assert (found.outputs.right_length_given <= found.tested_by_length).all()
    assert len(found.errors) == len(found.outputs.texts) == len(found.outputs.error_kinds)
    assert (found.errors.logits < 0).all()


def test_losses_are_cross_entropies_of_target_and_end(problem: Problem) -> None:
    kind, examples = TransductionKind(), drawn_examples(problem, 12)
    model = model_of(problem, random_weights(problem))
    read = kind.reading(problem.task, examples)
    ids = trimmed_ids(problem.network, read, slice(0, 12))
    batch = Batch(problem.network, ids, positions_of(problem.network, ids))
    targets = torch.from_numpy(kind.encoded(problem.task, examples, problem.network))
    losses = kind.losses(plain_logits(model, batch), targets, "default")
    separator, end = separator_id(problem.network), end_id(problem.network)
    everything, tokens = model(ids.long()), 0
    for row, (string, length) in enumerate(
        zip(examples.strings.ids.tolist(), examples.strings.lengths.tolist(), strict=True)
    ):
        target = [*string[:length], end]
        start = length + 1
        if problem.config.loss_on == "all":
            target, start = [*string[:length], separator, *target], 0
        outputs = everything[row, start : start + len(target)]
        wanted = functional.cross_entropy(outputs, torch.tensor(target), reduction="sum")
        torch.testing.assert_close(losses[row], wanted, rtol=1e-10, atol=1e-10)
        assert targets[row].tolist()[: len(target) + 1][-1:] in ([NO_TARGET], [end])
        tokens += len(target)
    assert kind.units(targets) == tokens


def test_a_group_that_writes_trains_stacked_as_one_by_one(problem: Problem) -> None:
    members: list[Member] = [(problem, seed) for seed in range(3)]
    device, weights = torch.device("cpu"), draw_initial(members)
    settings = (problem.network, problem.config.train_batch_size, device)
    stacked, flat = (
        kind(weights, device, **optimizer_of(problem)) for kind in (StackedGroup, FlatGroup)
    )
    assert isinstance(flat, FlatGroup)
    assert isinstance(stacked, StackedGroup)
    together, alone = (
        GroupTraining(members, group, computation, device, every_epoch=True).run(
            lambda *_: None, Unfinished("", members, weights, every_epoch=True)
        )
        for group, computation in (
            (stacked, Stacked(stacked, *settings)),
            (flat, OneByOne(flat, *settings)),
        )
    )
    for one, other in zip(together, alone, strict=True):
        assert one.epochs == other.epochs == problem.config.max_num_epochs
        for losses in ("train_losses", "validation_losses"):
            np.testing.assert_allclose(getattr(one, losses), getattr(other, losses), rtol=1e-9)
        for name, value in other.kept_weights.items():
            np.testing.assert_allclose(one.kept_weights[name], value, rtol=1e-6, atol=1e-9)


def test_training_stops_when_all_is_right() -> None:
    easy = {**NETWORKS["lstm"], "task": "parity_word", "learning_rate": 0.03, "train_max_length": 3}
    easy |= {"validation_max_length": 3, "tied_embeddings": False, "hidden_size": 16}
    easy |= {"max_num_epochs": 60, "patience": 60, "min_validation_loss": 0.0, "train_size": 512}
    fields = {name: value for name, value in {**SMALL, **easy}.items() if name != "num_tokens"}
    problem = resolve(configuration({**fields, "stop_when_right": True}))
    (trained,) = train_group([(problem, 0)])
    assert trained.best_epoch == trained.epochs < 60
    validation = stream(problem.validation).epoch(0)
    assert score(problem, trained.kept_weights, validation).right.all()
    one_more = trained.epochs + 1
    without = resolve(configuration({**fields, "max_num_epochs": one_more}))
    (longer,) = train_group([(without, 0)])
    assert longer.epochs == one_more


def test_kinds_of_errors() -> None:
    assert error_kind([1, 2], [1, 2, 3], ended=True) == "stopped early"
    assert error_kind([], [1], ended=True) == "stopped early"
    assert error_kind([1, 2, 3, 3], [1, 2, 3], ended=False) == "went on"
    assert error_kind([1, 2, 1, 2, 1, 2], [1, 2, 3], ended=False) == "repeats"
    assert error_kind([1, 2, 1, 2, 1, 2], [1, 2, 3], ended=True) == "wrong token"
    assert error_kind([3], [1, 2], ended=True) == "wrong token"
    assert first_wrong([1, 2], [1, 2, 3]) == 2
    assert first_wrong([1, 3, 3], [1, 2, 3]) == 1
    assert edits([1, 2, 3], [1, 3, 4]) == 2


def test_the_strings_engine_trains_it_and_no_other_does() -> None:
    problem = problem_of(
        **NETWORKS["rotary"],
    )
    assert choose_engine(problem).name == "strings"


def test_a_models_places_end() -> None:
    fields = {**NETWORKS["rotary"], "positions": "learned"}
    problem = problem_of(**fields)
    # The longest stream trained on holds 6 + 6 tokens and SEP.
    assert problem.longest_tested == 6
    (found,) = evaluate(problem, [random_weights(problem)])
    assert found.lengths.max() == 6
    shifted = problem_of(**fields, position_draw="shifted")
    assert shifted.longest_tested == 9
    (found,) = evaluate(shifted, [random_weights(shifted)])
    assert found.lengths.max() == 9


def test_what_cannot_be_written_is_refused_in_one_line() -> None:
    problem = problem_of(**NETWORKS["lstm"])
    weights = to_bytes(random_weights(problem))
    for width in (0, 10**6):
        with pytest.raises(ConfigError, match=f"beam {width}: expected 1 to 1,000 outputs"):
            written_outputs(problem, weights, ["ab"], width)
    with pytest.raises(InvalidStringError, match="unknown letter"):
        predict(problem, weights, ["az"])
    with pytest.raises(ConfigError, match="attention_mask='full'"):
        problem_of(**ATTENTION, attention_mask="full")
    with pytest.raises(ConfigError, match="readout='mean'"):
        problem_of(**NETWORKS["lstm"], readout="mean")
    with pytest.raises(ConfigError, match="tied_embeddings=True"):
        configuration({"tied_embeddings": True})


def test_beams_come_the_likeliest_first() -> None:
    problem = problem_of(**NETWORKS["rotary"], decoding="beam", beam_width=3)
    weights, inputs = random_weights(problem), drawn_examples(problem, 10).strings
    found = written_beams(problem, weights, inputs, 3)
    for outputs in found:
        scores = [x.log_probability for x in outputs]
        assert scores == sorted(scores, reverse=True)
    judged = TrainedModel(problem, weights).outputs(drawn_examples(problem, 10).strings)
    best = [[token - 2 for token in outputs[0].tokens] for outputs in found]
    assert [best[row] for row in np.flatnonzero(judged.wrong)] == judged.outputs
