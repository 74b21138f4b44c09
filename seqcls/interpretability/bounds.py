"""Proved bounds of a logit, and where its sign changes."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int64
from scipy.special import ndtr

from seqcls.interpretability.network import Network, gelu

# Proved bounds on the logit over whole regions of attention, instead of single strings.
#
# A *cell* is a set of strings such that what each head adds to the stream lies in the convex hull
# of what it adds at the cell's corners. Softmax maps proportions of letters to attention weights
# projectively, so a simplex of proportions is such a cell: p_k e^{s_k} / sum_j p_j e^{s_j} takes
# simplices to simplices, in each head its own. So is a family of strings from one count to another.
#
# Every linear functional of the state is then bounded by its values at the corners, summed over the
# heads; from these follow two enclosures of the logit, of which the tighter counts:
#
# - interval arithmetic: the direct part plus each feed-forward unit's coefficient times the range
#   of the GELU over the range of its input;
# - the mean value theorem (without a norm): the logit at the centre plus the range of the gradient
#   times that of the displacement, where GELU's slope is bounded over the range of its input.
#
# See Moore, Kearfott and Cloud, *Introduction to Interval Analysis* (2009), chapters 5 and 6.
# Rounding is allowed for by a margin of `ROUNDING` times the numbers' magnitude.

ROUNDING = 1e-11
LEAST_GELU = -0.7517915246935645
"""Where GELU has its minimum; it falls before and rises after."""
STEEPEST = math.sqrt(2)
"""GELU's slope is least at -STEEPEST and greatest at STEEPEST."""


class Bounds(NamedTuple):
    """Lower and upper bounds of the same shape."""

    low: Float[np.ndarray, "*shape"]
    high: Float[np.ndarray, "*shape"]

    def plus(self, number: Float[np.ndarray, "*shape"] | float) -> "Bounds":
        return Bounds(self.low + number, self.high + number)

    def dot(self, factors: Float[np.ndarray, " n"]) -> "Bounds":
        """The range of a linear combination over the last axis."""
        up, down = np.maximum(factors, 0), np.minimum(factors, 0)
        return Bounds(self.low @ up + self.high @ down, self.high @ up + self.low @ down)


@dataclass(frozen=True, eq=False)
class _Readers:
    """The linear functionals of the state of `CLS` that the logit is made of."""

    direct: Float[np.ndarray, " hidden"]
    units: Float[np.ndarray, "ff hidden"]
    """Inputs of the feed-forward units, before they are divided by the norm's scale."""
    offsets: Float[np.ndarray, " ff"]
    coefficients: Float[np.ndarray, " ff"]
    """What a unit's activation adds to the logit."""


def logit_bounds(network: Network, corners: Float[np.ndarray, "cell corner head hidden"]) -> Bounds:
    """Bounds of the logit over cells, given what each head adds to the stream at their corners."""
    readers = _readers(network)
    base = network.embedding[0]
    direct = _range(corners, readers.direct[None], base)
    units = _range(corners, readers.units, base)
    if network.config.has_norms:
        units = _divide(units, _scale(network, corners))
    units = units.plus(readers.offsets)
    plain = _gelu_range(units).dot(readers.coefficients)
    low, high = direct.low[:, 0] + plain.low, direct.high[:, 0] + plain.high
    if not network.config.has_norms:
        mean_value = _mean_value(network, readers, corners, units)
        low, high = np.maximum(low, mean_value.low), np.minimum(high, mean_value.high)
    magnitude = 1 + np.abs(direct.low[:, 0]) + np.abs(direct.high[:, 0])
    magnitude += (np.abs(units.low) + np.abs(units.high)) @ np.abs(readers.coefficients)
    return Bounds(low - ROUNDING * magnitude, high + ROUNDING * magnitude)


def _readers(network: Network) -> _Readers:
    config, weights = network.config, network.weights
    inner = weights["blocks.0.feed_forward.input.weight"]
    output = weights["blocks.0.feed_forward.output.weight"]
    units, offsets = inner, np.zeros(len(inner))
    if config.has_norms:
        units = inner * weights["blocks.0.feed_forward_norm.weight"]
        if config.layer_norm == "nn":
            units = units - units.mean(axis=1, keepdims=True)
            offsets = inner @ weights["blocks.0.feed_forward_norm.bias"]
    return _Readers(network.classifier, units, offsets, network.classifier @ output)


def _range(
    corners: Float[np.ndarray, "cell corner head hidden"],
    functionals: Float[np.ndarray, "functional hidden"],
    base: Float[np.ndarray, " hidden"],
) -> Bounds:
    """The range of linear functionals of base + what the heads add."""
    values = corners @ functionals.T
    fixed = functionals @ base
    return Bounds(values.min(axis=1).sum(axis=1) + fixed, values.max(axis=1).sum(axis=1) + fixed)


def _scale(network: Network, corners: Float[np.ndarray, "cell corner head hidden"]) -> Bounds:
    """The range of what a norm divides by."""
    size = network.config.hidden_size
    coordinates = np.eye(size)
    if network.config.layer_norm == "nn":
        coordinates -= 1 / size
    x = _range(corners, coordinates, network.embedding[0])
    greatest = np.maximum(np.abs(x.low), np.abs(x.high))
    least = np.where((x.low <= 0) & (x.high >= 0), 0, np.minimum(np.abs(x.low), np.abs(x.high)))
    eps = network.config.layer_norm_eps
    return Bounds(
        np.sqrt((least**2).mean(axis=1, keepdims=True) + eps),
        np.sqrt((greatest**2).mean(axis=1, keepdims=True) + eps),
    )


def _divide(numbers: Bounds, scale: Bounds) -> Bounds:
    return Bounds(
        numbers.low / np.where(numbers.low < 0, scale.low, scale.high),
        numbers.high / np.where(numbers.high < 0, scale.high, scale.low),
    )


def _gelu_range(x: Bounds) -> Bounds:
    lowest = np.clip(LEAST_GELU, x.low, x.high)
    return Bounds(gelu(lowest), np.maximum(gelu(x.low), gelu(x.high)))


def _slope_range(x: Bounds) -> Bounds:
    low, high = gelu_slope(x.low), gelu_slope(x.high)
    dips = (x.low < -STEEPEST) & (x.high > -STEEPEST)
    peaks = (x.low < STEEPEST) & (x.high > STEEPEST)
    extreme = gelu_slope(np.array(STEEPEST))
    return Bounds(
        np.where(dips, 1 - extreme, np.minimum(low, high)),
        np.where(peaks, extreme, np.maximum(low, high)),
    )


def _mean_value(
    network: Network,
    readers: _Readers,
    corners: Float[np.ndarray, "cell corner head hidden"],
    units: Bounds,
) -> Bounds:
    centre = corners.mean(axis=1, keepdims=True)
    state = network.embedding[0] + centre[:, 0].sum(axis=1)
    displacement = corners - centre
    slopes = _slope_range(units)
    middle, radius = (slopes.low + slopes.high) / 2, (slopes.high - slopes.low) / 2
    gradient = readers.direct + (middle * readers.coefficients) @ readers.units
    change = (displacement * gradient[:, None, None]).sum(axis=-1)
    moved = _range(displacement, readers.units, np.zeros(len(readers.direct)))
    furthest = np.maximum(np.abs(moved.low), np.abs(moved.high))
    spread = (radius * furthest) @ np.abs(readers.coefficients)
    logit = network.logits_after_attention(state)
    return Bounds(
        logit + change.min(axis=1).sum(axis=1) - spread,
        logit + change.max(axis=1).sum(axis=1) + spread,
    )


def gelu_slope(x: Float[np.ndarray, "*any"]) -> Float[np.ndarray, "*any"]:
    """The derivative of GELU: P(Z < x) + x times the normal density at x."""
    density = np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    return np.asarray(ndtr(x) + x * density)


# The logit along a line of letter counts, and every place where its sign changes, exactly.
#
# The line is `start + n * step` for whole numbers n. In every head the attention weights along it
# are Moebius functions of n, hence monotonic: what lies between two counts is a cell of
# `seqcls.interpretability.bounds`. Intervals without a proved sign are halved (geometrically) until
# they are short enough to try every n.

LARGEST = 2.0**63 - 1024
"""The largest float that is a whole number of 64 bits."""

FLAT = 1e-10
"""A logit that varies less than that, and is no further from zero, has no sign but by rounding."""

SHORT = 16
"""An interval of so many whole numbers is tried one by one."""


def head_outputs(
    network: Network, counts: Int64[np.ndarray, "string letter"]
) -> Float[np.ndarray, "string head hidden"]:
    """What each head adds to the stream of `CLS`."""
    occurrences = network.occurrences(counts)
    heads = range(network.config.num_attention_heads)
    outputs = [network.head_output(head, occurrences) for head in heads]
    shape = (len(heads), len(counts), network.config.hidden_size)
    return np.array(outputs).reshape(shape).swapaxes(0, 1)


def sign_changes(
    network: Network,
    start: Int64[np.ndarray, " letter"],
    step: Int64[np.ndarray, " letter"],
    first: int,
    last: int,
) -> Int64[np.ndarray, " change"]:
    """Every n in (first, last] where the answer differs from that of n - 1, ascending."""
    low, high = _geometric(first, last)
    pairs: list[np.ndarray] = []
    while len(low):
        short = high - low <= SHORT
        pairs.append(_try_changes(network, start, step, low[short], high[short]))
        low, high = low[~short], high[~short]
        ends = head_outputs(network, _counts(start, step, np.concatenate([low, high])))
        bounds = logit_bounds(network, np.stack(np.split(ends, 2), axis=1))
        open_ = (bounds.low <= 0) & (bounds.high > 0)
        # Of a model whose logit is nothing, with weights of zero say, no halving proves a sign.
        flat = bounds.high - bounds.low <= FLAT
        answers = [network.logits(_counts(start, step, x)) > 0 for x in (low, high)]
        open_ &= ~(flat & (answers[0] == answers[1]))
        low, high = low[open_], high[open_]
        middle = np.clip(_whole(np.sqrt((low + 1.0) * (high + 1.0))), low + 1, high - 1)
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    return np.sort(np.concatenate([*pairs, np.zeros(0, np.int64)]))


def _counts(
    start: Int64[np.ndarray, " letter"],
    step: Int64[np.ndarray, " letter"],
    n: Int64[np.ndarray, " string"],
) -> Int64[np.ndarray, "string letter"]:
    return np.asarray(start + n[:, None] * step)


def _geometric(first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """Intervals that share their ends, from first to last."""
    if last <= first:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    ends = np.unique(_whole(np.geomspace(first + 1, last + 1, 33).round()) - 1)
    ends[0], ends[-1] = first, last
    return ends[:-1], ends[1:]


def _whole(values: Float[np.ndarray, " value"]) -> Int64[np.ndarray, " value"]:
    # Next to the largest whole number, the nearest float is one too large.
    return np.asarray(np.minimum(values, LARGEST), dtype=np.int64)


def _try_changes(
    network: Network,
    start: Int64[np.ndarray, " letter"],
    step: Int64[np.ndarray, " letter"],
    low: Int64[np.ndarray, " interval"],
    high: Int64[np.ndarray, " interval"],
) -> Int64[np.ndarray, " change"]:
    if not len(low):
        return np.zeros(0, np.int64)
    n = np.unique(np.minimum(low[:, None] + np.arange(SHORT + 1), high[:, None]))
    answers = network.logits(_counts(start, step, n)) > 0
    changed = (answers[1:] != answers[:-1]) & (np.diff(n) == 1)
    # Neighbours in n may belong to intervals that do not touch; those are no interval's concern.
    return np.asarray(n[1:][changed])
