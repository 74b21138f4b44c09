"""Strings with free counts of groups, `<ab>{n}` or `({n}){n}`, answered by running the model.

Where letter counts decide, `seqcls.interpretability.counts.family` goes further, and exactly. Here
a family has one free count or two, which go up to `MAX_N`; between the values that are tried the
answer may change and change back unseen, but every change that is reported is one between
neighbours.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float, Int64

from seqcls.errors import InvalidStringError
from seqcls.interpretability.strings.asked import Answers, AskedModel, Letters

MAX_N = 2_000
"""The largest value of a free count."""

MAX_TOKENS = 10_000
"""Tokens of the longest string of a family that is run."""

_PIECE = r"(?:<([^<>{{}}]+)>|({token}))(?:\{{([a-z]|[1-9][0-9]{{0,5}})\}})?"


Count = int | str
"""How often a group stands in a string: a number, or the name of a free count."""


@dataclass(frozen=True)
class GroupFamily:
    """Strings that differ in one or two counts, each of which several groups may share."""

    text: str
    names: tuple[str, ...]
    """Of the free counts, sorted, such as `("n",)` or `("m", "n")`."""
    pieces: tuple[tuple[Letters, Count], ...]
    """Groups of letters and how often each stands there."""

    def letters(self, *values: int) -> Letters:
        """The string whose free counts have these values, in the order of `names`."""
        return tuple(x for own, times in self._times(values) for x in own * times)

    def length(self, *values: int) -> int:
        return sum(len(own) * times for own, times in self._times(values))

    def _times(self, values: Sequence[int]) -> Iterator[tuple[Letters, int]]:
        free = dict(zip(self.names, values, strict=True))
        for own, count in self.pieces:
            yield own, count if isinstance(count, int) else free[count]


@dataclass(frozen=True)
class Change:
    """The string with `n - 1` is answered otherwise than with `n`."""

    n: int
    answer: bool
    """From `n` on: true means in the language."""


@dataclass(frozen=True, eq=False)
class GroupCurve:
    """A family's labels and answers at the values of its free count that were tried."""

    family: GroupFamily
    n: Int64[np.ndarray, " string"]
    labels: Bool[np.ndarray, " string"]
    logits: Float[np.ndarray, " string"]
    changes: tuple[Change, ...]
    """Of the answer; every one of them exact, though there may be more between values tried."""

    @property
    def first_wrong(self) -> int | None:
        """The least value tried whose string is misclassified."""
        wrong = np.flatnonzero((self.logits > 0) != self.labels)
        return int(self.n[wrong[0]]) if len(wrong) else None


@dataclass(frozen=True, eq=False)
class GroupMap:
    """A family with two free counts: labels and answers on a logarithmic grid."""

    family: GroupFamily
    first: Int64[np.ndarray, " row"]
    """Values of the first free count."""
    second: Int64[np.ndarray, " column"]
    labels: Bool[np.ndarray, "row column"]
    logits: Float[np.ndarray, "row column"]
    """NaN where the model has no places for so long a string."""
    changes: tuple[tuple[Change, ...], ...]
    """For each value of the first free count, of the answer over the second; each exact."""

    @property
    def wrong(self) -> Bool[np.ndarray, "row column"]:
        """Which strings are misclassified."""
        known = ~np.isnan(self.logits)
        return np.asarray(known & ((self.logits > 0) != self.labels))


def parse_groups(model: AskedModel, text: str) -> GroupFamily:
    """The family that a text such as `<ab>{n}`, `0{m}1{n}` or `({n}){n}` stands for.

    Raises:
        ConfigError: the task is no language.
        InvalidStringError: not of this alphabet or notation, or not one or two free counts.
    """
    model.problem.require_language()
    tokenizer = model.tokenizer
    piece = re.compile(_PIECE.format(token=tokenizer.pattern))
    pieces: list[tuple[Letters, Count]] = []
    names = set()
    place = 0
    while place < len(text):
        if tokenizer.separator and text[place].isspace():
            place += 1
            continue
        match = piece.match(text, place)
        if match is None:
            raise InvalidStringError(
                f"cannot read {text[:60]!r} at character {place + 1}: expected tokens, or groups "
                "such as <ab>{n} or 0{3}"
            )
        count = match[3] or "1"
        names |= set() if count.isdigit() else {count}
        letters = model.letters(match[1] or match[2])
        pieces.append((letters, int(count) if count.isdigit() else count))
        place = match.end()
    if not 1 <= len(names) <= 2:
        raise InvalidStringError(
            f"{text[:60]!r} has {len(names) or 'no'} free counts; expected one or two, each a "
            "lowercase letter in braces, as in <ab>{n} or 0{m}1{n}"
        )
    return GroupFamily(text, tuple(sorted(names)), tuple(pieces))


def group_curve(model: AskedModel, family: GroupFamily, *, points: int = 40) -> GroupCurve:
    """Labels, answers and changes of the answer for n from 1 on, up to `MAX_N`.

    The first sixteen values are tried, then others evenly on a logarithmic scale, and both sides
    of every change that shows between them. No string has more than `MAX_TOKENS` tokens, nor more
    than the model has places for.

    Raises:
        InvalidStringError: the model has no places even for the first string, or there are two free
            counts.
    """
    if len(family.names) != 1:
        raise InvalidStringError(
            f"{family.text[:60]!r} has two free counts; expected one, as in <ab>{{n}}"
        )
    longest = _longest(family)
    grid = np.geomspace(1, longest, points).round().astype(np.int64)
    n = np.unique(np.concatenate([np.arange(1, min(16, longest) + 1), grid]))
    known = _Known(model, family, ())
    known.try_all(n.tolist())
    tried = known.tried()
    if not tried:
        raise InvalidStringError(
            f"{family.text[:60]!r}: even its first string is longer than the model has places for"
        )
    changes = known.changes()
    tried = known.tried()
    return GroupCurve(
        family,
        np.array(tried, dtype=np.int64),
        np.array([known.labels[own] for own in tried], dtype=bool),
        np.array([known.logits[own] for own in tried], dtype=np.float64),
        changes,
    )


def group_map(model: AskedModel, family: GroupFamily, *, points: int = 14) -> GroupMap:
    """Labels and answers for both free counts from 1 to `MAX_N` on a logarithmic grid.

    Raises:
        InvalidStringError: there is one free count.
    """
    if len(family.names) != 2:
        raise InvalidStringError(
            f"{family.text[:60]!r} has one free count; expected two, as in 0{{m}}1{{n}}"
        )
    grid = np.unique(np.geomspace(1, _longest(family), points).round().astype(np.int64))
    logits = np.full((len(grid), len(grid)), np.nan)
    labels = np.zeros((len(grid), len(grid)), dtype=bool)
    changes = []
    for row, value in enumerate(grid.tolist()):
        known = _Known(model, family, (value,))
        known.try_all(grid.tolist())
        for column, other in enumerate(grid.tolist()):
            logits[row, column] = known.logits.get(other, np.nan)
            labels[row, column] = known.labels.get(other, False)
        changes.append(known.changes())
    return GroupMap(family, grid, grid, labels, logits, tuple(changes))


def _longest(family: GroupFamily) -> int:
    """The greatest value of all free counts such that no string has more than `MAX_TOKENS`."""
    longest = MAX_N
    while longest > 1 and family.length(*[longest] * len(family.names)) > MAX_TOKENS:
        longest -= 1
    return longest


class _Known:
    """Answers for the strings of a family that were asked about so far, by the last count."""

    def __init__(self, model: AskedModel, family: GroupFamily, before: tuple[int, ...]) -> None:
        self._model = model
        self._family = family
        self._before = before
        self.labels: dict[int, bool] = {}
        self.logits: dict[int, float] = {}

    def try_all(self, values: Sequence[int]) -> None:
        answers: Answers = self._model.ask_all(
            [self._family.letters(*self._before, own) for own in values]
        )
        for row in np.flatnonzero(answers.known).tolist():
            self.labels[values[row]] = bool(answers.labels[row])
            self.logits[values[row]] = float(answers.logits[row])

    def positive(self, n: int) -> bool:
        if n not in self.logits:
            self.try_all([n])
        return self.logits[n] > 0

    def tried(self) -> list[int]:
        return sorted(self.logits)

    def changes(self) -> tuple[Change, ...]:
        """The changes of the answer that show between values tried, to the neighbour."""
        return tuple(
            _change(self, before, after)
            for before, after in pairwise(self.tried())
            if self.positive(before) != self.positive(after)
        )


def _change(known: _Known, before: int, after: int) -> Change:
    """A change between two values that are answered differently, by halving."""
    answer = known.positive(after)
    while after - before > 1:
        middle = (before + after) // 2
        if known.positive(middle) == answer:
            after = middle
        else:
            before = middle
    return Change(after, answer)
