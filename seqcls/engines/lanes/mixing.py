"""The emission of attention, recurrent layers and memories, with their gradients."""

import numpy as np

from seqcls.engines.compiled.parameters import Parameters
from seqcls.engines.lanes import instructions as code
from seqcls.engines.lanes.layers import (
    CAUSAL_FIRE,
    FIRE_UNITS,
    GRU,
    QUERIES,
    READ,
    RNN,
    SLSTM,
    START,
    STEPS,
    SUM,
    TOKENS,
    Channels,
    Heads,
    How,
    LinearLayer,
)
from seqcls.engines.lanes.parameters import Axis
from seqcls.engines.lanes.tape import TRAINING, WRITING, Tape, Value
from seqcls.models.positions.numbers import BUCKETS


def attend(
    tape: Tape,
    query: Value,
    key_value: Value,
    heads: Heads,
    mask: int,
    how: How,
) -> Value:
    """Emits attention; returns the heads' weighted sums of values.

    Args:
        mask: the start of the mask, a vector for each key.
        how: the settings that do not depend on the use.
    """
    # Later queries read these keys and values too, group by group.
    tape.together, key_value.root.is_kept = False, True
    queries, keys = tape.tokens(query.span), tape.tokens(key_value.span)
    # Only gradients need the weights of all queries; otherwise blocks of queries share rows.
    keep = queries if tape.use == TRAINING else 0
    rows = heads.heads * queries if keep else min(queries, QUERIES)
    scores, mixed = tape.value(keys, START, rows=rows), tape.value(heads.joined, query.span)
    sums = tape.scratch(heads.heads * queries if how.shares == SUM else 1)
    bias_rows = 1 if how.bias != CAUSAL_FIRE or tape.use == WRITING else keys
    how = how._replace(alone=query.span == READ, keep=keep, rows=bias_rows)
    forward = code.Attend(
        query, key_value, mixed, heads, how, key_value.span, scores, sums, mask, keys
    )
    tape.emit(
        query.span,
        forward,
        lambda: code.AttendGradient(
            forward,
            dmixed=mixed.gradient,
            dquery=tape.write_gradient(query),
            dkey_value=tape.write_gradient(key_value),
            dscores=tape.scratch(min(queries, QUERIES) * (keys + 1)),
        ),
    )
    return mixed


def distances(tape: Tape, heads: int, table: int) -> int:
    """Returns the start of D of the distances' biases, summed over all blocks that use them."""
    sums = tape.input(BUCKETS * heads - 1, START, rows=1)
    tape.later.append(lambda: tape.emit_back(START, code.DistanceGradient(sums, heads, table)))
    return sums.place


def fire(tape: Tape, parameters: Parameters, heads: int, causal: bool) -> tuple[int, int]:
    """Emits FIRE's biases and adds its parameters; returns the starts of biases and gradients."""
    units, one = Axis.of_size(FIRE_UNITS), Axis(np.zeros(1, np.int64), 1)
    tokens, own = tape.tokens(TOKENS), Axis.of_size(heads)
    rows = tokens if causal and tape.use != WRITING else 1
    forward = code.Fire(
        shares=tape.vectors(rows * tokens),
        numbers=tape.vectors(heads * rows * tokens),
        gradient=tape.vectors(heads * rows * tokens * (tape.use == TRAINING)),
        causal=causal,
        heads=heads,
        rows=rows,
        tokens=tokens,
        input=parameters.take("positions.input.weight", units, one),
        input_bias=parameters.take("positions.input.bias", units),
        output=parameters.take("positions.output.weight", own, units),
        output_bias=parameters.take("positions.output.bias", own),
        log_scale=parameters.take("positions.log_scale", one),
        log_threshold=parameters.take("positions.log_threshold", one),
    )
    sums = tape.scratch(2 * FIRE_UNITS + heads * (FIRE_UNITS + 1))
    tape.emit(TOKENS, forward, lambda: code.FireGradient(forward, sums))
    return forward.numbers, forward.gradient


def recur(
    tape: Tape,
    x: Value,
    layer: LinearLayer,
    cell: int,
    heads: int,
    width: int,
    weight: int,
    bias: int,
) -> Value:
    """Emits a recurrent layer; returns its states. `layer` is the input's share of the gates."""
    rows, groups, joined = tape.rows[TOKENS], tape.rows[READ], heads * width
    # Rows of cells and zeros have the distance of those of `state`.
    size, row = rows * (joined + 1), joined + 1
    gates, previous = tape.value(layer.outputs, TOKENS), tape.value(joined, TOKENS)
    state = tape.value(joined, TOKENS, is_kept=True)
    # An LSTM: cells and their tanh. An sLSTM: cells, normalizers, stabilizers and slopes.
    vectors = {RNN: 1, GRU: 1, SLSTM: 4 * size}.get(cell, 2 * size)
    forward = code.Recur(
        cell=cell,
        heads=heads,
        width=width,
        weight=weight,
        bias=bias,
        gates=gates,
        # In a GRU, r comes between the two shares of the candidate; other cells just add them up.
        from_state=tape.value(layer.outputs, TOKENS) if cell == GRU else gates,
        state=state,
        previous=previous,
        cells=tape.scratch(vectors, is_kept=True),
        size=size,
        zero=tape.scratch(groups * row, is_kept=True),
        input=x,
        input_layer=layer,
    )
    tape.emit(TOKENS, forward)

    def back() -> None:
        to = tape.value(layer.outputs, TOKENS)
        du = tape.value(layer.outputs, TOKENS) if cell == GRU else to
        scratch = tape.scratch(3 * groups * row)
        tape.emit_back(TOKENS, code.RecurGradient(forward, state.gradient, to, du, scratch))
        dx, adds = tape.gradient_of(x) if x.has_gradient else (None, False)
        tape.emit_back(TOKENS, code.LinearGradient(x, to, dx, layer, adds))

    tape.later.append(back)
    return state


def convolve(tape: Tape, x: Value, weight: int, bias: int = -1) -> Value:
    """Emits a convolution of each channel over a token and the three before it."""
    tape.together, x.root.is_kept = False, True
    y, own = tape.value(x.width, x.span), (x.width, weight, bias)
    tape.emit(
        x.span,
        code.Convolve(x, y, *own),
        lambda: code.ConvolveGradient(x, y.gradient, tape.write_gradient(x), *own),
    )
    return y


def unfold(tape: Tape, x: Value, shared: int, parts: int, steps: int) -> Value:
    """Emits a row for each step of a token: shared columns, then each part's of the step."""
    width = (x.width - shared) // (parts * steps)
    y = tape.value(shared + parts * width, STEPS)
    tape.emit(
        x.span,
        code.Unfold(x, y, steps, shared, parts, width, False),
        lambda: code.Unfold(tape.write_gradient(x), y.gradient, steps, shared, parts, width, True),
    )
    return y


def fold(tape: Tape, x: Value, steps: int) -> Value:
    """Emits the selection of each token's last step."""
    y = tape.value(x.width, TOKENS)
    tape.emit(
        TOKENS,
        code.Fold(x, y, steps, x.width, False),
        lambda: code.Fold(tape.write_gradient(x), y.gradient, steps, x.width, True),
    )
    return y


def remember(
    tape: Tape,
    given: Value,
    strength: Value,
    heads: Heads,
    norm: int,
    signed: bool,
    fading: Value | None = None,
    log_rate: int = 0,
    offset: int = 0,
) -> Value:
    """Emits the memory of DeltaNet, or of Gated DeltaNet if it fades; returns its outputs.

    Args:
        given: queries, keys and values after SiLU; keys and r are read by later tokens.
    """
    tape.together, span, given.root.is_kept = False, given.span, True
    tokens, joined, keep = tape.tokens(span), heads.joined, tape.use == TRAINING

    def new(width: int, is_kept: bool = False) -> Value:
        return tape.value(width, span, is_kept=is_kept)

    rows = heads.heads * tokens if keep else QUERIES
    pairs, reads, since = (tape.value(tokens, START, rows=rows) for _ in range(3))
    forward = code.Remember(
        given=given,
        lengths=new(2 * heads.heads - 1),
        strengths=strength,
        log_decay=fading or strength,
        slopes=new(strength.width) if fading else strength,
        sums=new(strength.width, True) if fading else strength,
        written=new(joined, True),
        recalled=new(joined),
        units=new(joined),
        scales=new(heads.heads - 1),
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
    tape.emit(span, forward)

    def back() -> None:
        d_given, d_strength = tape.write_gradient(given), tape.write_gradient(strength)
        d_fading = tape.write_gradient(fading) if fading else new(strength.width)
        # The kernel writes one number for each head, and the padding of widths has to be zero.
        if strength.width > heads.heads:
            for x in dict.fromkeys((d_strength, d_fading)):
                tape.emit_back(span, code.Clear(x))
        gradient = code.RememberGradient(
            forward=forward,
            recalled=forward.recalled.gradient,
            given=d_given,
            strengths=d_strength,
            log_decay=d_fading,
            pairs=tape.value(tokens, START, rows=tokens),
            reads=tape.value(tokens, START, rows=tokens),
            sums=tape.scratch(2 * heads.head_width),
        )
        tape.emit_back(span, gradient)

    tape.later.append(back)
    recalled: Value = forward.recalled
    return recalled


def select(
    tape: Tape,
    channels: Value,
    selected: Value,
    steps: Value,
    sizes: Channels,
    signed: bool,
    log_rate: int,
    skip: int,
) -> Value:
    """Emits the selective memory of Mamba; returns its outputs."""
    tape.together = False
    keep, size = tape.use == TRAINING, sizes.channels * sizes.numbers
    answered = tape.value(channels.width, TOKENS)
    forward = code.Select(
        channels=channels,
        selected=selected,
        steps=steps,
        answered=answered,
        # The gradient needs h of every token; otherwise one h for each group is enough.
        memory=tape.scratch(
            (tape.tokens(TOKENS) if keep else tape.rows[READ]) * size, is_kept=True
        ),
        rates=tape.scratch(size, is_kept=True),
        log_rate=log_rate,
        skip=skip,
        signed=signed,
        sizes=sizes,
        keep=keep,
    )
    tape.emit(
        TOKENS,
        forward,
        lambda: code.SelectGradient(
            forward=forward,
            answered=answered.gradient,
            channels=tape.write_gradient(channels),
            selected=tape.write_gradient(selected),
            steps=tape.write_gradient(steps),
            memory=tape.scratch(size),
            rates=tape.scratch(size),
        ),
    )
    return answered
