"""What is proved of all strings, however long, that the report's model of one block may be given.

Without attention to `CLS` the logit depends on nothing but the proportions of the letters: what
holds for a proportion holds at every length. With it, a string of N letters is as a limit of which
`CLS` is a letter with the proportion 1/N; so what is proved for every such proportion from 0 to 1/N
holds for every string of at least N letters.

For each set of letters (a *support*) the simplex of its proportions is divided into *cells*,
simplices themselves. Softmax maps proportions to attention weights projectively, p_k e^{s_k} /
sum_j p_j e^{s_j}, so what each head adds to the stream lies in the convex hull of what it adds at a
cell's corners, in each head its own. Every linear functional of the state is then bounded by its
values at the corners, summed over the heads; from these follow two enclosures of the logit, of
which the tighter counts:

- interval arithmetic: the direct part plus each feed-forward unit's coefficient times the range
  of the GELU over the range of its input;
- the mean value theorem (without a norm): the logit at the center plus the range of the gradient
  times that of the displacement, where GELU's slope is bounded over the range of its input.

See Moore, Kearfott and Cloud, *Introduction to Interval Analysis* (2009), chapters 5 and 6.
"""

import math
from collections.abc import Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import ndtr

from seqcls.cancellation import check
from seqcls.interpretability.domains import refuse
from seqcls.interpretability.inside import counted, states
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.interpretability.wording import MOST_DIGITS, format_decimal, percent, round_digits, sign
from seqcls.text import count

# Bounds of the logit over cells.

ROUNDING = 1e-11
"""Bounds are widened by so much of the magnitude of the numbers that they are made of."""

LEAST_GELU = -0.7517915246935645
"""Where GELU has its minimum; it falls before and rises after."""

STEEPEST = math.sqrt(2)
"""GELU's slope is least at -STEEPEST and greatest at STEEPEST."""

Corners = Float[np.ndarray, "cell corner head hidden"]
"""What each head adds to the stream of `CLS` at the corners of cells."""


Vectors = Float[np.ndarray, "vector hidden"]


class Bounds(NamedTuple):
    """Lower and upper bounds of the same shape."""

    low: Float[np.ndarray, "*shape"]
    high: Float[np.ndarray, "*shape"]


class Block(NamedTuple):
    """The logit of the report's model as a function of what its heads add to the stream of `CLS`.

    It is direct . x + coefficients . GELU(units . x / norm(x) + offsets), with x the stream.
    """

    scores: Float[np.ndarray, "head token_type"]
    """How strongly `CLS` attends to one token of each type, itself first."""
    outputs: Float[np.ndarray, "head token_type hidden"]
    """What a head adds where all its attention is on one token type."""
    start: Float[np.ndarray, " hidden"]
    """The stream before attention."""
    direct: Float[np.ndarray, " hidden"]
    units: Float[np.ndarray, "ff hidden"]
    offsets: Float[np.ndarray, " ff"]
    coefficients: Float[np.ndarray, " ff"]
    norm: tuple[Float[np.ndarray, "hidden hidden"], float] | None
    """The coordinates whose root mean square a norm divides by, and its epsilon."""

    def added(
        self, occurrences: Float[np.ndarray, "*string token_type"]
    ) -> Float[np.ndarray, "*string head hidden"]:
        """What each head adds where each token type that is attended to occurs so often."""
        with np.errstate(divide="ignore"):
            scores = self.scores + np.log(occurrences)[..., None, :]
        highest = scores.max(axis=-1, keepdims=True)
        weights = np.exp(scores - np.where(np.isfinite(highest), highest, 0))
        total = weights.sum(axis=-1, keepdims=True)
        weights /= np.where(total == 0, 1, total)
        return np.asarray((weights[..., None, :] @ self.outputs)[..., 0, :])


def block_of(model: TrainedModel) -> Block:
    """The numbers of a model of one block by letter counts, in double precision.

    Raises:
        ConfigError: of this model or task the proofs would not be true.
    """
    refuse(model.problem)
    config = model.config
    weights = {name: value.astype(np.float64) for name, value in model.weights.items()}
    names = ["embedding", *(f"blocks.0.attention.{x}" for x in ("scores", "value"))]
    seen = states(model, counted(model, np.ones((1, model.num_letters))), names)
    embedding, scores, values = (seen[name][0].numpy() for name in names)
    size = (config.num_attention_heads, config.attention_head_size, config.hidden_size)
    units, offsets, norm = weights["blocks.0.feed_forward.input.weight"], 0.0, None
    if config.has_norms:
        coordinates, inner = np.eye(config.hidden_size), units
        units = inner * weights["blocks.0.feed_forward_norm.weight"]
        if config.layer_norm == "nn":
            coordinates = coordinates - 1 / config.hidden_size
            units = units - units.mean(axis=1, keepdims=True)
            offsets = inner @ weights["blocks.0.feed_forward_norm.bias"]
        norm = coordinates, config.layer_norm_eps
    direct = weights["classifier.weight"][0]
    return Block(
        scores=scores[:, 0],
        outputs=values @ weights["blocks.0.attention.output.weight"].T.reshape(size),
        start=embedding[0],
        direct=direct,
        units=units,
        offsets=np.zeros(len(units)) + offsets,
        coefficients=direct @ weights["blocks.0.feed_forward.output.weight"],
        norm=norm,
    )


def logit_bounds(block: Block, corners: Corners) -> Bounds:
    """Bounds of the logit over cells."""
    direct, units = (_range(corners, x, block.start) for x in (block.direct[None], block.units))
    if block.norm is not None:
        x = _range(corners, block.norm[0], block.start)
        nearest, furthest = np.maximum(np.maximum(x.low, -x.high), 0), np.maximum(-x.low, x.high)
        # What the norm divides by, at least and at most.
        low, high = (
            np.sqrt((y**2).mean(axis=1, keepdims=True) + block.norm[1]) for y in (nearest, furthest)
        )
        units = Bounds(
            units.low / np.where(units.low < 0, low, high),
            units.high / np.where(units.high < 0, high, low),
        )
    units = Bounds(units.low + block.offsets, units.high + block.offsets)
    least = gelu(np.clip(LEAST_GELU, units.low, units.high))
    most = np.maximum(gelu(units.low), gelu(units.high))
    up, down = np.maximum(block.coefficients, 0), np.minimum(block.coefficients, 0)
    low = direct.low[:, 0] + least @ up + most @ down
    high = direct.high[:, 0] + most @ up + least @ down
    if block.norm is None:
        tighter = _mean_value(block, corners, units)
        low, high = np.maximum(low, tighter.low), np.minimum(high, tighter.high)
    magnitude = 1 + np.abs(direct.low[:, 0]) + np.abs(direct.high[:, 0])
    magnitude += (np.abs(units.low) + np.abs(units.high)) @ np.abs(block.coefficients)
    return Bounds(low - ROUNDING * magnitude, high + ROUNDING * magnitude)


def _range(corners: Corners, functionals: Vectors, start: Float[np.ndarray, " hidden"]) -> Bounds:
    """The range of linear functionals of the stream: of its start and what the heads add."""
    values, fixed = corners @ functionals.T, functionals @ start
    return Bounds(values.min(axis=1).sum(axis=1) + fixed, values.max(axis=1).sum(axis=1) + fixed)


def _mean_value(block: Block, corners: Corners, units: Bounds) -> Bounds:
    """Bounds by the logit at the center and the range of its gradient; without a norm."""
    center = corners.mean(axis=1, keepdims=True)
    state = block.start + center[:, 0].sum(axis=1)
    away = corners - center
    low, high = gelu_slope(units.low), gelu_slope(units.high)
    extreme = gelu_slope(np.array(STEEPEST))
    dips = (units.low < -STEEPEST) & (units.high > -STEEPEST)
    peaks = (units.low < STEEPEST) & (units.high > STEEPEST)
    least = np.where(dips, 1 - extreme, np.minimum(low, high))
    greatest = np.where(peaks, extreme, np.maximum(low, high))
    middle, radius = (least + greatest) / 2, (greatest - least) / 2
    gradient = block.direct + (middle * block.coefficients) @ block.units
    change = (away * gradient[:, None, None]).sum(axis=-1)
    moved = _range(away, block.units, np.zeros(len(block.direct)))
    furthest = np.maximum(np.abs(moved.low), np.abs(moved.high))
    spread = (radius * furthest) @ np.abs(block.coefficients)
    logit = state @ block.direct + gelu(state @ block.units.T) @ block.coefficients
    return Bounds(
        logit + change.min(axis=1).sum(axis=1) - spread,
        logit + change.max(axis=1).sum(axis=1) + spread,
    )


def gelu(x: Float[np.ndarray, "*any"]) -> Float[np.ndarray, "*any"]:
    """The exact GELU: x times the probability that a standard normal variable is below x."""
    return np.asarray(x * ndtr(x))


def gelu_slope(x: Float[np.ndarray, "*any"]) -> Float[np.ndarray, "*any"]:
    """The derivative of GELU: P(Z < x) + x times the normal density at x."""
    return np.asarray(ndtr(x) + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi))


# The proportions of some letters in cells.

RESOLVED = 0.02
"""Nats of logit between the bounds of a cell that is not divided further."""

MAX_CELLS = 20_000
"""Cells per support, after which what is not proved is left open."""


class Cells(NamedTuple):
    """A simplex of proportions in parts; every part a simplex itself."""

    corners: Float[np.ndarray, "cell corner letter"]
    """Proportions of the support's letters, in order; each corner sums to 1."""
    volume: Float[np.ndarray, " cell"]
    """Shares of the whole simplex."""
    low: Float[np.ndarray, " cell"]
    high: Float[np.ndarray, " cell"]
    """Proved bounds of the logit."""

    def judge(self, label: bool) -> tuple[Bool[np.ndarray, " cell"], Bool[np.ndarray, " cell"]]:
        """Which cells are proved right, and which wrong, of strings with this label."""
        positive, negative = self.low > 0, self.high <= 0
        return (positive, negative) if label else (negative, positive)

    def shares(self, label: bool) -> list[float]:
        """How much of the simplex is proved right, and wrong, and how much is open."""
        right, wrong = self.judge(label)
        return [float(self.volume[x].sum()) for x in (right, wrong, ~right & ~wrong)]


def divide(block: Block, support: tuple[int, ...], most_cls: float) -> Cells:
    """The simplex of these letters' proportions in cells.

    They are halved until their sign is proved, or their bounds are within `RESOLVED`, or the budget
    is spent. The bounds hold for all strings with at most `most_cls` tokens of `CLS` to a letter,
    at least 1 / `most_cls` letters; with 0 they are bounds of the limits.
    """
    corners, volume = np.eye(len(support))[None], np.ones(1)
    done = list[tuple[np.ndarray, ...]]()
    seen = 0
    while True:
        check()
        seen += len(corners)
        occurrences = np.zeros((*corners.shape[:2], block.scores.shape[1]))
        occurrences[:, :, [1 + letter for letter in support]] = corners
        ends = [outputs := block.added(occurrences)]
        if most_cls:
            occurrences[:, :, 0] = most_cls
            ends.append(block.added(occurrences))
        bounds = logit_bounds(block, np.concatenate(ends, axis=1))
        settled = (bounds.low > 0) | (bounds.high <= 0) | (bounds.high - bounds.low < RESOLVED)
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
    """Shares of the first of two letters, and what is proved there."""

    low: float
    high: float
    right: bool | None
    """None where nothing is proved."""


class SupportProof(NamedTuple):
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


class Certification(NamedTuple):
    """What is proved of all strings of at least `least_length` letters."""

    least_length: int
    """1 where the logit depends on proportions alone."""
    supports: tuple[SupportProof, ...]
    left_out: tuple[str, ...]
    """Supports with too many letters, or beyond the `MAX_SUPPORTS` first; nothing is said of
    them."""

    def describe(self, _: TrainedModel) -> Iterator[str]:
        """What is proved, in a sentence a support."""
        return certification_text(self)


def certify(model: TrainedModel, *, least_length: int | None = None) -> Certification:
    """Proofs for every support, the smaller first.

    Args:
        least_length: of the strings that the proofs are about, where `CLS` is attended to; one more
            than the longest test string if not given.

    Raises:
        ConfigError: of this model or task the proofs would not be true.
    """
    block = block_of(model)
    length = least_length or model.problem.test.lengths[-1] + 1
    if model.config.no_attend_cls:
        length = 1
    letters = range(model.num_letters)
    small = [s for n in letters[:MAX_LETTERS] for s in combinations(letters, n + 1)]
    left_out = [model.tokenizer.spell(support) for support in small[MAX_SUPPORTS:]]
    if model.num_letters > MAX_LETTERS:
        left_out.append(f"more than {MAX_LETTERS} letters")
    proofs = []
    for support in small[:MAX_SUPPORTS]:
        limits = cells = divide(block, support, 0.0)
        if not model.config.no_attend_cls:
            cells = divide(block, support, 1 / length)
        proofs.append(prove(model, support, cells, limits))
    return Certification(length, tuple(proofs), tuple(left_out))


def prove(
    model: TrainedModel, support: tuple[int, ...], cells: Cells, limits: Cells
) -> SupportProof:
    """What is proved of the strings with this support, of which cells and limits are given."""
    counts = np.isin(np.arange(model.num_letters), support).astype(np.int64)
    label = bool(model.problem.count_task.labels_of_counts(counts[None])[0])
    right, wrong = cells.judge(label)
    share = None
    if label:
        # Each required letter has at most so much in what is not proved right.
        required = [support.index(x) for x in model.problem.required_letters]
        greatest = cells.corners[~right][:, :, required].max(axis=1).min(axis=1)
        share = float(greatest.max(initial=0))
        share = share if share * len(required) < 1 else None
    return SupportProof(
        model.tokenizer.spell(support),
        label,
        _claim(cells, limits, label),
        *cells.shares(label),
        *limits.shares(label)[:2],
        float(np.abs(cells.low if label else cells.high).min()) if right.all() else None,
        share,
        _intervals(cells, right, wrong) if len(support) == 2 else (),
    )


def _claim(cells: Cells, limits: Cells, label: bool) -> Claim:
    (right, wrong), (right_at_last, wrong_at_last) = (x.judge(label) for x in (cells, limits))
    claims: dict[Claim, bool] = {
        "certified right": right.all(),
        "certified wrong": wrong.all(),
        "right in the end": right_at_last.all(),
        "wrong in the end": wrong_at_last.all(),
        "depends on the proportions": (right.any() or right_at_last.any())
        and (wrong.any() or wrong_at_last.any()),
    }
    return next((claim for claim, holds in claims.items() if holds), "not proved")


def _intervals(
    cells: Cells, right: Bool[np.ndarray, " cell"], wrong: Bool[np.ndarray, " cell"]
) -> tuple[ShareInterval, ...]:
    """All shares of the first of two letters, neighbors with the same claim as one."""
    shares = np.sort(cells.corners[:, :, 0], axis=1)
    intervals = list[ShareInterval]()
    for row in np.argsort(shares[:, 0]):
        claim = True if right[row] else False if wrong[row] else None
        low, high = shares[row].tolist()
        if intervals and intervals[-1].right == claim:
            low = intervals.pop().low
        intervals.append(ShareInterval(low, high, claim))
    return tuple(intervals)


# Proofs in plain sentences; numbers are rounded so that less is claimed than is proved.


def certification_text(certification: Certification) -> Iterator[str]:
    """What is proved of strings of every length: a sentence a support."""
    yield (
        "Proved for strings of every length, since the logit depends on the proportions of the "
        "letters alone:"
        if certification.least_length == 1
        else f"Proved for strings of {count(certification.least_length, 'letter')} and more:"
    )
    yield from map(_proof_text, certification.supports)
    if certification.left_out:
        yield f"No claim is made about strings of {', '.join(certification.left_out)}."


def _proof_text(proof: SupportProof) -> str:
    said = [f"strings of {' and '.join(proof.letters)} ({sign(proof.label)}): {proof.claim}"]
    if proof.margin is not None:
        least = format_decimal(round_digits(proof.margin, up=False))
        return f"{said[0]}, the logit at least {least} from zero"
    if proof.claim == "certified wrong":
        return said[0]
    if len(proof.letters) > 1:
        proved, in_the_end = (
            f"right for at least {_share(right)} of all proportions, wrong for at least "
            f"{_share(wrong)}"
            for right, wrong in (
                (proof.right, proof.wrong),
                (proof.right_in_the_end, proof.wrong_in_the_end),
            )
        )
        said.append(f"{proved}, at most {_share(proof.open, up=True)} not proved")
        if in_the_end != proved:
            said.append(f"as they grow without bound, {in_the_end}")
    if wrong := [_within(x) for x in proof.intervals if x.right is False]:
        said.append(f"wrong where the share of {proof.letters[0]} is {' and '.join(wrong)}")
    if proof.safe_share:
        share = _end(proof.safe_share, up=True)[1]
        said.append(f"right wherever each required letter has more than {share}")
    return "; ".join(said)


def _share(x: float, *, up: bool = False) -> str:
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
    if 0 < 1 - x < 1e-3:
        rest = round_digits(1 - x, up=not up, digits=digits)
        return 1 - rest, f"1 - {format_decimal(rest)}"
    share = round_digits(x, up=up, digits=digits)
    return share, format_decimal(share)
