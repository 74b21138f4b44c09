"""Results, against counting string by string."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch

from seqcls.decode import beam
from seqcls.engines.member import draw_initial
from seqcls.errors import ConfigError, InvalidStringError
from seqcls.evaluation import (
    LEAST_WITHIN,
    TrainedGroup,
    distinct_test_strings,
    drawn_test_set,
    evaluate,
    judge_validation,
    range_counts,
)
from seqcls.interpretability.automaton_learning import learn
from seqcls.interpretability.minimal import shortest_failing
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.interpretability.verdicts import string_verdict, verdicts
from seqcls.kinds.base import Ability
from seqcls.models.positions import read_ids
from seqcls.prediction import outputs
from seqcls.problem import Problem, configuration, resolve
from seqcls.questions import RunModel
from seqcls.results import Confusion, RangeCounts
from seqcls.sampling.streams import stream
from tests.conftest import short_config
from tests.zoo import readable_model


@pytest.mark.parametrize(
    "fields",
    [
        {"task": "contains_all"},
        {"task": "majority", "architecture": "gru", "readout": "last"},
        {"task": "copy", "architecture": "gru"},
    ],
    ids=lambda fields: str(fields["task"]),
)
def test_evaluation_prediction_and_single_answers_agree(fields: dict[str, Any]) -> None:
    lengths = {f"{part}_max_length": 6 for part in ("train", "validation", "test")}
    problem = resolve(configuration({**lengths, "test_size": 300, **fields}))
    (weights,) = draw_initial([(problem, 0)])
    test, model = distinct_test_strings(problem.test), TrainedModel(problem, weights)
    answers = model.ask(test.strings)
    assert np.array_equal(answers.right, ~answers.wrong)
    (tested,) = evaluate(problem, [weights])
    assert tested.errors.numbers.tolist() == sorted(test.numbers[answers.wrong])
    predicted = RunModel(problem, weights).predict(test.texts)
    outputs = problem.kind.texts(problem.task, answers.predicted)
    if outputs is None:
        assert predicted["predicted"] == answers.predicted.tolist()
    else:
        assert predicted["output"] == outputs
    for row in range(0, len(test.texts), 20):
        alone = model.answer(test.texts[row])
        assert alone.is_wrong == answers.wrong[row]
        assert alone.logit == pytest.approx(answers.score[row], abs=1e-5)


@pytest.mark.parametrize(("task", "lacked"), [("majority", "outputs"), ("copy", "labels")])
def test_kind_names_the_ability_it_lacks(task: str, lacked: Ability) -> None:
    problem = resolve(configuration({"task": task}))
    needs: tuple[Ability, ...] = ("labels", "outputs", "causes")
    assert [x for x in needs if problem.lacks(x)] == [lacked]
    assert f"task={task!r} is not a " in str(problem.lacks(lacked))


def test_evaluation_equals_counting_string_by_string() -> None:
    problem = resolve(short_config(test_max_length=60))
    (weights,) = draw_initial([(problem, 0)])
    (result,) = evaluate(problem, [weights])

    drawn = stream(problem.test).epoch(0)
    model = readable_model(problem.network, weights)
    logits = model(torch.from_numpy(read_ids(drawn.strings, "first")).int()).tolist()
    tokenizer = problem.tokenizer
    cells: Counter[tuple[str, int]] = Counter()
    wrong: Counter[str] = Counter()
    for ids, positive, logit in zip(drawn.strings.ids, drawn.labels, logits, strict=True):
        text = tokenizer.decode(ids)
        right = (logit > 0) == positive
        cell = ("t" if right else "f") + ("p" if logit > 0 else "n")
        length = sum(tokenizer.counts(text))
        cells[cell, length] += 1
        cells[cell, 0] += 1
        if not right:
            wrong[text] += 1

    def counted(length: int) -> Confusion:
        return Confusion(**{cell: cells[cell, length] for cell in ("tn", "fp", "fn", "tp")})

    assert result.confusion == counted(0)
    assert result.by_length == {
        length: counted(length) for length in sorted({x for _, x in cells} - {0})
    }
    of_each = result.by_length.values()
    assert result.tested_by_length.tolist() == [sum(own) for own in of_each]
    assert result.wrong_by_length.tolist() == [own.fp + own.fn for own in of_each]
    assert (result.tested, result.wrong) == (len(logits), wrong.total())
    test_set = drawn_test_set(problem)
    numbers = result.errors.numbers.tolist()
    reported = [(test_set.texts[number], test_set.occurrences[number]) for number in numbers]
    assert reported == sorted(wrong.items())
    assert wrong, "an untrained model misclassifies something"
    for number, logit in zip(numbers, result.errors.logits, strict=True):
        assert test_set.lengths[number] == sum(tokenizer.counts(test_set.texts[number]))
        assert (logit > 0) != test_set.labels[number]
    assert result.solved_length == test_set.lengths[numbers].min() - 1


def ranged(first: int, last: int, **fields: Any) -> Problem:
    """A problem trained and validated on 3 to 10 letters, tested on a given range."""
    of_parts = {
        f"{part}_{end}_length": value
        for part, ends in {"train": (3, 10), "validation": (3, 10), "test": (first, last)}.items()
        for end, value in zip(("min", "max"), ends, strict=True)
    }
    sizes = {"train_size": 256, "validation_size": 200, "test_size": 640}
    named = {"task": "parity", "readout": "last"} if "task" not in fields else {}
    lstm = {"architecture": "lstm", "hidden_size": 4, **named}
    return resolve(configuration({**lstm, **sizes, **of_parts, **fields}))


@pytest.mark.parametrize(
    "fields",
    [{}, {"task": "reverse"}, {"task": "dyck", "readout": "last"}],
    ids=lambda fields: str(fields.get("task", "parity")),
)
def test_evaluation_counts_trained_and_longer_lengths_apart(fields: dict[str, Any]) -> None:
    problem = ranged(1, 20, **fields)
    (result,) = evaluate(problem, draw_initial([(problem, 0)]))
    drawn = stream(problem.test).epoch(0).strings.lengths
    found = result.ranges
    assert found is not None
    assert found.within_from == "test"
    # Each string as often as it occurs; those of 1 and 2 letters are in neither.
    assert found.tested_within == ((drawn >= 3) & (drawn <= 10)).sum() >= LEAST_WITHIN
    assert found.tested_beyond == (drawn > 10).sum() > 0
    assert found.tested_within + found.tested_beyond < result.tested == len(drawn)
    wrong = dict(zip(result.lengths.tolist(), result.wrong_by_length.tolist(), strict=True))
    assert found.wrong_within == sum(wrong[length] for length in wrong if 3 <= length <= 10)
    assert found.wrong_beyond == sum(wrong[length] for length in wrong if length > 10)
    assert found.wrong_within + found.wrong_beyond > 0


def test_validation_judges_learning_where_tests_are_longer() -> None:
    problem = ranged(41, 60)
    weights = draw_initial([(problem, seed) for seed in range(3)])
    for result, own in zip(evaluate(problem, weights), weights, strict=True):
        (alone,) = evaluate(problem, [own])
        assert (alone.ranges, alone.confusion) == (result.ranges, result.confusion)
        answers = TrainedModel(problem, own).ask(stream(problem.validation).epoch(0).strings)
        found = result.ranges
        assert found == RangeCounts(200, int(answers.wrong.sum()), "validation", 640, result.wrong)
        assert judge_validation(TrainedGroup(problem, [own])) == [(200, found.wrong_within)]


def test_learning_is_judged_by_100_test_strings_of_trained_lengths() -> None:
    problem = ranged(10, 50)
    for number, validated, within in (
        (99, (200, 7), (200, 7, "validation")),
        (100, (200, 7), (100, 4, "test")),
        # Where validation has no more of them, the test's few judge.
        (40, (40, 0), (40, 4, "test")),
    ):
        lengths, tested, wrong = np.array([[10, number, 4], [50, 900, 30]]).T
        found = range_counts(problem, lengths, tested, wrong, validated=validated)
        assert found == RangeCounts(*within, 900, 30)  # type: ignore[arg-type]
    longer = ranged(10, 50, validation_min_length=11, validation_max_length=20)
    assert range_counts(longer, lengths, tested, wrong) == RangeCounts(40, 4, "test", 900, 30)
    # Without validation nothing is known.
    assert range_counts(ranged(50, 50), *np.array([[50, 900, 30]]).T) is None


def test_evaluation_without_longer_strings_counts_none_beyond() -> None:
    problem = ranged(3, 10)
    (result,) = evaluate(problem, draw_initial([(problem, 0)]))
    assert result.ranges == RangeCounts(640, result.wrong, "test", 0, 0)


PLAIN: dict[str, Any] = {"layer_norm_eps": 0.0, "activation": "relu"}
NO_NUMBERS: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    ({"task": "contains_all", **PLAIN}, ("fused", "counts", "lanes", "strings")),
    (
        {"task": "parity", "architecture": "deltanet", "readout": "last", **PLAIN},
        ("lanes", "strings"),
    ),
    # The empty string is one token, after which no state of a recurrent network is infinite.
    (
        {"task": "parity", "architecture": "rnn", "readout": "last", "test_min_length": 1},
        ("lanes", "strings"),
    ),
    ({"task": "copy", "architecture": "lstm"}, ("lanes", "strings")),
    ({"task": "copy", "architecture": "lstm", "decoding": "beam", "beam_width": 3}, ("strings",)),
    (
        {"task": "copy", "positions": "sinusoidal", "attention_head_size": 4, **PLAIN},
        ("lanes", "strings"),
    ),
]


def no_numbers(fields: dict[str, Any]) -> TrainedModel:
    """A model whose head's numbers are all NaN, in whatever order sums are computed.

    Sums of large numbers of one sign are infinite; then infinities of both signs are added up.
    """
    settings = {"test_size": 256, "test_max_length": 12, "hidden_size": 8, **fields}
    problem = resolve(configuration(settings))
    largest, signs = np.finfo(np.float32).max, np.where(np.arange(8) % 2, -1, 1)[:, None]
    # Finite, as all stored weights are.
    filled: dict[str, Any] = {
        "embedding.weight": 1e4,
        "feed_forward.input.weight": largest,
        "feed_forward.output.weight": signs,
        "input_weight": largest,
        "state_weight": -largest,
        "classifier.weight": 1,
    }
    weights = dict[str, np.ndarray]()
    for name, value in draw_initial([(problem, 0)])[0].items():
        matching = [number for end, number in filled.items() if name.endswith(end)]
        weights[name] = np.zeros(value.shape, np.float32)
        weights[name] += matching[0] if matching else 0
    return TrainedModel(problem, weights)


@pytest.mark.parametrize(("fields", "engines"), NO_NUMBERS)
def test_nan_is_no_answer_and_counts_as_wrong(
    fields: dict[str, Any], engines: tuple[str, ...]
) -> None:
    model = no_numbers(fields)
    for engine in engines:
        (result,) = evaluate(model.problem, [model.weights], engine=engine)
        assert result.wrong == result.tested > 0
        assert result.solved_length < min(result.lengths)
        assert np.isnan(result.errors.logits).all()
        if result.cells is not None:
            assert result.confusion.wrong == result.tested
        if result.outputs:
            assert not result.outputs.right_length_given.any()


@pytest.mark.parametrize("fields", [x for x, _ in NO_NUMBERS if "test_min_length" not in x])
def test_every_question_reports_nan_as_no_answer(
    fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seqcls.interpretability.verdicts.MAX_STRINGS", 100)
    model = no_numbers(fields)
    typed = "".join(model.tokenizer.alphabet[:2])
    answer = model.answer(model.letters(typed))
    assert answer.is_wrong
    assert not answer.is_answered
    assert answer.verdict.endswith("has no answer: what the model computes for it is NaN")
    with pytest.raises(InvalidStringError, match="what the model computes for it is NaN"):
        RunModel(model.problem, model.weights).predict([typed], partial=False)
    predicted = RunModel(model.problem, model.weights).predict([typed])
    _, _, (answer_given,), (score,), *_ = predicted.values()
    assert answer_given is None
    assert math.isnan(score)
    shortest = shortest_failing(model)
    assert shortest.count == shortest.tried > 0
    if model.problem.writes:
        assert outputs(model.problem, model.weights, [typed], 2) == [[]]
        return
    if model.problem.config.task == "contains_all":
        (by_counts,) = verdicts(model.problem, [model.weights])
        assert by_counts.false_positives + by_counts.false_negatives == by_counts.inputs
    verdict = string_verdict(model)
    assert verdict.false_positives + verdict.false_negatives == verdict.inputs
    with pytest.raises(ConfigError, match="no answer: its logit is NaN"):
        learn(model)


def test_beam_drops_outputs_with_nan_scores() -> None:
    # The first string has numbers, until it is written; the second has none.
    class Reader:
        def begin(self, _ids: torch.Tensor, _most: int) -> tuple[torch.Tensor, None]:
            return torch.tensor([[0.0, 0, 2, 1, 0, 0], [0, 0, math.nan, 1, 0, 0]]), None

        def step(self, tokens: torch.Tensor, _cached: None) -> tuple[torch.Tensor, None]:
            return torch.tensor([[0.0, 0, 0, 0, 0, 9]]).expand(len(tokens), -1), None

    beginnings = torch.zeros(2, 1, dtype=torch.long)
    found = beam(Reader(), beginnings, torch.tensor([3, 3]), 5, 2)
    assert found[0][0].tokens == [2]
    assert (found[1][0].tokens, found[1][0].ended) == ([], False)
    assert math.isnan(found[1][0].log_probability)
