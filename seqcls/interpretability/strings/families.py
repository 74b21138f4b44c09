"""Strings with free counts of groups, `<ab>{n}` or `({n}){n}`, answered by running the model.

Where letter counts decide, `seqcls.inside.family` goes further, and exactly. Here a family has one
free count, which goes up to `MAX_N`; between the values that are tried the answer may change and
change back unseen, but every change that is reported is one between neighbours.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float, Int64

from seqcls.errors import StringError
from seqcls.interpretability.strings.asked import Answers, AskedModel, Letters

MAX_N = 2_000
"""The largest value of a free count."""

MAX_TOKENS = 10_000
"""Tokens of the longest string of a family that is run."""

_PIECE = re.compile(r"(?:<([^<>{}]+)>|([^<>{}]))(?:\{([a-z]|[1-9][0-9]{0,5})\})?")


@dataclass(frozen=True)
class GroupFamily:
    """Strings that differ in one count, which several groups of tokens may share."""

    text: str
    name: str
    """Of the free count, such as `n`."""
    pieces: tuple[tuple[Letters, int | None], ...]
    """Groups of letters and how often each stands there; None for the free count."""

    def letters(self, n: int) -> Letters:
        """The string whose free count has this value."""
        return tuple(x for own, times in self.pieces for x in own * (n if times is None else times))

    def length(self, n: int) -> int:
        return sum(len(own) * (n if times is None else times) for own, times in self.pieces)


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


def parse_groups(model: AskedModel, text: str) -> GroupFamily:
    """The family that a text such as `<ab>{n}`, `0{n}1{n}` or `({n}){n}` stands for.

    Raises:
        StringError: not of this alphabet, not in this notation, or not exactly one free count.
    """
    pieces: list[tuple[Letters, int | None]] = []
    names = set()
    place = 0
    while place < len(text):
        match = _PIECE.match(text, place)
        if match is None:
            raise StringError(
                f"cannot read {text[:60]!r} at character {place + 1}: expected tokens, or groups "
                "such as <ab>{n} or 0{3}"
            )
        count = match[3] or "1"
        names |= set() if count.isdigit() else {count}
        letters = model.letters(match[1] or match[2])
        pieces.append((letters, int(count) if count.isdigit() else None))
        place = match.end()
    if len(names) != 1:
        raise StringError(
            f"{text[:60]!r} has {len(names) or 'no'} free counts; expected one, a lowercase letter "
            "in braces, as in <ab>{n} or 0{n}1{n}"
        )
    return GroupFamily(text, names.pop(), tuple(pieces))


def group_curve(model: AskedModel, family: GroupFamily, *, points: int = 40) -> GroupCurve:
    """Labels, answers and changes of the answer for n from 1 on, up to `MAX_N`.

    The first sixteen values are tried, then others evenly on a logarithmic scale, and both sides
    of every change that shows between them. No string has more than `MAX_TOKENS` tokens, nor more
    than the model has places for.

    Raises:
        StringError: the model has no places even for the first string.
    """
    longest = MAX_N
    while longest > 1 and family.length(longest) > MAX_TOKENS:
        longest -= 1
    grid = np.geomspace(1, longest, points).round().astype(np.int64)
    n = np.unique(np.concatenate([np.arange(1, min(16, longest) + 1), grid]))
    known = _Known(model, family)
    known.try_all(n.tolist())
    tried = known.tried()
    if not tried:
        raise StringError(
            f"{family.text[:60]!r}: even its first string is longer than the model has places for"
        )
    changes = []
    for before, after in pairwise(tried):
        if known.positive(before) != known.positive(after):
            changes.append(_change(known, before, after))
    tried = known.tried()
    return GroupCurve(
        family,
        np.array(tried, dtype=np.int64),
        np.array([known.labels[own] for own in tried], dtype=bool),
        np.array([known.logits[own] for own in tried], dtype=np.float64),
        tuple(changes),
    )


class _Known:
    """Answers for the strings of a family that were asked about so far."""

    def __init__(self, model: AskedModel, family: GroupFamily) -> None:
        self._model = model
        self._family = family
        self.labels: dict[int, bool] = {}
        self.logits: dict[int, float] = {}

    def try_all(self, values: Sequence[int]) -> None:
        answers: Answers = self._model.ask_all([self._family.letters(own) for own in values])
        for row in np.flatnonzero(answers.known).tolist():
            self.labels[values[row]] = bool(answers.labels[row])
            self.logits[values[row]] = float(answers.logits[row])

    def positive(self, n: int) -> bool:
        if n not in self.logits:
            self.try_all([n])
        return self.logits[n] > 0

    def tried(self) -> list[int]:
        return sorted(self.logits)


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
