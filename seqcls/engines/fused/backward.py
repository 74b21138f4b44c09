"""Gradients; the formulas stand in `seqcls.engines.fused.kernel`."""

import math

from seqcls.engines.fused.compiling import inlined
from seqcls.engines.fused.forward import add, dot
from seqcls.engines.fused.rooms import TILE


@inlined
def norm_backward(d, parameters, d_parameters, shape, unit, scale, along, mean):
    """Turns the gradient d (H, N) of the normalized columns into that of the columns."""
    number = d.dtype.type
    if shape.norm == 0:
        return
    share = number(1) / number(shape.hidden)
    along[:] = number(0)
    mean[:] = number(0)
    for i in range(shape.hidden):
        d_parameters[0, i] += dot(d[i], unit[i])
        if shape.norm == 2:
            d_parameters[1, i] += d[i].sum()
        weight = parameters[0, i]
        for s in range(scale.size):
            d[i, s] *= weight
            along[s] += share * d[i, s] * unit[i, s]
        if shape.norm == 2:
            add(mean, share, d[i])
    for i in range(shape.hidden):
        for s in range(scale.size):
            d[i, s] = scale[s] * (d[i, s] - unit[i, s] * along[s] - mean[s])


@inlined
def backward(factor, p, d, shape, kinds, tile):
    """Adds a tile's share of all gradients to `d` and to the sums in `kinds`."""
    read_backward(p, d, shape, kinds, tile)
    for head in range(shape.heads):
        attention_backward(head, factor, shape, kinds, tile)


@inlined
def read_backward(p, d, shape, kinds, tile):
    """From the slope of the logits to the gradients of the mixed values."""
    number = tile.logit.dtype.type
    tile.d_state[:] = number(0)
    for f in range(shape.feed_forward):
        z, below, density = tile.inner[f], tile.below[f], tile.density[f]
        effect = kinds.effect[f]
        for s in range(TILE):
            kinds.d_effect[f] += tile.slope[s] * z[s] * below[s]
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
        kinds.d_read[i] += d_read
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
def attention_backward(head, factor, shape, kinds, tile):
    """Adds a tile's share of one head's D v and D score."""
    number = tile.logit.dtype.type
    common = tile.other
    common[:] = number(0)
    members = range(head * shape.head_size, (head + 1) * shape.head_size)
    for j in members:
        for s in range(TILE):
            common[s] += tile.d_mixed[j, s] * tile.mixed[j, s]
    for k in range(shape.first_kind, shape.kinds):
        weights = tile.attention[head, k]
        tile.row[:] = number(0)
        for j in members:
            kinds.d_value[j, k] += dot(weights, tile.d_mixed[j])
            add(tile.row, kinds.value[j, k], tile.d_mixed[j])
        if shape.log_length:
            for s in range(TILE):
                kinds.d_score[head, k] += factor[s] * weights[s] * (tile.row[s] - common[s])
        else:
            for s in range(TILE):
                kinds.d_score[head, k] += weights[s] * (tile.row[s] - common[s])


@inlined
def kinds_backward(p, d, shape, kinds):
    """Turns the sums over strings into the gradients of the parameters."""
    effect_backward(p, d, shape, kinds)
    project_backward(p, d, shape, kinds)
    states_backward(p, d, shape, kinds)
    embedding_backward(d, shape, kinds)


@inlined
def embedding_backward(d, shape, kinds):
    """Adds D x of the kinds, and of the one that is read, to the gradient of the embedding."""
    for i in range(shape.hidden):
        for k in range(shape.kinds):
            d.embedding[k, i] += kinds.d_normed[i, k]
        d.embedding[kinds.reader, i] += kinds.d_read[i]


@inlined
def project_backward(p, d, shape, kinds):
    """From D score and D v of the kinds to D x^ and the gradients of what projects them."""
    number = p.embedding.dtype.type
    per_root = number(1 / math.sqrt(shape.head_size))
    kinds.d_normed[:] = number(0)
    for j in range(kinds.query.size):
        d_score = kinds.d_score[j // shape.head_size]
        d_query = dot(d_score, kinds.key[j]) * per_root
        factor = kinds.query[j] * per_root
        for i in range(shape.hidden):
            normed = kinds.normed[i]
            d.query[j, i] += d_query * normed[kinds.reader]
            d.key[j, i] += factor * dot(d_score, normed)
            d.value[j, i] += dot(kinds.d_value[j], normed)
            kinds.d_normed[i, kinds.reader] += p.query[j, i] * d_query
            add(kinds.d_normed[i], p.key[j, i] * factor, d_score)
            add(kinds.d_normed[i], p.value[j, i], kinds.d_value[j])
        if shape.biases:
            d.query_bias[j] += d_query
            d.key_bias[j] += factor * d_score.sum()
            d.value_bias[j] += kinds.d_value[j].sum()


@inlined
def effect_backward(p, d, shape, kinds):
    """The share of D e in the gradients of what e is made of."""
    for i in range(shape.hidden):
        d.classifier[0, i] += dot(p.outer[i], kinds.d_effect)
        add(d.outer[i], p.classifier[0, i], kinds.d_effect)


@inlined
def states_backward(p, d, shape, kinds):
    """Turns D x^ of the kinds, in place, into D x."""
    norm_backward(
        kinds.d_normed, p.norm_a, d.norm_a, shape, kinds.unit, kinds.scale, kinds.row, kinds.other
    )
