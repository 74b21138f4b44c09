"""A model's answers to all strings up to a length."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, get_args

import numpy as np
from jaxtyping import Bool, Float, Int64

from seqcls.engines.choice import names_one_by_strings
from seqcls.errors import ConfigError
from seqcls.evaluation import TrainedGroup, texts_of
from seqcls.interpretability.domains import (
    MAX_STRINGS,
    affordable_length,
    all_multisets,
    inputs_by_length,
    multisets_of,
    num_multisets,
    obstacle,
)
from seqcls.interpretability.trained_model import Answer, TrainedModel
from seqcls.kinds import Examples
from seqcls.kinds.base import Answers, Questions
from seqcls.models.positions import longest_readable
from seqcls.problem import Problem
from seqcls.results import ErrorKind, Unit, Verdict, Weights
from seqcls.strings.token_strings import TokenStrings
from seqcls.text import count


class LengthErrors(NamedTuple):
    """All inputs of one length, and how many of them are wrong."""

    length: int
    inputs: int
    wrong: dict[str, int]
    """By kind of error."""


class OutputVerdict(NamedTuple):
    """A model's outputs for every input up to a length."""

    max_length: int
    longest_tested: int
    """The longest length that the model is tested on; where `max_length` is less, there are too
    many longer inputs to try them all."""
    by_length: tuple[LengthErrors, ...]
    """Counts for every length of which there are inputs."""
    shortest: tuple[Answer, ...]
    """Inputs with a wrong output, some of them, the shortest first."""
    inputs: int
    wrong: int
    """Inputs whose output is wrong."""

    @property
    def error_kinds(self) -> dict[str, int]:
        """Inputs with a wrong output, by kind of error."""
        # Adding counters leaves out kinds of errors that do not occur.
        return dict(sum((Counter(counts.wrong) for counts in self.by_length), Counter[str]()))

    def describe(self, model: TrainedModel) -> Iterator[str]:
        """Yields the inputs tried and the errors, then the shortest input with a wrong output."""
        return (f"{model.name}: {sentence}" for sentence in self._sentences())

    def _sentences(self) -> Iterator[str]:
        up_to = f"up to {count(self.max_length, 'token')}"
        every = f"Of all {self.inputs:,} inputs of {up_to}"
        if not self.inputs:
            yield f"The task has no input of {up_to}; there are too many longer strings to try."
            return
        if self.wrong:
            kinds = self.error_kinds
            by_kind = ", ".join(f"{x}: {kinds[x]:,}" for x in get_args(ErrorKind) if x in kinds)
            yield f"{every} {self.wrong:,} get a wrong output ({by_kind})."
        else:
            yield f"{every} none gets a wrong output."
        if self.max_length < self.longest_tested:
            yield (
                f"The test has inputs of up to {count(self.longest_tested, 'token')}; there are "
                "too many longer ones to try them all."
            )
        if self.wrong:
            first = self.shortest[0]
            texts = map(str, (first.string, first.label, first.predicted))
            string, target, output = map(first.tokenizer.display, texts)
            output = (output or "empty") if first.is_answered else "NaN"
            yield (
                f"The shortest with a wrong output: {string or 'the empty input'}, whose target "
                f"is {target or 'empty'}, output {output}."
            )


def verdict_text(verdict: Verdict, problem: Problem) -> str:
    """The number of misclassified strings among those that were tried, and the shortest."""
    empty = "with" if problem.tries_empty else "without"
    shortest = problem.tokenizer.display(verdict.shortest_error or "") or "the empty string"
    wrong = verdict.false_positives + verdict.false_negatives
    return (
        f"of {verdict.inputs:,} {verdict.unit}s up to length {verdict.max_length}, {empty} the "
        f"empty string, {wrong:,} are misclassified ({verdict.false_positives:,} false positives, "
        f"{verdict.false_negatives:,} false negatives)"
        + (f"; the shortest is {shortest}" if wrong else "")
    )


def _verdict(problem: Problem, max_length: int, unit: Unit, parts: Iterable[Answers]) -> Verdict:
    """Sums up the answers to all strings up to a length, given in parts, the shortest first."""
    inputs, errors, shortest = 0, Counter[str](), None
    for answers in parts:
        inputs += len(answers.strings)
        errors.update(answers.error_counts)
        if shortest is None and len(rows := np.flatnonzero(answers.wrong)):
            lengths = answers.strings.lengths[rows]
            # Texts of longer ones, of which there may be many, are not made.
            rows = rows[lengths == lengths.min()]
            shortest = min(texts_of(problem.tokenizer, answers.strings.take(rows)))
    kinds = errors["false positive"], errors["false negative"]
    return Verdict(max_length, unit, inputs, *kinds, shortest)


# An exhaustive check by letter counts: every string up to a length, as a multiset of letters.

MAX_MULTISETS = 2_000_000
"""Multisets that a model is checked on in a fraction of a second, in about 200 MB."""


def unaffordable(problem: Problem) -> str | None:
    """The reason why a problem's models are not checked exhaustively; None where they are."""
    if reason := problem.lacks("labels") or problem.unknown_labels:
        return reason
    if reason := obstacle(problem, "labels"):
        return f"{reason}, so there are far too many strings to try them all"
    letters, longest = len(problem.task.alphabet), problem.test.lengths[-1]
    multisets = num_multisets(letters, longest)
    if multisets <= MAX_MULTISETS:
        return None
    return (
        f"there are {multisets:,} multisets of {letters} letters up to length {longest}, more than "
        f"{MAX_MULTISETS:,}"
    )


@lru_cache(maxsize=1)
def _cached_strings(num_letters: int, max_length: int, has_empty: bool) -> TokenStrings:
    """The same strings for one group after another, so that an engine may reuse its arrays."""
    counts = all_multisets(num_letters, max_length, empty=has_empty)
    return TokenStrings.of_counts(num_letters, counts)


def verdicts(
    problem: Problem, weights: Sequence[Weights], *, engine: str = "auto", device: str = "auto"
) -> list[Verdict]:
    """Checks models of one shape on all strings up to their longest test length.

    The caller checks `unaffordable`. Engine and device are as for `seqcls.training.train_group`.
    """
    letters, longest = len(problem.task.alphabet), problem.test.lengths[-1]
    strings = _cached_strings(letters, longest, problem.tries_empty)
    positive = problem.count_task.labels_of_counts(strings.counts)
    questions = Questions.about(Examples(strings, positive))
    # Without dropout, which is off here, any engine that trains by letter counts can answer.
    by = "auto" if names_one_by_strings(engine, problem) else engine
    # One model at a time: each has more than a million logits.
    return [
        _verdict(
            problem,
            longest,
            "multiset",
            TrainedGroup(problem.without_dropout, [model_weights], by, device).ask(questions),
        )
        for model_weights in weights
    ]


# An exhaustive check string by string, for models whose answers letter counts do not determine.


def verdict_of(model: TrainedModel) -> Verdict:
    """Checks a model on all strings up to a length.

    By letter counts where these decide and there are few enough; else string by string.

    Raises:
        ConfigError: the task is no language.
    """
    # A multiset represents all its orders, so counts try longer strings in the same time.
    if unaffordable(model.problem) is not None:
        return string_verdict(model)
    (verdict,) = verdicts(model.problem, [model.weights])
    return verdict


def string_verdict(model: TrainedModel) -> Verdict:
    """Checks a model on every string up to the length at which no more than `MAX_STRINGS` are.

    No longer than the longest test string, nor than the model has places for. The empty string is
    one of them where a test may hold it.

    Raises:
        ConfigError: the task is no language.
    """
    model.problem.require_language()
    end, longest = longest_readable(model.problem.network), model.problem.test.lengths[-1]
    longest = longest if end is None else min(longest, end)
    longest = affordable_length(model.num_letters, MAX_STRINGS, longest)
    every = inputs_by_length(model.problem, longest)
    parts = (model.ask(strings) for _, strings in every if len(strings))
    return _verdict(model.problem, longest, "string", parts)


# An exhaustive check of a model that writes: every input of its task up to a length.

MAX_INPUTS = 25_000
"""Inputs that a model writes outputs for where all are tried: seconds of a small one's time."""

MAX_SHOWN = 20
"""Shortest inputs with a wrong output that are named; the others are counted."""


def output_verdict(model: TrainedModel) -> OutputVerdict:
    """Checks a model on every input up to the greatest length at which all can be tried.

    That is at most the longest test length, or what the model has places for; with no more than
    `MAX_INPUTS` inputs, among `MAX_STRINGS` strings.
    """
    problem, reached, texts = model.problem, 0, list[str]()
    by_length = list[LengthErrors]()
    for length, strings in inputs_by_length(problem, problem.longest_tested, max_inputs=MAX_INPUTS):
        reached = length
        if len(strings):
            answers = model.ask(strings)
            # Shorter inputs were named before; the rest of the list is left for these.
            wrong = np.flatnonzero(answers.wrong)[: MAX_SHOWN - len(texts)]
            texts += texts_of(problem.tokenizer, answers.strings.take(wrong))
            by_length.append(LengthErrors(length, len(strings), answers.error_counts))
    return OutputVerdict(
        reached,
        problem.longest_tested,
        tuple(by_length),
        tuple(map(model.answer, texts)),
        inputs=sum(counts.inputs for counts in by_length),
        wrong=sum(sum(counts.wrong.values()) for counts in by_length),
    )


# Every misclassified string, where letter counts decide.


class Errors(NamedTuple):
    """All misclassified multisets up to a length, the shortest first, then as text."""

    max_length: int
    multisets: int
    """The number tried."""
    counts: Int64[np.ndarray, "error letter"]
    logits: Float[np.ndarray, " error"]
    label: Bool[np.ndarray, " error"]
    texts: tuple[str, ...]

    def by_length(self) -> Int64[np.ndarray, "length token_type"]:
        """False positives and false negatives of every length from 0 on."""
        cells = 2 * self.counts.sum(axis=1) + self.label
        return np.bincount(cells, minlength=2 * (self.max_length + 1)).reshape(-1, 2)


def errors_up_to(model: TrainedModel) -> Errors:
    """Every misclassified multiset up to the longest test length, in the precision of the run.

    Raises:
        ConfigError: there are more than `MAX_MULTISETS`, or the order of tokens has a part.
    """
    problem, longest = model.problem, model.problem.test.lengths[-1]
    if reason := unaffordable(problem):
        raise ConfigError(f"max_length={longest}: {reason}")
    answers = model.ask(TokenStrings.of_counts(model.num_letters, multisets_of(problem)))
    wrong = np.flatnonzero(answers.wrong)
    lengths, texts = answers.strings.lengths, texts_of(model.tokenizer, answers.strings.take(wrong))
    # Multisets come in the order of their counts, texts are sorted for whoever reads them.
    order = sorted(range(len(wrong)), key=lambda x: (lengths[wrong[x]], texts[x]))
    wrong = wrong[order]
    columns = answers.strings.counts[wrong], answers.score[wrong], answers.targets[wrong]
    return Errors(longest, len(lengths), *columns, tuple(texts[x] for x in order))
