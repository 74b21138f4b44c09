"""What is written so far: which token comes next in each lane, and when an output ends."""

import math
from typing import NamedTuple

import numpy as np

from seqcls.engines.lanes.vectors.compiling import kernel
from seqcls.engines.lanes.vectors.elementary import exp
from seqcls.engines.lanes.vectors.loss import likeliest
from seqcls.engines.lanes.vectors.vector import (
    LANES,
    ZERO,
    larger,
    load,
    spread,
    store,
)


class Outputs(NamedTuple):
    """Inputs in groups, and the outputs that are written for them."""

    given: np.ndarray
    """(group, position, lane): numbers of the tokens that are read first, as a `Head` counts."""
    begins: np.ndarray
    """(group, lane): how many; 0 where there is no string."""
    limits: np.ndarray
    """(group, lane): tokens of an output at most."""
    written: np.ndarray
    """(group, position, lane): those written, filled in from -1."""
    counts: np.ndarray
    """(group, lane): how many, counted up from 0."""
    is_ended: np.ndarray
    """(group, lane): whether END came."""
    scores: np.ndarray
    """(group, lane): the log-probability of each output, in nats, added up from 0."""
    kept: np.ndarray
    """Scratch of vectors."""


@kernel
def next_token(outputs, group, lane, place):
    """The number of the token to be read at a place."""
    begin = outputs.begins[group, lane]
    if place < begin:
        return outputs.given[group, place, lane]
    written = place - begin
    if written < outputs.counts[group, lane]:
        return outputs.written[group, written, lane]
    return 0


@kernel
def goes_on(outputs, group, lane):
    """Whether a string's output is not yet written to its end."""
    if outputs.begins[group, lane] == 0 or outputs.is_ended[group, lane]:
        return False
    return outputs.counts[group, lane] < outputs.limits[group, lane]


@kernel
def any_goes_on(outputs, first, end):
    """Whether that is so in any of some groups."""
    for group in range(first, end):
        for lane in range(LANES):
            if goes_on(outputs, group, lane):
                return True
    return False


@kernel
def write_next(outputs, head, a, number, group, place):
    """Adds to each output the likeliest token after the one at a place."""
    kept = outputs.kept
    likeliest(head, a, number, kept)
    highest = load(a, number)
    for token in range(1, head.outputs):
        highest = larger(highest, load(a, number + token))
    sum_of = spread(ZERO)
    for token in range(head.outputs):
        sum_of = sum_of + exp(load(a, number + token) - highest)
    store(kept, 2, highest)
    store(kept, 3, sum_of)
    for lane in range(LANES):
        if place + 1 < outputs.begins[group, lane] or not goes_on(outputs, group, lane):
            continue
        best = int(kept[LANES + lane])
        outputs.scores[group, lane] += (
            a[(number + best) * LANES + lane]
            - kept[2 * LANES + lane]
            - math.log(np.float64(kept[3 * LANES + lane]))
        )
        if best == head.outputs - 2:
            outputs.is_ended[group, lane] = True
        else:
            outputs.written[group, outputs.counts[group, lane], lane] = best
            outputs.counts[group, lane] += 1
