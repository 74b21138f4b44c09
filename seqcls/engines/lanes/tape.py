"""The tape that a model is written on: values, and instructions that compute values from values.

An instruction is emitted together with a function that emits its gradient; these functions are
called in reverse order. The first one to reach a gradient writes it, later ones add to it, so the
order of a sum is the reverse of emission. Memory follows from the lists: a value has it from the
first instruction that names it to the last. Numba is not loaded.
"""

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from jaxtyping import Int64

from seqcls.engines.compiled.parameters import Parameters
from seqcls.engines.lanes import instructions as code
from seqcls.engines.lanes.columns import columns_of, values_in
from seqcls.engines.lanes.layers import (
    READ,
    START,
    STEPS,
    TARGETS,
    TOKENS,
    Heads,
    LinearLayer,
    NormLayer,
)
from seqcls.engines.lanes.parameters import Axis

TRAINING, ANSWERING, WRITING = range(3)
"""The uses of lists."""


class Value:
    """Rows of vectors over a span; with a parent, some columns of its rows."""

    def __init__(self, width: int, span: int, parent: Self | None = None, moved: int = 0) -> None:
        self.width, self.span, self.parent, self.moved = width, span, parent, moved
        self.root: Value = self if parent is None else parent.root
        self.first: int | None = None
        self.gradient: Value | None = None
        self.has_gradient = True
        self.is_kept = False
        """True if later tokens read it."""
        self.rows: int | None = None

    def part(self, moved: int, width: int) -> "Value":
        """Returns some of its columns."""
        return Value(width, self.span, self, moved)

    def again(self, span: int | None = None) -> "Value":
        """Returns the same numbers after an instruction in place, or over another span."""
        return Value(self.width, self.span if span is None else span, self, 0)

    @property
    def apart(self) -> int:
        # One vector more in every row: with a power of two, rows would share lines of the cache.
        return self.root.width + 1

    @property
    def place(self) -> int:
        if self.parent is not None:
            return self.parent.place + self.moved
        assert self.first is not None
        return self.first


class Tape:
    """Instructions, and memory for the rows of each span.

    Args:
        rows: the number of rows, by span.
        use: `TRAINING`, `ANSWERING` or `WRITING`.
    """

    def __init__(self, rows: Mapping[int, int], use: int) -> None:
        self.rows, self.use, self.size = rows, use, 0
        self.forward: list[tuple[int, Any]] = []
        self.backward: list[tuple[int, Any]] = []
        self.later: list[Callable[[], None]] = []
        # Until an instruction needs the tokens of one group to be contiguous.
        self.together = True

    def tokens(self, span: int) -> int:
        """Returns the largest number of tokens of a group."""
        return 1 if span == READ else self.rows[span] // self.rows[READ]

    # Memory.

    def vectors(self, count: int) -> int:
        """Allocates vectors; returns their start."""
        self.size += count
        return self.size - count

    def value(
        self, width: int, span: int, *, is_kept: bool = False, rows: int | None = None
    ) -> Value:
        """Returns a value that some instruction writes; with its own number of rows if given."""
        x = Value(width, span)
        x.is_kept, x.rows = is_kept, rows
        return x

    def scratch(self, vectors: int, *, is_kept: bool = False) -> Value:
        """Returns scratch memory."""
        return self.value(vectors - 1, START, is_kept=is_kept, rows=1)

    def input(self, width: int, span: int, rows: int | None = None) -> Value:
        """Returns a value that is written before the instructions are run."""
        x = self.value(width, span, rows=rows)
        # It has memory from the beginning, since it is filled before any instruction runs.
        x.first = self.vectors(self.num_rows(x) * x.apart)
        return x

    def num_rows(self, x: Value) -> int:
        if x.rows is not None:
            return x.rows
        rows = self.rows[x.span]
        return self.rows[READ] * rows // self.rows[TOKENS] if self.is_passing(x) else rows

    def address(self, x: Value) -> tuple[int, int]:
        """Returns a value's start and the distance of its rows: negative if one token is stored."""
        return x.place, -x.apart if self.is_passing(x.root) else x.apart

    def is_passing(self, x: Value) -> bool:
        """Returns True if a value is stored for one token alone."""
        return self.use == WRITING and not x.is_kept and x.span in (TOKENS, TARGETS, STEPS)

    def finish(self) -> tuple[Int64[np.ndarray, "row column"], Int64[np.ndarray, "row column"]]:
        """Allocates all values; returns the instructions as integers: forward and backward."""
        if self.use == TRAINING:
            for emit_gradient in reversed(self.later):
                emit_gradient()
        named = [
            list(dict.fromkeys(x.root for x in values_in(instruction)))
            for _, instruction in (*self.forward, *self.backward)
        ]
        inputs = {x for roots in named for x in roots if x.first is not None}
        last = {x: number for number, roots in enumerate(named) for x in roots}
        free: dict[int, list[int]] = {}
        for number, roots in enumerate(named):
            for x in roots:
                size = self.num_rows(x) * x.apart
                if x.first is None:
                    # Memory is reused only by values of one size, so it is never fragmented.
                    reused = free.get(size) if not x.is_kept else None
                    x.first = reused.pop() if reused else self.vectors(size)
            # The values of the last instruction are read after it.
            for x in roots if number < len(named) - 1 else ():
                if last[x] == number and not x.is_kept and x not in inputs:
                    assert x.first is not None
                    free.setdefault(self.num_rows(x) * x.apart, []).append(x.first)
        rows = [
            [code.NUMBERS[type(x)], span, *columns_of(x, self.address)]
            for span, x in (*self.forward, *self.backward)
        ]
        # All rows have the width of the widest one, so that a list is one array.
        width = max(map(len, rows))
        written = np.array([row + [0] * (width - len(row)) for row in rows], np.int64)
        return written[: len(self.forward)], written[len(self.forward) :]

    def emit(self, span: int, instruction: Any, gradient: Callable[[], Any] | None = None) -> None:
        """Emits an instruction; `gradient` is called when all are emitted."""
        self.forward.append((span, instruction))
        if gradient is not None:
            self.later.append(lambda: self.emit_back(span, gradient()))

    def emit_back(self, span: int, instruction: Any) -> None:
        self.backward.append((span, instruction))

    def gradient_of(self, x: Value) -> tuple[Value, bool]:
        """Returns D of a value, and whether it is written already."""
        if x.gradient is not None:
            return x.gradient, True
        if x.parent is None:
            x.gradient = self.value(x.width, x.span)
        else:
            x.gradient = self.gradient_of(x.parent)[0].part(x.moved, x.width)
        return x.gradient, False

    def write_gradient(self, x: Value) -> Value:
        """Returns D of a value, to be written for the first time."""
        return self.gradient_of(x)[0]

    # Instructions of rows.

    def linear(self, x: Value, layer: LinearLayer, onto: Value | None = None) -> Value:
        """Emits W x + b, or its sum with another value, which then shares its gradient."""
        y = self.value(layer.outputs, x.span)
        if onto is not None:
            self.emit(x.span, code.Copy(onto, y, layer.outputs, False))
        self.emit(x.span, code.Linear(x, y, layer, onto is not None))

        def back() -> None:
            dx, adds = self.gradient_of(x) if x.has_gradient else (None, False)
            self.emit_back(x.span, code.LinearGradient(x, y.gradient, dx, layer, adds))
            if onto is not None:
                self._share_gradient(y, onto)

        self.later.append(back)
        return y

    def classify(self, x: Value, layer: LinearLayer) -> Value:
        """Emits a layer with one output."""
        y = self.value(layer.outputs, x.span)
        self.emit(
            x.span,
            code.Linear(x, y, layer, False),
            lambda: code.ClassifyGradient(x, y.gradient, self.write_gradient(x), layer),
        )
        return y

    def norm(self, x: Value, layer: NormLayer | None) -> Value:
        """Emits a norm, if there is one."""
        if layer is None:
            return x
        y, units = self.value(x.width, x.span), self.value(x.width, x.span)
        scales = self.value(0, x.span)
        if x.width > layer.size:
            # Every value has zeros in its padding.
            self.emit(x.span, code.Clear(y))
        self.emit(x.span, code.Normalize(x, y, layer, units, scales))

        def back() -> None:
            dx, adds = self.gradient_of(x)
            if x.width > layer.size and not adds:
                self.emit_back(x.span, code.Clear(dx))
            sums = self.scratch(2 * layer.size)
            dy = y.gradient
            self.emit_back(x.span, code.NormalizeGradient(dy, dx, layer, units, scales, sums, adds))

        self.later.append(back)
        return y

    def activate(self, function: int, x: Value) -> Value:
        """Emits an elementwise function, in place."""
        slopes, y = self.value(x.width, x.span), x.again()

        def gradient() -> Any:
            dx = self.write_gradient(y)
            return code.Multiply(dx, slopes, dx, x.width)

        self.emit(x.span, code.Activate(x, slopes, x.width, function), gradient)
        return y

    def multiply(self, x: Value, gate: Value) -> Value:
        """Emits the elementwise product of two values."""
        y = self.value(x.width, x.span)
        self.emit(x.span, code.Multiply(x, gate, y, x.width))

        def back() -> None:
            for one, other in ((gate, x), (x, gate)):
                dy, to = y.gradient, self.write_gradient(one)
                self.emit_back(x.span, code.Multiply(dy, other, to, x.width))

        self.later.append(back)
        return y

    def in_place(self, instruction: Any, **back: bool) -> Value:
        """Emits an instruction in place, whose gradient is itself, with some fields replaced."""
        x: Value = instruction.x
        y = x.again()
        self.emit(
            x.span, instruction, lambda: instruction._replace(x=self.write_gradient(y), **back)
        )
        return y

    def scale(self, x: Value, factors: int) -> Value:
        """Emits the product of each row with a vector, in place."""
        return self.in_place(code.Scale(x, x.width, factors))

    def scale_heads(self, x: Value, heads: Heads, factors: int, scale: int, bias: int) -> Value:
        """Emits the product of each row with a vector, scaled by learned numbers of each head."""
        y = self.value(x.width, x.span)
        forward = code.ScaleHeads(x, y, heads, factors, scale, bias)
        self.emit(
            x.span,
            forward,
            lambda: code.ScaleHeadsGradient(forward, y.gradient, self.write_gradient(x)),
        )
        return y

    def rotate(self, x: Value, heads: Heads, turns: int) -> Value:
        """Emits the rotation of every head's pairs by their positions, in place."""
        return self.in_place(code.Rotate(x, heads, turns, False), back=True)

    def embed(self, types: Value, embedding: int, kinds: int, width: int) -> Value:
        """Emits the embeddings of token types."""
        y, layer = self.value(width, types.span), LinearLayer(width, kinds, embedding, -1)
        whole = layer._replace(outputs=types.width)
        self.emit(
            types.span,
            code.LinearGradient(None, types, y, layer, False),
            lambda: code.LinearGradient(y.gradient, types, None, whole, False),
        )
        return y

    def enlarge(self, x: Value, size: int) -> Value:
        """Emits the product with the square root of a size, in place."""
        return self.in_place(code.Enlarge(x, x.width, size))

    def add(self, x: Value, onto: Value) -> Value:
        """Emits the sum of two values, of which `onto` then shares its gradient."""
        y = self.value(x.width, x.span)
        self.emit(x.span, code.Copy(onto, y, x.width, False))
        self.emit(x.span, code.Copy(x, y, x.width, True))

        def back() -> None:
            self.emit_back(x.span, code.Copy(y.gradient, self.write_gradient(x), x.width, False))
            self._share_gradient(y, onto)

        self.later.append(back)
        return y

    def _share_gradient(self, y: Value, onto: Value) -> None:
        """Makes D of a sum that of its term `onto`, or adds it there."""
        if onto.gradient is not None:
            self.emit_back(y.span, code.Copy(y.gradient, onto.gradient, y.width, True))
            return
        same: Value | None = onto
        # Its aliases have the same gradient.
        while same is not None and same.width == y.width:
            same.gradient, same = y.gradient, same.parent

    def add_positions(self, x: Value, hidden: int, table: int, is_token: int) -> None:
        """Emits the sum of embeddings and vectors of their positions: a table's rows, or sinusoids
        if `table` is -1.
        """
        forward = code.AddPositions(x, hidden, x.width, table)

        def gradient() -> Any:
            return code.AddPositionsGradient(forward, self.write_gradient(x), is_token)

        self.emit(x.span, forward, gradient if table >= 0 else None)

    # Instructions of strings.

    def gather(self, x: Value) -> Value:
        """Emits the selection of the token of each string that is read."""
        y = self.value(x.width, READ)
        self.emit(READ, code.Gather(x, y, x.width, False))

        def back() -> None:
            dx, known = self.gradient_of(x)
            if not known:
                self.emit_back(x.span, code.Clear(dx))
            self.emit_back(READ, code.Gather(dx, y.gradient, x.width, True))

        self.later.append(back)
        return y

    def mean(self, x: Value, is_token: int, share: int) -> Value:
        """Emits the mean over the tokens of each string."""
        y = self.value(x.width, READ)
        self.emit(
            READ,
            code.Mean(x, y, x.width, is_token, share, False),
            lambda: code.Mean(self.write_gradient(x), y.gradient, x.width, is_token, share, True),
        )
        return y

    def targets(self, x: Value) -> Value:
        """Returns the rows that have a prediction."""
        y = x.again(TARGETS)
        self.later.append(lambda: self.emit_back(TARGETS, code.ClearBefore(self.write_gradient(y))))
        return y

    def table(
        self, types: Value, parameters: Parameters, layer: LinearLayer, embedding: int
    ) -> LinearLayer:
        """Emits a layer's outputs for all token types; returns it as a layer of token types."""
        table = parameters.take(None, Axis.of_size(layer.outputs), Axis.of_size(types.width))
        own = layer.outputs, layer.inputs, types.width, layer.weight, embedding, table
        self.emit(START, code.Table(*own, False), lambda: code.Table(*own, True))
        types.has_gradient = False
        return LinearLayer(types.width, layer.outputs, table, layer.bias)
