# Compiled by Numba, which infers the types of arguments: what has none here is compiled.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Products of matrices by blocks, and linear layers."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils

from seqcls.engines.lanes.layers import COLUMNS
from seqcls.engines.lanes.vector import (
    LANES,
    VECTOR,
    ZERO,
    block_rows,
    in_all_lanes,
    intrinsic,
    kernel,
    load,
    multiply_add,
    pointer,
    spread,
    store,
    total,
    vector_pointer,
)

# Products of matrices, by blocks whose sums stay in registers.
#
# All have one inner loop: a block of rows times COLUMNS columns of sums, each the sum over steps of
# a row's value times a column's. It is written in LLVM's instructions, since Numba stores no array
# of vectors in registers; in Python it would take a line for each sum of a block, once for each of
# the three ways of storing them.


ROWS = block_rows()
"""Number of rows of a block; those of all arrays are filled up to a multiple of it, or are one."""


_Value = Callable[[Any, int], Any]
_Block = list[list[Any]]


def _zeros(rows: int) -> _Block:
    return [[ir.Constant(VECTOR, None)] * COLUMNS for _ in range(rows)]


def _sums(builder: Any, steps: Any, start: _Block, row_value: _Value, column_value: _Value) -> Any:
    """Returns a block's sums, row by row, given their initial values."""
    cells = [[cgutils.alloca_once(builder, VECTOR) for _ in row] for row in start]
    for row, values in zip(cells, start, strict=True):
        for cell, value in zip(row, values, strict=True):
            builder.store(value, cell)
    with cgutils.for_range(builder, steps) as loop:
        columns = [column_value(loop.index, column) for column in range(COLUMNS)]
        for number, row in enumerate(cells):
            value = row_value(loop.index, number)
            for cell, column in zip(row, columns, strict=True):
                builder.store(multiply_add(builder, value, column, builder.load(cell)), cell)
    return [[builder.load(cell) for cell in row] for row in cells]


def _place(builder: Any, start: Any, *moves: tuple[Any, Any]) -> Any:
    """Returns an index: a start plus multiples of distances."""
    for times, distance in moves:
        if isinstance(times, int):
            times = ir.Constant(distance.type, times)
        start = builder.add(start, builder.mul(times, distance))
    return start


def _shuffle(builder: Any, one: Any, other: Any, lanes: Iterable[int]) -> Any:
    """Returns a vector of some lanes of two; those of the second are counted from LANES on."""
    numbers = list(lanes)
    kind = ir.VectorType(ir.IntType(32), len(numbers))
    return builder.shuffle_vector(one, other, ir.Constant(kind, numbers))


def _totals(builder: Any, vectors: list[Any]) -> Any:
    """Returns the sums over the lanes of LANES vectors, one in each lane.

    They are added in pairs: at each step a bit of the lane selects the vector whose half it holds.
    That takes a quarter of the instructions of one sum after another.
    """
    bit = 1
    while len(vectors) > 1:
        low = [x if not x & bit else LANES + (x ^ bit) for x in range(LANES)]
        high = [x | bit if not x & bit else LANES + x for x in range(LANES)]
        vectors = [
            builder.fadd(_shuffle(builder, one, other, low), _shuffle(builder, one, other, high))
            for one, other in zip(vectors[::2], vectors[1::2], strict=True)
        ]
        bit *= 2
    return vectors[0]


def _block(rows: int, add: bool, by_numbers: bool) -> Any:
    """Defines the product of a block of x with w, whose values are numbers or vectors.

    With numbers, sums start with a bias.
    """

    @intrinsic
    def block(
        typing: Any,
        steps: Any,
        x: Any,
        x_start: Any,
        x_row: Any,
        x_step: Any,
        w: Any,
        w_start: Any,
        w_column: Any,
        w_step: Any,
        y_start: Any,
        y_row: Any,
        biases: Any,
        bias: Any,
    ) -> Any:
        def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            steps, x, x_start, x_row, x_step, w, w_start, w_column, w_step, *more = args
            y_start, y_row, biases, bias = more
            x_type, w_type, b_type = sig.args[1], sig.args[5], sig.args[11]
            one, zero = ir.Constant(bias.type, 1), ir.Constant(bias.type, 0)

            def vector_at(index: Any) -> Any:
                return vector_pointer(context, builder, x_type, x, index)

            def row_value(step: Any, row: int) -> Any:
                index = _place(builder, x_start, (step, x_step), (row, x_row))
                return builder.load(vector_at(index), align=4)

            def column_value(step: Any, column: int) -> Any:
                index = _place(builder, w_start, (step, w_step), (column, w_column))
                if not by_numbers:
                    return builder.load(vector_at(index), align=4)
                value = builder.load(pointer(context, builder, w_type, w, index))
                return in_all_lanes(builder, value)

            has_bias = builder.icmp_signed(">=", bias, zero)
            first_bias = builder.select(has_bias, bias, zero)
            start_values = []
            for column in range(COLUMNS if by_numbers else 0):
                # Without a bias, any number is read, and not used.
                index = _place(builder, first_bias, (column, one))
                value = builder.load(pointer(context, builder, b_type, biases, index))
                value = builder.select(has_bias, value, ir.Constant(value.type, 0.0))
                start_values.append(in_all_lanes(builder, value))
            start = [start_values] * rows if by_numbers else _zeros(rows)
            sums = _sums(builder, steps, start, row_value, column_value)
            _store_block(builder, vector_at, sums, y_start, y_row, add)
            return context.get_dummy_value()

        i = types.int64
        return types.void(i, x, i, i, i, w, i, i, i, i, i, biases, i), code

    return block


def _store_block(
    builder: Any, vector_at: Callable[[Any], Any], sums: _Block, start: Any, row: Any, add: bool
) -> None:
    """Stores a block, or adds it to the stored values."""
    one = ir.Constant(start.type, 1)
    for number, values in enumerate(sums):
        for column, value in enumerate(values):
            place = vector_at(_place(builder, start, (number, row), (column, one)))
            if add:
                value = builder.fadd(builder.load(place, align=4), value)
            builder.store(value, place, align=4)


@intrinsic
def _gradient_block(
    typing: Any,
    steps: Any,
    a: Any,
    a_start: Any,
    a_step: Any,
    b_start: Any,
    b_step: Any,
    gradient: Any,
    start: Any,
    row: Any,
) -> Any:
    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        steps, a, a_start, a_step, b_start, b_step, gradient, start, row = args
        one = ir.Constant(a_start.type, 1)

        def value_at(begin: Any, distance: Any) -> _Value:
            def value(step: Any, number: int) -> Any:
                index = _place(builder, begin, (step, distance), (number, one))
                place = vector_pointer(context, builder, sig.args[1], a, index)
                return builder.load(place, align=4)

            return value

        values = value_at(a_start, a_step), value_at(b_start, b_step)
        sums = _sums(builder, steps, _zeros(ROWS), *values)
        flat = [value for line in sums for value in line]
        for first in range(0, len(flat), LANES):
            totals = _totals(builder, flat[first : first + LANES])
            for quarter in range(LANES // COLUMNS):
                lanes = range(quarter * COLUMNS, (quarter + 1) * COLUMNS)
                part = _shuffle(builder, totals, totals, lanes)
                index = _place(builder, start, (first // COLUMNS + quarter, row))
                place = pointer(context, builder, sig.args[6], gradient, index)
                place = builder.bitcast(place, part.type.as_pointer())
                before = builder.load(place, align=4)
                builder.store(builder.fadd(before, part), place, align=4)
        return context.get_dummy_value()

    i = types.int64
    return types.void(i, a, i, i, i, i, gradient, i, i), code


_set_rows, _set_two, _set_one = (_block(rows, False, True) for rows in (ROWS, 2, 1))
_add_rows, _add_two, _add_one = (_block(rows, True, True) for rows in (ROWS, 2, 1))
_product_rows, _product_one = (_block(rows, False, False) for rows in (ROWS, 1))
_more_rows, _more_one = (_block(rows, True, False) for rows in (ROWS, 1))


class Matrix(NamedTuple):
    """Rows or columns in an array, along which sums run."""

    first: int
    apart: int
    """The distance between rows, or between columns."""
    step: int
    """The distance between the terms of a sum."""


@kernel
def linear(rows, columns, steps, a, x, w, weight, y, biases, bias, add):
    """Writes y = x w + bias, or adds it to y.

    y[row, column] is the sum over steps of x[row, step] w[column, step]. The vectors of x and y are
    `Rows` of `a`, the numbers of w a `Matrix` of `w`; the bias has a number for each column, from
    `bias` on in `biases`; `bias` is -1 if there is none. Columns are a multiple of COLUMNS; a
    multiple of ROWS rows is fastest.
    """
    for column in range(0, columns, COLUMNS):
        from_weight = (w, weight.first + column * weight.apart, weight.apart, weight.step)
        from_bias = (biases, bias + column if bias >= 0 else -1)
        row = 0
        while row < rows:
            from_x = (a, x.first + row * x.apart, x.apart, 1)
            to_y = (y.first + row * y.apart + column, y.apart)
            if row + ROWS <= rows:
                if add:
                    _add_rows(steps, *from_x, *from_weight, *to_y, *from_bias)
                else:
                    _set_rows(steps, *from_x, *from_weight, *to_y, *from_bias)
                row += ROWS
            elif row + 2 <= rows:
                if add:
                    _add_two(steps, *from_x, *from_weight, *to_y, *from_bias)
                else:
                    _set_two(steps, *from_x, *from_weight, *to_y, *from_bias)
                row += 2
            else:
                if add:
                    _add_one(steps, *from_x, *from_weight, *to_y, *from_bias)
                else:
                    _set_one(steps, *from_x, *from_weight, *to_y, *from_bias)
                row += 1


@kernel
def product(rows, columns, steps, a, left, right, to, add):
    """Writes the product of two matrices of vectors, lane by lane, or adds it to `to`.

    to[row, column] is the sum over steps of left[row, step] right[column, step]. `left` and `right`
    are each a `Matrix` of `a`, `to` is `Rows` of it. Rows are a multiple of ROWS or few, columns a
    multiple of COLUMNS.
    """
    row = 0
    while row < rows:
        many = row + ROWS <= rows
        from_left = (a, left.first + row * left.apart, left.apart, left.step)
        for column in range(0, columns, COLUMNS):
            from_right = (a, right.first + column * right.apart, right.apart, right.step)
            to_rows = (to.first + row * to.apart + column, to.apart, a, -1)
            if many:
                if add:
                    _more_rows(steps, *from_left, *from_right, *to_rows)
                else:
                    _product_rows(steps, *from_left, *from_right, *to_rows)
            elif add:
                _more_one(steps, *from_left, *from_right, *to_rows)
            else:
                _product_one(steps, *from_left, *from_right, *to_rows)
        row += ROWS if many else 1


@kernel
def weight_gradient(steps, rows, columns, a, dy, x, gradient, first, apart):
    """Adds to gradient[row, column] the sum over steps and lanes of dy[step, row] x[step, column].

    dy and x are `Rows` of `a`, one for each step; the gradient's rows begin at `first`, at
    distances of `apart`. Rows and columns are multiples of COLUMNS.
    """
    for row in range(0, rows, ROWS):
        for column in range(0, columns, COLUMNS):
            _gradient_block(
                steps, a, dy.first + row, dy.apart, x.first + column, x.apart,
                gradient, first + row * apart + column, apart,
            )  # fmt: skip


@kernel
def bias_gradient(steps, columns, a, dy, gradient, first):
    """Adds to the gradient the sum over steps and lanes of dy[step, column]."""
    for column in range(columns):
        value = spread(ZERO)
        for step in range(steps):
            value = value + load(a, dy.first + step * dy.apart + column)
        gradient[first + column] += total(value)


@kernel
def clear(a, start, vectors):
    """Sets vectors to zero."""
    for index in range(start, start + vectors):
        store(a, index, spread(ZERO))


# Linear layers.
#
# y = W x + b        D W = D y (x) x, summed over rows and lanes      D b = D y      D x = W^T D y


@kernel
def apply(rows, layer, a, x, y, w, add):
    """Writes y, or adds to it; x and y are `Rows` of `a`."""
    weight = Matrix(layer.weight, layer.inputs, 1)
    linear(rows, layer.outputs, layer.inputs, a, x, w, weight, y, w, layer.bias, add)


@kernel
def parameter_gradient(rows, layer, a, x, dy, gradient):
    """Adds D W and D b."""
    weight_gradient(
        rows, layer.outputs, layer.inputs, a, dy, x, gradient, layer.weight, layer.inputs
    )
    if layer.bias >= 0:
        bias_gradient(rows, layer.outputs, a, dy, gradient, layer.bias)


@kernel
def input_gradient(rows, layer, a, dy, dx, w, add):
    """Writes D x, or adds to it."""
    weight = Matrix(layer.weight, 1, layer.inputs)
    linear(rows, layer.inputs, layer.outputs, a, dy, w, weight, dx, w, -1, add)
