"""The (token, place) rows: what all strings of a batch share, and its gradients."""

import math

from seqcls.engines.compiled.compiling import inlined
from seqcls.engines.fused.backward import (
    effect_backward,
    embedding_backward,
    project_backward,
    states_backward,
)
from seqcls.engines.fused.forward import add, dot, project, types_forward
from seqcls.engines.fused.tables.places import ALIBI, LEARNT, RELATIVE, ROTARY, SINUSOIDAL


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
