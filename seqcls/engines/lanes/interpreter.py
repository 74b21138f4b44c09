# Compiled by Numba, which infers the types of arguments: what has none here is compiled.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""The interpreter of instructions: each calls a kernel on the rows that it names.

A row is a token of a group of strings: first token 0 of all groups, then token 1 of those that are
longer, and so on. The rows that an instruction works on, its *span*, are given when the list is
played: all rows in training, and those of one more token in decoding, where the rows before are the
memory of earlier tokens. So one list trains, evaluates, scores and decodes.
"""

from typing import Any, NamedTuple

import numpy as np

from seqcls.engines.lanes import (
    attention,
    delta_memory,
    elementary,
    fire,
    loss,
    moves,
    positions,
    recurrence,
    selective_memory,
    tiles,
)
from seqcls.engines.lanes import instructions as code
from seqcls.engines.lanes.columns import source_of
from seqcls.engines.lanes.elementary import norm_gradient
from seqcls.engines.lanes.layers import ELU, GELU, RELU, SILU, SOFTPLUS, TOKENS
from seqcls.engines.lanes.positions import PositionArrays
from seqcls.engines.lanes.vector import inlined, kernel


class Reading(NamedTuple):
    """The strings that a list is played on."""

    spans: np.ndarray
    """(span, 2): its first row and the end."""
    known: np.ndarray
    """(span): number of known tokens of each string, filled up."""
    starts: np.ndarray
    """(token): its first row, and the end of the last."""
    groups: int
    number: int
    """The index of the first of these groups among all."""
    lengths: np.ndarray
    """(group, lane): number of tokens that are read."""
    read: np.ndarray
    """(group, lane): the row that is read; -1 for none."""
    positions: PositionArrays
    eps: float


def reading(kind: type[Any]) -> tuple[int, Any]:
    """Returns the number of an instruction, and a function that reads it from its row."""
    source, scope = source_of(kind)
    scope |= {"rows_from": moves.rows_from, "rows_of_group": moves.rows_of_group}
    exec(compile(source, __file__, "exec"), scope)
    return code.NUMBERS[kind], inlined(scope["read"])


LINEAR, read_linear = reading(code.Linear)
LINEAR_GRADIENT, read_linear_gradient = reading(code.LinearGradient)
CLASSIFY_GRADIENT, read_classify_gradient = reading(code.ClassifyGradient)
NORMALIZE, read_normalize = reading(code.Normalize)
NORMALIZE_GRADIENT, read_normalize_gradient = reading(code.NormalizeGradient)
ACTIVATE, read_activate = reading(code.Activate)
MULTIPLY, read_multiply = reading(code.Multiply)
COPY, read_copy = reading(code.Copy)
SCALE, read_scale = reading(code.Scale)
SCALE_HEADS, read_scale_heads = reading(code.ScaleHeads)
SCALE_HEADS_GRADIENT, read_scale_heads_gradient = reading(code.ScaleHeadsGradient)
ENLARGE, read_enlarge = reading(code.Enlarge)
ADD_POSITIONS, read_add_positions = reading(code.AddPositions)
ADD_POSITIONS_GRADIENT, read_add_positions_gradient = reading(code.AddPositionsGradient)
ROTATE, read_rotate = reading(code.Rotate)
ATTEND, read_attend = reading(code.Attend)
ATTEND_GRADIENT, read_attend_gradient = reading(code.AttendGradient)
DISTANCE_GRADIENT, read_distance_gradient = reading(code.DistanceGradient)
FIRE, read_fire = reading(code.Fire)
FIRE_GRADIENT, read_fire_gradient = reading(code.FireGradient)
REMEMBER, read_remember = reading(code.Remember)
REMEMBER_GRADIENT, read_remember_gradient = reading(code.RememberGradient)
SELECT, read_select = reading(code.Select)
SELECT_GRADIENT, read_select_gradient = reading(code.SelectGradient)
RECUR, read_recur = reading(code.Recur)
RECUR_GRADIENT, read_recur_gradient = reading(code.RecurGradient)
GATHER, read_gather = reading(code.Gather)
MEAN, read_mean = reading(code.Mean)
TABLE, read_table = reading(code.Table)
CONVOLVE, read_convolve = reading(code.Convolve)
CONVOLVE_GRADIENT, read_convolve_gradient = reading(code.ConvolveGradient)
UNFOLD, read_unfold = reading(code.Unfold)
FOLD, read_fold = reading(code.Fold)
CLEAR, read_clear = reading(code.Clear)
CLEAR_BEFORE, read_clear_before = reading(code.ClearBefore)


@kernel
def play(rows_of_list, it, a, w, gradient):
    """Runs a list of instructions.

    Args:
        rows_of_list: (instruction, column): its number, its span and what `columns_of` returns.
        it: a `Reading`, with the spans.
        a: the array of all values, `w` of the parameters, and `gradient` of their gradients.
    """
    groups = it.groups
    for n in range(rows_of_list.shape[0]):
        row = rows_of_list[n]
        number, first = row[0], it.spans[row[1], 0]
        rows = it.spans[row[1], 1] - first
        if rows == 0:
            continue
        token, tokens = first // groups, rows // groups
        if number == LINEAR:
            # Here and below `0, 1` takes all rows as one group's: these kernels know of no groups.
            o = read_linear(row, first, 0, 1)
            tiles.apply(rows, o.layer, a, o.x, o.y, w, o.add)
        elif number == LINEAR_GRADIENT:
            o = read_linear_gradient(row, first, 0, 1)
            # Rows that are not needed are written as (0, 0).
            if o.x.apart > 0:
                tiles.parameter_gradient(rows, o.layer, a, o.x, o.dy, gradient)
            if o.dx.apart > 0:
                tiles.input_gradient(rows, o.layer, a, o.dy, o.dx, w, o.add)
        elif number == CLASSIFY_GRADIENT:
            loss.classify_gradient(rows, read_classify_gradient(row, first, 0, 1), a, w, gradient)
        elif number == NORMALIZE:
            o = read_normalize(row, first, 0, 1)
            elementary.norm(rows, o.layer, it.eps, a, o.x, o.y, o.units.first, o.scales.first, w)
        elif number == NORMALIZE_GRADIENT:
            o = read_normalize_gradient(row, first, 0, 1)
            layer, units, scales = o.layer, o.units.first, o.scales.first
            # A constant argument: with a variable, the compiler rounds a product more.
            if o.add:
                norm_gradient(rows, layer, a, o.dy, o.dx, units, scales, o.sums, w, gradient, True)
            else:
                norm_gradient(rows, layer, a, o.dy, o.dx, units, scales, o.sums, w, gradient, False)
        elif number == ACTIVATE:
            o = read_activate(row, first, 0, 1)
            if o.function == GELU:
                elementary.replace_by_gelu(rows, o.columns, a, o.x, o.slopes)
            elif o.function == RELU:
                elementary.replace_by_relu(rows, o.columns, a, o.x, o.slopes)
            elif o.function == ELU:
                elementary.replace_by_elu(rows, o.columns, a, o.x, o.slopes)
            elif o.function == SILU:
                elementary.replace_by_silu(rows, o.columns, a, o.x, o.slopes)
            elif o.function == SOFTPLUS:
                elementary.replace_by_softplus(rows, o.columns, a, o.x, o.slopes)
            else:
                elementary.replace_by_gelu_tanh(rows, o.columns, a, o.x, o.slopes)
        elif number == MULTIPLY:
            elementary.multiply(rows, read_multiply(row, first, 0, 1), a)
        elif number == COPY:
            moves.copy(rows, read_copy(row, first, 0, 1), a)
        elif number == SCALE:
            moves.scale(first, rows, read_scale(row, first, 0, 1), a)
        elif number == SCALE_HEADS:
            moves.scale_heads(first, rows, read_scale_heads(row, first, 0, 1), a, w)
        elif number == SCALE_HEADS_GRADIENT:
            o = read_scale_heads_gradient(row, first, 0, 1)
            moves.scale_heads_gradient(first, rows, o, a, w, gradient)
        elif number == ENLARGE:
            moves.enlarge(rows, read_enlarge(row, first, 0, 1), a)
        elif number == ADD_POSITIONS:
            positions.add_positions(first, rows, read_add_positions(row, first, 0, 1), it, a, w)
        elif number == ADD_POSITIONS_GRADIENT:
            o = read_add_positions_gradient(row, first, 0, 1)
            positions.add_positions_gradient(rows, o, it, a, gradient)
        elif number == ROTATE:
            positions.rotate(first, rows, read_rotate(row, first, 0, 1), a)
        elif number == ATTEND:
            for group in range(groups):
                o = read_attend(row, first, group, groups)
                attention.attend(token, tokens, group, o, it, a, w)
        elif number == ATTEND_GRADIENT:
            attention.attend_gradient(rows, read_attend_gradient(row, 0, 0, 1), it, a)
        elif number == DISTANCE_GRADIENT:
            positions.end_distance_gradient(read_distance_gradient(row, first, 0, 1), a, gradient)
        elif number == FIRE:
            o = read_fire(row, first, 0, 1)
            fire.fire(o, token, token + tokens, it.known[TOKENS], it.lengths[0], a, w)
        elif number == FIRE_GRADIENT:
            o = read_fire_gradient(row, first, 0, 1)
            known = it.known[TOKENS]
            fire.fire_gradient(o.forward, o.sums, tokens, known, it.lengths[0], a, w, gradient)
        elif number == REMEMBER:
            for group in range(groups):
                delta_memory.remember(token, tokens, a, read_remember(row, first, group, groups), w)
        elif number == REMEMBER_GRADIENT:
            o = read_remember_gradient(row, 0, 0, 1)
            delta_memory.remember_gradient(rows, a, o, w, gradient)
        elif number == SELECT:
            for group in range(groups):
                o = read_select(row, first, group, groups)
                selective_memory.select(token, tokens, group, a, o, w)
        elif number == SELECT_GRADIENT:
            o = read_select_gradient(row, 0, 0, 1)
            selective_memory.select_gradient(rows, a, o, w, gradient)
        elif number == RECUR:
            o = read_recur(row, first, 0, 1)
            recurrence.recur(token, it.known[TOKENS], it.starts, o, a, w)
        elif number == RECUR_GRADIENT:
            o = read_recur_gradient(row, 0, 0, 1)
            recurrence.recur_gradient(it.known[TOKENS], it.starts, o, a, w, gradient)
        elif number == GATHER:
            o = read_gather(row, first, 0, 1)
            if o.back:
                moves.scatter(o.columns, a, o.y, it.read[:groups], o.x)
            else:
                moves.gather(o.columns, a, o.x, it.read[:groups], o.y)
        elif number == MEAN:
            o = read_mean(row, first, 0, 1)
            if o.back:
                moves.average_gradient(a, o, it.known[TOKENS], it.starts)
            else:
                moves.average(a, o, groups, it.known[TOKENS], it.starts)
        elif number == TABLE:
            o = read_table(row, first, 0, 1)
            if o.back:
                moves.table_gradient(o, w, gradient)
            else:
                moves.make_table(o, w)
        elif number == CONVOLVE:
            for group in range(groups):
                moves.convolve(token, tokens, read_convolve(row, first, group, groups), a, w)
        elif number == CONVOLVE_GRADIENT:
            o = read_convolve_gradient(row, first, 0, 1)
            moves.convolve_gradient(rows, o, a, w, gradient)
        elif number == UNFOLD:
            moves.unfold(first, rows, groups, a, read_unfold(row, first, 0, 1))
        elif number == FOLD:
            moves.fold(first, rows, groups, a, read_fold(row, first, 0, 1))
        elif number == CLEAR:
            o = read_clear(row, first, 0, 1)
            tiles.clear(a, o.x.first, rows * o.x.apart)
        elif number == CLEAR_BEFORE:
            o = read_clear_before(row, first, 0, 1)
            tiles.clear(a, o.x.first, first * o.x.apart)
