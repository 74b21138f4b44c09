"""Strings with free counts, `ab{n}`, `a{m}b{n}` or `<ab>{n}`: where answers change as they grow.

Where letter counts decide and the family has no groups, every change up to `MAX_COUNT` is told:
its strings exist only as counts, so a million letters cost what ten do. Else strings are run, up
to `MAX_N`; between the values that are tried the answer may change and change back unseen, but
every change that is reported is one between neighbours.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float, Int64

from seqcls.errors import InvalidStringError
from seqcls.interpretability.counts.lines import sign_changes
from seqcls.interpretability.counts.network import Network, sigmoid
from seqcls.interpretability.counts.obstacle import obstacle
from seqcls.interpretability.family_notation import Family, parse_family
from seqcls.interpretability.strings.trained_model import TrainedModel
from seqcls.tokens.tokenizer import MAX_SPELLED_LENGTH

MAX_COUNT = 1_000_000
"""The largest value that a free count is given by letter counts."""

MAX_N = 2_000
"""The largest value of a free count where strings are run."""

MAX_TOKENS = 10_000
"""Tokens of the longest string of a family that is run."""


@dataclass(frozen=True)
class Change:
    """The string with `n - 1` is answered otherwise than with `n`."""

    n: int
    answer: bool
    """From `n` on: true means in the language."""
    logit_before: float
    logit: float


@dataclass(frozen=True, eq=False)
class Curve:
    """Labels and answers of a family with one free count."""

    family: Family
    n: Int64[np.ndarray, " string"]
    """From 1 on, evenly on a logarithmic scale, both sides of each change among them."""
    labels: Bool[np.ndarray, " string"]
    logits: Float[np.ndarray, " string"]
    changes: tuple[Change, ...]
    """Of the answer, in order, each exact. By letter counts all up to `MAX_COUNT`; else there may
    be more between the values that were tried."""
    limit: float | None
    """The logit as n grows without end, by letter counts; None where strings were run."""

    @property
    def probability(self) -> Float[np.ndarray, " string"]:
        return sigmoid(self.logits)

    @property
    def first_wrong(self) -> int | None:
        """The least n, of those tried, whose string is misclassified."""
        wrong = np.flatnonzero((self.logits > 0) != self.labels)
        return int(self.n[wrong[0]]) if len(wrong) else None


@dataclass(frozen=True, eq=False)
class Map:
    """Labels and answers of a family with two free counts, on a logarithmic grid."""

    family: Family
    first: Int64[np.ndarray, " row"]
    """Values of the first free count."""
    second: Int64[np.ndarray, " column"]
    labels: Bool[np.ndarray, "row column"]
    logits: Float[np.ndarray, "row column"]
    """NaN where the model has no places for so long a string."""
    changes: tuple[tuple[Change, ...], ...]
    """For each value of the first free count, of the answer over the second; as of a `Curve`."""
    exact: bool
    """By letter counts, and not by running strings."""

    @property
    def wrong(self) -> Bool[np.ndarray, "row column"]:
        """Which strings are misclassified."""
        known = ~np.isnan(self.logits)
        return np.asarray(known & ((self.logits > 0) != self.labels))


def answers(model: TrainedModel, text: str) -> Curve | Map:
    """What a model says of the family that a text stands for: by letter counts where they decide.

    Raises:
        ConfigError: the task is no language.
        InvalidStringError: as `parse_family` and `curve`.
    """
    model.problem.require_language()
    family = parse_family(model.tokenizer, text)
    return curve(model, family) if len(family.names) == 1 else area(model, family)


def curve(model: TrainedModel, family: Family, *, points: int | None = None) -> Curve:
    """Labels, answers and changes of the answer of a family with one free count.

    By letter counts up to `MAX_COUNT`. Else the first sixteen values are tried, then others evenly
    on a logarithmic scale, and both sides of every change that shows between them; no string has
    more than `MAX_TOKENS` tokens, nor more than the model has places for.

    Args:
        model: the model.
        family: its strings.
        points: values on the logarithmic scale; 241 by letter counts, else 40.

    Raises:
        ConfigError: the task is no language.
        InvalidStringError: the family has two free counts, or is too long to be run.
    """
    if len(family.names) != 1:
        raise InvalidStringError(
            f"{family.text[:60]!r} has two free counts; expected one, as in ab{{n}} or <ab>{{n}}"
        )
    network = _network(model, family)
    if network is None:
        return _tried_curve(model, family, points or 40)
    changes = _counted_changes(network, family, 0)
    ends = np.array([change.n for change in changes], dtype=np.int64)
    n = np.unique(np.concatenate([_grid(MAX_COUNT, points or 241), ends, ends - 1]))
    counts = family.counts(n[:, None])
    limit = network.limit_logits(np.array(family.free, dtype=float))
    logits = network.logits(counts)
    return Curve(family, n, _labels(network, counts), logits, changes, float(limit[0]))


def area(model: TrainedModel, family: Family, *, points: int | None = None) -> Map:
    """Labels and answers of a family with two free counts on a logarithmic grid, and the changes.

    Args:
        model: the model.
        family: its strings.
        points: values of each count; 61 by letter counts, else 14.

    Raises:
        ConfigError: the task is no language.
        InvalidStringError: the family has one free count, or is too long to be run.
    """
    if len(family.names) != 2:
        raise InvalidStringError(
            f"{family.text[:60]!r} has one free count; expected two, as in a{{m}}b{{n}}"
        )
    network = _network(model, family)
    if network is None:
        return _tried_map(model, family, points or 14)
    grid = _grid(MAX_COUNT, points or 61)
    rows, columns = np.meshgrid(grid, grid, indexing="ij")
    counts = family.counts(np.column_stack([rows.ravel(), columns.ravel()]))
    labels, logits = _labels(network, counts), network.logits(counts)
    changes = tuple(_counted_changes(network, family, value) for value in grid.tolist())
    shape = rows.shape
    return Map(family, grid, grid, labels.reshape(shape), logits.reshape(shape), changes, True)


def _network(model: TrainedModel, family: Family) -> Network | None:
    """The model as a function of letter counts, where it is one and the family has no groups."""
    model.problem.require_language()
    if "<" in family.text or obstacle(model.problem) is not None:
        return None
    return model if isinstance(model, Network) else Network.of(model.problem, model.weights)


def _grid(longest: int, points: int) -> Int64[np.ndarray, " string"]:
    return np.unique(np.geomspace(1, longest, points).round().astype(np.int64))


def _labels(
    network: Network, counts: Int64[np.ndarray, "string letter"]
) -> Bool[np.ndarray, " string"]:
    """The same for all strings of a family, whose letters are the same."""
    label = network.problem.count_task.labels_of_counts(counts[:1])[0]
    return np.full(len(counts), label, dtype=bool)


def _counted_changes(network: Network, family: Family, first: int) -> tuple[Change, ...]:
    """Every change over the last free count; with two, the first one has this value."""
    step = np.array(family.free[-1])
    start = np.array(family.fixed) + first * np.array(family.free[0])
    changes = sign_changes(network, start, step, 1, MAX_COUNT)
    before = network.logits(start + (changes - 1)[:, None] * step).tolist()
    after = network.logits(start + changes[:, None] * step).tolist()
    return tuple(
        Change(n, logit > 0, logit_before, logit)
        for n, logit_before, logit in zip(changes.tolist(), before, after, strict=True)
    )


def _tried_curve(model: TrainedModel, family: Family, points: int) -> Curve:
    longest = _longest(family)
    known = _Known(model, family, ())
    first = np.arange(1, min(16, longest) + 1)
    known.try_all(np.union1d(first, _grid(longest, points)).tolist())
    if not known.logits:
        raise InvalidStringError(
            f"{family.text[:60]!r}: even its first string is longer than the model has places for"
        )
    changes = known.changes()
    tried = sorted(known.logits)
    labels = np.array([known.labels[n] for n in tried], dtype=bool)
    logits = np.array([known.logits[n] for n in tried], dtype=np.float64)
    return Curve(family, np.array(tried, dtype=np.int64), labels, logits, changes, None)


def _tried_map(model: TrainedModel, family: Family, points: int) -> Map:
    grid = _grid(_longest(family), points)
    values = grid.tolist()
    logits = np.full((len(grid), len(grid)), np.nan)
    labels = np.zeros((len(grid), len(grid)), dtype=bool)
    changes = []
    for row, value in enumerate(values):
        known = _Known(model, family, (value,))
        known.try_all(values)
        logits[row] = [known.logits.get(other, np.nan) for other in values]
        labels[row] = [known.labels.get(other, False) for other in values]
        changes.append(known.changes())
    return Map(family, grid, grid, labels, logits, tuple(changes), False)


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

    def try_all(self, values: Sequence[int]) -> None:
        strings = [self._family.letters(*self._before, value) for value in values]
        found = self._model.ask_all(strings)
        for row in np.flatnonzero(found.known).tolist():
            self.labels[values[row]] = bool(found.labels[row])
            self.logits[values[row]] = float(found.logits[row])

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
        return Change(after, answer, self.logits[before], self.logits[after])

    def _positive(self, n: int) -> bool:
        if n not in self.logits:
            self.try_all([n])
        return self.logits[n] > 0
