# ruff: noqa
# mypy: ignore-errors
"""What each architecture computes, forward only, parameters by name."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from seqcls.engines.lanes.attention import SUM, Heads
from seqcls.engines.lanes.interpreter import (
    ELU,
    GELU,
    GELU_TANH,
    INPUT,
    READ,
    RELU,
    START,
    STEPS,
    TARGETS,
    TOKENS,
)
from seqcls.engines.lanes.packing import (
    embedded_rows,
    head_rows,
    output_rows,
    padded_size,
)
from seqcls.engines.lanes.recurrence import GATES, GRU, LSTM, RNN, SLSTM
from seqcls.engines.lanes.tape import ANSWERING, Axis, LinearLayer, Parameters, Tape
from seqcls.engines.lanes.transformer_sizes import NORMS, rank_of

CODES = {"gelu": GELU, "relu": RELU, "gelu_tanh": GELU_TANH}
CELLS = {"rnn": RNN, "gru": GRU, "lstm": LSTM, "slstm": SLSTM}
LETTERS = {
    "transformer": "a",
    "deltanet": "d",
    "gated_deltanet": "g",
    "linear_attention": "l",
    "slstm": "s",
    "deltaproduct": "p",
    "mamba": "m",
}


class Stream(NamedTuple):
    """Where what is read of strings stands, a row each."""

    types: int
    types_apart: int
    is_token: int
    mask: int
    """A vector for each token of each group, group by group, so many tokens apart."""
    tokens: int
    factor: int
    turns: int
    hides_cls: bool
    log_length: bool
    causal: bool


class Program(NamedTuple):
    """A model as `run` takes it."""

    forward: np.ndarray
    backward: np.ndarray
    together: bool
    own: Stream
    inputs: Stream
    read_factor: int
    read_turns: int
    share: int
    outputs: int
    outputs_apart: int
    rows: int
    steps: int
    size: int


class Model:
    """The parts that architectures are made of."""

    def __init__(self, config, rows, use):
        self.c, self.t, self.p = config, Tape(rows, use), Parameters()
        self.hidden = Axis.of(config.hidden_size)
        self.heads = Heads(
            config.num_attention_heads,
            config.attention_head_size,
            padded_size(config.attention_head_size),
            0,
        )
        self.heads = self.heads._replace(joined=self.heads.heads * self.heads.head_width)
        self.by_head = Axis.parts(self.heads.heads, self.heads.head_size)
        self.turns = 2 * (self.heads.head_size // 2) * (config.positions == "rotary")
        self.read_turns = self.t.vectors(rows[READ] * self.turns)
        self.read_factor, self.share = self.t.vectors(rows[READ]), self.t.vectors(rows[READ])
        self.embedding = self.p.take(
            "embedding.weight",
            Axis(head_rows(config), padded_size(embedded_rows(config))),
            self.hidden,
        )

    def stream(self, span, mask, hides_cls):
        t, rows = self.t, self.t.rows[span]
        types = t.given(padded_size(embedded_rows(self.c)), span)
        log_length = self.c.attention_scale == "log_length"
        s = Stream(
            *t.address(types),
            t.vectors(rows),
            t.vectors(rows),
            t.tokens(span),
            t.vectors(rows),
            t.vectors(rows * self.turns),
            hides_cls,
            log_length,
            mask == "causal",
        )
        return types, s

    def embed(self, types):
        return self.t.embed(
            types,
            self.embedding,
            self.c.num_letters + 1,
            self.hidden.size,
            self.c.positions == "sinusoidal",
        )

    def norm(self, name, axis=None):
        if not self.c.has_norms:
            return None
        return self.p.norm(name + ".{}", NORMS[self.c.layer_norm], axis or self.hidden)

    def block(self, name, mixer_norm, x, mix, single=False):
        """Parts that are added to their input: some that mix tokens, then a feed-forward."""
        t, before = self.t, self.c.norm_placement == "pre"
        for norm, part in zip(mixer_norm, mix, strict=True):
            layer = self.norm(name + norm)
            # What is read of x is gathered last: so its gradient comes first, as where all of x is added to.
            y = part(
                t.norm(x, layer) if before else x,
                (lambda x=x: t.gather(x)) if single else (lambda x=x: x),
            )
            x = y if before else t.norm(y, layer)
        layer = self.norm(name + "feed_forward_norm")
        inner, biases = Axis.of(self.c.feed_forward_size), self.c.biases
        up = self.p.linear([name + "feed_forward.input.{}"], inner, self.hidden, biases)
        down = self.p.linear([name + "feed_forward.output.{}"], self.hidden, inner, biases)
        within = t.linear(t.norm(x, layer) if before else x, up)
        y = t.linear(t.activate(CODES[self.c.activation], within), down, onto=x)
        return y if before else t.norm(y, layer)

    def attention(self, name, stream, single=False, causal=False, others=None, kind=0, biases=None):
        """A part of a block: attention to the same tokens, or to others with their stream."""
        t, J, biases = self.t, self.heads.joined, self.c.biases if biases is None else biases
        keys_of, of_keys = others or (None, stream)
        alone = single and kind != SUM  # One query, of the token that is read.

        def part(n, onto):
            whole = self.p.linear(
                [f"{name}.{x}.{{}}" for x in ("query", "key", "value")],
                self.by_head,
                self.hidden,
                biases,
            )
            query = whole._replace(outputs=J)
            rest = LinearLayer(
                whole.inputs,
                2 * J,
                whole.weight + J * whole.inputs,
                whole.bias + J if biases else -1,
            )
            if alone or others:
                q, kv = (
                    t.linear(t.gather(n) if alone else n, query),
                    t.linear(n if alone else keys_of, rest),
                )
            else:
                both = t.linear(n, whole)
                q, kv = both.part(0, J), both.part(J, 2 * J)
            if kind == SUM:
                q = t.activate(ELU, q, self.heads.head_width, self.heads.head_size)
                t.activate(ELU, kv.part(0, J), self.heads.head_width, self.heads.head_size)
            else:
                if self.turns and not others:
                    q = t.rotate(q, self.heads, self.read_turns if alone else stream.turns)
                    t.rotate(kv.part(0, J), self.heads, stream.turns)
                q = t.scale(q, self.read_factor if alone else stream.factor)
            mixed = t.attend(q, kv, self.heads, of_keys.mask, kind, causal and not alone)
            if single and kind == SUM:
                mixed = t.gather(mixed)
            return t.linear(
                mixed,
                self.p.linear([f"{name}.output.{{}}"], self.hidden, self.by_head, biases),
                onto=onto(),
            )

        return part

    def memory(self, name, single, fades, steps=1):
        """A part of a block: the memory of DeltaNet, Gated DeltaNet, or DeltaProduct of some steps."""
        c, t, p, J = self.c, self.t, self.p, self.heads.joined
        heads = Axis.of(self.heads.heads)

        def part(n, onto):
            # D of what is read is the sum of those by queries, strengths, fading and gates, in this order.
            fading = gate = None
            rate = offset = 0
            if fades:
                gate = t.linear(
                    n, p.linear([f"{name}.gate.{{}}"], self.by_head, self.hidden, False)
                )
                fading = t.linear(n, p.linear([f"{name}.fading.{{}}"], heads, self.hidden, False))
                rate, offset = p.take(f"{name}.log_rate", heads), p.take(f"{name}.offset", heads)
            strength = t.linear(
                n,
                p.linear(
                    [f"{name}.strength.{{}}"],
                    Axis.parts(steps, self.heads.heads),
                    self.hidden,
                    False,
                ),
            )
            own = Axis.parts(steps * self.heads.heads, self.heads.head_size)
            query, *_ = (p.linear([f"{name}.{x}.{{}}"], of, self.hidden, False)
                         for x, of in (("query", self.by_head), ("key", own), ("value", own)))  # fmt: skip
            given = t.linear(n, query._replace(outputs=(1 + 2 * steps) * J))
            if c.short_convolution:
                channels = Axis.parts((1 + 2 * steps) * self.heads.heads, self.heads.head_size)
                given = t.convolve(
                    given, p.take(f"{name}.convolution.weight", channels, Axis.of(4))
                )
            if steps > 1:
                given, strength = t.unfold(given, J, 2, steps), t.unfold(strength, 0, 1, steps)
            norm = p.take(f"{name}.norm.weight", Axis.of(self.heads.head_size))
            mixed = t.remember(
                given,
                strength,
                self.heads,
                (norm, rate, offset, c.eigenvalue_range == "signed"),
                fading,
                gate,
            )
            if steps > 1:
                mixed = t.fold(mixed, steps)
            if single:
                mixed = t.gather(mixed)
            return t.linear(
                mixed,
                p.linear([f"{name}.output.{{}}"], self.hidden, self.by_head, False),
                onto=onto(),
            )

        return part

    def selective(self, name, single):
        """A part of a block: the memory of Mamba."""
        c, t, p = self.c, self.t, self.p
        sizes = c.expand * c.hidden_size, c.state_size, rank_of(c)
        channels, numbers, ranks = (Axis.of(x) for x in sizes)

        def side_by_side(*axes):
            ends = np.cumsum([0, *(x.size for x in axes)])
            return Axis(
                np.concatenate([end + x.places for end, x in zip(ends, axes)]), int(ends[-1])
            )

        def part(n, onto):
            given = t.linear(
                n,
                p.linear(
                    [f"{name}.input.{{}}"], side_by_side(channels, channels), self.hidden, False
                ),
            )
            convolution = (
                p.take(f"{name}.convolution.weight", channels, Axis.of(4)),
                p.take(f"{name}.convolution.bias", channels),
            )
            selection = p.linear(
                [f"{name}.selection.{{}}"], side_by_side(ranks, numbers, numbers), channels, False
            )
            step_size = p.linear([f"{name}.step_size.{{}}"], channels, ranks, True)
            rates = p.take(f"{name}.log_rate", channels, numbers), p.take(f"{name}.skip", channels)
            layers = (*convolution, *selection, *step_size, *rates, c.eigenvalue_range == "signed")
            mixed = t.select(given, (channels.size, numbers.size, ranks.size), layers)
            mixed = t.gather(mixed) if single else mixed
            return t.linear(
                mixed, p.linear([f"{name}.output.{{}}"], self.hidden, channels, False), onto=onto()
            )

        return part

    def slstm(self, name, single):
        """A part of a block: exponential gates, and recurrent weights within a head."""
        t, p, (heads, size, width, _) = self.t, self.p, self.heads

        def part(n, onto):
            layer = p.linear(
                [f"{name}.input.{{}}"], Axis.parts(4 * heads, size), self.hidden, self.c.biases
            )
            weights = [
                p.take(f"{name}.recurrent.{x}.weight", Axis.parts(4, size), Axis.of(size))
                for x in range(heads)
            ]
            state = t.recur(n, layer, SLSTM, heads, width, weights[0], -1)
            state = t.gather(state) if single else state
            return t.linear(
                state,
                p.linear([f"{name}.output.{{}}"], self.hidden, self.by_head, False),
                onto=onto(),
            )

        return part

    def head(self, x, stream):
        """The numbers of each string, or of each token at which something is predicted."""
        c, t, at_tokens = self.c, self.t, self.c.head != "string"
        final = (
            self.p.norm("final_norm.{}", NORMS[c.layer_norm], self.hidden) if c.final_norm else None
        )
        if at_tokens:
            x = t.targets(x)
        elif x.span != READ:
            x = t.mean(x, stream.is_token, self.share) if c.readout == "mean" else t.gather(x)
        return self.read(t.norm(x, final), at_tokens)

    def read(self, x, at_tokens):
        c = self.c
        if c.tied_embeddings:
            return self.t.linear(
                x, LinearLayer(self.hidden.size, padded_size(c.num_outputs), self.embedding, -1)
            )
        if not at_tokens:
            return self.t.classify(
                x,
                self.p.linear(["classifier.{}"], Axis(np.zeros(1, int), 4), self.hidden, c.biases),
            )
        rows = Axis(output_rows(c), padded_size(c.num_outputs))
        return self.t.linear(x, self.p.linear(["classifier.{}"], rows, self.hidden, c.biases))


def blocks(m):
    """Transformers, and blocks of mixers that read from left to right."""
    c, alone = m.c, m.c.architecture == "transformer"
    mask = c.attention_mask if alone else "causal"
    types, stream = m.stream(TOKENS, mask, c.no_attend_cls and alone)
    letters = c.layers if c.architecture == "hybrid" else LETTERS[c.architecture] * c.num_blocks
    x = m.embed(types)
    for number, letter in enumerate(letters):
        name = f"blocks.{number}."
        # Of the last block only what is read of one token.
        single = number == len(letters) - 1 and c.head == "string" and c.readout != "mean"
        inside, norm = (
            (name + "attention", "attention_norm") if alone else (name + "mixer", "mixer_norm")
        )
        causal = mask == "causal"
        mix = {
            "a": lambda: m.attention(
                inside if alone else inside + ".attention", stream, single, causal
            ),
            "l": lambda: m.attention(inside, stream, single, True, kind=SUM, biases=False),
            "d": lambda: m.memory(inside, single, False),
            "g": lambda: m.memory(inside, single, True),
            "p": lambda: m.memory(inside, single, False, c.householder_steps),
            "m": lambda: m.selective(inside, single),
            "s": lambda: m.slstm(inside, single),
        }[letter]()
        x = m.block(name, [norm], x, [mix], single)
    return m.head(x, stream), stream, None


def recurrent(m):
    """Layers of cells."""
    c, t, p = m.c, m.t, m.p
    types, stream = m.stream(TOKENS, "causal", False)
    gates, cell = Axis.parts(GATES[c.architecture], c.hidden_size), CELLS[c.architecture]
    x = types
    for number in range(c.num_blocks):
        name = f"layers.{number}."
        layer = p.linear([name + "input_{}"], gates, m.hidden, c.biases)
        state = p.linear([name + "state_{}"], gates, m.hidden, c.biases)
        if x is types:
            layer = t.table(types, p, layer, m.embedding)
        x = t.recur(x, layer, cell, 1, m.hidden.size, state.weight, state.bias)
    return m.head(x, stream), stream, None


def encoder_decoder(m):
    """An encoder of the input; a decoder of the output, which attends to the encoder's last states."""
    c, t = m.c, m.t
    types, inputs = m.stream(INPUT, "full", c.no_attend_cls)
    x = m.embed(types)
    for number in range(c.num_blocks):
        name = f"encoder.blocks.{number}."
        x = m.block(name, ["attention_norm"], x, [m.attention(name + "attention", inputs)])
    final = lambda side: (
        m.p.norm(side + "final_norm.{}", NORMS[c.layer_norm], m.hidden) if c.final_norm else None
    )
    encoded = t.norm(x, final("encoder."))
    types, outputs = m.stream(TOKENS, "causal", False)
    x = m.embed(types)
    for number in range(c.num_blocks):
        name = f"decoder.blocks.{number}."
        own = m.attention(name + "attention", outputs, causal=True)
        cross = m.attention(name + "cross_attention", outputs, others=(encoded, inputs))
        x = m.block(name, ["attention_norm", "cross_attention_norm"], x, [own, cross])
    return m.read(t.targets(t.norm(x, final("decoder."))), True), outputs, inputs


PROGRAMS = {
    "rnn": recurrent,
    "gru": recurrent,
    "lstm": recurrent,
    "encoder_decoder": encoder_decoder,
}


def steps_of(config):
    """Rows of a memory for each token."""
    return config.householder_steps if config.architecture == "deltaproduct" else 1


@lru_cache(maxsize=64)
def program_of(config, rows, input_rows, groups, use):
    """A model's instructions and parameters, for so many rows."""
    m = Model(
        config,
        {
            READ: groups,
            TOKENS: rows,
            TARGETS: rows,
            INPUT: input_rows,
            START: 1,
            STEPS: rows * steps_of(config),
        },
        use,
    )
    outputs, own, inputs = PROGRAMS.get(config.architecture, blocks)(m)
    outputs.grad = outputs  # The losses leave D of the outputs in their place.
    forward, backward = m.t.finish()
    program = Program(
        forward, backward, m.t.together, own, inputs or own, m.read_factor, m.read_turns, m.share, *m.t.address(outputs), rows, steps_of(config), m.t.size,
    )  # fmt: skip
    return program, m.p


def slots_of(config):
    """The places of the values of each parameter, by its name."""
    return program_of(config, 4, 4, 1, ANSWERING)[1].slots
