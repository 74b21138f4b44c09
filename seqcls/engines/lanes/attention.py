# ruff: noqa
# mypy: ignore-errors
"""Attention of queries to keys of the same stream or of another, forward and backward.

As `lanes.transformer_attention`, but queries are tokens `first` to `first + queries` of their stream
and keys the first `known` of theirs: one function reads strings, one token more, and another stream.
Weights are a softmax of scores, or positive scores divided by their sum (linear attention):

    p_ij = s_ij / S_i,  S_i = sum_j s_ij        D s_ij = (D p_ij - sum_j p_ij D p_ij) / S_i
"""

from typing import NamedTuple

import numpy as np

from seqcls.engines.lanes.tiles import Matrix, Rows, clear, product
from seqcls.engines.lanes.transformer_attention import softmax, softmax_gradient
from seqcls.engines.lanes.transformer_sizes import QUERIES
from seqcls.engines.lanes.vector import (
    ONE,
    ZERO,
    fma,
    kernel,
    larger,
    load,
    spread,
    store,
)

SOFTMAX, SUM = range(2)
LEAST = np.float32(np.finfo(np.float32).tiny)


class Heads(NamedTuple):
    """How many, of how many numbers, these filled up, and all of them together."""

    heads: int
    head_size: int
    head_width: int
    joined: int


class How(NamedTuple):
    kind: int
    causal: bool
    keep: int
    """Rows of scores a head that are kept for the gradient; 0 for none."""


@kernel
def divide_by_sums(queries, first, keys, causal, a, scores0, row, shares0):
    """Replaces positive scores by their shares; leaves one over each sum."""
    for query in range(queries):
        at = scores0 + query * row
        end = min(keys, first + query + 1) if causal else keys
        sum_of = spread(ZERO)
        for key in range(end):
            sum_of = sum_of + load(a, at + key)
        share = ONE / larger(sum_of, spread(LEAST))
        store(a, shares0 + query, share)
        for key in range(end):
            store(a, at + key, load(a, at + key) * share)
        clear(a, at + end, keys - end)


@kernel
def divide_by_sums_gradient(
    queries, first, keys, causal, a, weights0, weights_row, d0, d_row, shares0
):
    """Replaces D p by D s, which is 0 where a query does not attend."""
    for query in range(queries):
        p0, d, mean = weights0 + query * weights_row, d0 + query * d_row, spread(ZERO)
        for key in range(keys):
            mean = fma(load(a, p0 + key), load(a, d + key), mean)
        share, end = load(a, shares0 + query), min(keys, first + query + 1) if causal else keys
        for key in range(end):
            store(a, d + key, (load(a, d + key) - mean) * share)
        clear(a, d + end, keys - end)


@kernel
def attend(first, queries, known, how, heads, a, query, key_value, scores, shares, mixed, mask):
    """Writes what each head mixes of the values, keys and values being beside one another."""
    for head in range(heads.heads):
        moved = head * heads.head_width
        key = Matrix(key_value.first + moved, key_value.apart, 1)
        value = Matrix(key.first + heads.joined, 1, key_value.apart)
        for begin in range(first, first + queries, QUERIES):
            some = min(QUERIES, first + queries - begin)
            keys = (begin + some + 3) // 4 * 4 if how.causal else known
            moved_to = head * how.keep + begin if how.keep > 0 else 0
            at = Rows(scores.first + moved_to * scores.apart, scores.apart)
            block = Matrix(query.first + moved + begin * query.apart, query.apart, 1)
            product(some, keys, heads.head_size, a, block, key, at, False)
            if how.kind == SOFTMAX:
                softmax(some, begin, keys, how.causal, a, at.first, at.apart, mask)
            else:
                divide_by_sums(
                    some, begin, keys, how.causal, a, at.first, at.apart, shares + moved_to
                )
            to = Rows(mixed.first + moved + begin * mixed.apart, mixed.apart)
            product(
                some, heads.head_width, keys, a, Matrix(at.first, at.apart, 1), value, to, False
            )


@kernel
def attend_gradient(
    queries,
    known,
    how,
    heads,
    a,
    query,
    key_value,
    scores,
    shares,
    dmixed,
    dquery,
    dkey_value,
    dscores,
):
    """Writes D of queries, keys and values; `dscores` is where scratch begins."""
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
            product(
                keys,
                heads.head_width,
                some,
                a,
                Matrix(p, 1, scores.apart),
                Matrix(d, 1, dmixed.apart),
                to_value,
                True,
            )
            value = Matrix(key + heads.joined, key_value.apart, 1)
            product(
                some,
                keys,
                heads.head_size,
                a,
                Matrix(d, dmixed.apart, 1),
                value,
                Rows(dscores, scores.apart),
                False,
            )
            if how.kind == SOFTMAX:
                softmax_gradient(some, keys, a, p, scores.apart, dscores, scores.apart)
            else:
                divide_by_sums_gradient(
                    some,
                    begin,
                    keys,
                    how.causal,
                    a,
                    p,
                    scores.apart,
                    dscores,
                    scores.apart,
                    shares + moved_to,
                )
            slopes, to = (
                Matrix(dscores, scores.apart, 1),
                Rows(dquery.first + moved + begin * dquery.apart, dquery.apart),
            )
            product(
                some, heads.head_width, keys, a, slopes, Matrix(key, 1, key_value.apart), to, False
            )
            product(
                keys,
                heads.head_width,
                some,
                a,
                Matrix(dscores, 1, scores.apart),
                Matrix(q, 1, query.apart),
                to_key,
                True,
            )
