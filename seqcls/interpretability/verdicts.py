"""What a model makes of all strings up to a length, and what is proved of those beyond."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, get_args

import numpy as np

from seqcls.engines.choice import names_one_by_strings
from seqcls.evaluation import ask, texts_of
from seqcls.interpretability.domains import (
    MAX_STRINGS,
    affordable_length,
    all_multisets,
    all_strings,
    inputs_up_to,
    multisets_differ,
    num_multisets,
)
from seqcls.interpretability.trained_model import Answer, TrainedModel
from seqcls.kinds import Examples
from seqcls.kinds.base import Answers, Questions
from seqcls.models.positions import longest_readable
from seqcls.problem import Problem
from seqcls.results import ErrorKind, Unit, Verdict, Weights
from seqcls.strings.token_strings import TokenStrings
from seqcls.text import count

# What a model writes for every input up to a length, by kind of error.


@dataclass(frozen=True)
class OfLength:
    """All inputs of one length."""

    length: int
    inputs: int
    wrong: dict[str, int]
    """By kind of error."""


@dataclass(frozen=True)
class OutputVerdict:
    """What a model writes for every input up to a length."""

    max_length: int
    longest_tested: int
    """The longest length that the model is tested on; where `max_length` is less, there are too
    many longer inputs to try them all."""
    by_length: tuple[OfLength, ...]
    """Counts for every length of which there are inputs."""
    shortest: tuple[Answer, ...]
    """Inputs with a wrong output, some of them, the shortest first."""

    @property
    def error_kinds(self) -> dict[str, int]:
        """Inputs with a wrong output, by kind of error."""
        return dict(_sum_errors(self.by_length))

    @property
    def inputs(self) -> int:
        return sum(each.inputs for each in self.by_length)

    @property
    def wrong(self) -> int:
        """Inputs whose output is wrong."""
        return sum(self.error_kinds.values())

    def record(self) -> dict[str, Any]:
        """What programs read of it."""
        return {
            **asdict(self),
            "inputs": self.inputs,
            "wrong": self.wrong,
            "shortest": [answer.record() for answer in self.shortest],
        }

    def describe(self, model: TrainedModel) -> Iterator[str]:
        """What was tried and what came out, of a model by its name."""
        return (f"{model.name}: {sentence}" for sentence in output_verdict_text(self))


def output_verdict_text(verdict: OutputVerdict) -> tuple[str, ...]:
    """What was tried and what came out, then the shortest inputs with a wrong output."""
    up_to = f"up to {count(verdict.max_length, 'token')}"
    if not verdict.inputs:
        return (f"The task has no input of {up_to}; there are too many longer strings to try.",)
    every = f"Of all {verdict.inputs:,} inputs of {up_to}"
    if not verdict.wrong:
        said = [f"{every} none gets a wrong output."]
    else:
        kinds = verdict.error_kinds
        by_kind = ", ".join(
            f"{kind}: {kinds[kind]:,}" for kind in get_args(ErrorKind) if kind in kinds
        )
        said = [f"{every} {verdict.wrong:,} get a wrong output ({by_kind})."]
    if verdict.max_length < verdict.longest_tested:
        said.append(
            f"The test has inputs of up to {count(verdict.longest_tested, 'token')}; there are too "
            "many longer ones to try them all."
        )
    if verdict.wrong:
        first = verdict.shortest[0]
        texts = map(str, (first.string, first.label, first.predicted))
        string, target, output = map(first.tokenizer.display, texts)
        said.append(
            f"The shortest with a wrong output: {string or 'the empty input'}, whose target "
            f"is {target or 'empty'}, output {(output or 'empty') if first.is_answered else 'NaN'}."
        )
    return tuple(said)


def verdict_text(verdict: Verdict, problem: Problem) -> str:
    """How many of the strings that were tried are misclassified, and the shortest of them."""
    empty = "with" if problem.tries_empty else "without"
    shortest = problem.tokenizer.display(verdict.shortest_error or "") or "the empty string"
    wrong = verdict.false_positives + verdict.false_negatives
    return (
        f"of {verdict.inputs:,} {verdict.unit}s up to length {verdict.max_length}, {empty} the "
        f"empty string, {wrong:,} are misclassified ({verdict.false_positives:,} false positives, "
        f"{verdict.false_negatives:,} false negatives)"
        + (f"; the shortest is {shortest}" if wrong else "")
    )


# An exhaustive check: all strings of a domain, the shortest first.


def _count_errors(
    problem: Problem, parts: Iterable[Answers], shown: int = 0
) -> tuple[tuple[OfLength, ...], list[str]]:
    """What answers to all strings of a domain come to.

    Args:
        parts: the answers, those to the shortest strings first.
        shown: as many wrong strings are given at least, where there are.

    Returns:
        Counts of each part, by its greatest length; and wrong strings, as texts: all of the least
        length, and others up to `shown`.
    """
    counts, wrong = list[OfLength](), list[str]()
    least = np.iinfo(np.int64).max
    for answers in parts:
        lengths, rows = answers.strings.lengths, np.flatnonzero(answers.wrong)
        counts.append(OfLength(int(lengths.max()), len(lengths), answers.error_counts))
        least = min(least, lengths[rows].min(initial=least))
        room = max(shown - len(wrong), 0)
        rows = np.append(rows[:room], rows[room:][lengths[rows[room:]] == least])
        wrong += texts_of(problem.tokenizer, answers.strings.take(rows)) if len(rows) else []
    return tuple(counts), wrong


def _sum_errors(counts: Iterable[OfLength]) -> Counter[str]:
    """Wrong strings of all lengths, by kind of error; a kind without any is left out."""
    return sum((Counter(each.wrong) for each in counts), Counter[str]())


def _verdict(problem: Problem, max_length: int, unit: Unit, parts: Iterable[Answers]) -> Verdict:
    """What answers to all strings up to a length come to, given in parts, the shortest first."""
    counts, wrong = _count_errors(problem, parts)
    errors = _sum_errors(counts)
    return Verdict(
        max_length=max_length,
        unit=unit,
        inputs=sum(each.inputs for each in counts),
        false_positives=errors["false positive"],
        false_negatives=errors["false negative"],
        shortest_error=min(wrong, default=None),
    )


# An exhaustive check by letter counts: every string up to a length, as a multiset of letters.

MAX_MULTISETS = 2_000_000
"""What a model is checked on in a fraction of a second, in about 200 MB."""


def unaffordable(problem: Problem) -> str | None:
    """Why a problem's models are not checked exhaustively; None where they are."""
    if reason := problem.lacks("labels") or problem.unknown_labels:
        return reason
    if reason := multisets_differ(problem):
        return f"{reason}, so there are far too many strings to try them all"
    letters = len(problem.task.alphabet)
    longest = problem.test.lengths[-1]
    multisets = num_multisets(letters, longest)
    if multisets > MAX_MULTISETS:
        return (
            f"there are {multisets:,} multisets of {letters} letters up to length "
            f"{longest}, more than {MAX_MULTISETS:,}"
        )
    return None


@lru_cache(maxsize=1)
def _kept_strings(num_letters: int, max_length: int, has_empty: bool) -> TokenStrings:
    """The same strings for one group after another, so that an engine may keep what it makes."""
    counts = all_multisets(num_letters, max_length, empty=has_empty)
    return TokenStrings.of_counts(num_letters, counts)


def verdicts(
    problem: Problem, weights: Sequence[Weights], *, engine: str = "auto", device: str = "auto"
) -> list[Verdict]:
    """What models of one shape make of all strings up to their longest test length.

    The caller has asked `unaffordable`. Engine and device are as for `seqcls.training.train_group`.
    """
    letters, longest = len(problem.task.alphabet), problem.test.lengths[-1]
    strings = _kept_strings(letters, longest, problem.tries_empty)
    positive = problem.count_task.labels_of_counts(strings.counts)
    questions = Questions.about(Examples(strings, positive))
    # Without dropout, which is off here, any engine that trains by letter counts can answer.
    by = "auto" if names_one_by_strings(engine) else engine
    # One model at a time: each has more than a million logits.
    return [
        _verdict(
            problem,
            longest,
            "multiset",
            ask(problem.without_dropout, [each], questions, engine=by, device=device),
        )
        for each in weights
    ]


# An exhaustive check string by string, for models whose answers letter counts do not determine.


def checked_length(model: TrainedModel, limit: int = MAX_STRINGS) -> int:
    """The greatest length up to which all strings are tried.

    No longer than the longest test string, nor than the model has places for.
    """
    end = longest_readable(model.problem.network)
    longest = model.problem.test.lengths[-1]
    return affordable_length(
        model.num_letters, limit, longest if end is None else min(longest, end)
    )


def string_verdict(model: TrainedModel, limit: int = MAX_STRINGS) -> Verdict:
    """What a model makes of every string up to the length at which no more than `limit` are.

    The empty string is one of them where a test may hold it.

    Raises:
        ConfigError: the task is no language.
    """
    model.problem.require_language()
    longest = checked_length(model, limit)
    strings = all_strings(model.num_letters, longest, empty=model.problem.tries_empty)
    return _verdict(model.problem, longest, "string", map(model.ask, strings))


# An exhaustive check of a model that writes: every input of its task up to a length.

MAX_INPUTS = 25_000
"""How many inputs a model writes outputs for where all are tried: seconds of a small one's time."""

MAX_SHOWN = 20
"""Shortest inputs with a wrong output that are named; the others are counted."""


def output_verdict(
    model: TrainedModel, max_strings: int = MAX_STRINGS, max_inputs: int = MAX_INPUTS
) -> OutputVerdict:
    """What a model writes for every input up to the greatest length at which all can be tried.

    That is at most the longest test length, or what the model has places for.

    Args:
        max_strings: strings that are held against the task at most, inputs or not.
        max_inputs: inputs that are tried at most; those of a length all or not at all.
    """
    problem = model.problem
    reached, parts = inputs_up_to(problem, problem.longest_tested, max_strings, max_inputs)
    counts, wrong = _count_errors(problem, map(model.ask, filter(len, parts)), MAX_SHOWN)
    shortest = tuple(map(model.answer, wrong[:MAX_SHOWN]))
    return OutputVerdict(reached, problem.longest_tested, counts, shortest)


# What a model makes of all strings up to a length.


def verdict_of(model: TrainedModel) -> Verdict:
    """By letter counts where these decide and there are few enough; else string by string.

    Raises:
        ConfigError: the task is no language.
    """
    if unaffordable(model.problem) is not None:
        return string_verdict(model)
    (verdict,) = verdicts(model.problem, [model.weights])
    return verdict
