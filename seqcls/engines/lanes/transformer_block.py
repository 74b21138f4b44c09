# Compiled by Numba, which infers the types of arguments: what has none here is compiled.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
r"""One block over a group of strings, forward and backward.

    norms before:  y = x + Wo attend(norm(x)) + bo       z = y + W2 act(W1 norm(y) + b1) + b2
    norms after:   y = norm(x + Wo attend(x) + bo)       z = norm(y + W2 act(W1 y + b1) + b2)

A block that remembers has a memory's mixing instead of `attend`, without biases there. In the last
block only what is read is computed where that is one token of each string: its state takes the
place of x in the sums, and its (normed) state makes the one query.
"""

from typing import NamedTuple

from seqcls.engines.lanes.delta_memory import (
    gradients_of,
    memory_layers,
    memory_rooms,
    project,
    project_gradient,
    remember,
    remember_gradient,
)
from seqcls.engines.lanes.elementary import (
    NONE,
    Norm,
    NormStates,
    gelu,
    gelu_tanh,
    multiply,
    norm,
    norm_gradient,
    relu,
)
from seqcls.engines.lanes.selective_memory import (
    fill_rates,
    select,
    select_gradient,
    selective_gradients,
    selective_layers,
    selective_rooms,
)
from seqcls.engines.lanes.tiles import LinearLayer, Rows, apply, apply_gradient, clear
from seqcls.engines.lanes.transformer_attention import attend, attend_gradient, rotate
from seqcls.engines.lanes.transformer_sizes import GELU, RELU, ROTARY
from seqcls.engines.lanes.vector import LANES, kernel, load, store


class BlockLayers(NamedTuple):
    """The layers of a block."""

    before: bool
    """Whether norms stand before attention and feed-forward."""
    after: bool
    """Whether they stand after."""
    attention_norm: Norm
    query_key_value: LinearLayer
    query: LinearLayer
    key_value: LinearLayer
    output: LinearLayer
    feed_forward_norm: Norm
    inner: LinearLayer
    outer: LinearLayer


class Rooms(NamedTuple):
    """Where a block's states stand."""

    x: Rows
    read: Rows
    """What queries, keys and values are made of: x, or x normed."""
    attention_kept: NormStates
    heads: Rows
    scores: Rows
    mixed: Rows
    y: Rows
    fed: Rows
    """What the feed-forward reads: y, or y normed."""
    feed_forward_kept: NormStates
    inner: Rows
    slopes: Rows
    z: Rows
    read_state: Rows
    """The state of the one token of each string that is read."""
    read_normed: Rows
    read_mixed: Rows


@kernel
def remembers(number, sizes):
    """Whether the block of that number remembers instead of attending."""
    return (sizes.memories >> number) & 1 == 1


@kernel
def is_selective(number, sizes):
    """Whether its memory is that of Mamba."""
    return (sizes.selective >> number) & 1 == 1


@kernel
def layers_of(number, sizes, parameters):
    """The layers of the block of that number."""
    p = number * parameters.block_size
    has_norm = sizes.norm != NONE
    weight, joined, width = p + parameters.query_key_value, sizes.joined, sizes.width
    # -1 stands for no bias: without biases all of them begin before the first parameter.
    b = p if sizes.biases else -(10**15)
    of_mixer = -(10**15) if remembers(number, sizes) else b
    bias = of_mixer + parameters.query_key_value_bias
    return BlockLayers(
        has_norm and not sizes.norms_last,
        has_norm and sizes.norms_last,
        Norm(
            sizes.norm, sizes.hidden, sizes.eps, p + parameters.attention_norm,
            p + parameters.attention_norm_bias,
        ),
        LinearLayer(width, 3 * joined, weight, bias),
        LinearLayer(width, joined, weight, bias),
        LinearLayer(width, 2 * joined, weight + joined * width, bias + joined),
        LinearLayer(
            sizes.channels if is_selective(number, sizes) else joined, width,
            p + parameters.output, of_mixer + parameters.output_bias,
        ),
        Norm(
            sizes.norm, sizes.hidden, sizes.eps, p + parameters.feed_forward_norm,
            p + parameters.feed_forward_norm_bias,
        ),
        LinearLayer(width, sizes.inner, p + parameters.inner, b + parameters.inner_bias),
        LinearLayer(sizes.inner, width, p + parameters.outer, b + parameters.outer_bias),
    )  # fmt: skip


@kernel
def rooms_of(number, sizes, at):
    """Where the states of the block of that number stand."""
    moved, row = number * at.block_size, sizes.width + 1
    before = sizes.norm != NONE and not sizes.norms_last
    x, y = at.state + moved, at.after_attention + moved
    return Rooms(
        Rows(x, row),
        Rows(at.attention_normed + moved if before else x, row),
        NormStates(at.attention_units + moved, at.attention_scales + moved),
        Rows(at.heads + moved, 3 * sizes.joined + 1),
        Rows(at.scores + moved, at.tokens + 1),
        Rows(at.mixed + moved, sizes.mixed + 1),
        Rows(y, row),
        Rows(at.feed_forward_normed + moved if before else y, row),
        NormStates(at.feed_forward_units + moved, at.feed_forward_scales + moved),
        Rows(at.inner + moved, sizes.inner + 1),
        Rows(at.inner_slopes + moved, sizes.inner + 1),
        Rows(at.last_state if number == sizes.blocks - 1 else x + at.block_size, row),
        Rows(at.read_state, row),
        Rows(at.read_normed, row),
        Rows(at.read_mixed, sizes.mixed + 1),
    )


@kernel
def rotate_heads(tokens, last, sizes, at, a, heads, sign):
    """Turns queries and keys by their places; with sign -1 back."""
    pairs = sizes.head_size // 2
    # The turns of the tokens that are read stand after those of the last one.
    queries, turns = (1, at.turns + at.tokens * 2 * pairs) if last else (tokens, at.turns)
    key, row = heads.first + sizes.joined, heads.apart
    rotate(queries, sizes.heads, sizes.head_width, pairs, a, heads.first, row, turns, sign)
    rotate(tokens, sizes.heads, sizes.head_width, pairs, a, key, row, at.turns, sign)


@kernel
def forward(number, last, tokens, keep, sizes, parameters, at, w, a, group):
    """Computes the block's output from its input.

    Args:
        last: whether one token of each string is read of it.
        tokens: of each string, filled up.
        keep: whether everything is kept, for the gradients.
        parameters: where they begin in `w`.
        at: where the states begin in `a`.
        group: the strings, a `Group`.
    """
    layers, its = layers_of(number, sizes, parameters), rooms_of(number, sizes, at)
    queries = 1 if last else tokens
    if layers.before:
        norm(tokens, layers.attention_norm, a, its.x, its.read, its.attention_kept, w)
    if last:
        gather(sizes.width, a, its.x, group.read, at.read_state)
    mixed = its.mixed
    if remembers(number, sizes):
        mix_by_memory(number, tokens, keep, sizes, parameters, at, w, a, its)
        if last:
            gather(sizes.mixed, a, its.mixed, group.read, at.read_mixed)
            mixed = its.read_mixed
    else:
        mix_by_attention(last, tokens, keep, sizes, parameters, at, w, a, group, layers, its)
    copy(queries, sizes.width, a, its.read_state if last else its.x, its.y)
    apply(queries, layers.output, a, mixed, its.y, w, True)
    if layers.after:
        norm(queries, layers.attention_norm, a, its.y, its.y, its.attention_kept, w)

    if layers.before:
        norm(queries, layers.feed_forward_norm, a, its.y, its.fed, its.feed_forward_kept, w)
    apply(queries, layers.inner, a, its.fed, its.inner, w, False)
    activate(queries, sizes, a, its.inner, its.slopes)
    copy(queries, sizes.width, a, its.y, its.z)
    apply(queries, layers.outer, a, its.inner, its.z, w, True)
    if layers.after:
        norm(queries, layers.feed_forward_norm, a, its.z, its.z, its.feed_forward_kept, w)


@kernel
def mix_by_attention(last, tokens, keep, sizes, parameters, at, w, a, group, layers, its):
    """Writes what the heads mix, of all tokens or of the one that is read."""
    queries = 1 if last else tokens
    if last:
        gather(sizes.width, a, its.read, group.read, at.read_normed)
        keys = Rows(its.heads.first + sizes.joined, its.heads.apart)
        apply(1, layers.query, a, its.read_normed, its.heads, w, False)
        apply(tokens, layers.key_value, a, its.read, keys, w, False)
    else:
        apply(tokens, layers.query_key_value, a, its.read, its.heads, w, False)
    if sizes.scheme == ROTARY:
        rotate_heads(tokens, last, sizes, at, a, its.heads, group.forward)
    scale(queries, sizes.joined, a, its.heads, at.factor + (at.tokens if last else 0))
    attend(
        tokens, last, keep, sizes, a, its.heads, its.scores, its.mixed, at.mask, group, w,
        parameters.table,
    )  # fmt: skip


@kernel
def mix_by_memory(number, tokens, keep, sizes, parameters, at, w, a, its):
    """Writes what a memory mixes, of all tokens."""
    if is_selective(number, sizes):
        layers = selective_layers(number, sizes, parameters)
        rooms = selective_rooms(number, keep, sizes, at)
        apply(tokens, layers.input, a, its.read, rooms.given, w, False)
        fill_rates(sizes, layers, a, rooms.rates, w)
        select(0, tokens, sizes, layers, a, rooms, w)
    else:
        memory, within = memory_layers(number, sizes, parameters), memory_rooms(number, sizes, at)
        project(
            tokens, memory, a, its.read, within.given, within.strengths, within.log_kept,
            within.gate, w,
        )  # fmt: skip
        remember(0, tokens, keep, tokens, sizes, memory, a, within, w)


@kernel
def mix_by_memory_gradient(number, tokens, sizes, parameters, at, w, gradient, a, its, to, add):
    """From D of what is mixed to D of what is read of tokens: writes it in rows of `to`, or adds to
    it.
    """
    if is_selective(number, sizes):
        layers = selective_layers(number, sizes, parameters)
        rooms, given = selective_rooms(number, True, sizes, at), selective_gradients(sizes, at)
        select_gradient(tokens, sizes, layers, a, rooms, given, w, gradient)
        apply_gradient(tokens, layers.input, a, its.read, given.given, to, w, gradient, add)
    else:
        memory, within = memory_layers(number, sizes, parameters), memory_rooms(number, sizes, at)
        before = gradients_of(sizes, at)
        remember_gradient(tokens, sizes, memory, a, within, before, w, gradient)
        project_gradient(tokens, memory, a, its.read, before, to, w, gradient, add)


@kernel
def backward(number, last, tokens, sizes, parameters, at, w, gradient, a, group):
    """Replaces D z at `at.gradient` by D x and adds to the gradient of the parameters.

    The arguments are those of `forward`.
    """
    layers, its = layers_of(number, sizes, parameters), rooms_of(number, sizes, at)
    queries, sums = 1 if last else tokens, at.norm_sums
    dx, dn = Rows(at.gradient, its.x.apart), Rows(at.normed_gradient, its.x.apart)
    dinner = Rows(at.inner_gradient, its.inner.apart)
    dmixed = Rows(at.mixed_gradient, its.mixed.apart)
    # Without a norm between, D of what a half of the block reads adds to D of its input at once.
    to, add = (dn, False) if layers.before else (dx, True)

    # D z to D y.
    if layers.after:
        kept = its.feed_forward_kept
        norm_gradient(queries, layers.feed_forward_norm, a, dx, dx, kept, sums, w, gradient, False)
    apply_gradient(queries, layers.outer, a, its.inner, dx, dinner, w, gradient, False)
    multiply(queries, sizes.inner, a, dinner, its.slopes)
    apply_gradient(queries, layers.inner, a, its.fed, dinner, to, w, gradient, add)
    if layers.before:
        kept = its.feed_forward_kept
        norm_gradient(queries, layers.feed_forward_norm, a, dn, dx, kept, sums, w, gradient, True)

    # D y to D x.
    if layers.after:
        kept = its.attention_kept
        norm_gradient(queries, layers.attention_norm, a, dx, dx, kept, sums, w, gradient, False)
    remembered = remembers(number, sizes)
    mixed = its.read_mixed if last and remembered else its.mixed
    apply_gradient(queries, layers.output, a, mixed, dx, dmixed, w, gradient, False)
    if last:
        # D of the one state that is read moves to where it was read.
        copy(1, sizes.width, a, dx, its.read_state)
        clear(a, dx.first, tokens * dx.apart)
        scatter(sizes.width, a, at.read_state, dx, group.read)
    if remembered:
        if last:
            copy(1, sizes.mixed, a, dmixed, its.read_mixed)
            clear(a, dmixed.first, tokens * dmixed.apart)
            scatter(sizes.mixed, a, at.read_mixed, dmixed, group.read)
        mix_by_memory_gradient(number, tokens, sizes, parameters, at, w, gradient, a, its, to, add)
    else:
        mix_by_attention_gradient(
            last, tokens, sizes, at, w, gradient, a, group, layers, its, to, add
        )
    if layers.before:
        kept = its.attention_kept
        norm_gradient(tokens, layers.attention_norm, a, dn, dx, kept, sums, w, gradient, True)


@kernel
def mix_by_attention_gradient(last, tokens, sizes, at, w, gradient, a, group, layers, its, to, add):
    """From D of what is mixed to D of what queries, keys and values are made of: writes it in rows
    of `to`, or adds to it.
    """
    queries = 1 if last else tokens
    dmixed = Rows(at.mixed_gradient, its.mixed.apart)
    dheads = Rows(at.heads_gradient, its.heads.apart)
    attend_gradient(
        tokens, last, sizes, a, its.heads, its.scores, dmixed, dheads, at.scores_gradient,
        at.distance_gradient, group,
    )  # fmt: skip
    scale(queries, sizes.joined, a, dheads, at.factor + (at.tokens if last else 0))
    if sizes.scheme == ROTARY:
        rotate_heads(tokens, last, sizes, at, a, dheads, -group.forward)
    if last:
        dkeys = Rows(dheads.first + sizes.joined, dheads.apart)
        apply_gradient(tokens, layers.key_value, a, its.read, dkeys, to, w, gradient, add)
        normed = its.read_normed
        apply_gradient(1, layers.query, a, normed, dheads, normed, w, gradient, False)
        scatter(sizes.width, a, at.read_normed, to, group.read)
    else:
        apply_gradient(tokens, layers.query_key_value, a, its.read, dheads, to, w, gradient, add)


@kernel
def activate(rows, sizes, a, x, slopes):
    """Puts the numbers between a feed-forward's layers through its function; leaves the slopes."""
    if sizes.activation == RELU:
        relu(rows, sizes.inner, a, x, slopes)
    elif sizes.activation == GELU:
        gelu(rows, sizes.inner, a, x, slopes)
    else:
        gelu_tanh(rows, sizes.inner, a, x, slopes)


@kernel
def gather(width, a, rows, read, to):
    """Writes the state of the token of each lane that is read."""
    for i in range(width):
        for lane in range(LANES):
            source = rows.first + read[lane] * rows.apart + i
            a[(to + i) * LANES + lane] = a[source * LANES + lane]


@kernel
def scatter(width, a, first, rows, read):
    """Adds values to those of the token of each lane that is read."""
    for i in range(width):
        for lane in range(LANES):
            to = rows.first + read[lane] * rows.apart + i
            a[to * LANES + lane] += a[(first + i) * LANES + lane]


@kernel
def scale(rows, columns, a, x, factor0):
    """Multiplies each row by a vector of its own."""
    for r in range(rows):
        factor = load(a, factor0 + r)
        for index in range(x.first + r * x.apart, x.first + r * x.apart + columns):
            store(a, index, load(a, index) * factor)


@kernel
def copy(rows, columns, a, x, y):
    """Copies rows."""
    for r in range(rows):
        for c in range(columns):
            store(a, y.first + r * y.apart + c, load(a, x.first + r * x.apart + c))
