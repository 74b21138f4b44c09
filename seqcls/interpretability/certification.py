"""Which of all strings a model misclassifies: counted up to a length, and proved beyond."""

from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float, Int64

from seqcls.cancellation import check
from seqcls.errors import ConfigError
from seqcls.interpretability.bounds import logit_bounds
from seqcls.interpretability.domains import multisets_of, num_multisets
from seqcls.interpretability.network import Network, refuse
from seqcls.interpretability.verdicts import MAX_MULTISETS

# Where the misclassified strings lie, among all strings up to a length.


@dataclass(frozen=True, eq=False)
class Errors:
    """All misclassified multisets up to a length, the shortest first, then as text."""

    max_length: int
    multisets: int
    """How many were tried."""
    counts: Int64[np.ndarray, "error letter"]
    logits: Float[np.ndarray, " error"]
    label: Bool[np.ndarray, " error"]
    texts: tuple[str, ...]

    @property
    def lengths(self) -> Int64[np.ndarray, " error"]:
        """Letters of each."""
        return np.asarray(self.counts.sum(axis=1))

    def by_length(self) -> Int64[np.ndarray, "length token_type"]:
        """False positives and false negatives of every length from 0 on."""
        cells = np.bincount(2 * self.lengths + self.label, minlength=2 * (self.max_length + 1))
        return cells.reshape(-1, 2)

    def page(self, first: int, size: int) -> "Errors":
        """Some of them, in order."""
        part = slice(first, first + size)
        return Errors(
            self.max_length,
            self.multisets,
            self.counts[part],
            self.logits[part],
            self.label[part],
            self.texts[part],
        )


def errors_up_to(network: Network, max_length: int | None = None) -> Errors:
    """Every misclassified multiset of at most `max_length` letters, in float64.

    The stored verdict is that of the run's own precision: the two may differ in multisets whose
    logit is zero but for rounding.

    Args:
        max_length: the longest test string's if not given.

    Raises:
        ConfigError: there are more than `MAX_MULTISETS`, or the order of tokens has a part.
    """
    refuse(network.problem, "labels")
    letters = network.num_letters
    length = network.problem.test.lengths[-1] if max_length is None else max_length
    multisets = num_multisets(letters, length)
    if multisets > MAX_MULTISETS:
        raise ConfigError(
            f"max_length={length}: there are {multisets:,} multisets of {letters} letters, "
            f"expected at most {MAX_MULTISETS:,}; lower max_length"
        )
    counts = multisets_of(network.problem, length)
    logits = network.logits(counts)
    label = network.problem.count_task.labels_of_counts(counts)
    wrong = np.flatnonzero(((logits > 0) != label) | np.isnan(logits))
    texts = [network.tokenizer.text_of_counts(row) for row in counts[wrong].tolist()]
    lengths = counts[wrong].sum(axis=1).tolist()
    order = sorted(range(len(wrong)), key=lambda x: (lengths[x], texts[x]))
    wrong = wrong[order]
    return Errors(
        max_length=length,
        multisets=len(counts),
        counts=counts[wrong],
        logits=logits[wrong],
        label=label[wrong],
        texts=tuple(texts[x] for x in order),
    )


# The proportions of some letters, divided until the sign of the logit is proved on each part.
#
# A part is a simplex of proportions, and its bounds hold for all lengths from the least one on: for
# every share of `CLS` from 0 to 1 over that length, where it is attended to. Parts are halved until
# their sign is proved by `seqcls.interpretability.bounds`, or they are so small that
# their logits are within `RESOLVED` of each other, or the budget is spent.

RESOLVED = 0.02
"""Nats of logit between the bounds of a cell that is not divided further."""
MOST_CELLS = 20_000
"""Cells per support, after which what is not proved is left open."""


@dataclass(frozen=True, eq=False)
class Cells:
    """A simplex of proportions in parts; every part a simplex itself."""

    corners: Float[np.ndarray, "cell corner letter"]
    """Proportions of the support's letters, in order; each corner sums to 1."""
    volume: Float[np.ndarray, " cell"]
    """Shares of the whole simplex."""
    low: Float[np.ndarray, " cell"]
    high: Float[np.ndarray, " cell"]
    """Proved bounds of the logit."""


def divide(network: Network, support: tuple[int, ...], most_cls: float) -> Cells:
    """The simplex of these letters' proportions in cells.

    The bounds hold for all strings with at most `most_cls` tokens of `CLS` to a letter: at least
    1 / `most_cls` letters. With 0 they are bounds of the limits.
    """
    corners = np.eye(len(support))[None]
    volume = np.ones(1)
    done: list[tuple[np.ndarray, ...]] = []
    seen = 0
    while len(corners):
        check()
        seen += len(corners)
        outputs = _outputs(network, support, corners, 0.0)
        ends = (
            [outputs] if most_cls == 0 else [outputs, _outputs(network, support, corners, most_cls)]
        )
        bounds = logit_bounds(network, np.concatenate(ends, axis=1))
        settled = (bounds.low > 0) | (bounds.high <= 0) | (bounds.high - bounds.low < RESOLVED)
        settled |= seen > MOST_CELLS or len(support) == 1
        done.append((corners[settled], volume[settled], *(x[settled] for x in bounds)))
        corners, volume = _bisect(
            network, support, corners[~settled], volume[~settled], outputs[~settled]
        )
    return Cells(*(np.concatenate(parts) for parts in zip(*done, strict=True)))


def _outputs(
    network: Network,
    support: tuple[int, ...],
    corners: Float[np.ndarray, "cell corner letter"],
    cls: float,
) -> Float[np.ndarray, "cell corner head hidden"]:
    """What the heads add at the corners, with so much of `CLS` to one of all letters."""
    cells, points, _ = corners.shape
    occurrences = np.zeros((cells, points, network.num_letters + 1))
    occurrences[:, :, 0] = cls
    occurrences[:, :, [1 + x for x in support]] = corners
    flat = occurrences.reshape(cells * points, occurrences.shape[2])
    heads = range(network.config.num_attention_heads)
    outputs = np.array([network.head_output(head, flat) for head in heads])
    shape = (len(heads), cells, points, network.config.hidden_size)
    return np.moveaxis(outputs.reshape(shape), 0, 2)


def _bisect(
    network: Network,
    support: tuple[int, ...],
    corners: Float[np.ndarray, "cell corner letter"],
    volume: Float[np.ndarray, " cell"],
    outputs: Float[np.ndarray, "cell corner head hidden"],
) -> tuple[Float[np.ndarray, "half corner letter"], Float[np.ndarray, " half"]]:
    """Each cell in two, across the edge along which the state changes most.

    The edge is cut where, in the head in which it is longest, attention is half way: near a corner
    a letter outweighs others by orders of magnitude, and half way in proportions would be far off.
    """
    if not len(corners):
        return corners, volume
    edges = list(combinations(range(len(support)), 2))
    lengths = np.stack(
        [np.linalg.norm(outputs[:, i] - outputs[:, j], axis=2) for i, j in edges], axis=1
    )
    longest, head = np.divmod(lengths.reshape(len(corners), -1).argmax(axis=1), lengths.shape[2])
    one, other = np.array(edges)[longest].T
    rows = np.arange(len(corners))
    scores = network.scores[:, 0, [1 + x for x in support]]
    strength = np.exp(scores - scores.max(axis=1, keepdims=True))[head]
    first, second = corners[rows, one], corners[rows, other]
    share = (second * strength).sum(axis=1)
    share = share / (share + (first * strength).sum(axis=1))
    # Never so near an end that a half would have no volume left.
    share = np.clip(share, 1e-6, 1 - 1e-6)[:, None]
    middle = share * first + (1 - share) * second
    halves = corners.copy(), corners.copy()
    halves[0][rows, other], halves[1][rows, one] = middle, middle
    # The half that keeps the first corner has lost the share of the edge beyond the middle.
    volumes = volume * (1 - share[:, 0]), volume * share[:, 0]
    return np.concatenate(halves), np.concatenate(volumes)


# What can be proved about all strings, however long.
#
# Without attention to `CLS` the logit depends on nothing but the proportions of the letters: what
# holds for a proportion holds at every length. With it, a string of N letters is as a limit of
# which `CLS` is a letter with the proportion 1/N; so what is proved for every such proportion from
# 0 to 1/N holds for every string of at least N letters.
#
# For each set of letters (a *support*), `seqcls.interpretability.certification` divides the simplex
# of its proportions into parts with a proved sign. What is left over is said to be open.

MOST_LETTERS = 4
"""The most letters of a support; the simplices of more letters are too many to be divided."""
MOST_SUPPORTS = 64

Claim = Literal[
    "certified right",
    "certified wrong",
    "right in the end",
    "wrong in the end",
    "depends on the proportions",
    "not proved",
]
"""For ever: at every length from the least on. In the end: from some length on, which may be more,
since with the share of `CLS` the answer may change once more."""


@dataclass(frozen=True)
class ShareInterval:
    """Shares of the first of two letters, and what is proved there."""

    low: float
    high: float
    right: bool | None
    """None where nothing is proved."""


@dataclass(frozen=True, eq=False)
class SupportProof:
    """What is proved of all strings that consist of exactly these letters."""

    letters: str
    label: bool
    claim: Claim
    right: float
    wrong: float
    open: float
    """Shares of the simplex of proportions, which sum to 1."""
    right_in_the_end: float
    wrong_in_the_end: float
    """Shares of the simplex with this sign in the limit, as strings of these proportions grow."""
    margin: float | None
    """Where all is proved right, by how much: the proved least |logit|."""
    safe_share: float | None
    """Proved right wherever each required letter has more than this share; positive supports."""
    intervals: tuple[ShareInterval, ...]
    """Supports of two letters: all shares of the first, ascending."""
    cells: Cells

    def record(self) -> dict[str, Any]:
        """What programs read of it."""
        record = {name: value for name, value in vars(self).items() if name != "cells"}
        return {**record, "intervals": [asdict(interval) for interval in self.intervals]}


@dataclass(frozen=True, eq=False)
class Certification:
    """What is proved of all strings of at least `least_length` letters."""

    least_length: int
    """1 where the logit depends on proportions alone."""
    supports: tuple[SupportProof, ...]
    left_out: tuple[str, ...]
    """Supports with too many letters, or beyond the `MOST_SUPPORTS` first; nothing is said of
    them."""

    def record(self) -> dict[str, Any]:
        """What programs read of it."""
        return {
            "least_length": self.least_length,
            "supports": [proof.record() for proof in self.supports],
            "left_out": self.left_out,
        }


def certify(network: Network, *, least_length: int | None = None) -> Certification:
    """Proofs for every support, the smaller first.

    Args:
        least_length: of the strings that the proofs are about, where `CLS` is attended to; one more
            than the longest test string if not given.

    Raises:
        ConfigError: of this model or task the proofs would not be true.
    """
    refuse(network.problem)
    length = least_length or network.problem.test.lengths[-1] + 1
    if network.config.no_attend_cls:
        length = 1
    letters = range(network.num_letters)
    small = [s for n in letters[:MOST_LETTERS] for s in combinations(letters, n + 1)]
    names = [network.tokenizer.spell(support) for support in small]
    proofs = [prove(network, support, length) for support in small[:MOST_SUPPORTS]]
    left_out = names[MOST_SUPPORTS:]
    if network.num_letters > MOST_LETTERS:
        left_out.append(f"more than {MOST_LETTERS} letters")
    return Certification(length, tuple(proofs), tuple(left_out))


def prove(network: Network, support: tuple[int, ...], least_length: int) -> SupportProof:
    """What is proved of the strings of `least_length` letters and more with this support."""
    counts = np.isin(np.arange(network.num_letters), support).astype(np.int64)
    label = bool(network.problem.count_task.labels_of_counts(counts[None])[0])
    limits = divide(network, support, 0.0)
    cells = limits
    if not network.config.no_attend_cls:
        cells = divide(network, support, 1 / least_length)
    right, wrong = _judge(cells, label)
    shares = _shares(cells, label)
    in_the_end = _shares(limits, label)
    return SupportProof(
        letters=network.tokenizer.spell(support),
        label=label,
        claim=_claim(cells, limits, label),
        right=shares[0],
        wrong=shares[1],
        open=shares[2],
        right_in_the_end=in_the_end[0],
        wrong_in_the_end=in_the_end[1],
        margin=float(np.abs(cells.low if label else cells.high).min()) if right.all() else None,
        safe_share=_safe_share(network, support, cells, right) if label else None,
        intervals=_intervals(cells, right, wrong) if len(support) == 2 else (),
        cells=cells,
    )


def _judge(cells: Cells, label: bool) -> tuple[np.ndarray, np.ndarray]:
    """Which cells are proved right, and which wrong."""
    positive, negative = cells.low > 0, cells.high <= 0
    return (positive, negative) if label else (negative, positive)


def _shares(cells: Cells, label: bool) -> tuple[float, float, float]:
    right, wrong = _judge(cells, label)
    proved = [float(cells.volume[part].sum()) for part in (right, wrong)]
    return proved[0], proved[1], float(cells.volume[~right & ~wrong].sum())


def _claim(cells: Cells, limits: Cells, label: bool) -> Claim:
    right, wrong = _judge(cells, label)
    right_at_last, wrong_at_last = _judge(limits, label)
    if right.all():
        return "certified right"
    if wrong.all():
        return "certified wrong"
    if right_at_last.all():
        return "right in the end"
    if wrong_at_last.all():
        return "wrong in the end"
    somewhere = right.any() or right_at_last.any(), wrong.any() or wrong_at_last.any()
    return "depends on the proportions" if all(somewhere) else "not proved"


def _safe_share(
    network: Network, support: tuple[int, ...], cells: Cells, right: np.ndarray
) -> float | None:
    """A share of every required letter above which nothing but proved cells is left."""
    required = [support.index(x) for x in network.problem.required_letters]
    greatest = cells.corners[~right][:, :, required].max(axis=1).min(axis=1)
    share = float(greatest.max(initial=0))
    return share if share * len(required) < 1 else None


def _intervals(cells: Cells, right: np.ndarray, wrong: np.ndarray) -> tuple[ShareInterval, ...]:
    shares = np.sort(cells.corners[:, :, 0], axis=1)
    intervals: list[ShareInterval] = []
    for row in np.argsort(shares[:, 0]):
        claim = True if right[row] else False if wrong[row] else None
        low, high = shares[row].tolist()
        if intervals and intervals[-1].right == claim:
            low = intervals.pop().low
        intervals.append(ShareInterval(low, high, claim))
    return tuple(intervals)
