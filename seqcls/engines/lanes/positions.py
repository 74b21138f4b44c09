# Compiled by Numba, which infers the types of arguments: what has none here is compiled.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""What the places of tokens do to states, queries, keys and scores.

A scheme's numbers stand in a `PositionArrays`, a row for each group of strings, or one for several
whose strings have the same places. Where a query is the token that alone is read, its place differs
from string to string, so what it means is written lane by lane.
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
    """What the places of tokens mean; the arrays that a scheme does not need are empty."""

    rows: np.ndarray
    """(group): the row of what follows."""
    numbers: np.ndarray
    """(row, position, lane): the places; one lane where all strings of a group have the same."""
    added: np.ndarray
    """(row, position, hidden, filled up): what is added at each."""
    cosines: np.ndarray
    """(row, position, pair)."""
    sines: np.ndarray
    buckets: np.ndarray
    """(2, distance): in both directions, or backwards where attention is causal; from minus half of
    their number on."""
    slopes: np.ndarray
    """(head)."""


@kernel
def add_waves(first, rows, groups, number, width, a, x, positions):
    """Adds to rows of x what is added at their places.

    Args:
        first: the first row's number; those of a token stand together, one for each group.
        number: of the first group.
    """
    for row in range(rows):
        here = positions.rows[number + (first + row) % groups]
        added = positions.added[here, (first + row) // groups]
        for i in range(width):
            index = x.first + row * x.apart + i
            store(a, index, load(a, index) + spread_at(added, i))


@kernel
def add_learned(first, rows, groups, number, hidden, width, a, x, w, table, positions):
    """Adds to rows of x those of a table for the place of each token of each string."""
    numbers = positions.numbers
    for row in range(rows):
        here, token = positions.rows[number + (first + row) % groups], (first + row) // groups
        if numbers.shape[2] == 1:
            start = table + numbers[here, token, 0] * width
            for i in range(hidden):
                index = x.first + row * x.apart + i
                store(a, index, load(a, index) + spread_at(w, start + i))
            continue
        for lane in range(LANES):
            start = table + numbers[here, token, lane] * width
            index = (x.first + row * x.apart) * LANES + lane
            for i in range(hidden):
                a[index + i * LANES] += w[start + i]


@kernel
def add_learned_gradient(
    rows, groups, number, hidden, width, a, dx, is_token0, gradient, table, positions
):
    """Adds D x at each token to the gradient of its place's row."""
    numbers = positions.numbers
    for row in range(rows):
        here, token = positions.rows[number + row % groups], row // groups
        if numbers.shape[2] == 1:
            is_token, start = load(a, is_token0 + row), table + numbers[here, token, 0] * width
            for i in range(hidden):
                gradient[start + i] += total(load(a, dx.first + row * dx.apart + i) * is_token)
            continue
        for lane in range(LANES):
            if a[(is_token0 + row) * LANES + lane] == ZERO:
                continue
            start = table + numbers[here, token, lane] * width
            index = (dx.first + row * dx.apart) * LANES + lane
            for i in range(hidden):
                gradient[start + i] += a[index + i * LANES]


@kernel
def fill_turns(a, turns0, cosines, sines):
    """Writes cosine and sine, given as (pair), of each pair of a token."""
    for pair in range(cosines.shape[0]):
        store(a, turns0 + 2 * pair, spread(cosines[pair]))
        store(a, turns0 + 2 * pair + 1, spread(sines[pair]))


@kernel
def fill_read_turns(a, turns0, cosines, sines, read):
    """Writes those of the one token of each lane that is read; they are given as (token, pair)."""
    for pair in range(cosines.shape[1]):
        for lane in range(LANES):
            index = (turns0 + pair * 2) * LANES + lane
            # A lane without a string reads -1, and whatever row it takes counts for nothing.
            a[index] = cosines[max(read[lane], 0), pair]
            a[index + LANES] = sines[max(read[lane], 0), pair]


@kernel
def rotate(tokens, heads, head_width, pairs, a, x0, row, turns0, sign):
    """Turns the pairs of every head of queries or keys; with sign -1 back."""
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
    """Adds to scores what the distance between two tokens adds in one head.

    Queries are the tokens from `first` on. With ALIBI that is the distance of their places times
    minus the slope. With RELATIVE it is a number of `w`: the first bucket's at `table`, the next
    ones `step` on; buckets are of the distances from -n to n.
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
    """Adds it where one token of each lane is read: to one row of scores."""
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
    """Adds D scores of one head to a vector for each bucket."""
    middle = len(buckets) // 2
    for query in range(queries):
        for key in range(keys):
            index = sums0 + buckets[middle + key - first - query]
            store(a, index, load(a, index) + load(a, dscores0 + query * row + key))


@kernel
def read_distance_gradient(keys, a, dscores0, sums0, buckets, read):
    """Adds them where one token of each lane is read."""
    middle = len(buckets) // 2
    for key in range(keys):
        for lane in range(LANES):
            index = (sums0 + buckets[middle + key - max(read[lane], 0)]) * LANES + lane
            a[index] += a[(dscores0 + key) * LANES + lane]


@kernel
def end_distance_gradient(heads, a, sums0, gradient, table):
    """Adds the sums over the lanes to the gradient of the table, and clears them."""
    for head in range(heads):
        for bucket in range(BUCKETS):
            index = sums0 + head * BUCKETS + bucket
            gradient[table + bucket * heads + head] += total(load(a, index))
            store(a, index, spread(ZERO))
