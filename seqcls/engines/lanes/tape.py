# ruff: noqa
# mypy: ignore-errors
"""What one writes a model with: values, instructions that make values of values, and parameters.

An instruction is emitted together with a function that emits its gradient; these are called
backwards. Who comes first to a gradient writes it, who comes later adds to it. Room follows from
the lists: a value has it from the first instruction that names it to the last.
"""

from typing import NamedTuple

import numpy as np

from seqcls.engines.lanes.attention import SOFTMAX, SUM
from seqcls.engines.lanes.elementary import Norm
from seqcls.engines.lanes.interpreter import *
from seqcls.engines.lanes.packing import padded_size
from seqcls.engines.lanes.recurrence import GRU, RNN, SLSTM
from seqcls.engines.lanes.tiles import LinearLayer
from seqcls.engines.lanes.transformer_sizes import QUERIES

TRAINING, ANSWERING, WRITING = range(3)


class Axis(NamedTuple):
    """Where the numbers of an axis stand, and its size filled up."""

    places: np.ndarray
    size: int

    @classmethod
    def of(cls, size):
        return cls(np.arange(size), padded_size(size))

    @classmethod
    def parts(cls, parts, size):
        """Parts one after another, each filled up."""
        width = padded_size(size)
        return cls(
            np.add.outer(np.arange(parts) * width, np.arange(size)).reshape(-1), parts * width
        )


class Parameters:
    """Where parameters stand, by name; `{}` in a name is `weight` or `bias`."""

    def __init__(self):
        self.size, self.slots = 0, {}

    def take(self, name, *axes):
        start, places, step = self.size, np.zeros((), np.int64), 1
        for axis in reversed(axes):
            places = np.add.outer(axis.places * step, places)
            step *= axis.size
        if name is not None:
            self.slots[name] = start + places
        self.size += step
        return start

    def linear(self, names, outputs, inputs, bias):
        """One layer of some of the same sizes, one below another."""
        weights = [self.take(name.format("weight"), outputs, inputs) for name in names]
        biases = [self.take(name.format("bias"), outputs) for name in names if bias]
        return LinearLayer(
            inputs.size, len(names) * outputs.size, weights[0], biases[0] if bias else -1
        )

    def norm(self, name, kind, axis):
        weight = self.take(name.format("weight"), axis)
        bias = self.take(name.format("bias"), axis) if kind == 2 else -1
        return Norm(kind, len(axis.places), 0.0, weight, bias)


class Value:
    """Rows of vectors over a span; some columns of another's where it has a parent."""

    def __init__(self, width, span, parent=None, moved=0):
        self.width, self.span, self.parent, self.moved = width, span, parent, moved
        self.root = parent.root if parent else self
        self.first = self.grad = None
        self.kept = False
        """Whether tokens that come later read it."""
        self.rows = None

    def part(self, moved, width):
        return Value(width, self.span, self, moved)

    def again(self, span=None):
        """The same numbers after an instruction in place, or over another span."""
        return Value(self.width, self.span if span is None else span, self, 0)

    @property
    def apart(self):
        return self.root.width + 1

    @property
    def place(self):
        return self.root.first if self.parent is None else self.parent.place + self.moved


class Tape:
    """Instructions, and room for so many rows of each span."""

    def __init__(self, rows, use):
        self.rows, self.use, self.size = rows, use, 0
        self.forward, self.backward, self.later = [], [], []
        self.together = True  # Until an instruction wants all tokens of one group side by side.

    def tokens(self, span):
        return 1 if span == READ else self.rows[span] // self.rows[READ]

    # Room.

    def vectors(self, count):
        self.size += count
        return self.size - count

    def value(self, width, span, kept=False):
        x = Value(width, span)
        x.kept = kept
        return x

    def scratch(self, vectors, kept=False):
        """Room that is no row of anything."""
        x = self.value(vectors - 1, START, kept)
        x.rows = 1
        return x

    def given(self, width, span):
        """What is written before the instructions are run."""
        x = self.value(width, span)
        x.first = self.vectors(self.num_rows(x) * x.apart)
        return x

    def num_rows(self, x):
        rows = x.rows or self.rows[x.span]
        return (
            self.rows[READ] * rows // self.rows[TOKENS]
            if self.is_passing(x) and not x.rows
            else rows
        )

    def address(self, x):
        return x.place, -x.apart if self.is_passing(x.root) else x.apart

    def is_passing(self, x):
        """Whether it has rows for the tokens of one place alone."""
        return self.use == WRITING and not x.kept and x.span in (TOKENS, TARGETS, STEPS)

    def finish(self):
        """The instructions as numbers: forward and backward; values get their room."""
        if self.use == TRAINING:
            for back in reversed(self.later):
                back()
        lists, last, free = [*self.forward, *self.backward], {}, {}
        told = {
            x.root
            for instruction in lists
            for x in instruction
            if isinstance(x, Value) and x.root.first is not None
        }
        for number, instruction in enumerate(lists):
            last |= {x.root: number for x in instruction if isinstance(x, Value)}
        for number, instruction in enumerate(lists):
            named = dict.fromkeys(x.root for x in instruction if isinstance(x, Value))
            for x in named:
                x.size = self.num_rows(x) * x.apart
                if x.first is None:
                    x.first = (
                        free[x.size].pop()
                        if free.get(x.size) and not x.kept
                        else self.vectors(x.size)
                    )
            for x in named:
                if last[x] == number and not x.kept and number < len(lists) - 1 and x not in told:
                    free.setdefault(x.size, []).append(x.first)
        forward, backward = (
            [self.numbers(x) for x in part] for part in (self.forward, self.backward)
        )
        return np.array(forward), np.array(backward, np.int64).reshape(-1, WIDTH)

    def numbers(self, instruction):
        flat = []
        for x in instruction:
            if isinstance(x, Value):
                flat += self.address(x)
            else:
                flat += [0, 0] if x is None else [int(x)]
        return flat + [0] * (WIDTH - len(flat))

    def emit(self, code, span, *operands):
        self.forward.append((code, span, *operands))

    def emit_back(self, code, span, *operands):
        self.backward.append((code, span, *operands))

    def slot(self, x):
        """D of a value, and whether something stands there already."""
        known = x.grad is not None
        if not known:
            whole = x.parent and self.slot(x.parent)[0]
            x.grad = whole.part(x.moved, x.width) if whole else self.value(x.width, x.span)
        return x.grad, known

    # Instructions of rows.

    def linear(self, x, layer, onto=None):
        """W x + b, or that added to another value, with which it then shares the gradient."""
        y = self.value(layer.outputs, x.span)
        if onto is not None:
            self.emit(COPY, x.span, onto, y, None, layer.outputs)
        self.emit(LINEAR, x.span, x, y, None, *layer, onto is not None)

        def back():
            to, adds = (None, False) if x.grad is False else self.slot(x)
            self.emit_back(D_LINEAR, x.span, x, y.grad, to, *layer, adds)
            if onto is not None and onto.grad is None:
                onto.grad = y.grad
            elif onto is not None:
                self.emit_back(ADD, x.span, y.grad, onto.grad, None, layer.outputs)

        self.later.append(back)
        return y

    def classify(self, x, layer):
        """One logit."""
        y = self.value(layer.outputs, x.span)
        self.emit(LINEAR, x.span, x, y, None, *layer, False)
        own = (layer.inputs, layer.weight, layer.bias)
        self.later.append(
            lambda: self.emit_back(D_CLASSIFY, x.span, x, y.grad, self.slot(x)[0], *own)
        )
        return y

    def norm(self, x, layer):
        if layer is None:
            return x
        y, units, scales = (
            self.value(x.width, x.span),
            self.value(x.width, x.span),
            self.value(0, x.span),
        )
        own = (layer.kind, layer.size, layer.weight, layer.bias, units, scales)
        if (
            x.width > layer.size
        ):  # Whatever writes a value leaves zeros in what it is filled up with.
            self.emit(CLEAR, x.span, y, None, None)
        self.emit(NORM, x.span, x, y, None, *own)

        def back():
            to, adds = self.slot(x)
            if x.width > layer.size and not adds:
                self.emit_back(CLEAR, x.span, to, None, None)
            self.emit_back(
                D_NORM, x.span, y.grad, to, None, *own, self.scratch(2 * layer.size), adds
            )

        self.later.append(back)
        return y

    def activate(self, code, x, *more):
        """In place."""
        slopes, y = self.value(x.width, x.span), x.again()
        self.emit(code, x.span, x, slopes, None, x.width, *more)

        def back():
            self.emit_back(MULTIPLY, x.span, self.slot(y)[0], slopes, None, x.width)

        self.later.append(back)
        return y

    def scale(self, x, factor):
        """Each row by a number of its own, in place."""
        y = x.again()
        self.emit(SCALE, x.span, x, None, None, x.width, factor)
        self.later.append(
            lambda: self.emit_back(SCALE, x.span, self.slot(y)[0], None, None, x.width, factor)
        )
        return y

    def rotate(self, x, heads, turns):
        """The pairs of every head by their places, in place."""
        y, own = x.again(), (heads.heads, heads.head_width, heads.head_size // 2, turns)
        self.emit(ROTATE, x.span, x, None, None, *own, 1)
        self.later.append(
            lambda: self.emit_back(ROTATE, x.span, self.slot(y)[0], None, None, *own, -1)
        )
        return y

    def embed(self, types, embedding, kinds, width, has_places):
        y = self.value(width, types.span)
        self.emit(EMBED, types.span, types, y, None, width, kinds, embedding, types.width)
        if has_places:
            self.emit(ADD_PLACES, types.span, y, None, None, width)
        own = (width, kinds, embedding, types.width)
        self.later.append(lambda: self.emit_back(D_EMBED, types.span, types, y.grad, None, *own))
        return y

    # Instructions of strings.

    def gather(self, x):
        """What is read of each group."""
        y = self.value(x.width, READ)
        self.emit(GATHER, READ, x, y, None, x.width)

        def back():
            to, known = self.slot(x)
            if not known:
                self.emit_back(CLEAR, x.span, to, None, None)
            self.emit_back(D_GATHER, READ, y.grad, to, None, x.width)

        self.later.append(back)
        return y

    def mean(self, x, is_token, share):
        y = self.value(x.width, READ)
        own = (x.width, is_token, share)
        self.emit(MEAN, READ, x, y, None, *own)
        self.later.append(lambda: self.emit_back(D_MEAN, READ, y.grad, self.slot(x)[0], None, *own))
        return y

    def targets(self, x):
        """The rows at which something is predicted."""
        y = x.again(TARGETS)
        self.later.append(
            lambda: self.emit_back(CLEAR_BEFORE, TARGETS, self.slot(y)[0], None, None)
        )
        return y

    def attend(self, query, key_value, heads, mask, kind=SOFTMAX, causal=False):
        """What heads mix of the values; the mask has a vector for each token of the keys."""
        self.together, key_value.root.kept = False, True
        queries, keys = self.tokens(query.span), self.tokens(key_value.span)
        keep = queries if self.use == TRAINING else 0
        scores = self.scratch(
            (heads.heads * queries if keep else min(queries, QUERIES)) * (keys + 1)
        )
        mixed, shares = (
            self.value(heads.joined, query.span),
            self.scratch(heads.heads * queries if kind == SUM else 1),
        )
        own = (*heads, kind, causal, keep, key_value.span, scores, shares, mask, keys)
        self.emit(ATTEND, query.span, query, key_value, mixed, *own)

        def back():
            to = (
                self.slot(query)[0],
                self.slot(key_value)[0],
                self.scratch(min(queries, QUERIES) * (keys + 1)),
            )
            self.emit_back(D_ATTEND, query.span, query, key_value, mixed.grad, *own, *to)

        self.later.append(back)
        return mixed

    def recur(self, x, layer, cell, heads, width, weight, bias):
        """The states of a cell; the layer is what the input gives to its gates, token by token."""
        rows, groups, joined = self.rows[TOKENS], self.rows[READ], heads * width
        given, state, previous = (
            self.value(layer.outputs, TOKENS),
            self.value(joined, TOKENS, kept=True),
            self.value(joined, TOKENS),
        )
        size = rows * (joined + 1)
        cells, zero = (
            self.scratch({RNN: 1, GRU: 1, SLSTM: 4 * size}.get(cell, 2 * size), True),
            self.scratch(groups * (joined + 1), True),
        )
        u = self.value(layer.outputs, TOKENS) if cell == GRU else given
        own = (cell, heads, width, weight, bias, u, cells, size, zero, x, *layer)
        self.emit(RECUR, TOKENS, given, state, previous, *own)

        def back():
            to = self.value(layer.outputs, TOKENS)
            du = self.value(layer.outputs, TOKENS) if cell == GRU else to
            self.emit_back(
                D_RECUR,
                TOKENS,
                given,
                state,
                previous,
                *own,
                state.grad,
                to,
                du,
                self.scratch(3 * groups * (joined + 1)),
            )
            d_x, adds = (None, False) if x.grad is False else self.slot(x)
            self.emit_back(D_LINEAR, TOKENS, x, to, d_x, *layer, adds)

        self.later.append(back)
        return state

    def convolve(self, x, weight):
        """Each channel over a token and the three before it."""
        self.together, x.kept = False, True
        y = self.value(x.width, x.span)
        self.emit(CONVOLVE, x.span, x, y, None, x.width, weight)
        self.later.append(
            lambda: self.emit_back(D_CONVOLVE, x.span, x, y.grad, self.slot(x)[0], x.width, weight)
        )
        return y

    def unfold(self, x, shared, parts, steps):
        """A row for each step of a token: the shared columns, then of each part those of the step."""
        width = (x.width - shared) // (parts * steps)
        y, own = self.value(shared + parts * width, STEPS), (steps, shared, parts, width)
        self.emit(UNFOLD, x.span, x, y, None, *own)
        self.later.append(
            lambda: self.emit_back(D_UNFOLD, x.span, y.grad, self.slot(x)[0], None, *own)
        )
        return y

    def fold(self, x, steps):
        """The row of each token's last step."""
        y = self.value(x.width, TOKENS)
        self.emit(FOLD, TOKENS, x, y, None, steps, x.width)
        self.later.append(
            lambda: self.emit_back(D_FOLD, TOKENS, y.grad, self.slot(x)[0], None, steps, x.width)
        )
        return y

    def remember(self, given, strength, heads, layers, fading=None, gate=None):
        """What a memory mixes of the tokens before: DeltaNet, or Gated DeltaNet where it fades."""
        self.together, span = False, given.span
        new = lambda width, kept=False: self.value(width, span, kept)
        tokens, joined, keep = self.tokens(span), heads.joined, self.use == TRAINING
        qkv, lengths, written = new(given.width, True), new(2 * heads.heads - 1), new(joined, True)
        recalled, units, scales, mixed = new(joined), new(joined), new(heads.heads - 1), new(joined)
        slopes, sums = (
            (new(strength.width), new(strength.width, True)) if fading else (strength, strength)
        )
        pairs, reads, since = (
            self.square(heads.heads * tokens if keep else QUERIES, tokens) for _ in range(3)
        )
        states = (given, given, qkv, lengths, strength, fading or strength, slopes, sums, written, gate or mixed,
                  recalled, units, scales, mixed, pairs, reads, since)  # fmt: skip
        own = (*states, -1, *layers, fading is not None, *heads, keep)
        self.emit(REMEMBER, span, *own)

        def back():
            d_given, d_strength = self.slot(given)[0], self.slot(strength)[0]
            d_fading, d_gate = (
                (self.slot(fading)[0], self.slot(gate)[0])
                if fading
                else (new(strength.width), d_given)
            )
            for x in dict.fromkeys((d_strength, d_fading)) if strength.width > heads.heads else ():
                self.emit_back(CLEAR, span, x, None, None)
            to = (
                mixed.grad,
                d_given,
                d_given,
                d_gate,
                d_strength,
                d_fading,
                self.square(tokens, tokens),
                self.square(tokens, tokens),
            )
            self.emit_back(D_REMEMBER, span, *own, *to, self.scratch(2 * heads.head_width))

        self.later.append(back)
        return mixed

    def select(self, given, sizes, layers):
        """What a selective memory mixes of the tokens before: Mamba."""
        self.together, given.kept = False, True
        channels, numbers, ranks = sizes
        new, keep = lambda width: self.value(width, TOKENS), self.use == TRAINING
        selected, (convolved, u, steps, slopes, answered, mixed) = (
            new(ranks + 2 * numbers),
            (new(channels) for _ in range(6)),
        )
        memory = self.scratch(
            (self.tokens(TOKENS) if keep else self.rows[READ]) * channels * numbers, True
        )
        states = (
            given,
            convolved,
            u,
            selected,
            steps,
            slopes,
            answered,
            mixed,
            memory,
            self.scratch(channels * numbers, True),
        )
        own = (*states, *layers, *sizes, keep)
        self.emit(RATES, START, *own)
        self.emit(SELECT, TOKENS, *own)

        def back():
            to = (
                mixed.grad,
                self.slot(given)[0],
                new(channels),
                new(ranks + 2 * numbers),
                new(channels),
            )
            self.emit_back(
                D_SELECT,
                TOKENS,
                *own,
                *to,
                self.scratch(channels * numbers),
                self.scratch(channels * numbers),
            )

        self.later.append(back)
        return mixed

    def square(self, rows, columns):
        x = self.value(columns, START)
        x.rows = rows
        return x

    def table(self, types, parameters, layer, embedding):
        """A layer of embeddings as one of token types: what each gives is computed once."""
        table = parameters.take(None, Axis.of(layer.outputs), Axis.of(types.width))
        own = (layer.outputs, layer.inputs, types.width, layer.weight, embedding, table)
        self.emit(TABLE, START, None, None, None, *own)
        self.later.append(lambda: self.emit_back(D_TABLE, START, None, None, None, *own))
        types.grad = False  # Token types have none.
        return LinearLayer(types.width, layer.outputs, table, layer.bias)
