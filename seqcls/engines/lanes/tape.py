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

from seqcls.engines.lanes.instructions import (
    READ,
    START,
    STEPS,
    TARGETS,
    TOKENS,
    WIDTH,
    Activate,
    Add,
    AddLearned,
    AddLearnedGradient,
    AddWaves,
    Attend,
    AttendGradient,
    ClassifyGradient,
    Clear,
    ClearBefore,
    Convolve,
    ConvolveGradient,
    Copy,
    DistanceGradient,
    Embed,
    EmbedGradient,
    Enlarge,
    Fire,
    FireGradient,
    Fold,
    FoldGradient,
    Gather,
    GatherGradient,
    Linear,
    LinearGradient,
    Mean,
    MeanGradient,
    Multiply,
    Normalize,
    NormalizeGradient,
    Rates,
    Recur,
    RecurGradient,
    Remember,
    RememberGradient,
    Rotate,
    Scale,
    ScaleHeads,
    ScaleHeadsGradient,
    Select,
    SelectGradient,
    Table,
    TableGradient,
    Unfold,
    UnfoldGradient,
    values_in,
    write_row,
)
from seqcls.engines.lanes.layers import (
    CAUSAL_FIRE,
    FIRE_UNITS,
    GRU,
    QUERIES,
    RNN,
    SLSTM,
    SOFTMAX,
    SUM,
    UNBIASED,
    Channels,
    Heads,
    How,
    LinearLayer,
    NormLayer,
)
from seqcls.engines.lanes.parameters import Axis, Parameters
from seqcls.models.positions.numbers import BUCKETS

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
                    reused = free.get(size) if not x.is_kept else None
                    x.first = reused.pop() if reused else self.vectors(size)
            # What the last instruction leaves is read after it.
            for x in roots if number < len(named) - 1 else ():
                if last[x] == number and not x.is_kept and x not in inputs:
                    assert x.first is not None
                    free.setdefault(self.num_rows(x) * x.apart, []).append(x.first)
        forward, backward = (
            np.array([write_row(x, span, self.address) for span, x in part], np.int64)
            for part in (self.forward, self.backward)
        )
        return forward, backward.reshape(-1, WIDTH)

    def emit(self, span: int, instruction: Any) -> None:
        self.forward.append((span, instruction))

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
            self.emit(x.span, Copy(onto, y, layer.outputs))
        self.emit(x.span, Linear(x, y, layer, onto is not None))

        def back() -> None:
            dx, adds = self.gradient_of(x) if x.has_gradient else (None, False)
            self.emit_back(x.span, LinearGradient(x, y.gradient, dx, layer, adds))
            if onto is not None:
                self._share_gradient(y, onto)

        self.later.append(back)
        return y

    def classify(self, x: Value, layer: LinearLayer) -> Value:
        """One logit."""
        y = self.value(layer.outputs, x.span)
        self.emit(x.span, Linear(x, y, layer, False))

        def back() -> None:
            dx = self.write_gradient(x)
            self.emit_back(x.span, ClassifyGradient(x, y.gradient, dx, layer))

        self.later.append(back)
        return y

    def norm(self, x: Value, layer: NormLayer | None) -> Value:
        """A norm of each row, if there is one."""
        if layer is None:
            return x
        y, units = self.value(x.width, x.span), self.value(x.width, x.span)
        scales = self.value(0, x.span)
        if x.width > layer.size:
            # Whatever writes a value leaves zeros in what it is filled up with.
            self.emit(x.span, Clear(y))
        self.emit(x.span, Normalize(x, y, layer, units, scales))

        def back() -> None:
            dx, adds = self.gradient_of(x)
            if x.width > layer.size and not adds:
                self.emit_back(x.span, Clear(dx))
            sums = self.scratch(2 * layer.size)
            dy = y.gradient
            self.emit_back(x.span, NormalizeGradient(dy, dx, layer, units, scales, sums, adds))

        self.later.append(back)
        return y

    def activate(self, function: int, x: Value, heads: Heads | None = None) -> Value:
        """A function of each number, in place; of heads, not of what they are filled up with."""
        slopes, y = self.value(x.width, x.span), x.again()
        width, size = (heads.head_width, heads.head_size) if heads else (1, 1)
        self.emit(x.span, Activate(x, slopes, x.width, function, width, size))

        def back() -> None:
            self.emit_back(x.span, Multiply(self.write_gradient(y), slopes, x.width))

        self.later.append(back)
        return y

    def scale(self, x: Value, factors: int) -> Value:
        """Each row by a vector of its own, in place."""
        y = x.again()
        self.emit(x.span, Scale(x, x.width, factors))
        self.later.append(
            lambda: self.emit_back(x.span, Scale(self.write_gradient(y), x.width, factors))
        )
        return y

    def scale_heads(self, x: Value, heads: Heads, factors: int, scale: int, bias: int) -> Value:
        """Each row by a vector of its own, as learned numbers of each head say."""
        y = self.value(x.width, x.span)
        forward = ScaleHeads(x, y, heads, factors, scale, bias)
        self.emit(x.span, forward)

        def back() -> None:
            dx = self.write_gradient(x)
            self.emit_back(x.span, ScaleHeadsGradient(forward, y.gradient, dx))

        self.later.append(back)
        return y

    def rotate(self, x: Value, heads: Heads, turns: int) -> Value:
        """The pairs of every head by their places, in place."""
        y = x.again()
        self.emit(x.span, Rotate(x, heads, turns, False))
        self.later.append(
            lambda: self.emit_back(x.span, Rotate(self.write_gradient(y), heads, turns, True))
        )
        return y

    def embed(self, types: Value, embedding: int, kinds: int, width: int) -> Value:
        """The embeddings of token types."""
        y = self.value(width, types.span)
        self.emit(types.span, Embed(types, y, width, kinds, embedding))

        def back() -> None:
            self.emit_back(
                types.span, EmbedGradient(types, y.gradient, width, embedding, types.width)
            )

        self.later.append(back)
        return y

    def enlarge(self, x: Value, size: int) -> Value:
        """Each number by the root of a size, in place."""
        y = x.again()
        self.emit(x.span, Enlarge(x, x.width, size))
        self.later.append(
            lambda: self.emit_back(x.span, Enlarge(self.write_gradient(y), x.width, size))
        )
        return y

    def add(self, x: Value, onto: Value) -> Value:
        """The sum of two values, of which `onto` then shares its gradient."""
        y = self.value(x.width, x.span)
        self.emit(x.span, Copy(onto, y, x.width))
        self.emit(x.span, Add(x, y, x.width))

        def back() -> None:
            self.emit_back(x.span, Copy(y.gradient, self.write_gradient(x), x.width))
            self._share_gradient(y, onto)

        self.later.append(back)
        return y

    def _share_gradient(self, y: Value, onto: Value) -> None:
        """Makes D of a sum that of what it is added to, or adds it there."""
        if onto.gradient is not None:
            self.emit_back(y.span, Add(y.gradient, onto.gradient, y.width))
            return
        same: Value | None = onto
        # Whatever it is another name of has the same gradient.
        while same is not None and same.width == y.width:
            same.gradient, same = y.gradient, same.parent

    def add_waves(self, x: Value) -> None:
        """Adds to embeddings what their places say."""
        self.emit(x.span, AddWaves(x, x.width))

    def add_learned(self, x: Value, hidden: int, table: int, is_token: int) -> None:
        """Adds to embeddings the rows of a table for their places."""
        self.emit(x.span, AddLearned(x, hidden, x.width, table))

        def back() -> None:
            dx = self.write_gradient(x)
            self.emit_back(x.span, AddLearnedGradient(dx, hidden, x.width, table, is_token))

        self.later.append(back)

    # Instructions of strings.

    def gather(self, x: Value) -> Value:
        """What is read of each group."""
        y = self.value(x.width, READ)
        self.emit(READ, Gather(x, y, x.width))

        def back() -> None:
            dx, known = self.gradient_of(x)
            if not known:
                self.emit_back(x.span, Clear(dx))
            self.emit_back(READ, GatherGradient(y.gradient, dx, x.width))

        self.later.append(back)
        return y

    def mean(self, x: Value, is_token: int, share: int) -> Value:
        """The mean over the tokens of each string."""
        y = self.value(x.width, READ)
        self.emit(READ, Mean(x, y, x.width, is_token, share))

        def back() -> None:
            dx = self.write_gradient(x)
            self.emit_back(READ, MeanGradient(y.gradient, dx, x.width, is_token, share))

        self.later.append(back)
        return y

    def targets(self, x: Value) -> Value:
        """The rows at which something is predicted."""
        y = x.again(TARGETS)
        self.later.append(lambda: self.emit_back(TARGETS, ClearBefore(self.write_gradient(y))))
        return y

    def attend(
        self,
        query: Value,
        key_value: Value,
        heads: Heads,
        mask: int,
        *,
        shares: int = SOFTMAX,
        causal: bool = False,
        bias: int = UNBIASED,
        table: int = 0,
        distances: int = 0,
    ) -> Value:
        """What heads mix of the values; the mask has a vector for each token of the keys.

        Args:
            bias: what distances add, `table` where the numbers for that begin, and `distances`
                where D of these.
        """
        self.together, key_value.root.is_kept = False, True
        queries, keys = self.tokens(query.span), self.tokens(key_value.span)
        keep = queries if self.use == TRAINING else 0
        rows = heads.heads * queries if keep else min(queries, QUERIES)
        scores, mixed = self.square(rows, keys), self.value(heads.joined, query.span)
        sums = self.scratch(heads.heads * queries if shares == SUM else 1)
        bias_rows = 1 if bias != CAUSAL_FIRE or self.use == WRITING else keys
        how = How(shares, causal, query.span == READ, keep, bias, table, distances, bias_rows)
        forward = Attend(
            query, key_value, mixed, heads, how, key_value.span, scores, sums, mask, keys
        )
        self.emit(query.span, forward)

        def back() -> None:
            to = self.write_gradient(query), self.write_gradient(key_value)
            scratch = self.scratch(min(queries, QUERIES) * (keys + 1))
            self.emit_back(query.span, AttendGradient(forward, mixed.gradient, *to, scratch))

        self.later.append(back)
        return mixed

    def distances(self, heads: int, table: int) -> int:
        """Where D of the numbers of distances is summed up, of all blocks that add them."""
        sums = self.input(BUCKETS * heads - 1, START)
        sums.rows = 1
        self.later.append(lambda: self.emit_back(START, DistanceGradient(sums, heads, table)))
        return sums.place

    def fire(self, heads: int, causal: bool, layers: Mapping[str, int]) -> tuple[int, int]:
        """Where the numbers that FIRE adds to scores begin, and D of these.

        Args:
            layers: the fields of `Fire` that say where parameters stand.
        """
        tokens = self.tokens(TOKENS)
        rows = tokens if causal and self.use != WRITING else 1
        forward = Fire(
            shares=self.vectors(rows * tokens),
            numbers=self.vectors(heads * rows * tokens),
            gradient=self.vectors(heads * rows * tokens * (self.use == TRAINING)),
            causal=causal,
            heads=heads,
            rows=rows,
            tokens=tokens,
            **layers,
        )
        self.emit(TOKENS, forward)

        def back() -> None:
            sums = self.scratch(2 * FIRE_UNITS + heads * (FIRE_UNITS + 1))
            self.emit_back(TOKENS, FireGradient(forward, sums))

        self.later.append(back)
        return forward.numbers, forward.gradient

    def recur(
        self,
        x: Value,
        layer: LinearLayer,
        cell: int,
        heads: int,
        width: int,
        weight: int,
        bias: int,
    ) -> Value:
        """The states of a cell; the layer is what the input gives to its gates, token by token."""
        rows, groups, joined = self.rows[TOKENS], self.rows[READ], heads * width
        size, row = rows * (joined + 1), joined + 1
        gates, previous = self.value(layer.outputs, TOKENS), self.value(joined, TOKENS)
        state = self.value(joined, TOKENS, is_kept=True)
        cells = {RNN: 1, GRU: 1, SLSTM: 4 * size}.get(cell, 2 * size)
        forward = Recur(
            cell=cell,
            heads=heads,
            width=width,
            weight=weight,
            bias=bias,
            gates=gates,
            from_state=self.value(layer.outputs, TOKENS) if cell == GRU else gates,
            state=state,
            previous=previous,
            kept=self.scratch(cells, is_kept=True),
            size=size,
            zero=self.scratch(groups * row, is_kept=True),
            input=x,
            input_layer=layer,
        )
        self.emit(TOKENS, forward)

        def back() -> None:
            to = self.value(layer.outputs, TOKENS)
            du = self.value(layer.outputs, TOKENS) if cell == GRU else to
            scratch = self.scratch(3 * groups * row)
            self.emit_back(TOKENS, RecurGradient(forward, state.gradient, to, du, scratch))
            dx, adds = self.gradient_of(x) if x.has_gradient else (None, False)
            self.emit_back(TOKENS, LinearGradient(x, to, dx, layer, adds))

        self.later.append(back)
        return state

    def convolve(self, x: Value, weight: int) -> Value:
        """Each channel over a token and the three before it."""
        self.together, x.is_kept = False, True
        y = self.value(x.width, x.span)
        self.emit(x.span, Convolve(x, y, x.width, weight))

        def back() -> None:
            dx = self.write_gradient(x)
            self.emit_back(x.span, ConvolveGradient(x, y.gradient, dx, x.width, weight))

        self.later.append(back)
        return y

    def unfold(self, x: Value, shared: int, parts: int, steps: int) -> Value:
        """A row for each step of a token: shared columns, then of each part those of the step."""
        width = (x.width - shared) // (parts * steps)
        y = self.value(shared + parts * width, STEPS)
        self.emit(x.span, Unfold(x, y, steps, shared, parts, width))

        def back() -> None:
            dx = self.write_gradient(x)
            self.emit_back(x.span, UnfoldGradient(y.gradient, dx, steps, shared, parts, width))

        self.later.append(back)
        return y

    def fold(self, x: Value, steps: int) -> Value:
        """The row of each token's last step."""
        y = self.value(x.width, TOKENS)
        self.emit(TOKENS, Fold(x, y, steps, x.width))

        def back() -> None:
            dx = self.write_gradient(x)
            self.emit_back(TOKENS, FoldGradient(y.gradient, dx, steps, x.width))

        self.later.append(back)
        return y

    def remember(
        self,
        given: Value,
        strength: Value,
        heads: Heads,
        norm: int,
        signed: bool,
        fading: Value | None = None,
        gate: Value | None = None,
        log_rate: int = 0,
        offset: int = 0,
    ) -> Value:
        """What a memory mixes of the tokens before: DeltaNet, or Gated DeltaNet where it fades."""
        self.together, span = False, given.span
        tokens, joined, keep = self.tokens(span), heads.joined, self.use == TRAINING

        def new(width: int, is_kept: bool = False) -> Value:
            return self.value(width, span, is_kept=is_kept)

        mixed = new(joined)
        rows = heads.heads * tokens if keep else QUERIES
        pairs, reads, since = (self.square(rows, tokens) for _ in range(3))
        forward = Remember(
            given=given,
            heads=new(given.width, True),
            lengths=new(2 * heads.heads - 1),
            strengths=strength,
            log_kept=fading or strength,
            slopes=new(strength.width) if fading else strength,
            sums=new(strength.width, True) if fading else strength,
            written=new(joined, True),
            gate=gate or mixed,
            recalled=new(joined),
            units=new(joined),
            scales=new(heads.heads - 1),
            mixed=mixed,
            pairs=pairs,
            reads=reads,
            since=since,
            norm=norm,
            log_rate=log_rate,
            offset=offset,
            signed=signed,
            fades=fading is not None,
            sizes=heads,
            keep=keep,
        )
        self.emit(span, forward)

        def back() -> None:
            d_given, d_strength = self.write_gradient(given), self.write_gradient(strength)
            d_fading, d_gate = new(strength.width), d_given
            if fading and gate:
                d_fading, d_gate = self.write_gradient(fading), self.write_gradient(gate)
            if strength.width > heads.heads:
                for x in dict.fromkeys((d_strength, d_fading)):
                    self.emit_back(span, Clear(x))
            gradient = RememberGradient(
                forward=forward,
                mixed=mixed.gradient,
                given=d_given,
                gate=d_gate,
                strengths=d_strength,
                log_kept=d_fading,
                pairs=self.square(tokens, tokens),
                reads=self.square(tokens, tokens),
                sums=self.scratch(2 * heads.head_width),
            )
            self.emit_back(span, gradient)

        self.later.append(back)
        return mixed

    def select(self, given: Value, sizes: Channels, layers: Mapping[str, Any]) -> Value:
        """What a selective memory mixes of the tokens before: Mamba.

        Args:
            layers: the fields of `Select` that say where parameters stand.
        """
        self.together, given.is_kept = False, True
        channels, numbers, ranks = sizes
        keep, memory = self.use == TRAINING, channels * numbers

        def new(width: int) -> Value:
            return self.value(width, TOKENS)

        forward = Select(
            given=given,
            convolved=new(channels),
            channels=new(channels),
            selected=new(ranks + 2 * numbers),
            steps=new(channels),
            slopes=new(channels),
            answered=new(channels),
            mixed=new(channels),
            memory=self.scratch(
                (self.tokens(TOKENS) if keep else self.rows[READ]) * memory, is_kept=True
            ),
            rates=self.scratch(memory, is_kept=True),
            sizes=sizes,
            keep=keep,
            **layers,
        )
        self.emit(START, Rates(forward.rates, forward.log_rate, sizes))
        self.emit(TOKENS, forward)

        def back() -> None:
            gradient = SelectGradient(
                forward=forward,
                mixed=forward.mixed.gradient,
                given=self.write_gradient(given),
                channels=new(channels),
                selected=new(ranks + 2 * numbers),
                steps=new(channels),
                memory=self.scratch(memory),
                rates=self.scratch(memory),
            )
            self.emit_back(TOKENS, gradient)

        self.later.append(back)
        mixed: Value = forward.mixed
        return mixed

    def table(
        self, types: Value, parameters: Parameters, layer: LinearLayer, embedding: int
    ) -> LinearLayer:
        """A layer of embeddings as one of token types: what each gives is computed once."""
        table = parameters.take(None, Axis.of(layer.outputs), Axis.of(types.width))
        forward = Table(layer.outputs, layer.inputs, types.width, layer.weight, embedding, table)
        self.emit(START, forward)
        self.later.append(lambda: self.emit_back(START, TableGradient(forward)))
        types.has_gradient = False
        return LinearLayer(types.width, layer.outputs, table, layer.bias)
