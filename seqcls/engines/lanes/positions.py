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
def add_positions(first, rows, groups, number, o, a, w, positions):
    """Adds the vectors of their positions to rows of x.

    Args:
        first: the index of the first row; a token has consecutive rows, one for each group.
        number: the index of the first group.
        o: an `AddPositions`.
    """
    numbers = positions.numbers
    for row in range(rows):
        here, token = positions.rows[number + (first + row) % groups], (first + row) // groups
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
def add_positions_gradient(rows, groups, number, o, a, gradient, positions):
    """Adds D x of each token to D of the table's row for its position.

    Args:
        o: an `AddPositionsGradient`.
    """
    numbers, table, width = positions.numbers, o.forward.table, o.forward.width
    for row in range(rows):
        here, token = positions.rows[number + row % groups], row // groups
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
def rotate(tokens, heads, head_width, pairs, a, x0, row, turns0, sign):
    """Rotates the pairs of every head of queries or keys; back with sign -1."""
    for token in range(tokens):
        for pair in range(pairs):
            turn = turns0 + (token * pairs + pair) * 2
            cosine, sine = load(a, turn), load(a, turn + 1) * sign
            for head in range(heads):
                index = x0 + token * row + head * head_width + 2 * pair
                even, odd = load(a, index), load(a, index + 1)
                store(a, index, even * cosine - odd * sine)
                store(a, index + 1, fma(even, sine, odd * cosine))


@kernel
def bias_scores(
    queries, first, keys, a, scores0, row, bias, slope, places, buckets, w, table, step
):
    """Adds the biases of one head to scores, by the distance between two tokens.

    Queries are the tokens from `first` on. The bias of ALIBI is minus the slope times the distance
    of positions. That of RELATIVE is a number of `w`: the first bucket's at `table`, the next ones
    at distances of `step`; buckets are those of the distances from -n to n.
    """
    middle = len(buckets) // 2
    for query in range(queries):
        for key in range(keys):
            if bias == ALIBI:
                added = -slope * np.float32(abs(places[first + query, 0] - places[key, 0]))
            else:
                added = w[table + buckets[middle + key - first - query] * step]
            index = scores0 + query * row + key
            store(a, index, load(a, index) + added)


@kernel
def bias_read_scores(keys, a, scores0, bias, slope, places, buckets, w, table, step, read):
    """Adds the biases to the row of scores of the one token of each lane that is read."""
    middle = len(buckets) // 2
    for key in range(keys):
        for lane in range(LANES):
            if bias == ALIBI:
                added = -slope * np.float32(abs(places[max(read[lane], 0), 0] - places[key, 0]))
            else:
                added = w[table + buckets[middle + key - max(read[lane], 0)] * step]
            a[(scores0 + key) * LANES + lane] += added


@kernel
def distance_gradient(queries, first, keys, a, dscores0, row, sums0, buckets):
    """Adds D of the scores of one head to a vector for each bucket."""
    middle = len(buckets) // 2
    for query in range(queries):
        for key in range(keys):
            index = sums0 + buckets[middle + key - first - query]
            store(a, index, load(a, index) + load(a, dscores0 + query * row + key))


@kernel
def read_distance_gradient(keys, a, dscores0, sums0, buckets, read):
    """Adds D of the row of scores of the one token of each lane that is read."""
    middle = len(buckets) // 2
    for key in range(keys):
        for lane in range(LANES):
            index = (sums0 + buckets[middle + key - max(read[lane], 0)]) * LANES + lane
            a[index] += a[(dscores0 + key) * LANES + lane]


@kernel
def end_distance_gradient(heads, a, sums0, gradient, table):
    """Adds the sums over the lanes to D of the table, and clears the vectors."""
    for head in range(heads):
        for bucket in range(BUCKETS):
            index = sums0 + head * BUCKETS + bucket
            gradient[table + bucket * heads + head] += total(load(a, index))
            store(a, index, spread(ZERO))
