"""Proofs about strings of every length, for the report's model of one block.

Without attention to `CLS` the logit depends on nothing but the proportions of the letters: what
holds for a proportion holds at every length. With it, a string of N letters is as a limit of which
`CLS` is a letter with the proportion 1/N; so what is proved for every such proportion from 0 to 1/N
holds for every string of at least N letters.

For each set of letters (a *support*) the simplex of its proportions is divided into *cells*,
simplices themselves, until the sign of the logit is proved on each by `bounds`.
"""

from collections.abc import Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int64

from seqcls.cancellation import check
from seqcls.interpretability.bounds import Block, Corners, block_of, logit_bounds
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.interpretability.wording import MOST_DIGITS, format_decimal, percent, round_digits, sign
from seqcls.text import count

# The proportions of some letters in cells.

RESOLVED = 0.02
"""Nats of logit between the bounds of a cell that is not divided further."""

MAX_CELLS = 20_000
"""Cells per support, after which all that is not proved is left open."""


Proved = Int64[np.ndarray, " cell"]
"""1 where the answer is proved right, -1 where wrong, 0 where it is open."""


class Cells(NamedTuple):
    """A simplex of proportions in parts; every part a simplex itself."""

    corners: Float[np.ndarray, "cell corner letter"]
    """Proportions of the support's letters, in order; each corner sums to 1."""
    volume: Float[np.ndarray, " cell"]
    """Shares of the whole simplex."""
    low: Float[np.ndarray, " cell"]
    high: Float[np.ndarray, " cell"]
    """Proved bounds of the logit."""

    def judge(self, label: bool) -> Proved:
        """The proved correctness of the answers to strings with this label."""
        positive = np.where(self.low > 0, 1, np.where(self.high <= 0, -1, 0))
        return positive if label else -positive


def divide(block: Block, support: tuple[int, ...], most_cls: float) -> Cells:
    """The simplex of these letters' proportions in cells.

    They are halved until their sign is proved, or their bounds are within `RESOLVED`, or the budget
    is spent. The bounds hold for all strings with at most `most_cls` tokens of `CLS` to a letter,
    at least 1 / `most_cls` letters; with 0 they are bounds of the limits.
    """
    # The whole simplex first: at each of its corners there is one letter alone.
    corners, volume = np.eye(len(support))[None], np.ones(1)
    done = list[tuple[np.ndarray, ...]]()
    seen = 0
    while True:
        check()
        seen += len(corners)
        occurrences = np.zeros((*corners.shape[:2], block.scores.shape[1]))
        # `CLS` is token type 0; the letters follow.
        occurrences[:, :, [1 + letter for letter in support]] = corners
        ends = [outputs := block.attend(occurrences)]
        # Any share of `CLS` in between lies in the hull of these corners without it and with most.
        if most_cls:
            occurrences[:, :, 0] = most_cls
            ends.append(block.attend(occurrences))
        bounds = logit_bounds(block, np.concatenate(ends, axis=1))
        settled = (bounds.low > 0) | (bounds.high <= 0) | (bounds.high - bounds.low < RESOLVED)
        # The simplex of one letter is a point, which no cut makes smaller.
        settled |= seen > MAX_CELLS or len(support) == 1
        done.append(tuple(x[settled] for x in (corners, volume, *bounds)))
        if settled.all():
            break
        corners, volume = _halve(
            block, support, corners[~settled], volume[~settled], outputs[~settled]
        )
    return Cells(*(np.concatenate(parts) for parts in zip(*done, strict=True)))


def _halve(
    block: Block,
    support: tuple[int, ...],
    corners: Float[np.ndarray, "cell corner letter"],
    volume: Float[np.ndarray, " cell"],
    outputs: Corners,
) -> tuple[Float[np.ndarray, "half corner letter"], Float[np.ndarray, " half"]]:
    """Each cell in two, across the edge along which the state changes most.

    The edge is cut where, in the head in which it is longest, attention is half way: near a corner
    a letter outweighs others by orders of magnitude, and half way in proportions would be far off.
    """
    edges = np.array(list(combinations(range(len(support)), 2)))
    # (cell, edge, head)
    lengths = np.linalg.norm(outputs[:, edges[:, 0]] - outputs[:, edges[:, 1]], axis=3)
    longest, head = np.divmod(lengths.reshape(len(corners), -1).argmax(axis=1), lengths.shape[2])
    one, other = edges[longest].T
    rows = np.arange(len(corners))
    scores = block.scores[:, [1 + letter for letter in support]]
    strength = np.exp(scores - scores.max(axis=1, keepdims=True))[head]
    first, second = corners[rows, one], corners[rows, other]
    share = (second * strength).sum(axis=1)
    share = share / (share + (first * strength).sum(axis=1))
    # Never so near an end that a half would have no volume left.
    share = np.clip(share, 1e-6, 1 - 1e-6)[:, None]
    halves = corners.copy(), corners.copy()
    halves[0][rows, other] = halves[1][rows, one] = share * first + (1 - share) * second
    # The half that keeps the first corner has lost the share of the edge beyond the middle.
    volumes = volume * (1 - share[:, 0]), volume * share[:, 0]
    return np.concatenate(halves), np.concatenate(volumes)


# What follows for every support.

MAX_LETTERS = 4
"""The most letters of a support; the simplices of more letters are too many to be divided."""

MAX_SUPPORTS = 64

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


class ShareInterval(NamedTuple):
    """Shares of the first of two letters, and the claim that is proved there."""

    low: float
    high: float
    right: bool | None
    """None where nothing is proved."""


class SupportProof(NamedTuple):
    """A proof about all strings that consist of exactly these letters."""

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
    """The proved least |logit| where all is proved right."""
    safe_share: float | None
    """Proved right wherever each required letter has more than this share; positive supports."""
    intervals: tuple[ShareInterval, ...]
    """Supports of two letters: all shares of the first, ascending."""


class Certification(NamedTuple):
    """Proofs about all strings of at least `least_length` letters."""

    least_length: int
    """1 where the logit depends on proportions alone."""
    supports: tuple[SupportProof, ...]
    left_out: tuple[str, ...]
    """Supports with too many letters, or beyond the first `MAX_SUPPORTS`, without a claim."""

    def describe(self, _: object = None) -> Iterator[str]:
        """Yields the proofs about strings of every length: a sentence a support."""
        yield (
            "Proved for strings of every length, since the logit depends on the proportions of the "
            "letters alone:"
            if self.least_length == 1
            else f"Proved for strings of {count(self.least_length, 'letter')} and more:"
        )
        yield from map(_proof_text, self.supports)
        if self.left_out:
            yield f"No claim is made about strings of {', '.join(self.left_out)}."


def certify(model: TrainedModel) -> Certification:
    """Proofs for every support, the smaller first.

    Where `CLS` is attended to they are about strings longer than the longest test string.

    Raises:
        ConfigError: of this model or task the proofs would not be true.
    """
    block = block_of(model)
    length = 1 if model.config.no_attend_cls else model.problem.test.lengths[-1] + 1
    letters = range(model.num_letters)
    small = [s for n in letters[:MAX_LETTERS] for s in combinations(letters, n + 1)]
    left_out = [model.tokenizer.spell(support) for support in small[MAX_SUPPORTS:]]
    if model.num_letters > MAX_LETTERS:
        left_out.append(f"more than {MAX_LETTERS} letters")
    proofs = []
    for support in small[:MAX_SUPPORTS]:
        # In the limit `CLS` has no share of the string.
        limits = cells = divide(block, support, 0.0)
        if not model.config.no_attend_cls:
            cells = divide(block, support, 1 / length)
        proofs.append(prove(model, support, cells, limits))
    return Certification(length, tuple(proofs), tuple(left_out))


def prove(
    model: TrainedModel, support: tuple[int, ...], cells: Cells, limits: Cells
) -> SupportProof:
    """The proof about the strings with this support, from its cells and limits."""
    counts = np.isin(np.arange(model.num_letters), support).astype(np.int64)
    label = bool(model.problem.count_task.labels_of_counts(counts[None])[0])
    proved, in_the_end = cells.judge(label), limits.judge(label)
    share = margin = None
    if (proved == 1).all():
        # The bound nearer to 0 is the lower one of a positive logit, the upper one of a negative.
        margin = float(np.abs(cells.low if label else cells.high).min())
    if label:
        # Each required letter has at most so much in the cells that are not proved right.
        required = [support.index(x) for x in model.problem.required_letters]
        greatest = cells.corners[proved < 1][:, :, required].max(axis=1).min(axis=1)
        share = float(greatest.max(initial=0))
        # The required letters' shares sum to 1 at most, so not all of them can have more.
        share = share if share * len(required) < 1 else None
    right, wrong, unproved = (float(cells.volume[proved == x].sum()) for x in (1, -1, 0))
    last = [float(limits.volume[in_the_end == x].sum()) for x in (1, -1)]
    intervals = _intervals(cells, proved) if len(support) == 2 else ()
    shares = right, wrong, unproved, last[0], last[1]
    letters = model.tokenizer.spell(support)
    return SupportProof(
        letters, label, _claim(proved, in_the_end), *shares, margin, share, intervals
    )


def _claim(proved: Proved, in_the_end: Proved) -> Claim:
    # All cells have the same sign, and none is open.
    if abs(proved.sum()) == len(proved):
        return "certified right" if proved[0] > 0 else "certified wrong"
    if abs(in_the_end.sum()) == len(in_the_end):
        return "right in the end" if in_the_end[0] > 0 else "wrong in the end"
    both = {1, -1} <= {*proved.tolist(), *in_the_end.tolist()}
    return "depends on the proportions" if both else "not proved"


def _intervals(cells: Cells, proved: Proved) -> tuple[ShareInterval, ...]:
    """All shares of the first of two letters, neighbors with the same claim as one."""
    shares = np.sort(cells.corners[:, :, 0], axis=1)
    intervals = list[ShareInterval]()
    for row in np.argsort(shares[:, 0]).tolist():
        claim = {1: True, -1: False}.get(int(proved[row]))
        low, high = shares[row].tolist()
        if intervals and intervals[-1].right == claim:
            low = intervals.pop().low
        intervals.append(ShareInterval(low, high, claim))
    return tuple(intervals)


# Proofs in plain sentences; numbers are rounded so that less is claimed than is proved.


def _proof_text(proof: SupportProof) -> str:
    clauses = [f"strings of {' and '.join(proof.letters)} ({sign(proof.label)}): {proof.claim}"]
    if proof.margin is not None:
        least = format_decimal(round_digits(proof.margin, up=False))
        return f"{clauses[0]}, the logit at least {least} from zero"
    if proof.claim == "certified wrong":
        return clauses[0]
    if len(proof.letters) > 1:
        proved, in_the_end = (
            f"right for at least {_share(right)} of all proportions, wrong for at least "
            f"{_share(wrong)}"
            for right, wrong in (
                (proof.right, proof.wrong),
                (proof.right_in_the_end, proof.wrong_in_the_end),
            )
        )
        clauses.append(f"{proved}, at most {_share(proof.open, up=True)} not proved")
        if in_the_end != proved:
            clauses.append(f"as they grow without bound, {in_the_end}")
    if wrong := [_within(x) for x in proof.intervals if x.right is False]:
        clauses.append(f"wrong where the share of {proof.letters[0]} is {' and '.join(wrong)}")
    if proof.safe_share:
        share = _end(proof.safe_share, up=True)[1]
        clauses.append(f"right wherever each required letter has more than {share}")
    return "; ".join(clauses)


def _share(x: float, *, up: bool = False) -> str:
    # Rounded to hundredths of a percent, anything beyond would read as nothing or all.
    if 1e-4 <= x <= 1 - 1e-4:
        toward = ROUND_CEILING if up else ROUND_FLOOR
        return percent(float(Decimal(x).quantize(Decimal("1e-4"), toward)))
    return _end(x, up=up)[1]


def _within(interval: ShareInterval) -> str:
    """The widest interval within this one whose ends have three digits, or more if it is narrow."""
    for digits in range(3, MOST_DIGITS):
        low, first = _end(interval.low, up=True, digits=digits)
        high, last = _end(interval.high, up=False, digits=digits)
        if low < high:
            return f"{first} to {last}"
    return f"{interval.low!r} to {interval.high!r}"


def _end(x: float, *, up: bool, digits: int = 3) -> tuple[Decimal, str]:
    """A share, rounded up or down, and how it is written."""
    # Near 1 the first three digits carry no information: 1 minus the share is written.
    if 0 < 1 - x < 1e-3:
        rest = round_digits(1 - x, up=not up, digits=digits)
        return 1 - rest, f"1 - {format_decimal(rest)}"
    share = round_digits(x, up=up, digits=digits)
    return share, format_decimal(share)
