"""Decoding of outputs: cached, by beams, and against teacher forcing."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from seqcls.decode import (
    Anew,
    beam,
    beginnings,
    best_written,
    output_limits,
    score,
    stepping,
    written_beams,
)
from seqcls.engines.pytorch.members import trimmed_ids
from seqcls.evaluation import TrainedGroup, evaluate
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.kinds import Examples
from seqcls.kinds.base import Questions, Written
from seqcls.kinds.output_errors import edits, error_kind, first_wrong
from seqcls.kinds.transduction import (
    NO_TARGET,
    OutputAnswers,
    end_id,
    separator_id,
    writable,
)
from seqcls.models.base import Classifier
from seqcls.models.batches import Batch, compute
from seqcls.models.positions.places import positions_of
from seqcls.problem import Problem
from seqcls.questions import RunModel
from seqcls.sampling.streams import stream
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import PAD
from seqcls.training import train_group
from tests import zoo

WRITING_NETWORKS = (
    "rotary",
    "alibi",
    "gpt2",
    "encoder_decoder",
    "recurrent_attention",
    "lstm",
    "mamba",
)
"""Networks whose decoding is tested; contracts test a cached step of all."""


def problem_of(name: str, **fields: Any) -> Problem:
    return zoo.problem(name, writes=True, **{"test_size": 120, **fields})


def model_of(problem: Problem, seed: int = 0) -> Classifier:
    return zoo.readable_model(problem.network, zoo.random_weights(problem, seed))


def drawn_examples(problem: Problem, strings: int) -> Examples:
    return stream(problem.test).epoch(0).take(np.arange(strings))


def compare_written(some: list[Written], others: list[Written]) -> None:
    """Asserts that outputs of one string, the likeliest first, are the same.

    Of two that are equally likely either may come first, as rounding decides.
    """
    scores = [x.log_probability for x in others]
    assert [x.log_probability for x in some] == pytest.approx(scores, rel=1e-12, abs=1e-12)
    for row, (one, other) in enumerate(zip(some, others, strict=True)):
        beside = scores[:row] + scores[row + 1 :]
        if all(abs(score - other.log_probability) > 1e-9 for score in beside):
            # The last one may be as likely as the first that is left out.
            assert one[:2] == other[:2] or row == len(some) - 1 > 0


@pytest.mark.parametrize("name", WRITING_NETWORKS)
@torch.no_grad()
def test_cached_decoding_equals_reading_anew(name: str) -> None:
    problem = problem_of(name)
    model, inputs = model_of(problem), drawn_examples(problem, 20).strings
    ids, end = beginnings(problem, inputs), end_id(problem.network)
    limits = torch.from_numpy(output_limits(problem, inputs))
    (cached, cached_beams), (plain, plain_beams) = (
        [beam(reader, ids, limits, end, width) for width in (1, 4)]
        for reader in (stepping(model), Anew(model))
    )
    for some, others in zip([*cached, *cached_beams], [*plain, *plain_beams], strict=True):
        compare_written(some, others)
    assert len({tuple(x.tokens) for some in cached_beams for x in some}) > 2
    for (one,), row, limit in zip(cached, ids, limits.tolist(), strict=True):
        assert one[:2] == likeliest_tokens(model, row[row != PAD], limit, end)


def likeliest_tokens(model: Classifier, read: Tensor, limit: int, end: int) -> tuple[Any, ...]:
    """The greedy output of one string, and True if it has ended."""
    tokens: list[int] = []
    while len(tokens) < limit:
        outputs = model(torch.cat([read, torch.tensor(tokens, dtype=read.dtype)])[None])[0, -1]
        best = int(writable(outputs[None]).argmax())
        if best == end:
            return tokens, True
        tokens.append(best)
    return tokens, False


@pytest.mark.parametrize("network", ["rotary", "lstm"])
@pytest.mark.parametrize("seed", range(2))
@torch.no_grad()
def test_exhaustive_beam_finds_the_likeliest_output(network: str, seed: int) -> None:
    problem = problem_of(network)
    model = model_of(problem, seed)
    end, limit = end_id(problem.network), 4
    ids = beginnings(problem, TokenStrings.of_lists(3, [[0, 2]]))
    scores: dict[tuple[int, ...], float] = {}
    for length in range(limit + 1):
        for letters in itertools.product((2, 3, 4), repeat=length):
            written = [*letters, end] if length < limit else list(letters)
            row = torch.tensor([[*ids[0].tolist(), *written[:-1]]])
            steps = model(row)[0, ids.shape[1] - 1 :].log_softmax(dim=1)
            scores[letters] = float(steps[torch.arange(len(written)), written].sum())
    (found,) = beam(stepping(model), ids, torch.tensor([limit]), end, len(scores))
    best = max(scores, key=lambda letters: scores[letters])
    assert tuple(found[0].tokens) == best
    assert found[0].log_probability == pytest.approx(scores[best], rel=1e-12)


@pytest.mark.parametrize("name", ["rotary", "encoder_decoder", "lstm"])
def test_teacher_forcing_agrees_with_greedy_outputs(name: str) -> None:
    problem = problem_of(name, precision="float32", train_size=2048, learning_rate=0.03)
    (trained,) = train_group([(problem, 3)])
    examples, weights = drawn_examples(problem, 120), trained.kept_weights
    scored = score(problem, weights, examples)
    lengths, targets = examples.strings.lengths.tolist(), examples.targets.tolist()
    written = best_written(problem, weights, examples.strings)
    right = [
        x.ended and [token - 2 for token in x.tokens] == row[:length]
        for x, row, length in zip(written, targets, lengths, strict=True)
    ]
    assert right == scored.right.tolist()
    assert 0 < sum(right) < 120
    assert all(scored.right_length_given[scored.right])
    questions = Questions.about(examples)
    (fast,) = TrainedGroup(problem, [weights], fast_writing=True).ask(questions)
    (slow,) = TrainedGroup(problem, [weights]).ask(questions)
    assert isinstance(fast, OutputAnswers)
    assert isinstance(slow, OutputAnswers)
    assert np.array_equal(fast.edits, slow.edits)
    assert (fast.outputs, fast.error_kinds) == (slow.outputs, slow.error_kinds)


def test_evaluation_counts_wrong_outputs() -> None:
    problem = problem_of("rotary")
    weights = zoo.random_weights(problem)
    (found,) = evaluate(problem, [weights])
    examples = stream(problem.test).epoch(0)
    texts = problem.kind.texts(problem.task, examples.targets)
    assert texts is not None
    inputs = [problem.tokenizer.decode(row[row != 1].tolist()) for row in examples.strings.ids]
    predicted = RunModel(problem, weights).predict(inputs)["output"]
    wrong = [x != text for x, text in zip(predicted, texts, strict=True)]
    assert found.tested == len(examples)
    assert found.wrong == sum(wrong) > 0
    assert found.outputs is not None
    written = {x for x, is_wrong in zip(predicted, wrong, strict=True) if is_wrong}
    assert set(found.outputs.texts) == written
    # One each at least.
    assert found.outputs.edits.sum() >= found.wrong
    assert found.outputs.target_tokens.sum() == examples.strings.lengths.sum()
    assert (found.outputs.right_length_given <= found.tested_by_length).all()
    assert len(found.errors) == len(found.outputs.texts) == len(found.outputs.error_kinds)
    assert (found.errors.logits < 0).all()


@pytest.mark.parametrize(("name", "loss_on"), [("rotary", "all"), ("encoder_decoder", "default")])
def test_output_loss_is_the_cross_entropy_of_target_and_end(name: str, loss_on: str) -> None:
    problem = problem_of(name, **({"loss_on": loss_on} if loss_on == "all" else {}))
    kind, examples, model = problem.kind, drawn_examples(problem, 12), model_of(problem)
    ids = trimmed_ids(problem.network, kind.reading(problem.task, examples), slice(0, 12))
    batch = Batch(problem.network, ids, positions_of(problem.network, ids))
    targets = torch.from_numpy(kind.encoded(problem.task, examples, problem.network))
    losses = kind.losses(compute(model, batch), targets, "default")
    separator, end = separator_id(problem.network), end_id(problem.network)
    everything, tokens = model(ids.long()), 0
    strings = examples.strings
    rows = zip(strings.ids.tolist(), strings.lengths.tolist(), strict=True)
    for row, (string, length) in enumerate(rows):
        target, start = [*string[:length], end], length + 1
        if loss_on == "all":
            target, start = [*string[:length], separator, *target], 0
        outputs = everything[row, start : start + len(target)]
        expected = functional.cross_entropy(outputs, torch.tensor(target), reduction="sum")
        torch.testing.assert_close(losses[row], expected, rtol=1e-10, atol=1e-10)
        assert targets[row].tolist()[: len(target) + 1][-1:] in ([NO_TARGET], [end])
        tokens += len(target)
    assert kind.units(targets) == tokens


def test_error_kind_first_wrong_token_and_edits() -> None:
    assert error_kind([1, 2], [1, 2, 3], ended=True) == "stopped early"
    assert error_kind([], [1], ended=True) == "stopped early"
    assert error_kind([1, 2, 3, 3], [1, 2, 3], ended=False) == "went on"
    assert error_kind([1, 2, 1, 2, 1, 2], [1, 2, 3], ended=False) == "repeats"
    assert error_kind([1, 2, 1, 2, 1, 2], [1, 2, 3], ended=True) == "wrong token"
    assert error_kind([3], [1, 2], ended=True) == "wrong token"
    assert first_wrong([1, 2], [1, 2, 3]) == 2
    assert first_wrong([1, 3, 3], [1, 2, 3]) == 1
    assert edits([1, 2, 3], [1, 3, 4]) == 2


def test_tested_lengths_end_with_the_position_table() -> None:
    # The longest stream trained on holds 6 + 6 tokens and SEP.
    for name, longest in (("learned", 6), ("shifted", 9)):
        problem = problem_of(name)
        assert problem.longest_tested == longest
        (found,) = evaluate(problem, [zoo.random_weights(problem)])
        assert found.lengths.max() == longest
    endless = problem_of("rotary")
    inputs = drawn_examples(endless, 40).strings
    assert output_limits(endless, inputs).max() > inputs.lengths.max() + 1


def test_beams_are_sorted_by_probability() -> None:
    problem = problem_of("rotary", decoding="beam", beam_width=3)
    weights, strings = zoo.random_weights(problem), drawn_examples(problem, 10).strings
    found = written_beams(problem, weights, strings, 3)
    for outputs in found:
        scores = [x.log_probability for x in outputs]
        assert scores == sorted(scores, reverse=True)
    judged = TrainedModel(problem, weights).ask(strings)
    assert isinstance(judged, OutputAnswers)
    best = [[token - 2 for token in outputs[0].tokens] for outputs in found]
    assert [best[row] for row in np.flatnonzero(judged.wrong)] == judged.outputs
