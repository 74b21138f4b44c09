"""The parts of architectures, each emitted with its parameters by name.

Widths are filled up, and the indices of a parameter follow from its axes. Numba is not loaded.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from seqcls.config import COUPLED, NetworkConfig
from seqcls.engines.compiled.parameters import Parameters
from seqcls.engines.lanes import mixing
from seqcls.engines.lanes.layers import (
    ACTIVATIONS,
    ALIBI,
    CAUSAL_FIRE,
    ELU,
    FIRE,
    GATES,
    LAYER,
    LSTM,
    NORMS,
    READ,
    RELATIVE,
    SILU,
    SLSTM,
    SOFTMAX,
    SOFTPLUS,
    SUM,
    TOKENS,
    WINDOW,
    Channels,
    Heads,
    How,
    LinearLayer,
    NormLayer,
    Stream,
)
from seqcls.engines.lanes.parameters import (
    Axis,
    head_rows,
    output_rows,
    padded_size,
)
from seqcls.engines.lanes.tape import Tape, Value
from seqcls.models.positions import table_size
from seqcls.models.positions.numbers import BUCKETS

Read = Callable[[], Value]
"""Returns the residual stream of all tokens, or of those that are read."""
Mixer = Callable[[Value, Read], Value]
"""A part of a block: given its normed input and the residual stream, returns their sum."""


class Model:
    """A network under construction: its tape, its parameters, and the parts that emit both."""

    def __init__(self, config: NetworkConfig, rows: Mapping[int, int], use: int) -> None:
        self.config, self.tape, self.parameters = config, Tape(rows, use), Parameters(config)
        self.hidden = Axis.of_size(config.hidden_size)
        heads, size = config.num_attention_heads, config.attention_head_size
        self.heads = Heads(heads, size, padded_size(size), heads * padded_size(size))
        self.by_head = Axis.parts(heads, size)
        self.pairs = size // 2 if config.positions == "rotary" else 0
        self.read_turns = self.tape.vectors(rows[READ] * 2 * self.pairs)
        self.read_factor, self.share = (self.tape.vectors(rows[READ]) for _ in range(2))
        self.crossing = self.tape.vectors(rows[TOKENS] * (config.architecture == "encoder_decoder"))
        rows_of_types = head_rows(config)
        self.kinds = Axis(rows_of_types, padded_size(len(rows_of_types)))
        self.embedding = self.parameters.take("embedding.weight", self.kinds, self.hidden)
        self.how, self.table = How(), -1
        if config.architecture != "encoder_decoder":
            self.take_positions()

    def take_positions(self, side: str = "") -> None:
        """Adds the parameters of positions, and sets their table or the bias of scores.

        Args:
            side: the prefix of their names.
        """
        config, name = self.config, side + "positions.table.weight"
        if config.positions == "alibi":
            self.how = How(bias=ALIBI)
        elif config.positions == "relative":
            heads = config.num_attention_heads
            axes = Axis(np.arange(BUCKETS), BUCKETS), Axis(np.arange(heads), heads)
            table = self.parameters.take(name, *axes)
            distances = mixing.distances(self.tape, heads, table)
            self.how = How(bias=RELATIVE, table=table, distances=distances)
        elif config.positions == "fire":
            causal = config.attention_mask == "causal" or config.architecture != "transformer"
            table, distances = mixing.fire(self.tape, self.parameters, self.heads.heads, causal)
            self.how = How(bias=CAUSAL_FIRE if causal else FIRE, table=table, distances=distances)
        elif has_table(config):
            places = table_size(config) or 0
            axis = Axis(np.arange(places), places)
            self.table = self.parameters.take(name, axis, self.hidden)

    def stream(self, span: int, mask: str, hides_cls: bool) -> tuple[Value, Stream]:
        """Returns the token types of a span, and the other inputs for its tokens."""
        tape, rows = self.tape, self.tape.rows[span]
        types = tape.input(self.kinds.size, span)
        first, apart = tape.address(types)
        stream = Stream(
            types=first,
            types_apart=apart,
            is_token=tape.vectors(rows),
            mask=tape.vectors(rows),
            tokens=tape.tokens(span),
            factor=tape.vectors(rows),
            turns=tape.vectors(rows * 2 * self.pairs),
            pairs=self.pairs,
            hides_cls=hides_cls,
            log_length=self.config.attention_scale != "sqrt",
            causal=mask == "causal",
        )
        return types, stream

    def embed(self, types: Value, stream: Stream) -> Value:
        """Emits the embeddings, positions included."""
        config, tape = self.config, self.tape
        x = tape.embed(types, self.embedding, config.num_letters + 1, self.hidden.size)
        if config.embedding_scale == "sqrt":
            x = tape.enlarge(x, config.hidden_size)
        if config.positions == "sinusoidal" or has_table(config):
            tape.add_positions(x, config.hidden_size, self.table, stream.is_token)
        return x

    def linear(
        self,
        names: Sequence[str],
        outputs: Axis,
        inputs: Axis | None = None,
        *,
        has_bias: bool = False,
    ) -> LinearLayer:
        """Adds linear layers of the residual stream, or of other inputs, stacked to one layer.

        Args:
            names: those of the parameters before `weight` and `bias`.
        """
        take, columns = self.parameters.take, inputs or self.hidden
        # Added consecutively, the weights are one matrix, and the biases one vector.
        weights = [take(name + "weight", outputs, columns) for name in names]
        biases = [take(name + "bias", outputs) for name in names if has_bias]
        bias = biases[0] if has_bias else -1
        return LinearLayer(columns.size, len(names) * outputs.size, weights[0], bias)

    def norm(self, name: str) -> NormLayer | None:
        """Adds the norm of that name, if the network has norms."""
        if not self.config.has_norms:
            return None
        kind, take = NORMS[self.config.layer_norm], self.parameters.take
        weight = take(f"{name}.weight", self.hidden)
        bias = take(f"{name}.bias", self.hidden) if kind == LAYER else -1
        return NormLayer(kind, len(self.hidden.places), weight, bias)

    def final_norm(self, name: str = "") -> NormLayer | None:
        """Adds the norm after the last block, if there is one."""
        return self.norm(name + "final_norm") if self.config.final_norm else None

    def block(
        self, name: str, norms: Sequence[str], x: Value, mixers: Sequence[Mixer], single: bool
    ) -> Value:
        """Emits a block: residual parts that mix tokens, then a feed-forward part.

        Args:
            single: whether one token of each string is read of it.
        """
        tape, config = self.tape, self.config
        before = config.norm_placement == "pre"
        for norm, mix in zip(norms, mixers, strict=True):
            layer = self.norm(name + norm)
            # The rows of x that are read are gathered last, so that their gradient comes first, as
            # in blocks that are read at all tokens.
            read = partial(tape.gather if single else _same, x)
            y = mix(tape.norm(x, layer) if before else x, read)
            x = y if before else tape.norm(y, layer)
        layer = self.norm(name + "feed_forward_norm")
        inner, biases = Axis.of_size(config.feed_forward_size), config.biases
        up = self.linear([name + "feed_forward.input."], inner, has_bias=biases)
        down = self.linear([name + "feed_forward.output."], self.hidden, inner, has_bias=biases)
        within = tape.linear(tape.norm(x, layer) if before else x, up)
        y = tape.linear(tape.activate(ACTIVATIONS[config.activation], within), down, onto=x)
        return y if before else tape.norm(y, layer)

    def attention(
        self,
        name: str,
        stream: Stream,
        n: Value,
        onto: Read,
        *,
        single: bool = False,
        causal: bool = False,
        others: tuple[Value, Stream] | None = None,
        shares: int = SOFTMAX,
        biases: bool | None = None,
    ) -> Value:
        """Emits attention to the same tokens, or to others with their stream."""
        tape, joined = self.tape, self.heads.joined
        biases = self.config.biases if biases is None else biases
        key_source, key_stream = others or (None, stream)
        # One query, of the token that is read; FIRE and linear attention do not support it.
        alone = single and shares == SOFTMAX and self.config.positions != "fire"
        names = [f"{name}.{x}." for x in ("query", "key", "value")]
        whole = self.linear(names, self.by_head, has_bias=biases)
        if alone or key_source is not None:
            weight, bias = whole.weight + joined * whole.inputs, whole.bias + joined
            rest = LinearLayer(whole.inputs, 2 * joined, weight, bias if biases else -1)
            query = tape.linear(tape.gather(n) if alone else n, whole._replace(outputs=joined))
            key_value = tape.linear(n if key_source is None else key_source, rest)
        else:
            both = tape.linear(n, whole)
            query, key_value = both.part(0, joined), both.part(joined, 2 * joined)
        if shares == SUM:
            # The padding of heads stays 0.
            for x in (query, key_value):
                for head in range(self.heads.heads):
                    moved = head * self.heads.head_width
                    tape.activate(ELU, x.part(moved, self.heads.head_size))
        else:
            if self.pairs and key_source is None:
                turns = self.read_turns if alone else stream.turns
                query = tape.rotate(query, self.heads, turns)
                tape.rotate(key_value.part(0, joined), self.heads, stream.turns)
            factor = self.read_factor if alone else stream.factor
            factor = factor if key_source is None else self.crossing
            if self.config.attention_scale == "learned_log_length":
                learned = (
                    self.parameters.take(f"{name}.length_{x}", Axis.of_size(self.heads.heads))
                    for x in ("scale", "bias")
                )
                query = tape.scale_heads(query, self.heads, factor, *learned)
            else:
                query = tape.scale(query, factor)
        how = How() if shares == SUM or key_source is not None else self.how
        mixed = mixing.attend(
            tape,
            query,
            key_value,
            self.heads,
            key_stream.mask,
            how._replace(shares=shares, causal=causal and not alone),
        )
        return self.project(name, mixed, single and not alone, onto, self.by_head, biases)

    def project(
        self,
        name: str,
        mixed: Value,
        single: bool,
        onto: Read,
        inputs: Axis,
        has_bias: bool = False,
    ) -> Value:
        """Emits a mixer's output layer, and adds its outputs to the residual stream."""
        mixed = self.tape.gather(mixed) if single else mixed
        layer = self.linear([name + ".output."], self.hidden, inputs, has_bias=has_bias)
        return self.tape.linear(mixed, layer, onto=onto())

    def memory(
        self, name: str, n: Value, onto: Read, *, single: bool, fades: bool, steps: int = 1
    ) -> Value:
        """Emits the memory of DeltaNet, Gated DeltaNet, or DeltaProduct with some steps."""
        config, tape, parameters = self.config, self.tape, self.parameters
        heads, joined = Axis.of_size(self.heads.heads), self.heads.joined
        # D of the input is the sum of those of queries, strengths, fading and gates, in this
        # order.
        fading = gate = None
        rate = offset = 0
        if fades:
            gate = tape.linear(n, self.linear([f"{name}.gate."], self.by_head))
            fading = tape.linear(n, self.linear([f"{name}.fading."], heads))
            rate = parameters.take(f"{name}.log_rate", heads)
            offset = parameters.take(f"{name}.offset", heads)
        strength = tape.linear(
            n, self.linear([f"{name}.strength."], Axis.parts(steps, self.heads.heads))
        )
        own = Axis.parts(steps * self.heads.heads, self.heads.head_size)
        # These are contiguous, so that one product computes all three.
        parts = ("query", self.by_head), ("key", own), ("value", own)
        query, _, _ = (self.linear([f"{name}.{part}."], axis) for part, axis in parts)
        given = tape.linear(n, query._replace(outputs=(1 + 2 * steps) * joined))
        if config.short_convolution:
            channels = Axis.parts((1 + 2 * steps) * self.heads.heads, self.heads.head_size)
            window = Axis.of_size(WINDOW)
            weight = parameters.take(f"{name}.convolution.weight", channels, window)
            given = mixing.convolve(tape, given, weight)
        if steps > 1:
            given = mixing.unfold(tape, given, joined, 2, steps)
            strength = mixing.unfold(tape, strength, 0, 1, steps)
        given = tape.activate(SILU, given)
        norm = parameters.take(f"{name}.norm.weight", Axis.of_size(self.heads.head_size))
        signed = config.eigenvalue_range == "signed"
        mixed = mixing.remember(
            tape, given, strength, self.heads, norm, signed, fading, rate, offset
        )
        mixed = tape.multiply(mixed, tape.activate(SILU, gate)) if gate else mixed
        mixed = mixing.fold(tape, mixed, steps) if steps > 1 else mixed
        return self.project(name, mixed, single, onto, self.by_head)

    def selective(self, name: str, n: Value, onto: Read, *, single: bool) -> Value:
        """Emits the memory of Mamba."""
        config, tape, parameters = self.config, self.tape, self.parameters
        hidden, rank = config.hidden_size, math.ceil(config.hidden_size / 16)
        sizes = config.expand * hidden, config.state_size, rank
        channels, numbers, ranks = map(Axis.of_size, sizes)

        def side_by_side(*axes: Axis) -> Axis:
            ends = np.cumsum([0, *(x.size for x in axes)])
            places = [end + x.places for end, x in zip(ends, axes, strict=False)]
            return Axis(np.concatenate(places), int(ends[-1]))

        both = side_by_side(channels, channels)
        given = tape.linear(n, self.linear([f"{name}.input."], both))
        window, selection = Axis.of_size(WINDOW), side_by_side(ranks, numbers, numbers)
        weight = parameters.take(f"{name}.convolution.weight", channels, window)
        bias = parameters.take(f"{name}.convolution.bias", channels)
        u = mixing.convolve(tape, given.part(0, channels.size), weight, bias)
        u = tape.activate(SILU, u)
        selected = tape.linear(u, self.linear([f"{name}.selection."], selection, channels))
        step_size = self.linear([f"{name}.step_size."], channels, ranks, has_bias=True)
        steps = tape.linear(selected.part(0, ranks.size), step_size)
        steps = tape.activate(SOFTPLUS, steps)
        sizes = Channels(channels.size, numbers.size, ranks.size)
        rate = parameters.take(f"{name}.log_rate", channels, numbers)
        skip = parameters.take(f"{name}.skip", channels)
        signed = config.eigenvalue_range == "signed"
        mixed = mixing.select(tape, u, selected, steps, sizes, signed, rate, skip)
        gate = tape.activate(SILU, given.part(channels.size, channels.size))
        return self.project(name, tape.multiply(mixed, gate), single, onto, channels)

    def slstm(self, name: str, n: Value, onto: Read, *, single: bool) -> Value:
        """Emits the sLSTM, with exponential gates and recurrent weights within each head."""
        tape, parameters, (heads, size, width, _) = self.tape, self.parameters, self.heads
        gates, biases = Axis.parts(4 * heads, size), self.config.biases
        layer = self.linear([f"{name}.input."], gates, has_bias=biases)
        weights = [
            parameters.take(f"{name}.recurrent.{x}.weight", Axis.parts(4, size), Axis.of_size(size))
            for x in range(heads)
        ]
        state = mixing.recur(tape, n, layer, SLSTM, heads, width, weights[0], -1)
        return self.project(name, state, single, onto, self.by_head)

    def cell(self, name: str, n: Value, onto: Read, *, single: bool) -> Value:
        """Emits the LSTM, whose states are added without a projection."""
        tape = self.tape
        gates, biases = Axis.parts(GATES["lstm"], self.config.hidden_size), self.config.biases
        layer, own = (
            self.linear([f"{name}.cell.{x}_"], gates, has_bias=biases) for x in ("input", "state")
        )
        state = mixing.recur(tape, n, layer, LSTM, 1, self.hidden.size, own.weight, own.bias)
        return tape.add(tape.gather(state) if single else state, onto())

    def head(self, x: Value, stream: Stream) -> Value:
        """Emits the readout and the head, for each string or each token with a prediction."""
        config, tape = self.config, self.tape
        x = tape.norm(tape.targets(x) if config.head != "string" else x, self.final_norm())
        if config.head == "string" and x.span != READ:
            is_mean = config.readout == "mean"
            x = tape.mean(x, stream.is_token, self.share) if is_mean else tape.gather(x)
        return self.read(x)

    def read(self, x: Value) -> Value:
        """Emits the head."""
        config, tape = self.config, self.tape
        outputs = padded_size(config.num_outputs)
        if config.tied_embeddings:
            return tape.linear(x, LinearLayer(self.hidden.size, outputs, self.embedding, -1))
        rows = Axis(output_rows(config), outputs)
        if config.head == "string":
            rows = Axis(np.zeros(1, np.int64), outputs)
        layer = self.linear(["classifier."], rows, has_bias=config.biases)
        return tape.classify(x, layer) if config.head == "string" else tape.linear(x, layer)


def _same(x: Value) -> Value:
    return x


def has_table(config: NetworkConfig) -> bool:
    """Returns True if vectors of positions are learned."""
    return config.positions in ("learned", *COUPLED)
