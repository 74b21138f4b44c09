"""The loss of a tile of strings and its slope."""

import numpy as np

from seqcls.engines.compiled.compiling import inlined
from seqcls.engines.fused.buffers import TILE
from seqcls.engines.fused.elementary import cross_entropy_row, exp_row


@inlined
def sigmoids(x, out, tile):
    """Writes 1 / (1 + exp(-x)) to `out` and leaves exp(-|x|) in `tile.slope`."""
    number = x.dtype.type
    zero, one = number(0), number(1)
    for s in range(TILE):
        tile.slope[s] = -abs(x[s])
    exp_row(tile.slope, tile.powers, tile.exponents)
    for s in range(TILE):
        small = tile.slope[s]
        out[s] = (small if x[s] < zero else one) / (one + small)


@inlined
def scale_logits(tile):
    """Applies z <- -z / (1 + sigmoid(z)) twice; leaves its derivative in `tile.other`."""
    number = tile.logit.dtype.type
    one = number(1)
    tile.other[:] = one
    for _ in range(2):
        sigmoids(tile.logit, tile.row, tile)
        for s in range(TILE):
            z, p = tile.logit[s], tile.row[s]
            divisor = one / (one + p)
            tile.logit[s] = -z * divisor
            tile.other[s] *= -divisor * (one - z * p * (one - p) * divisor)


@inlined
def losses(targets, weights, shape, tile):
    """The sum of the tile's losses in nats; leaves D logit in `tile.slope`.

    Targets are 1 for positive strings, else 0; weights (T) are what each loss counts for in the
    gradient, 0 where there is no string.
    """
    number = tile.logit.dtype.type
    zero = number(0)
    if shape.scaled_loss:
        scale_logits(tile)
    sigmoids(tile.logit, tile.row, tile)
    cross_entropy_row(tile.logit, tile.slope, targets, tile.loss)
    total = 0.0
    for s in range(TILE):
        if weights[s] > zero:
            total += np.float64(tile.loss[s])
    for s in range(TILE):
        tile.slope[s] = (tile.row[s] - targets[s]) * weights[s]
    if shape.scaled_loss:
        for s in range(TILE):
            tile.slope[s] *= tile.other[s]
    return total
