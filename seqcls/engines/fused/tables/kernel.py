"""Training and evaluation of one block with places, as compiled functions of tiles of strings.

Read at one place, one block needs the query of that place alone, and the keys and values of every
(token, place) that occurs: V P rows, made once a step, whatever the number of strings. Where places
add nothing to embeddings, even one key and value for each token are enough, and only the scores
depend on the place. All else is `seqcls.engines.fused.kernel`.
"""

import numpy as np

from seqcls.engines.compiled.adamw import adamw
from seqcls.engines.compiled.compiling import entry
from seqcls.engines.compiled.machine_code import TABLES
from seqcls.engines.fused.buffers import new_tile, new_token_types, views
from seqcls.engines.fused.forward import copy
from seqcls.engines.fused.loss import losses
from seqcls.engines.fused.tables.buffers import new_table
from seqcls.engines.fused.tables.rows import rows_backward, rows_forward
from seqcls.engines.fused.tables.strings import strings_backward, strings_forward


@entry(TABLES)
def train_table_epoch(
    flat,
    moments,
    step,
    update,
    shape,
    rows_shape,
    scheme,
    exponents,
    numbers,
    rows,
    letters,
    slots,
    factors,
    targets,
    weights,
    ends,
):
    """Trains one model for an epoch, in place; returns the sum of its losses over all strings.

    Args:
        flat: the parameters, one after another.
        moments: (2, parameter) AdamW's first and second moments.
        step: steps done before.
        update: an `Update`.
        shape: a `Shape`.
        rows_shape: the same with as many token types as there are rows.
        scheme: a number of `places`.
        exponents: scratch of TILE integers as wide as the parameters.
        numbers: of `Places`, of every batch or of one for all.
        rows: likewise.
        letters: (tile, P, T), from the reader on; not below V where there is none.
        slots: the places that a tile has any letter at.
        factors: (tile, T) what scores are multiplied with, biases not.
        targets: (tile, T) 1 for positive strings, else 0.
        weights: (tile, T) what each loss counts for in the gradient of its batch.
        ends: the number of the first tile after each batch.
    """
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
        drawn = batch if len(rows) > 1 else 0
        rows_forward(p, rows_shape, scheme, numbers[drawn], rows[drawn], types, table)
        for number in range(first, ends[batch]):
            tile_letters, factor = letters[number, : slots[number]], factors[number]
            strings_forward(tile_letters, factor, p, shape, scheme, types, tile, table)
            total += losses(targets[number], weights[number], shape, tile)
            strings_backward(tile_letters, factor, p, d, shape, scheme, types, tile, table)
        rows_backward(p, d, rows_shape, scheme, numbers[drawn], rows[drawn], types, table)
        adamw(flat, gradient, moments, step + batch + 1, update)
        first = ends[batch]
    return total


@entry(TABLES)
def evaluate_table(
    flat,
    shape,
    rows_shape,
    scheme,
    exponents,
    numbers,
    rows,
    letters,
    slots,
    factors,
    targets,
    weights,
    logits,
):
    """Writes the logits of strings to `logits` (tile, T); returns the sum of their losses.

    The other arguments are those of `train_table_epoch`; all strings have the first batch's places.
    """
    p = views(flat, shape)
    types, tile = new_token_types(flat, rows_shape), new_tile(flat, exponents, shape)
    table = new_table(flat, shape, letters.shape[1])
    rows_forward(p, rows_shape, scheme, numbers[0], rows[0], types, table)
    total = 0.0
    for number in range(len(letters)):
        tile_letters = letters[number, : slots[number]]
        strings_forward(tile_letters, factors[number], p, shape, scheme, types, tile, table)
        copy(logits[number], tile.logit)
        total += losses(targets[number], weights[number], shape, tile)
    return total
