"""Proved bounds of the logit of the report's model of one block over whole regions of attention.

Softmax maps proportions of letters to attention weights projectively, p_k e^{s_k} / sum_j p_j
e^{s_j}, so over a simplex of proportions (a *cell*) what each head adds to the stream lies in the
convex hull of what it adds at the corners, each head separately. Every linear functional of the
state is then bounded by its values at the corners, summed over the heads; from these follow two
enclosures of the logit, of which the tighter counts:

- interval arithmetic: the direct part plus each feed-forward unit's coefficient times the range
  of the GELU over the range of its input;
- the mean value theorem (without a norm): the logit at the center plus the range of the gradient
  times that of the displacement, where GELU's slope is bounded over the range of its input.

See Moore, Kearfott and Cloud, *Introduction to Interval Analysis* (2009), chapters 5 and 6.
"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr, softmax

from seqcls.interpretability.circuits import head_circuits
from seqcls.interpretability.domains import refuse
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.strings.tokenizer import CLS

ROUNDING = 1e-11
"""Bounds are widened by so much of the magnitude of the numbers that they are made of."""

LEAST_GELU = -0.7517915246935645
"""The minimum of GELU; it falls before and rises after."""

STEEPEST = math.sqrt(2)
"""GELU's slope is least at -STEEPEST and greatest at STEEPEST."""

Corners = Float[np.ndarray, "cell corner head hidden"]
"""The vector that each head adds to the stream of `CLS` at the corners of cells."""


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
    """The attention scores of `CLS` for one token of each type, itself first."""
    outputs: Float[np.ndarray, "head token_type hidden"]
    """The vector that a head adds where all its attention is on one token type."""
    start: Float[np.ndarray, " hidden"]
    """The stream before attention."""
    direct: Float[np.ndarray, " hidden"]
    units: Float[np.ndarray, "ff hidden"]
    offsets: Float[np.ndarray, " ff"]
    coefficients: Float[np.ndarray, " ff"]
    norm: tuple[Float[np.ndarray, "hidden hidden"], float] | None
    """The coordinates whose root mean square a norm divides by, and its epsilon."""

    def attend(
        self, occurrences: Float[np.ndarray, "*string token_type"]
    ) -> Float[np.ndarray, "*string head hidden"]:
        """The vectors that heads add where each token type that is attended to occurs so often."""
        with np.errstate(divide="ignore"):
            weights = softmax(self.scores + np.log(occurrences)[..., None, :], axis=-1)
        return np.asarray((weights[..., None, :] @ self.outputs)[..., 0, :])


def block_of(model: TrainedModel) -> Block:
    """The numbers of a model of one block by letter counts, in double precision.

    Raises:
        ConfigError: of this model or task the proofs would not be true.
    """
    refuse(model.problem)
    config = model.config
    weights = {name: value.astype(np.float64) for name, value in model.weights.items()}
    heads, token_types = head_circuits(model), 1 + model.num_letters
    units, norm = weights["blocks.0.feed_forward.input.weight"], None
    offsets = np.zeros(len(units))
    if config.has_norms:
        coordinates, inner = np.eye(config.hidden_size), units
        # The norm's weight and centering go into the units, so that the division alone is left.
        units = inner * weights["blocks.0.feed_forward_norm.weight"]
        # LayerNorm subtracts the mean and adds a bias; RMSNorm does neither.
        if config.layer_norm == "nn":
            coordinates = coordinates - 1 / config.hidden_size
            units = units - units.mean(axis=1, keepdims=True)
            offsets = inner @ weights["blocks.0.feed_forward_norm.bias"]
        norm = coordinates, config.layer_norm_eps
    direct = weights["classifier.weight"][0]
    return Block(
        # The query is `CLS`; a model may have no heads.
        scores=np.array([head.scores[0] for head in heads]).reshape(len(heads), token_types),
        outputs=np.array([head.output for head in heads]).reshape(
            len(heads), token_types, config.hidden_size
        ),
        start=weights["embedding.weight"][CLS],
        direct=direct,
        units=units,
        offsets=offsets,
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
            # The smaller divisor takes a number further from 0, on either side.
            units.low / np.where(units.low < 0, low, high),
            units.high / np.where(units.high < 0, high, low),
        )
    units = Bounds(units.low + block.offsets, units.high + block.offsets)
    # GELU is least at the point of the range nearest to its minimum.
    least = gelu(np.clip(LEAST_GELU, units.low, units.high))
    most = np.maximum(gelu(units.low), gelu(units.high))
    # A negative coefficient makes an upper bound of a unit's lower one.
    up, down = np.maximum(block.coefficients, 0), np.minimum(block.coefficients, 0)
    low = direct.low[:, 0] + least @ up + most @ down
    high = direct.high[:, 0] + most @ up + least @ down
    if block.norm is None:
        tighter = _mean_value(block, corners, units)
        low, high = np.maximum(low, tighter.low), np.minimum(high, tighter.high)
    # Rounding grows with the summands, which may cancel, not with their sum.
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
    # GELU's slope at -x is 1 less its slope at x.
    least = np.where(dips, 1 - extreme, np.minimum(low, high))
    greatest = np.where(peaks, extreme, np.maximum(low, high))
    # The gradient is taken in the middle of each range; the radius bounds what that misses.
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
