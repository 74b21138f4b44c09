# Compiled by Numba, which infers the types of arguments: what has none here is compiled.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Attention of queries to keys of the same stream or of another, head by head.

    score_ij = q_i . k_j + bias_ij     p_i = softmax(score_i)     mixed_i = sum_j p_ij v_j

with q already multiplied by 1 / sqrt(head size), and by ln N where the length scales scores.

    D v_j = sum_i p_ij D mixed_i      D p_ij = D mixed_i . v_j
    D score_ij = p_ij (D p_ij - sum_j p_ij D p_ij)
    D q_i = sum_j D score_ij k_j      D k_j = sum_i D score_ij q_i

Linear attention divides positive scores by their sum instead:

    p_ij = s_ij / S_i,  S_i = sum_j s_ij        D s_ij = (D p_ij - sum_j p_ij D p_ij) / S_i

Queries are the tokens `first` to `first + queries` of their stream, and keys the first `known`
tokens of theirs. So one function serves whole strings, one more token, another stream, and one
query for each string. Where a token has nothing to attend to, all its p are 0.
"""

import numpy as np

from seqcls.engines.lanes.elementary import exp
from seqcls.engines.lanes.fire import add_fire, add_fire_gradient
from seqcls.engines.lanes.layers import (
    CAUSAL_FIRE,
    FIRE,
    QUERIES,
    RELATIVE,
    SOFTMAX,
    UNBIASED,
    Rows,
)
from seqcls.engines.lanes.positions import bias_scores, distance_gradient
from seqcls.engines.lanes.tiles import Matrix, clear, product
from seqcls.engines.lanes.vector import (
    ONE,
    ZERO,
    fma,
    if_less,
    kernel,
    larger,
    load,
    spread,
    store,
)

MASKED = np.float32(-1e30)
"""The mask of keys that are not attended to: their weights become 0."""
NOTHING = np.float32(-5e29)
"""If a token's highest score is below it, the token attends to nothing."""
SMALLEST_SUM = np.float32(np.finfo(np.float32).tiny)


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
def divide_by_sums(queries, first, keys, causal, a, scores0, row, shares0):
    """Replaces positive scores by their shares; writes the reciprocal of each sum to `shares0`."""
    for query in range(queries):
        at = scores0 + query * row
        end = min(keys, first + query + 1) if causal else keys
        sum_of = spread(ZERO)
        for key in range(end):
            sum_of = sum_of + load(a, at + key)
        share = ONE / larger(sum_of, spread(SMALLEST_SUM))
        store(a, shares0 + query, share)
        for key in range(end):
            store(a, at + key, load(a, at + key) * share)
        clear(a, at + end, keys - end)


@kernel
def divide_by_sums_gradient(
    queries, first, keys, causal, a, weights0, weights_row, d0, d_row, shares0
):
    """Replaces D p by D s, which is 0 for keys that a query does not attend to."""
    for query in range(queries):
        p0, d, mean = weights0 + query * weights_row, d0 + query * d_row, spread(ZERO)
        for key in range(keys):
            mean = fma(load(a, p0 + key), load(a, d + key), mean)
        share, end = load(a, shares0 + query), min(keys, first + query + 1) if causal else keys
        for key in range(end):
            store(a, d + key, (load(a, d + key) - mean) * share)
        clear(a, d + end, keys - end)


@kernel
def attend(first, queries, group, o, it, a, w):
    """Writes each head's weighted sum of values.

    Args:
        o: an `Attend`, with the rows of one group from the stream's first token on; values follow
            keys in each row. With `keep` all weights stay in the scores.
        it: a `Reading`.
    """
    how, heads, query, key_value, scores = o.how, o.heads, o.query, o.key_value, o.scores
    known, mask, read = it.known[o.keys_span], o.mask + group * o.keys, it.read[group]
    positions = it.positions
    places = positions.numbers[positions.rows[it.number + group]]
    for head in range(heads.heads):
        moved = head * heads.head_width
        key = Matrix(key_value.first + moved, key_value.apart, 1)
        value = Matrix(key.first + heads.joined, 1, key_value.apart)
        for begin in range(first, first + queries, QUERIES):
            some = min(QUERIES, first + queries - begin)
            # Up to a whole block of columns; the softmax clears the keys after each query.
            keys = (begin + some + 3) // 4 * 4 if how.causal else known
            moved_to = head * how.keep + begin if how.keep > 0 else 0
            at = Rows(scores.first + moved_to * scores.apart, scores.apart)
            block = Matrix(query.first + moved + begin * query.apart, query.apart, 1)
            product(some, keys, heads.head_size, a, block, key, at, False)
            if how.bias >= FIRE:
                causal, tokens = how.bias == CAUSAL_FIRE, scores.apart - 1
                number0 = how.table + head * how.rows * tokens
                number0 += begin * tokens if how.rows > 1 else 0
                add_fire(some, begin, keys, a, at.first, at.apart, causal, tokens, number0)
            elif how.bias != UNBIASED:
                bias_scores(
                    some, begin, keys, a, at, how, head, heads.heads, positions, places, w, read
                )
            if how.shares == SOFTMAX:
                softmax(some, begin, keys, how.causal, a, at.first, at.apart, mask)
            else:
                share0 = o.shares + moved_to
                divide_by_sums(some, begin, keys, how.causal, a, at.first, at.apart, share0)
            to = Rows(o.mixed.first + moved + begin * o.mixed.apart, o.mixed.apart)
            weights = Matrix(at.first, at.apart, 1)
            product(some, heads.head_width, keys, a, weights, value, to, False)


@kernel
def attend_gradient(queries, to, it, a):
    """Writes D of queries, keys and values, and adds D of the distances' biases to vectors.

    Args:
        to: an `AttendGradient`.
        it: a `Reading`.
    """
    o, dmixed, dquery, dkey_value, dscores = to
    how, heads, query, key_value, scores = o.how, o.heads, o.query, o.key_value, o.scores
    known, positions, read = it.known[o.keys_span], it.positions, it.read[0]
    for row in range(known):
        clear(a, dkey_value.first + row * dkey_value.apart, 2 * heads.joined)
    for head in range(heads.heads):
        moved = head * heads.head_width
        key = key_value.first + moved
        to_key = Rows(dkey_value.first + moved, dkey_value.apart)
        to_value = Rows(to_key.first + heads.joined, dkey_value.apart)
        for begin in range(0, queries, QUERIES):
            some = min(QUERIES, queries - begin)
            keys = min(known, begin + some) if how.causal else known
            moved_to = head * how.keep + begin
            p = scores.first + moved_to * scores.apart
            d = dmixed.first + moved + begin * dmixed.apart
            q = query.first + moved + begin * query.apart
            weights, given = Matrix(p, 1, scores.apart), Matrix(d, 1, dmixed.apart)
            product(keys, heads.head_width, some, a, weights, given, to_value, True)
            value = Matrix(key + heads.joined, key_value.apart, 1)
            here = Rows(dscores, scores.apart)
            given = Matrix(d, dmixed.apart, 1)
            product(some, keys, heads.head_size, a, given, value, here, False)
            if how.shares == SOFTMAX:
                softmax_gradient(some, keys, a, p, scores.apart, dscores, scores.apart)
            else:
                divide_by_sums_gradient(
                    some, begin, keys, how.causal, a, p, scores.apart, dscores, scores.apart,
                    o.shares + moved_to,
                )  # fmt: skip
            if how.bias == RELATIVE:
                distance_gradient(some, begin, keys, a, here, how, head, positions, read)
            if how.bias >= FIRE:
                causal, tokens = how.bias == CAUSAL_FIRE, scores.apart - 1
                d0 = how.distances + head * how.rows * tokens
                d0 += begin * tokens if how.rows > 1 else 0
                add_fire_gradient(some, begin, keys, a, dscores, scores.apart, causal, tokens, d0)
            slopes, to = Matrix(dscores, scores.apart, 1), dquery.first + moved
            to_query = Rows(to + begin * dquery.apart, dquery.apart)
            keys_of = Matrix(key, 1, key_value.apart)
            product(some, heads.head_width, keys, a, slopes, keys_of, to_query, False)
            slopes, block = Matrix(dscores, 1, scores.apart), Matrix(q, 1, query.apart)
            product(keys, heads.head_width, some, a, slopes, block, to_key, True)
