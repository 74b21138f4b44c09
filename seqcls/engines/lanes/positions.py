# Compiled by Numba, which infers the types of arguments: what has none here is compiled.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""The effects of positions on states, queries, keys and scores.

A scheme's numbers are in a `PositionArrays`, in a row for each group of strings, or one row for
groups with the same positions. The position of the one token that is read differs from string to
string, so its numbers are written lane by lane.
"""

from typing import NamedTuple

import numpy as np

from seqcls.engines.lanes.layers import ALIBI
from seqcls.engines.lanes.vector import (
    LANES,
    ZERO,
    fma,
    fnma,
    inlined,
    kernel,
    load,
    spread,
    spread_at,
    store,
    total,
)
from seqcls.models.positions.numbers import BUCKETS


class PositionArrays(NamedTuple):
    """The numbers of a scheme of positions; arrays that it does not need are empty."""

    rows: np.ndarray
    """(group): the row of the arrays below."""
    numbers: np.ndarray
    """(row, token, lane): the positions; one lane if all strings of a group have the same."""
    added: np.ndarray
    """(row, token, hidden, filled up): the vector added to each token."""
    cosines: np.ndarray
    """(row, token, pair)."""
    sines: np.ndarray
    buckets: np.ndarray
    """(2, distance): those in both directions, and those backwards for causal attention; the middle
    one is that of distance 0."""
    slopes: np.ndarray
    """(head)."""


@kernel
def add_positions(first, rows, o, it, a, w):
    """Adds the vectors of their positions to rows of x.

    Args:
        first: the index of the first row; a token has consecutive rows, one for each group.
        o: an `AddPositions`.
        it: a `Reading`.
    """
    positions, numbers, groups = it.positions, it.positions.numbers, it.groups
    for row in range(rows):
        here, token = positions.rows[it.number + (first + row) % groups], (first + row) // groups
        x = o.x.first + row * o.x.apart
        if o.table < 0 or numbers.shape[2] == 1:
            added, start = w, o.table + numbers[here, token, 0] * o.width
            if o.table < 0:
                added, start = positions.added[here, token], 0
            for i in range(o.columns):
                store(a, x + i, load(a, x + i) + spread_at(added, start + i))
            continue
        for lane in range(LANES):
            start = o.table + numbers[here, token, lane] * o.width
            for i in range(o.columns):
                a[(x + i) * LANES + lane] += w[start + i]


@kernel
def add_positions_gradient(rows, o, it, a, gradient):
    """Adds D x of each token to D of the table's row for its position.

    Args:
        o: an `AddPositionsGradient`.
        it: a `Reading`.
    """
    numbers, table, width = it.positions.numbers, o.forward.table, o.forward.width
    for row in range(rows):
        here, token = it.positions.rows[it.number + row % it.groups], row // it.groups
        dx = o.dx.first + row * o.dx.apart
        if numbers.shape[2] == 1:
            is_token, start = load(a, o.is_token + row), table + numbers[here, token, 0] * width
            for i in range(o.forward.columns):
                gradient[start + i] += total(load(a, dx + i) * is_token)
            continue
        for lane in range(LANES):
            if a[(o.is_token + row) * LANES + lane] == ZERO:
                continue
            start = table + numbers[here, token, lane] * width
            for i in range(o.forward.columns):
                gradient[start + i] += a[(dx + i) * LANES + lane]


@kernel
def fill_turns(a, turns0, cosines, sines):
    """Writes the cosine and sine of each pair of a token, given as (pair)."""
    for pair in range(cosines.shape[0]):
        store(a, turns0 + 2 * pair, spread(cosines[pair]))
        store(a, turns0 + 2 * pair + 1, spread(sines[pair]))


@kernel
def fill_read_turns(a, turns0, cosines, sines, read):
    """Writes those of the one token of each lane that is read, given as (token, pair)."""
    for pair in range(cosines.shape[1]):
        for lane in range(LANES):
            index = (turns0 + pair * 2) * LANES + lane
            # A lane without a string has token -1; any row will do for it.
            a[index] = cosines[max(read[lane], 0), pair]
            a[index + LANES] = sines[max(read[lane], 0), pair]


@kernel
def rotate(first, rows, o, a):
    """Rotates the pairs of every head of queries or keys, or back.

    Args:
        o: a `Rotate`.
    """
    pairs, sign = o.heads.head_size // 2, np.float32(-1 if o.back else 1)
    for row in range(rows):
        for pair in range(pairs):
            turn = o.turns + ((first + row) * pairs + pair) * 2
            cosine, sine = load(a, turn), load(a, turn + 1) * sign
            for head in range(o.heads.heads):
                index = o.x.first + row * o.x.apart + head * o.heads.head_width + 2 * pair
                even, odd = load(a, index), load(a, index + 1)
                store(a, index, fnma(odd, sine, even * cosine))
                store(a, index + 1, fma(even, sine, odd * cosine))


@inlined
def bias_of(one, other, how, head, heads, positions, places, w):
    """Returns what is added to a head's score of two tokens, by the distance between these."""
    if how.bias == ALIBI:
        return -positions.slopes[head] * np.float32(abs(places[one, 0] - places[other, 0]))
    buckets = positions.buckets[1 if how.causal else 0]
    bucket = buckets[len(buckets) // 2 + other - one]
    return w[how.table + head + bucket * heads]


@kernel
def bias_scores(queries, first, keys, a, at, how, head, heads, positions, places, w, read):
    """Adds the biases of one head to scores.

    The bias of ALIBI is minus the slope times the distance of positions. That of RELATIVE is a
    number of each head for each bucket of distances.

    Args:
        first: the token of the first query; if it is alone, that is `read`, (lane).
        at: `Rows` of the scores.
        how: a `How`; `heads` is the number of heads.
        places: the positions of tokens, of this group.
    """
    for query in range(queries):
        for key in range(keys):
            index = at.first + query * at.apart + key
            if how.alone:
                for lane in range(LANES):
                    token = max(read[lane], 0)
                    added = bias_of(token, key, how, head, heads, positions, places, w)
                    a[index * LANES + lane] += added
            else:
                added = bias_of(first + query, key, how, head, heads, positions, places, w)
                store(a, index, load(a, index) + added)


@kernel
def distance_gradient(queries, first, keys, a, dscores, how, head, positions, read):
    """Adds D of the scores of one head, `Rows`, to a vector for each bucket."""
    buckets = positions.buckets[1 if how.causal else 0]
    sums, middle = how.distances + head * BUCKETS, len(buckets) // 2
    for query in range(queries):
        for key in range(keys):
            given = dscores.first + query * dscores.apart + key
            if how.alone:
                for lane in range(LANES):
                    index = sums + buckets[middle + key - max(read[lane], 0)]
                    a[index * LANES + lane] += a[given * LANES + lane]
            else:
                index = sums + buckets[middle + key - first - query]
                store(a, index, load(a, index) + load(a, given))


@kernel
def end_distance_gradient(o, a, gradient):
    """Adds the sums over the lanes to D of a `DistanceGradient`'s table, and clears the vectors."""
    for head in range(o.heads):
        for bucket in range(BUCKETS):
            index = o.sums + head * BUCKETS + bucket
            gradient[o.table + bucket * o.heads + head] += total(load(a, index))
            store(a, index, spread(ZERO))
