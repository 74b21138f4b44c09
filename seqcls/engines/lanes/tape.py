"""What one writes a model with: values, and instructions that make values of values.

An instruction is emitted together with a function that emits its gradient; these are called
backwards. Who comes first to a gradient writes it, who comes later adds to it. So the order of a
sum is that of emission, reversed. Room follows from the lists: a value has it from the first
instruction that names it to the last. Numba is not loaded.
"""

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from jaxtyping import Int64

from seqcls.engines.lanes import instructions as code
from seqcls.engines.lanes.columns import values_in, write_row
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
from seqcls.engines.lanes.parameters import Axis, Parameters

TRAINING, ANSWERING, WRITING = range(3)
"""What lists are played for."""


class Value:
    """Rows of vectors over a span; some columns of another's where it has a parent."""

    def __init__(self, width: int, span: int, parent: Self | None = None, moved: int = 0) -> None:
        self.width, self.span, self.parent, self.moved = width, span, parent, moved
        self.root: Value = self if parent is None else parent.root
        self.first: int | None = None
        self.gradient: Value | None = None
        self.has_gradient = True
        self.is_kept = False
        """Whether tokens that come later read it."""
        self.rows: int | None = None

    def part(self, moved: int, width: int) -> "Value":
        """Some of its columns."""
        return Value(width, self.span, self, moved)

    def again(self, span: int | None = None) -> "Value":
        """The same numbers after an instruction in place, or over another span."""
        return Value(self.width, self.span if span is None else span, self, 0)

    @property
    def apart(self) -> int:
        # One vector more in every row: rows that are a power of two apart share lines of the cache.
        return self.root.width + 1

    @property
    def place(self) -> int:
        if self.parent is not None:
            return self.parent.place + self.moved
        assert self.first is not None
        return self.first


class Tape:
    """Instructions, and room for so many rows of each span.

    Args:
        rows: by span.
        use: `TRAINING`, `ANSWERING` or `WRITING`.
    """

    def __init__(self, rows: Mapping[int, int], use: int) -> None:
        self.rows, self.use, self.size = rows, use, 0
        self.forward: list[tuple[int, Any]] = []
        self.backward: list[tuple[int, Any]] = []
        self.later: list[Callable[[], None]] = []
        # Until an instruction wants all tokens of one group side by side.
        self.together = True

    def tokens(self, span: int) -> int:
        """Those of a group, at most."""
        return 1 if span == READ else self.rows[span] // self.rows[READ]

    # Room.

    def vectors(self, count: int) -> int:
        """Where room for so many vectors begins."""
        self.size += count
        return self.size - count

    def value(self, width: int, span: int, *, is_kept: bool = False) -> Value:
        """A value that some instruction writes."""
        x = Value(width, span)
        x.is_kept = is_kept
        return x

    def scratch(self, vectors: int, *, is_kept: bool = False) -> Value:
        """Room that is no row of anything."""
        x = self.value(vectors - 1, START, is_kept=is_kept)
        x.rows = 1
        return x

    def square(self, rows: int, columns: int) -> Value:
        """So many rows, whatever the spans."""
        x = self.value(columns, START)
        x.rows = rows
        return x

    def input(self, width: int, span: int) -> Value:
        """What is written before the instructions are run."""
        x = self.value(width, span)
        # Room at once and for good: it is filled before any instruction runs.
        x.first = self.vectors(self.num_rows(x) * x.apart)
        return x

    def num_rows(self, x: Value) -> int:
        if x.rows is not None:
            return x.rows
        rows = self.rows[x.span]
        return self.rows[READ] * rows // self.rows[TOKENS] if self.is_passing(x) else rows

    def address(self, x: Value) -> tuple[int, int]:
        """Where it begins, and how far rows are apart: negative if there is room for one token."""
        return x.place, -x.apart if self.is_passing(x.root) else x.apart

    def is_passing(self, x: Value) -> bool:
        """Whether it has rows for the tokens of one place alone."""
        return self.use == WRITING and not x.is_kept and x.span in (TOKENS, TARGETS, STEPS)

    def finish(self) -> tuple[Int64[np.ndarray, "row column"], Int64[np.ndarray, "row column"]]:
        """The instructions as numbers: forward and backward; values get their room."""
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
                    # Room passes only between values of one size, so it never breaks into pieces.
                    reused = free.get(size) if not x.is_kept else None
                    x.first = reused.pop() if reused else self.vectors(size)
            # What the last instruction leaves is read after it.
            for x in roots if number < len(named) - 1 else ():
                if last[x] == number and not x.is_kept and x not in inputs:
                    assert x.first is not None
                    free.setdefault(self.num_rows(x) * x.apart, []).append(x.first)
        forward, backward = (
            np.array([self.row(x, span) for span, x in part], np.int64)
            for part in (self.forward, self.backward)
        )
        return forward, backward.reshape(-1, code.WIDTH)

    def row(self, instruction: Any, span: int) -> list[int]:
        """An instruction as numbers."""
        number = code.NUMBERS[type(instruction)]
        return write_row(number, span, instruction, code.WIDTH, self.address)

    def emit(self, span: int, instruction: Any, gradient: Callable[[], Any] | None = None) -> None:
        """Emits an instruction; what makes its gradient is asked when all are emitted."""
        self.forward.append((span, instruction))
        if gradient is not None:
            self.later.append(lambda: self.emit_back(span, gradient()))

    def emit_back(self, span: int, instruction: Any) -> None:
        self.backward.append((span, instruction))

    def gradient_of(self, x: Value) -> tuple[Value, bool]:
        """D of a value, and whether something stands there already."""
        if x.gradient is not None:
            return x.gradient, True
        if x.parent is None:
            x.gradient = self.value(x.width, x.span)
        else:
            x.gradient = self.gradient_of(x.parent)[0].part(x.moved, x.width)
        return x.gradient, False

    def write_gradient(self, x: Value) -> Value:
        """D of a value that nothing has written to before."""
        return self.gradient_of(x)[0]

    # Instructions of rows.

    def linear(self, x: Value, layer: LinearLayer, onto: Value | None = None) -> Value:
        """W x + b, or that added to another value, with which it then shares the gradient."""
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
        """One logit."""
        y = self.value(layer.outputs, x.span)
        self.emit(
            x.span,
            code.Linear(x, y, layer, False),
            lambda: code.ClassifyGradient(x, y.gradient, self.write_gradient(x), layer),
        )
        return y

    def norm(self, x: Value, layer: NormLayer | None) -> Value:
        """A norm of each row, if there is one."""
        if layer is None:
            return x
        y, units = self.value(x.width, x.span), self.value(x.width, x.span)
        scales = self.value(0, x.span)
        if x.width > layer.size:
            # Whatever writes a value leaves zeros in what it is filled up with.
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

    def activate(self, function: int, x: Value, heads: Heads | None = None) -> Value:
        """A function of each number, in place; of heads, not of what they are filled up with."""
        slopes, y = self.value(x.width, x.span), x.again()
        width, size = (heads.head_width, heads.head_size) if heads else (1, 1)
        self.emit(
            x.span,
            code.Activate(x, slopes, x.width, function, width, size),
            lambda: code.Multiply(self.write_gradient(y), slopes, x.width),
        )
        return y

    def scale(self, x: Value, factors: int) -> Value:
        """Each row by a vector of its own, in place."""
        y = x.again()
        self.emit(
            x.span,
            code.Scale(x, x.width, factors),
            lambda: code.Scale(self.write_gradient(y), x.width, factors),
        )
        return y

    def scale_heads(self, x: Value, heads: Heads, factors: int, scale: int, bias: int) -> Value:
        """Each row by a vector of its own, as learned numbers of each head say."""
        y = self.value(x.width, x.span)
        forward = code.ScaleHeads(x, y, heads, factors, scale, bias)
        self.emit(
            x.span,
            forward,
            lambda: code.ScaleHeadsGradient(forward, y.gradient, self.write_gradient(x)),
        )
        return y

    def rotate(self, x: Value, heads: Heads, turns: int) -> Value:
        """The pairs of every head by their places, in place."""
        y = x.again()
        self.emit(
            x.span,
            code.Rotate(x, heads, turns, False),
            lambda: code.Rotate(self.write_gradient(y), heads, turns, True),
        )
        return y

    def embed(self, types: Value, embedding: int, kinds: int, width: int) -> Value:
        """The embeddings of token types."""
        y = self.value(width, types.span)
        self.emit(types.span, code.Embed(types, y, width, kinds, embedding))

        def back() -> None:
            self.emit_back(
                types.span,
                code.EmbedGradient(types, y.gradient, width, embedding, types.width),
            )

        self.later.append(back)
        return y

    def enlarge(self, x: Value, size: int) -> Value:
        """Each number by the root of a size, in place."""
        y = x.again()
        self.emit(
            x.span,
            code.Enlarge(x, x.width, size),
            lambda: code.Enlarge(self.write_gradient(y), x.width, size),
        )
        return y

    def add(self, x: Value, onto: Value) -> Value:
        """The sum of two values, of which `onto` then shares its gradient."""
        y = self.value(x.width, x.span)
        self.emit(x.span, code.Copy(onto, y, x.width, False))
        self.emit(x.span, code.Copy(x, y, x.width, True))

        def back() -> None:
            self.emit_back(x.span, code.Copy(y.gradient, self.write_gradient(x), x.width, False))
            self._share_gradient(y, onto)

        self.later.append(back)
        return y

    def _share_gradient(self, y: Value, onto: Value) -> None:
        """Makes D of a sum that of what it is added to, or adds it there."""
        if onto.gradient is not None:
            self.emit_back(y.span, code.Copy(y.gradient, onto.gradient, y.width, True))
            return
        same: Value | None = onto
        # Whatever it is another name of has the same gradient.
        while same is not None and same.width == y.width:
            same.gradient, same = y.gradient, same.parent

    def add_waves(self, x: Value) -> None:
        """Adds to embeddings what their places say."""
        self.emit(x.span, code.AddWaves(x, x.width))

    def add_learned(self, x: Value, hidden: int, table: int, is_token: int) -> None:
        """Adds to embeddings the rows of a table for their places."""
        self.emit(
            x.span,
            code.AddLearned(x, hidden, x.width, table),
            lambda: code.AddLearnedGradient(
                self.write_gradient(x), hidden, x.width, table, is_token
            ),
        )

    # Instructions of strings.

    def gather(self, x: Value) -> Value:
        """What is read of each group."""
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
        """The mean over the tokens of each string."""
        y = self.value(x.width, READ)
        self.emit(
            READ,
            code.Mean(x, y, x.width, is_token, share, False),
            lambda: code.Mean(self.write_gradient(x), y.gradient, x.width, is_token, share, True),
        )
        return y

    def targets(self, x: Value) -> Value:
        """The rows at which something is predicted."""
        y = x.again(TARGETS)
        self.later.append(lambda: self.emit_back(TARGETS, code.ClearBefore(self.write_gradient(y))))
        return y

    def table(
        self, types: Value, parameters: Parameters, layer: LinearLayer, embedding: int
    ) -> LinearLayer:
        """A layer of embeddings as one of token types: what each gives is computed once."""
        table = parameters.take(None, Axis.of_size(layer.outputs), Axis.of_size(types.width))
        own = layer.outputs, layer.inputs, types.width, layer.weight, embedding, table
        self.emit(START, code.Table(*own, False), lambda: code.Table(*own, True))
        types.has_gradient = False
        return LinearLayer(types.width, layer.outputs, table, layer.bias)
