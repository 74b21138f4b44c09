"""Strings with free counts, `ab{n}` or `a{m}b{n}`: where does the answer change as they grow?

A family is a fixed string and, for each free count, the letters that it counts. Its strings exist
only as counts, so a million letters cost what ten do.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int64

from seqcls.errors import InvalidStringError
from seqcls.interpretability.counts.lines import sign_changes
from seqcls.interpretability.counts.network import Network, sigmoid
from seqcls.interpretability.counts.obstacle import refuse
from seqcls.tokens.tokenizer import LETTERS, Tokenizer

MAX_COUNT = 1_000_000
"""The largest value that a free count is given."""

MAX_FIXED = 10**12
"""The largest count that is not free: sums of them stay far within the integers of an array."""

_FREE = re.compile(r"([^{}])\{([a-z])\}", re.DOTALL)


@dataclass(frozen=True)
class Family:
    """Strings that differ in one or two counts, each from 1 on."""

    text: str
    names: tuple[str, ...]
    """Of the free counts, sorted, such as `("n",)` or `("m", "n")`."""
    fixed: tuple[int, ...]
    """How often each letter of the alphabet occurs besides."""
    free: tuple[tuple[int, ...], ...]
    """For each free count, how many of each letter one more of it brings: `a{n}b{n}` has (1, 1)."""

    def counts(
        self, values: Int64[np.ndarray, "string free"]
    ) -> Int64[np.ndarray, "string letter"]:
        """The letter counts of the strings whose free counts have these values."""
        return np.asarray(np.array(self.fixed) + values @ np.array(self.free, dtype=np.int64))

    def member(self, values: Sequence[int]) -> str:
        """One string of the family, in the usual notation."""
        numbers = dict(zip(self.names, values, strict=True))
        return _FREE.sub(lambda match: f"{match[1]}{{{numbers[match[2]]}}}", self.text)


@dataclass(frozen=True)
class Flip:
    """The string with `n - 1` is answered otherwise than with `n`."""

    n: int
    answer: bool
    """From `n` on: true means in the language."""
    logit_before: float
    logit: float


@dataclass(frozen=True, eq=False)
class Curve:
    """A family with one free count."""

    family: Family
    label: bool
    """The same for all its strings, whose letters are the same."""
    n: Int64[np.ndarray, " string"]
    """From 1 to `MAX_COUNT`, evenly on a logarithmic scale, and both sides of each flip."""
    logit: Float[np.ndarray, " string"]
    probability: Float[np.ndarray, " string"]
    flips: tuple[Flip, ...]
    """Every one up to `MAX_COUNT`, in order."""
    limit: float
    """The logit as n grows without end."""

    @property
    def first_wrong(self) -> int | None:
        """The least n whose string is misclassified."""
        if bool(self.logit[0] > 0) != self.label:
            return 1
        return self.flips[0].n if self.flips else None


@dataclass(frozen=True, eq=False)
class Map:
    """A family with two free counts, on a logarithmic grid."""

    family: Family
    label: bool
    first: Int64[np.ndarray, " row"]
    """Values of the first free count."""
    second: Int64[np.ndarray, " column"]
    logit: Float[np.ndarray, "row column"]
    boundary: tuple[tuple[Flip, ...], ...]
    """For each value of the first free count every flip over the second, exactly."""


def parse_family(text: str, num_letters: int) -> Family:
    """The family that a text such as `ab{n}`, `b{2}c{n}` or `a{m}b{n}` stands for.

    A free count is one lowercase letter in braces; the same name twice is the same count.

    Raises:
        InvalidStringError: not of this alphabet or notation, or not one or two free counts.
    """
    tokenizer = Tokenizer(LETTERS[:num_letters])
    free = _FREE.findall(text)
    names = tuple(sorted({name for _, name in free}))
    if not 1 <= len(names) <= 2:
        raise InvalidStringError(
            f"{text[:60]!r} has {len(names) or 'no'} free counts; expected one or two, each a "
            "lowercase letter in braces, as in ab{n} or a{m}b{n}"
        )
    steps = {name: [0] * num_letters for name in names}
    for letter, name in free:
        for number, count in enumerate(tokenizer.counts(letter)):
            steps[name][number] += count
    fixed = tokenizer.counts(_FREE.sub("", text))
    if max(fixed) > MAX_FIXED:
        raise InvalidStringError(
            f"{text[:60]!r} fixes a count above {MAX_FIXED:,}; lower it, or make it free"
        )
    return Family(text, names, fixed, tuple(tuple(steps[name]) for name in names))


def curve(network: Network, family: Family, *, points: int = 241) -> Curve:
    """The logit of a family with one free count, and where the answer changes.

    Raises:
        ConfigError: the task gives strings of one family different labels.
        InvalidStringError: the family has two free counts.
    """
    refuse(network.problem)
    if len(family.names) != 1:
        raise InvalidStringError(
            f"{family.text!r} has two free counts; expected one, as in ab{{n}}"
        )
    start, step = np.array(family.fixed), np.array(family.free[0])
    changes = sign_changes(network, start, step, 1, MAX_COUNT)
    n = np.unique(np.concatenate([_grid(points), changes, changes - 1]))
    counts = family.counts(n[:, None])
    logit = network.logits(counts)
    return Curve(
        family=family,
        label=bool(network.problem.count_task.labels_of_counts(counts[:1])[0]),
        n=n,
        logit=logit,
        probability=sigmoid(logit),
        flips=_flips(network, start, step, changes),
        limit=float(network.limit_logits(step[None].astype(float))[0]),
    )


def area(network: Network, family: Family, *, points: int = 61) -> Map:
    """The logit of a family with two free counts on a grid, and the boundary between answers.

    Raises:
        ConfigError: as `curve`.
        InvalidStringError: the family has one free count.
    """
    refuse(network.problem)
    if len(family.names) != 2:
        raise InvalidStringError(
            f"{family.text!r} has one free count; expected two, as in a{{m}}b{{n}}"
        )
    grid = _grid(points)
    rows, columns = np.meshgrid(grid, grid, indexing="ij")
    counts = family.counts(np.column_stack([rows.ravel(), columns.ravel()]))
    step = np.array(family.free[1])
    boundary = []
    for value in grid:
        start = np.array(family.fixed) + value * np.array(family.free[0])
        changes = sign_changes(network, start, step, 1, MAX_COUNT)
        boundary.append(_flips(network, start, step, changes))
    return Map(
        family=family,
        label=bool(network.problem.count_task.labels_of_counts(counts[:1])[0]),
        first=grid,
        second=grid,
        logit=network.logits(counts).reshape(rows.shape),
        boundary=tuple(boundary),
    )


def _grid(points: int) -> Int64[np.ndarray, " string"]:
    return np.unique(np.geomspace(1, MAX_COUNT, points).round().astype(np.int64))


def _flips(
    network: Network,
    start: Int64[np.ndarray, " letter"],
    step: Int64[np.ndarray, " letter"],
    changes: Int64[np.ndarray, " change"],
) -> tuple[Flip, ...]:
    before = network.logits(start + (changes - 1)[:, None] * step).tolist()
    after = network.logits(start + changes[:, None] * step).tolist()
    return tuple(
        Flip(n=n, answer=logit > 0, logit_before=was, logit=logit)
        for n, was, logit in zip(changes.tolist(), before, after, strict=True)
    )
