# Compiled by Numba, which infers the types of arguments: what has none here is compiled.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Training and evaluation where the logit reads the mean of all tokens' final states.

The logit of a mean is the mean of the logits, and equal letters have equal states: with n_qs the
number of letters q in a string of n_s tokens,

    logit_s = sum_q n_qs / n_s logit_qs

where logit_qs is what `seqcls.engines.fused.kernel` computes, read at the letter q instead of
CLS. So every letter is a reader with states of its own, and its gradients are those of the
kernel with n_qs / n_s D logit_s in the place of D logit_s. The mean of no tokens is the zero
vector: of the empty string only the classifier's bias is left.
"""

from typing import NamedTuple

import numpy as np

from seqcls.engines.compiled.arithmetic import adamw
from seqcls.engines.compiled.compiling import allocating, entry, inlined
from seqcls.engines.compiled.machine_code import MEAN
from seqcls.engines.fused.buffers import TILE, TokenTypes, new_tile, views
from seqcls.engines.fused.forward import copy, forward, types_forward
from seqcls.engines.fused.kernel import backward, losses, types_backward

# The memory that the states of all readers are written to.


class Mean(NamedTuple):
    """Room for every letter as a reader, and for what a tile's strings make of them."""

    memory: np.ndarray  # (V, numbers): each reader's states, as `reader` shows them
    shares: np.ndarray  # (V, T)
    empty: np.ndarray  # (T): 1 for the empty string
    logit: np.ndarray  # (T)
    slope: np.ndarray  # (T)


@allocating
def new_mean(dtype_of, shape):
    """Room for all letters, of the type of an array."""
    t = dtype_of.dtype
    j, h, f, k = shape.heads * shape.head_size, shape.hidden, shape.feed_forward, shape.token_types
    numbers = (4 * h + 3 * j + 2 * shape.heads + 3) * k + j + 2 * f + h
    return Mean(
        np.zeros((k - 1, numbers), t),
        np.zeros((k - 1, TILE), t),
        np.zeros(TILE, t),
        np.zeros(TILE, t),
        np.zeros(TILE, t),
    )


@allocating
def reader(memory, token_type, shape):
    """The states of the token types as one of them reads them: views of its memory."""
    j, h, f, k = shape.heads * shape.head_size, shape.hidden, shape.feed_forward, shape.token_types
    wide, heads = h * k, shape.heads * k
    a = 4 * wide
    b = a + 3 * j * k
    c = b + 2 * heads
    e = c + 3 * k
    return TokenTypes(
        token_type,
        memory[:wide].reshape(h, k),
        memory[wide : 2 * wide].reshape(h, k),
        memory[2 * wide : 3 * wide].reshape(h, k),
        memory[c : c + k],
        memory[e : e + j],
        memory[a : a + j * k].reshape(j, k),
        memory[a + j * k : a + 2 * j * k].reshape(j, k),
        memory[b : b + heads].reshape(shape.heads, k),
        memory[e + j : e + j + f],
        memory[b + heads : c].reshape(shape.heads, k),
        memory[a + 2 * j * k : b].reshape(j, k),
        memory[e + j + f : e + j + 2 * f],
        memory[e + j + 2 * f : e + j + 2 * f + h],
        memory[3 * wide : a].reshape(h, k),
        memory[c + k : c + 2 * k],
        memory[c + 2 * k : e],
    )


@inlined
def shares_of(counts, p, shape, mean):
    """Each letter's share of a tile's strings (V, T), and what the logits are without readers."""
    number = counts.dtype.type
    zero, one = number(0), number(1)
    mean.logit[:] = zero
    for letter in range(shape.token_types - 1):
        for s in range(TILE):
            mean.logit[s] += counts[letter + 1, s]
    for s in range(TILE):
        mean.empty[s] = one if mean.logit[s] == zero else zero
    for letter in range(shape.token_types - 1):
        for s in range(TILE):
            mean.shares[letter, s] = counts[letter + 1, s] / (mean.logit[s] + mean.empty[s])
    for s in range(TILE):
        mean.logit[s] = mean.empty[s] * p.classifier_bias[0] if shape.biases else zero


@inlined
def add_logits(letter, tile, mean):
    """Adds one reader's share of the logits."""
    for s in range(TILE):
        mean.logit[s] += mean.shares[letter, s] * tile.logit[s]


@entry(MEAN)
def train_epoch(
    flat, moments, step, update, shape, exponents, counts, factors, targets, weights, ends
):
    """Trains like `seqcls.engines.fused.kernel.train_epoch`."""
    gradient = np.zeros_like(flat)
    p, d = views(flat, shape), views(gradient, shape)
    tile, mean = new_tile(flat, exponents, shape), new_mean(flat, shape)
    letters = shape.token_types - 1
    total = 0.0
    first = 0
    for batch in range(ends.size):
        mean.memory[:] = 0
        for letter in range(letters):
            types_forward(p, shape, reader(mean.memory[letter], letter + 1, shape))
        for number in range(first, ends[batch]):
            shares_of(counts[number], p, shape, mean)
            # Forward for all readers, then again for each with its gradients: once in the code.
            for turn in range(2 * letters):
                letter = turn % letters
                types = reader(mean.memory[letter], letter + 1, shape)
                if turn == letters:
                    copy(tile.logit, mean.logit)
                    total += losses(targets[number], weights[number], shape, tile)
                    copy(mean.slope, tile.slope)
                    if shape.biases:
                        for s in range(TILE):
                            d.classifier_bias[0] += mean.empty[s] * tile.slope[s]
                forward(counts[number], factors[number], p, shape, types, tile)
                if turn < letters:
                    add_logits(letter, tile, mean)
                else:
                    for s in range(TILE):
                        tile.slope[s] = mean.slope[s] * mean.shares[letter, s]
                    backward(factors[number], p, d, shape, types, tile)
        for letter in range(letters):
            types_backward(p, d, shape, reader(mean.memory[letter], letter + 1, shape))
        adamw(flat, gradient, moments, step + batch + 1, update.rates[batch], update)
        first = ends[batch]
    return total


@entry(MEAN)
def evaluate(flat, shape, exponents, counts, factors, targets, weights, logits):
    """Evaluates like `seqcls.engines.fused.kernel.evaluate`."""
    p = views(flat, shape)
    tile, mean = new_tile(flat, exponents, shape), new_mean(flat, shape)
    for letter in range(shape.token_types - 1):
        types_forward(p, shape, reader(mean.memory[letter], letter + 1, shape))
    total = 0.0
    for number in range(counts.shape[0]):
        shares_of(counts[number], p, shape, mean)
        for letter in range(shape.token_types - 1):
            types = reader(mean.memory[letter], letter + 1, shape)
            forward(counts[number], factors[number], p, shape, types, tile)
            add_logits(letter, tile, mean)
        copy(tile.logit, mean.logit)
        copy(logits[number], tile.logit)
        total += losses(targets[number], weights[number], shape, tile)
    return total
