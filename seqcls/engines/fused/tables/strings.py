"""A tile of strings from the scores of their (token, place) rows to mixed values, and back."""

import numpy as np

from seqcls.engines.compiled.compiling import inlined
from seqcls.engines.fused.backward import read_backward
from seqcls.engines.fused.buffers import TILE
from seqcls.engines.fused.elementary import exp_row
from seqcls.engines.fused.forward import add, dot, read
from seqcls.engines.fused.tables.rows import is_added

LOWEST = -1e30
"""Below every score; not -inf, from which nothing could be taken away where all is absent."""


@inlined
def attend(letters, factor, head, shape, tile, table):
    """The attention weights of one head over places; zero where a string has no letter."""
    number = factor.dtype.type
    zero, one = number(0), number(1)
    score, bias, attention = table.score[head], table.bias[head], table.attention[head]
    greatest, total = tile.row, tile.other
    greatest[:] = number(LOWEST)
    first = shape.first_type
    if first == 0:
        for s in range(TILE):
            attention[0, s] = score[0] * factor[s] + bias[0]
            greatest[s] = attention[0, s]
    for place in range(letters.shape[0]):
        base, scores = letters[place], attention[place + 1]
        for s in range(TILE):
            letter = np.int64(base[s])
            there = letter < table.letters
            row = 1 + place * table.letters + (letter if there else 0)
            here = score[row] * factor[s] + bias[place + 1]
            scores[s] = here if there else number(-np.inf)
            greatest[s] = max(greatest[s], scores[s])
    total[:] = zero
    for place in range(first, letters.shape[0] + 1):
        powers = attention[place]
        for s in range(TILE):
            powers[s] -= greatest[s]
        exp_row(powers, tile.powers, tile.exponents)
        add(total, one, powers)
    for s in range(TILE):
        total[s] = one / total[s] if total[s] > zero else zero
    for place in range(first, letters.shape[0] + 1):
        weights = attention[place]
        for s in range(TILE):
            weights[s] *= total[s]


@inlined
def mask(letters, letter, weights, out):
    """The weights of the strings that have this letter at a place; zero for the others."""
    zero = out.dtype.type(0)
    for s in range(TILE):
        out[s] = weights[s] if letters[s] == letter else zero


@inlined
def strings_forward(letters, factor, p, shape, scheme, types, tile, table):
    """The logits of a tile of strings, given as letters (places, T) that begin at the reader."""
    zero = factor.dtype.type(0)
    one = factor.dtype.type(1)
    tile.mixed[:] = zero
    for head in range(shape.heads):
        attend(letters, factor, head, shape, tile, table)
        attention, mass = table.attention[head], table.mass[head]
        members = range(head * shape.head_size, (head + 1) * shape.head_size)
        if shape.first_type == 0:
            for j in members:
                add(tile.mixed[j], types.value[j, 0], attention[0])
        if is_added(scheme):
            for place in range(letters.shape[0]):
                for letter in range(table.letters):
                    mask(letters[place], letter, attention[place + 1], table.masked)
                    for j in members:
                        value = types.value[j, 1 + place * table.letters + letter]
                        add(tile.mixed[j], value, table.masked)
        else:
            mass[:] = zero
            for place in range(letters.shape[0]):
                for letter in range(table.letters):
                    mask(letters[place], letter, attention[place + 1], table.masked)
                    add(mass[letter + 1], one, table.masked)
            for j in members:
                for letter in range(1, table.letters + 1):
                    add(tile.mixed[j], types.value[j, letter], mass[letter])
    read(p, shape, types, tile)


@inlined
def strings_backward(letters, factor, p, d, shape, scheme, types, tile, table):
    """Adds a tile's share of all gradients to `d` and to the sums in `token types` and `table`."""
    zero = factor.dtype.type(0)
    read_backward(p, d, shape, types, tile)
    for head in range(shape.heads):
        attention = table.attention[head]
        members = range(head * shape.head_size, (head + 1) * shape.head_size)
        table.common[:] = zero
        for j in members:
            for s in range(TILE):
                table.common[s] += tile.d_mixed[j, s] * tile.mixed[j, s]
        if shape.first_type == 0:
            d_weights(attention[0], 0, members, types, tile)
            score_backward(attention[0], tile.row, 0, 0, head, factor, table)
        if not is_added(scheme):
            for letter in range(1, table.letters + 1):
                d_weights(table.mass[head, letter], letter, members, types, tile)
                for s in range(TILE):
                    table.d_mass[letter, s] = tile.row[s]
        for place in range(letters.shape[0]):
            for letter in range(table.letters):
                row = 1 + place * table.letters + letter
                mask(letters[place], letter, attention[place + 1], table.masked)
                if is_added(scheme):
                    d_weights(table.masked, row, members, types, tile)
                    score_backward(table.masked, tile.row, row, place + 1, head, factor, table)
                else:
                    effect = table.d_mass[letter + 1]
                    score_backward(table.masked, effect, row, place + 1, head, factor, table)


@inlined
def d_weights(weights, row, members, types, tile):
    """Adds to D v of a row what these weights (T) gave; leaves D weights in `tile.row`."""
    tile.row[:] = tile.row.dtype.type(0)
    for j in members:
        types.d_value[j, row] += dot(weights, tile.d_mixed[j])
        add(tile.row, types.value[j, row], tile.d_mixed[j])


@inlined
def score_backward(weights, effect, row, place, head, factor, table):
    """Adds to D score of a row and to D bias of its place, given D weights (T)."""
    zero = weights.dtype.type(0)
    total, scaled = zero, zero
    for s in range(TILE):
        slope = weights[s] * (effect[s] - table.common[s])
        total += slope
        scaled += slope * factor[s]
    table.d_score[head, row] += scaled
    table.d_bias[head, place] += total
