# Compiled by Numba, which infers the types of arguments: what has none here is compiled.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Training and evaluation of one block with places, as compiled functions of tiles of strings.

Read at one place, one block needs the query of that place alone, and the keys and values of
every (token, place) that occurs: V P rows, made once a step, whatever the number of strings.
Where places add nothing to embeddings, even one key and value for each token are enough, and
only the scores depend on the place. All else is `seqcls.engines.fused.kernel`.
"""

import math
from typing import NamedTuple

import numpy as np

from seqcls.engines.compiled.arithmetic import adamw
from seqcls.engines.compiled.compiling import allocating, entry, inlined
from seqcls.engines.compiled.machine_code import TABLES
from seqcls.engines.fused.buffers import TILE, new_tile, new_token_types, views
from seqcls.engines.fused.forward import add, copy, dot, exp_row, project, read, types_forward
from seqcls.engines.fused.kernel import (
    effect_backward,
    embedding_backward,
    losses,
    project_backward,
    read_backward,
    states_backward,
)
from seqcls.engines.fused.packing import ALIBI, LEARNT, RELATIVE, ROTARY, SINUSOIDAL

# The memory that the states of (token, place) rows and of their strings are written to.


class TableBuffers(NamedTuple):
    """Room for what a batch's strings share of their places, and for a tile's attention.

    Scores are those of P places of V letters, a place's letters together, and before them that of
    the reader for itself: a row is 1 + place V + letter. N = 1 + P V.
    """

    letters: int
    """V."""
    columns: int
    """N."""
    score: np.ndarray  # (h, N)
    d_score: np.ndarray  # (h, N)
    bias: np.ndarray  # (h, 1 + P): added to scores by distance
    d_bias: np.ndarray  # (h, 1 + P)
    turned: np.ndarray  # (J, 1 + P): the query as a key at that place meets it
    attention: np.ndarray  # (h, 1 + P, T)
    mass: np.ndarray  # (h, 1 + V, T): attention by letter
    d_mass: np.ndarray  # (1 + V, T)
    masked: np.ndarray  # (T)
    common: np.ndarray  # (T)


@allocating
def new_table(dtype_of, shape, places):
    """Room for P places, of the type of an array."""
    t = dtype_of.dtype
    v, h, j = shape.token_types - 1, shape.heads, shape.heads * shape.head_size
    n = 1 + places * v
    return TableBuffers(
        v,
        n,
        np.zeros((h, n), t),
        np.zeros((h, n), t),
        np.zeros((h, places + 1), t),
        np.zeros((h, places + 1), t),
        np.zeros((j, places + 1), t),
        np.zeros((h, places + 1, TILE), t),
        np.zeros((h, v + 1, TILE), t),
        np.zeros((v + 1, TILE), t),
        np.zeros(TILE, t),
        np.zeros(TILE, t),
    )


# The (token, place) rows: what all strings of a batch share, and its gradients.


@inlined
def is_added(scheme):
    """Whether places add to embeddings: then every (token, place) has a key and value of its own;
    else there is one for every token.
    """
    return scheme in (SINUSOIDAL, LEARNT)


@inlined
def rows_forward(p, shape, scheme, numbers, rows, types, table):
    """Keys, values and scores of all rows, for the places' numbers (A, 1 + P) and rows (1 + P)."""
    if is_added(scheme):
        embed(p, shape, scheme, numbers, rows, types, table)
        project(p, shape, types)
        for head in range(shape.heads):
            for n in range(table.columns):
                table.score[head, n] = types.score[head, n]
        return
    types_forward(p, shape, types)
    if scheme == ROTARY:
        turn(shape, numbers, types, table)
        return
    for head in range(shape.heads):
        table.score[head, 0] = types.score[head, 0]
        for n in range(1, table.columns):
            table.score[head, n] = types.score[head, 1 + (n - 1) % table.letters]
        for place in range(table.bias.shape[1]):
            if scheme == ALIBI:
                table.bias[head, place] = numbers[head, place]
            else:
                table.bias[head, place] = p.places[rows[place], head]


@inlined
def embed(p, shape, scheme, numbers, rows, types, table):
    """The states of all rows: embedding and place, added."""
    for place in range(table.bias.shape[1]):
        for i in range(shape.hidden):
            shift = numbers[i, place] if scheme == SINUSOIDAL else p.places[rows[place], i]
            if place == 0:
                types.state[i, 0] = p.embedding[0, i] + shift
                continue
            first = 1 + (place - 1) * table.letters
            for letter in range(table.letters):
                types.state[i, first + letter] = p.embedding[1 + letter, i] + shift


@inlined
def turn(shape, numbers, types, table):
    """Scores of keys that are turned by their distance: the query is turned back instead."""
    number = table.score.dtype.type
    per_root = number(1 / math.sqrt(shape.head_size))
    pairs = shape.head_size // 2
    table.score[:] = number(0)
    for head in range(shape.heads):
        table.score[head, 0] = types.score[head, 0]
        for pair in range(pairs):
            even = head * shape.head_size + 2 * pair
            odd = even + 1
            q, r = types.query[even] * per_root, types.query[odd] * per_root
            for place in range(1, table.bias.shape[1]):
                cos, sin = numbers[pair, place], numbers[pairs + pair, place]
                table.turned[even, place] = q * cos + r * sin
                table.turned[odd, place] = r * cos - q * sin
                first = 1 + (place - 1) * table.letters
                for letter in range(table.letters):
                    table.score[head, first + letter] += (
                        table.turned[even, place] * types.key[even, 1 + letter]
                        + table.turned[odd, place] * types.key[odd, 1 + letter]
                    )


@inlined
def rows_backward(p, d, shape, scheme, numbers, rows, types, table):
    """Turns the sums over strings into the gradients of the parameters."""
    effect_backward(p, d, shape, types)
    if is_added(scheme):
        for head in range(shape.heads):
            for n in range(table.columns):
                types.d_score[head, n] = table.d_score[head, n]
        project_backward(p, d, shape, types)
        states_backward(p, d, shape, types)
        embed_backward(d, shape, scheme, rows, types, table)
        return
    for head in range(shape.heads):
        types.d_score[head, 0] = table.d_score[head, 0]
        if scheme != ROTARY:
            for n in range(1, table.columns):
                types.d_score[head, 1 + (n - 1) % table.letters] += table.d_score[head, n]
        if scheme == RELATIVE:
            for place in range(table.bias.shape[1]):
                d.places[rows[place], head] += table.d_bias[head, place]
    project_backward(p, d, shape, types)
    if scheme == ROTARY:
        turn_backward(p, d, shape, numbers, types, table)
    states_backward(p, d, shape, types)
    embedding_backward(d, shape, types)


@inlined
def embed_backward(d, shape, scheme, rows, types, table):
    """Adds D x of all rows to the gradients of embeddings and learned places."""
    number = table.score.dtype.type
    for i in range(shape.hidden):
        for place in range(table.bias.shape[1]):
            total = types.d_normed[i, 0] + types.d_read[i]
            if place == 0:
                d.embedding[0, i] += total
            else:
                first = 1 + (place - 1) * table.letters
                total = number(0)
                for letter in range(table.letters):
                    of_row = types.d_normed[i, first + letter]
                    d.embedding[1 + letter, i] += of_row
                    total += of_row
            if scheme == LEARNT:
                d.places[rows[place], i] += total


@inlined
def turn_backward(p, d, shape, numbers, types, table):
    """Adds to D x^ and the gradients of queries and keys what comes through turned scores."""
    number = table.score.dtype.type
    per_root = number(1 / math.sqrt(shape.head_size))
    pairs = shape.head_size // 2
    for head in range(shape.heads):
        for pair in range(pairs):
            even = head * shape.head_size + 2 * pair
            odd = even + 1
            d_q = d_r = number(0)
            # D key stands where the keys stood, which are read before.
            for letter in range(table.letters):
                key, other = types.key[even, 1 + letter], types.key[odd, 1 + letter]
                d_key = d_other = number(0)
                for place in range(1, table.bias.shape[1]):
                    slope = table.d_score[head, 1 + (place - 1) * table.letters + letter]
                    cos, sin = numbers[pair, place], numbers[pairs + pair, place]
                    d_key += slope * table.turned[even, place]
                    d_other += slope * table.turned[odd, place]
                    d_q += slope * (key * cos - other * sin)
                    d_r += slope * (key * sin + other * cos)
                types.key[even, 1 + letter] = d_key
                types.key[odd, 1 + letter] = d_other
            types.key[even, 0] = types.key[odd, 0] = number(0)
            types.query[even] = d_q * per_root
            types.query[odd] = d_r * per_root
    for j in range(types.query.size):
        for i in range(shape.hidden):
            d.query[j, i] += types.query[j] * types.normed[i, 0]
            d.key[j, i] += dot(types.key[j], types.normed[i])
            types.d_normed[i, 0] += p.query[j, i] * types.query[j]
            add(types.d_normed[i], p.key[j, i], types.key[j])
        if shape.biases:
            d.query_bias[j] += types.query[j]
            d.key_bias[j] += types.key[j].sum()


# A tile of strings from the scores of their (token, place) rows to mixed values, and back.

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


@entry(TABLES)
def train_table_epoch(
    flat, moments, step, update, shape, rows_shape, scheme, exponents, places, tiles
):  # fmt: skip
    """Trains like `seqcls.engines.fused.kernel.train_epoch`.

    Args:
        rows_shape: the same with as many token types as there are rows.
        scheme: a number of `places`.
        places: the `PositionTerms` of every batch, or of one for all.
        tiles: `LetterTiles`.
    """
    letters, slots, factors, targets, weights, ends = tiles
    gradient = np.zeros_like(flat)
    p, d = views(flat, shape), views(gradient, shape)
    types, tile = new_token_types(flat, rows_shape), new_tile(flat, exponents, shape)
    table = new_table(flat, shape, letters.shape[1])
    total = 0.0
    first = 0
    for batch in range(ends.size):
        types.d_score[:] = 0
        types.d_value[:] = 0
        types.d_effect[:] = 0
        types.d_read[:] = 0
        table.d_score[:] = 0
        table.d_bias[:] = 0
        drawn = batch if len(places.rows) > 1 else 0
        numbers, rows = places.numbers[drawn], places.rows[drawn]
        rows_forward(p, rows_shape, scheme, numbers, rows, types, table)
        for number in range(first, ends[batch]):
            tile_letters, factor = letters[number, : slots[number]], factors[number]
            strings_forward(tile_letters, factor, p, shape, scheme, types, tile, table)
            total += losses(targets[number], weights[number], shape, tile)
            strings_backward(tile_letters, factor, p, d, shape, scheme, types, tile, table)
        rows_backward(p, d, rows_shape, scheme, numbers, rows, types, table)
        adamw(flat, gradient, moments, step + batch + 1, update.rates[batch], update)
        first = ends[batch]
    return total


@entry(TABLES)
def evaluate_table(flat, shape, rows_shape, scheme, exponents, places, tiles, logits):
    """Writes the logits of strings to `logits` (tile, T); returns the sum of their losses.

    The other arguments are those of `train_table_epoch`; all strings have the first batch's places.
    """
    letters, slots, factors, targets, weights, _ = tiles
    p = views(flat, shape)
    types, tile = new_token_types(flat, rows_shape), new_tile(flat, exponents, shape)
    table = new_table(flat, shape, letters.shape[1])
    rows_forward(p, rows_shape, scheme, places.numbers[0], places.rows[0], types, table)
    total = 0.0
    for number in range(len(letters)):
        tile_letters = letters[number, : slots[number]]
        strings_forward(tile_letters, factors[number], p, shape, scheme, types, tile, table)
        copy(logits[number], tile.logit)
        total += losses(targets[number], weights[number], shape, tile)
    return total
