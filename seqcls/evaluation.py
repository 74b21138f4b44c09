"""How a trained model does on its test strings: in all, by length, and string by string."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int64

from seqcls.engines.choice import choose_engine, engine_named
from seqcls.models.positions import longest_readable
from seqcls.problem import Problem
from seqcls.remembered import remembered
from seqcls.results import Confusion, Evaluation, StringErrors, Weights
from seqcls.sampling import Sampler
from seqcls.sampling.streams import stream
from seqcls.testset import TestSet
from seqcls.tokens.strings import TokenStrings
from seqcls.tokens.tokenizer import Tokenizer


@dataclass(frozen=True, eq=False)
class DistinctStrings:
    """The distinct strings of a test set."""

    strings: TokenStrings
    occurrences: Int64[np.ndarray, " string"]
    labels: Bool[np.ndarray, " string"]
    texts: list[str]

    @cached_property
    def numbers(self) -> Int64[np.ndarray, " string"]:
        """Each string's number in the test set: its place among the texts, sorted."""
        numbers = np.empty(len(self.texts), dtype=np.int64)
        numbers[self._order] = np.arange(len(self.texts))
        return numbers

    @cached_property
    def test_set(self) -> TestSet:
        """The same strings in the order of their numbers."""
        return TestSet(
            [self.texts[row] for row in self._order],
            *(x[self._order] for x in (self.strings.lengths, self.labels, self.occurrences)),
        )

    @cached_property
    def _order(self) -> list[int]:
        return sorted(range(len(self.texts)), key=self.texts.__getitem__)


@remembered
def distinct_test_strings(sampler: Sampler) -> DistinctStrings:
    """The first epoch of a stream, each string once, made once for all models tested on it."""
    drawn = stream(sampler).epoch(0)
    # Strings that were drawn by counts differ in nothing else.
    own = drawn.strings
    rows: np.ndarray = own.counts if own.is_counted else own.letters
    _, first, occurrences = np.unique(rows, axis=0, return_index=True, return_counts=True)
    distinct = drawn.take(first)
    texts = _texts(Tokenizer(sampler.task.alphabet), distinct.strings)
    return DistinctStrings(distinct.strings, occurrences, distinct.labels, texts)


def _texts(tokenizer: Tokenizer, strings: TokenStrings) -> list[str]:
    # Strings by their counts have their letters in order, and need not be spelled out.
    if strings.is_counted:
        return [tokenizer.text_of_counts(own) for own in strings.counts.tolist()]
    return [tokenizer.decode(ids) for ids in strings.ids.tolist()]


def logits_of(
    problem: Problem,
    weights: Sequence[Weights],
    strings: TokenStrings,
    *,
    engine: str = "auto",
    device: str = "auto",
) -> Float[np.ndarray, "member string"]:
    """Logits of models of one shape for strings; positive means label 1.

    Dropout is off. Engine and device are as for `seqcls.training.train_group`. Strings beyond the
    places that the models know, about which they cannot be asked, have none but NaN.
    """
    own = engine_named(choose_engine(problem, engine, device).name)
    readable = readable_strings(problem, strings)
    if readable.all():
        return own.logits(problem, weights, strings, device=device)
    known = own.logits(problem, weights, strings.take(np.flatnonzero(readable)), device=device)
    logits = np.full((len(weights), len(strings)), np.nan, dtype=known.dtype)
    logits[:, readable] = known
    return logits


def readable_strings(problem: Problem, strings: TokenStrings) -> Bool[np.ndarray, " string"]:
    """Which strings a problem's models can be asked about: all, or those with places."""
    end = longest_readable(problem.network)
    return strings.lengths <= (np.inf if end is None else end)


def evaluate(
    problem: Problem,
    weights: Sequence[Weights],
    *,
    engine: str = "auto",
    device: str = "auto",
) -> list[Evaluation]:
    """Tests the models of one group, in their order.

    Args:
        problem: of one of them; all have the same `group_key`.
        weights: each one's trained parameters.
        engine: as for `seqcls.training.train_group`.
        device: likewise.
    """
    test = distinct_test_strings(problem.test)
    logits = logits_of(problem, weights, test.strings, engine=engine, device=device)
    return [evaluation_of(problem, test, own) for own in logits]


def evaluation_of(
    problem: Problem, test: DistinctStrings, logits: Float[np.ndarray, " string"]
) -> Evaluation:
    """What these logits of the test strings make of one model."""
    predicted = logits > 0
    asked = readable_strings(problem, test.strings)
    wrong = np.flatnonzero((predicted != test.labels) & asked)
    # One count for every length and cell, the cells in the order of Confusion.
    lengths = test.strings.lengths
    places = 4 * lengths + 2 * test.labels + predicted
    table = np.bincount(places, test.occurrences * asked, 4 * (int(lengths.max()) + 1))
    cells = table.astype(np.int64).reshape(-1, 4)
    tested = np.flatnonzero(cells.any(axis=1))
    wrong = wrong[np.argsort(test.numbers[wrong])]
    return Evaluation(
        confusion=Confusion(*cells.sum(axis=0).tolist()),
        lengths=tested,
        cells=cells[tested],
        errors=StringErrors(test.numbers[wrong], logits[wrong]),
        solved_length=_solved_length(problem, lengths[wrong]),
        test_set=test.test_set.digest,
    )


def _solved_length(problem: Problem, wrong: Int64[np.ndarray, " error"]) -> int:
    """The greatest length up to which all are right, given those of the errors."""
    if len(wrong):
        return int(wrong.min()) - 1
    end = longest_readable(problem.network)
    longest = problem.test.lengths[-1]
    return longest if end is None else min(end, longest)


def drawn_test_set(problem: Problem) -> TestSet:
    """The strings that a problem's models are tested on."""
    return distinct_test_strings(problem.test).test_set
