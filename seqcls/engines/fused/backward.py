"""Gradients; the formulas stand in `seqcls.engines.fused.kernel`."""

import math

from seqcls.engines.compiled.compiling import inlined
from seqcls.engines.fused.buffers import TILE
from seqcls.engines.fused.forward import add, dot


@inlined
def norm_backward(d, parameters, d_parameters, shape, unit, scale, parallel, mean):
    """Turns the gradient d (H, N) of the normalized columns into that of the columns."""
    number = d.dtype.type
    if shape.norm == 0:
        return
    share = number(1) / number(shape.hidden)
    parallel[:] = number(0)
    mean[:] = number(0)
    for i in range(shape.hidden):
        d_parameters[0, i] += dot(d[i], unit[i])
        if shape.norm == 2:
            d_parameters[1, i] += d[i].sum()
        weight = parameters[0, i]
        for s in range(scale.size):
            d[i, s] *= weight
            parallel[s] += share * d[i, s] * unit[i, s]
        if shape.norm == 2:
            add(mean, share, d[i])
    for i in range(shape.hidden):
        for s in range(scale.size):
            d[i, s] = scale[s] * (d[i, s] - unit[i, s] * parallel[s] - mean[s])


@inlined
def backward(factor, p, d, shape, types, tile):
    """Adds a tile's share of all gradients to `d` and to the sums in `token types`."""
    read_backward(p, d, shape, types, tile)
    for head in range(shape.heads):
        attention_backward(head, factor, shape, types, tile)


@inlined
def read_backward(p, d, shape, types, tile):
    """From the slope of the logits to the gradients of the mixed values."""
    number = tile.logit.dtype.type
    tile.d_state[:] = number(0)
    for f in range(shape.feed_forward):
        z, below, density = tile.inner[f], tile.below[f], tile.density[f]
        effect = types.effect[f]
        for s in range(TILE):
            types.d_effect[f] += tile.slope[s] * z[s] * below[s]
            tile.row[s] = tile.slope[s] * effect * (below[s] + z[s] * density[s])
        if shape.biases:
            d.inner_bias[f] += tile.row.sum()
        for i in range(shape.hidden):
            d.inner[f, i] += dot(tile.row, tile.normed[i])
            add(tile.d_state[i], p.inner[f, i], tile.row)
    norm_backward(
        tile.d_state, p.norm_f, d.norm_f, shape, tile.unit, tile.scale, tile.row, tile.other
    )
    tile.d_mixed[:] = number(0)
    for i in range(shape.hidden):
        d.classifier[0, i] += dot(tile.slope, tile.state[i])
        add(tile.d_state[i], p.classifier[0, i], tile.slope)
        d_read = tile.d_state[i].sum()
        types.d_read[i] += d_read
        if shape.biases:
            d.output_bias[i] += d_read
            d_outer = p.classifier[0, i] * tile.slope.sum()
            d.outer_bias[i] += d_outer
            d.classifier[0, i] += p.outer_bias[i] * tile.slope.sum()
        for j in range(tile.mixed.shape[0]):
            d.output[i, j] += dot(tile.d_state[i], tile.mixed[j])
            add(tile.d_mixed[j], p.output[i, j], tile.d_state[i])
    if shape.biases:
        d.classifier_bias[0] += tile.slope.sum()


@inlined
def attention_backward(head, factor, shape, types, tile):
    """Adds a tile's share of one head's D v and D score."""
    number = tile.logit.dtype.type
    common = tile.other
    common[:] = number(0)
    members = range(head * shape.head_size, (head + 1) * shape.head_size)
    for j in members:
        for s in range(TILE):
            common[s] += tile.d_mixed[j, s] * tile.mixed[j, s]
    for k in range(shape.first_type, shape.token_types):
        weights = tile.attention[head, k]
        tile.row[:] = number(0)
        for j in members:
            types.d_value[j, k] += dot(weights, tile.d_mixed[j])
            add(tile.row, types.value[j, k], tile.d_mixed[j])
        if shape.log_length:
            for s in range(TILE):
                types.d_score[head, k] += factor[s] * weights[s] * (tile.row[s] - common[s])
        else:
            for s in range(TILE):
                types.d_score[head, k] += weights[s] * (tile.row[s] - common[s])


@inlined
def types_backward(p, d, shape, types):
    """Turns the sums over strings into the gradients of the parameters."""
    effect_backward(p, d, shape, types)
    project_backward(p, d, shape, types)
    states_backward(p, d, shape, types)
    embedding_backward(d, shape, types)


@inlined
def embedding_backward(d, shape, types):
    """Adds D x of the token types, and of the one that is read, to the embedding's gradient."""
    for i in range(shape.hidden):
        for k in range(shape.token_types):
            d.embedding[k, i] += types.d_normed[i, k]
        d.embedding[types.reader, i] += types.d_read[i]


@inlined
def project_backward(p, d, shape, types):
    """From D score and D v of the token types to D x^ and the gradients of what projects them."""
    number = p.embedding.dtype.type
    per_root = number(1 / math.sqrt(shape.head_size))
    types.d_normed[:] = number(0)
    for j in range(types.query.size):
        d_score = types.d_score[j // shape.head_size]
        d_query = dot(d_score, types.key[j]) * per_root
        factor = types.query[j] * per_root
        for i in range(shape.hidden):
            normed = types.normed[i]
            d.query[j, i] += d_query * normed[types.reader]
            d.key[j, i] += factor * dot(d_score, normed)
            d.value[j, i] += dot(types.d_value[j], normed)
            types.d_normed[i, types.reader] += p.query[j, i] * d_query
            add(types.d_normed[i], p.key[j, i] * factor, d_score)
            add(types.d_normed[i], p.value[j, i], types.d_value[j])
        if shape.biases:
            d.query_bias[j] += d_query
            d.key_bias[j] += factor * d_score.sum()
            d.value_bias[j] += types.d_value[j].sum()


@inlined
def effect_backward(p, d, shape, types):
    """The share of D e in the gradients of what e is made of."""
    for i in range(shape.hidden):
        d.classifier[0, i] += dot(p.outer[i], types.d_effect)
        add(d.outer[i], p.classifier[0, i], types.d_effect)


@inlined
def states_backward(p, d, shape, types):
    """Turns D x^ of the token types, in place, into D x."""
    norm_backward(
        types.d_normed, p.norm_a, d.norm_a, shape, types.unit, types.scale, types.row, types.other
    )
