# Compiled by Numba, which infers the types of arguments: what has none here is compiled.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Attention of one block over a group of strings, head by head, forward and backward.

    score_ij = q_i . k_j + bias_ij     p_i = softmax(score_i)     mixed_i = sum_j p_ij v_j

with q already multiplied by 1 / sqrt(head size), and by ln N where the length scales scores.

    D v_j = sum_i p_ij D mixed_i      D p_ij = D mixed_i . v_j
    D score_ij = p_ij (D p_ij - sum_j p_ij D p_ij)
    D q_i = sum_j D score_ij k_j      D k_j = sum_i D score_ij q_i

Queries are all tokens, or of each string the one that is read. Where a token has nothing to
attend to, all its p are 0.
"""

import numpy as np

from seqcls.engines.lanes.elementary import exp
from seqcls.engines.lanes.tiles import Matrix, Rows, clear, product
from seqcls.engines.lanes.transformer_sizes import ALIBI, QUERIES, RELATIVE
from seqcls.engines.lanes.vector import (
    LANES,
    ONE,
    ZERO,
    fma,
    if_less,
    kernel,
    larger,
    load,
    spread,
    spread_at,
    store,
    total,
)
from seqcls.models.positions.numbers import BUCKETS

# What the places of a group's tokens do to states, queries, keys and scores.
#
# All strings of a group have the same places, token for token. Where a query is the token that
# alone is read, its place differs from string to string, so its values are written lane by lane.


@kernel
def add_positions(tokens, width, hidden, a, x0, row, added, start0, places):
    """Adds to x what is added at each place: numbers, those of place 0 in `added` from `start0` on,
    `width` from place to place.
    """
    for token in range(tokens):
        start = start0 + places[token] * width
        for i in range(hidden):
            index = x0 + token * row + i
            store(a, index, load(a, index) + spread_at(added, start + i))


@kernel
def add_positions_gradient(tokens, width, hidden, a, dx0, row, is_token0, gradient, table, rows):
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


MASKED = np.float32(-1e30)
"""Added to scores of keys that are not attended to: their weights become 0."""
NOTHING = np.float32(-5e29)
"""Below that a token's highest score is one of those."""


@kernel
def softmax(queries, first, keys, causal, a, scores0, row, mask0):
    """Replaces scores by weights; a causal query attends to no key after it."""
    for query in range(queries):
        at = scores0 + query * row
        end = min(keys, first + query + 1) if causal else keys
        highest = spread(np.float32(-np.inf))
        for key in range(end):
            score = load(a, at + key) + load(a, mask0 + key)
            store(a, at + key, score)
            highest = larger(highest, score)
        sum_of = spread(ZERO)
        for key in range(end):
            weight = exp(load(a, at + key) - highest)
            store(a, at + key, weight)
            sum_of = sum_of + weight
        share = if_less(highest, spread(NOTHING), spread(ZERO), ONE / sum_of)
        for key in range(end):
            store(a, at + key, load(a, at + key) * share)
        clear(a, at + end, keys - end)


@kernel
def softmax_gradient(queries, keys, a, weights0, weights_row, d0, d_row):
    """Replaces D p by D score."""
    for query in range(queries):
        p0, d = weights0 + query * weights_row, d0 + query * d_row
        mean = spread(ZERO)
        for key in range(keys):
            mean = fma(load(a, p0 + key), load(a, d + key), mean)
        for key in range(keys):
            store(a, d + key, load(a, p0 + key) * (load(a, d + key) - mean))


@kernel
def attend(tokens, single, keep, sizes, a, heads, scores, mixed, mask, group, w, table):
    """Writes what each head mixes of the values.

    `heads`, `scores` and `mixed` are `Rows` of `a`: queries, keys and values of a token in one row.
    There is one query for each token, or where it is `single` for each string: that of the token
    that is read. All weights are kept only where the gradients need them. The numbers of
    RELATIVE stand in `w` from `table` on.
    """
    row = heads.apart
    for head in range(sizes.heads):
        query = heads.first + head * sizes.head_width
        key = Matrix(query + sizes.joined, row, 1)
        value = Matrix(query + 2 * sizes.joined, 1, row)
        queries = 1 if single else tokens
        for first in range(0, queries, QUERIES):
            some = min(QUERIES, queries - first)
            causal = sizes.causal and not single
            keys = min(tokens, first + some) if causal else tokens
            at = scores.first + (head * tokens + first) * scores.apart if keep else scores.first
            here = Rows(at, scores.apart)
            block = Matrix(query + first * row, row, 1)
            product(some, keys, sizes.head_size, a, block, key, here, False)
            if sizes.scheme == ALIBI or sizes.scheme == RELATIVE:
                slope = group.slopes[head] if sizes.scheme == ALIBI else ZERO
                by = (sizes.scheme, slope, group.places, group.buckets, w, table + head)
                if single:
                    bias_read_scores(keys, a, at, *by, sizes.heads, group.read)
                else:
                    bias_scores(some, first, keys, a, at, here.apart, *by, sizes.heads)
            softmax(some, first, keys, causal, a, here.first, here.apart, mask)
            to = Rows(mixed.first + first * mixed.apart + head * sizes.head_width, mixed.apart)
            weights = Matrix(at, here.apart, 1)
            product(some, sizes.head_width, keys, a, weights, value, to, False)


@kernel
def attend_gradient(tokens, single, sizes, a, heads, scores, dmixed, dheads, dscores, sums, group):
    """Writes D of queries, keys and values, in rows as theirs.

    `dscores` is where scratch begins. Adds D of the distances' numbers to the vectors from `sums`
    on. The other arguments are those of `attend`.
    """
    row = heads.apart
    clear(a, dheads.first, tokens * row)
    for head in range(sizes.heads):
        moved = head * sizes.head_width
        query, dquery = heads.first + moved, dheads.first + moved
        to_key, to_value = Rows(dquery + sizes.joined, row), Rows(dquery + 2 * sizes.joined, row)
        queries = 1 if single else tokens
        for first in range(0, queries, QUERIES):
            some = min(QUERIES, queries - first)
            causal = sizes.causal and not single
            keys = min(tokens, first + some) if causal else tokens
            p = scores.first + (head * tokens + first) * scores.apart
            d = dmixed.first + first * dmixed.apart + moved
            weights, given = Matrix(p, 1, scores.apart), Matrix(d, 1, dmixed.apart)
            product(keys, sizes.head_width, some, a, weights, given, to_value, True)
            value, here = Matrix(query + 2 * sizes.joined, row, 1), Rows(dscores, scores.apart)
            given = Matrix(d, dmixed.apart, 1)
            product(some, keys, sizes.head_size, a, given, value, here, False)
            softmax_gradient(some, keys, a, p, scores.apart, dscores, scores.apart)
            if sizes.scheme == RELATIVE:
                to_sums = sums + head * BUCKETS
                if single:
                    read_distance_gradient(keys, a, dscores, to_sums, group.buckets, group.read)
                else:
                    distance_gradient(
                        some, first, keys, a, dscores, scores.apart, to_sums, group.buckets
                    )
            slopes, key = Matrix(dscores, scores.apart, 1), Matrix(query + sizes.joined, 1, row)
            to_query = Rows(dquery + first * row, row)
            product(some, sizes.head_width, keys, a, slopes, key, to_query, False)
            slopes, block = Matrix(dscores, 1, scores.apart), Matrix(query + first * row, 1, row)
            product(keys, sizes.head_width, some, a, slopes, block, to_key, True)
