"""Families whose strings are run: between the values tried, the answer may change unseen.

No string has more than `MAX_TOKENS` tokens, nor more than the model has places for.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from seqcls.errors import InvalidStringError
from seqcls.interpretability.families.curves import Change, Curve, Map, grid
from seqcls.interpretability.families.notation import Family
from seqcls.interpretability.model.trained_model import TrainedModel
from seqcls.tokens.tokenizer import MAX_SPELLED_LENGTH

MAX_N = 2_000
"""The largest value of a free count where strings are run."""

MAX_TOKENS = 10_000
"""Tokens of the longest string of a family that is run."""


def curve(model: TrainedModel, family: Family, points: int = 40) -> Curve:
    """A family with one free count: its first sixteen strings, then others, and every change.

    Others are tried evenly on a logarithmic scale; the changes are those that show between them.

    Raises:
        InvalidStringError: even its first string is too long, or none has an answer.
    """
    longest = _longest(family)
    known = _Known(model, family, ())
    first = np.arange(1, min(16, longest) + 1)
    known.try_all(np.union1d(first, grid(longest, points)).tolist())
    if not known.logits and known.has_nan:
        raise InvalidStringError(
            f"{family.text[:60]!r}: none of its strings has an answer: what the model computes for "
            "them is NaN"
        )
    if not known.logits:
        raise InvalidStringError(
            f"{family.text[:60]!r}: even its first string is longer than the model has places for"
        )
    changes = known.changes()
    tried = sorted(known.logits)
    labels = np.array([known.labels[n] for n in tried], dtype=bool)
    logits = np.array([known.logits[n] for n in tried], dtype=np.float64)
    return Curve(family, np.array(tried, dtype=np.int64), labels, logits, changes, None)


def area(model: TrainedModel, family: Family, points: int = 14) -> Map:
    """A family with two free counts, on a logarithmic grid.

    Raises:
        InvalidStringError: even its first string is too long.
    """
    tried = grid(_longest(family), points)
    values = tried.tolist()
    logits = np.full((len(values), len(values)), np.nan)
    labels = np.zeros((len(values), len(values)), dtype=bool)
    changes = []
    for row, value in enumerate(values):
        known = _Known(model, family, (value,))
        known.try_all(values)
        logits[row] = [known.logits.get(other, np.nan) for other in values]
        labels[row] = [known.labels.get(other, False) for other in values]
        changes.append(known.changes())
    return Map(family, tried, tried, labels, logits, tuple(changes), False)


def _longest(family: Family) -> int:
    """The greatest value of all free counts such that no string has more than `MAX_TOKENS`.

    Raises:
        InvalidStringError: even the first string is too long to be spelled out.
    """
    free = len(family.names)
    if family.length(*[1] * free) > MAX_SPELLED_LENGTH:
        raise InvalidStringError(
            f"{family.text[:60]!r} has more than the {MAX_SPELLED_LENGTH:,} tokens that can be "
            "spelled out; lower its fixed counts"
        )
    longest = MAX_N
    while longest > 1 and family.length(*[longest] * free) > MAX_TOKENS:
        longest -= 1
    return longest


class _Known:
    """Answers for the strings of a family that were asked about so far, by the last count."""

    def __init__(self, model: TrainedModel, family: Family, before: tuple[int, ...]) -> None:
        self._model = model
        self._family = family
        self._before = before
        self.labels: dict[int, bool] = {}
        self.logits: dict[int, float] = {}
        self.has_nan = False
        """Whether there was a string for which the model computes NaN."""

    def try_all(self, values: Sequence[int]) -> None:
        strings = [self._family.letters(*self._before, value) for value in values]
        answers = self._model.ask_all(strings)
        self.has_nan = self.has_nan or bool(answers.unanswered.any())
        for row in np.flatnonzero(answers.known).tolist():
            self.labels[values[row]] = bool(answers.targets[row])
            self.logits[values[row]] = float(answers.logits[row])

    def changes(self) -> tuple[Change, ...]:
        """The changes of the answer that show between values tried, to the neighbour."""
        return tuple(
            self._change(before, after)
            for before, after in pairwise(sorted(self.logits))
            if self._positive(before) != self._positive(after)
        )

    def _change(self, before: int, after: int) -> Change:
        """A change between two values that are answered differently, by halving."""
        answer = self._positive(after)
        while after - before > 1:
            middle = (before + after) // 2
            if self._positive(middle) == answer:
                after = middle
            else:
                before = middle
        logits = (self.logits.get(n, math.nan) for n in (before, after))
        return Change(after, answer, *logits)

    def _positive(self, n: int) -> bool:
        if n not in self.logits:
            self.try_all([n])
        return self.logits.get(n, math.nan) > 0
