r"""What the places of a group's tokens do to states, queries, keys and scores.

All strings of a group have the same places, token for token. Where a query is the token that alone
is read, its place differs from string to string, so its values are written lane by lane.
"""

import numpy as np

from seqcls.engines.lanes.transformer.sizes import ALIBI
from seqcls.engines.lanes.vectors.compiling import kernel
from seqcls.engines.lanes.vectors.vector import (
    LANES,
    ZERO,
    fma,
    load,
    spread,
    spread_at,
    store,
    total,
)
from seqcls.models.positions.numbers import BUCKETS


@kernel
def add_places(tokens, width, hidden, a, x0, row, added, start0, places):
    """Adds to x what is added at each place: numbers, those of place 0 in `added` from `start0` on,
    `width` from place to place.
    """
    for token in range(tokens):
        start = start0 + places[token] * width
        for i in range(hidden):
            index = x0 + token * row + i
            store(a, index, load(a, index) + spread_at(added, start + i))


@kernel
def add_places_gradient(tokens, width, hidden, a, dx0, row, is_token0, gradient, table, rows):
    """Adds D x at each token to the gradient of its place's row in the learned table."""
    for token in range(tokens):
        here = load(a, is_token0 + token)
        start = table + rows[token] * width
        for i in range(hidden):
            gradient[start + i] += total(load(a, dx0 + token * row + i) * here)


@kernel
def fill_turns(tokens, pairs, a, turns0, cosines, sines):
    """Writes cosine and sine, given as (token, pair), of each pair at each place."""
    for token in range(tokens):
        for pair in range(pairs):
            index = turns0 + (token * pairs + pair) * 2
            store(a, index, spread(cosines[token, pair]))
            store(a, index + 1, spread(sines[token, pair]))


@kernel
def fill_read_turns(pairs, a, turns0, cosines, sines, read):
    """The same for the one token of each lane that is read: of shape (lane)."""
    for pair in range(pairs):
        for lane in range(LANES):
            index = (turns0 + pair * 2) * LANES + lane
            a[index] = cosines[read[lane], pair]
            a[index + LANES] = sines[read[lane], pair]


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
    queries, first, keys, a, scores0, row, scheme, slope, places, buckets, w, table, step
):
    """Adds to scores what the distance between two tokens adds in one head.

    Queries are the tokens from `first` on. With ALIBI that is the distance of their places times
    minus the slope. With RELATIVE it is a number of `w`: the first bucket's at `table`, the next
    ones `step` on; buckets are of the distances from -n to n.
    """
    middle = len(buckets) // 2
    for query in range(queries):
        for key in range(keys):
            if scheme == ALIBI:
                bias = -slope * np.float32(abs(places[first + query] - places[key]))
            else:
                bias = w[table + buckets[middle + key - first - query] * step]
            index = scores0 + query * row + key
            store(a, index, load(a, index) + bias)


@kernel
def bias_read_scores(keys, a, scores0, scheme, slope, places, buckets, w, table, step, read):
    """The same where one token of each lane is read: one row of scores."""
    middle = len(buckets) // 2
    for key in range(keys):
        for lane in range(LANES):
            if scheme == ALIBI:
                bias = -slope * np.float32(abs(places[read[lane]] - places[key]))
            else:
                bias = w[table + buckets[middle + key - read[lane]] * step]
            a[(scores0 + key) * LANES + lane] += bias


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
    """The same where one token of each lane is read."""
    middle = len(buckets) // 2
    for key in range(keys):
        for lane in range(LANES):
            index = (sums0 + buckets[middle + key - read[lane]]) * LANES + lane
            a[index] += a[(dscores0 + key) * LANES + lane]


@kernel
def end_distance_gradient(heads, a, sums0, gradient, table):
    """Adds the sums over the lanes to the gradient of the table, and clears them."""
    for head in range(heads):
        for bucket in range(BUCKETS):
            index = sums0 + head * BUCKETS + bucket
            gradient[table + bucket * heads + head] += total(load(a, index))
            store(a, index, spread(ZERO))
