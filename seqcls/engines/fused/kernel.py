# Compiled by Numba, which infers the types of arguments: what has none here is compiled.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Forward, backward and AdamW of one model as one compiled function of letter counts.

Shapes: K token types (CLS, then the n letters), H hidden, h heads of size d, J = h d, F feed-
forward, and a tile of T strings. The last axis of arrays is the string or the token type, so that
every inner loop runs along contiguous numbers. n_ks is the count of token type k in string s. A
norm is x^ = weight r (x - mean) + bias with r = (mean((x - mean)^2) + eps)^(-1/2), mean = 0 for
`rms`; without norms x^ = x. Once a step, for the token types:

    x = embedding (H, K)        x^ = norm(x)            q = Wq x^_CLS (J)
    key = Wk x^ (J, K)          v = Wv x^ (J, K)        score_hk = q_h . key_hk / sqrt(d)

For every string (the index s is left out), with w the classifier and e_f = sum_i w_i W2_if:

    a_hk = n_k exp(score_hk) / sum_k' n_k' exp(score_hk')      u_j = sum_k a_hk v_jk  (j in head h)
    y = x_CLS + Wo u (H)        z = W1 norm(y) (F)
    logit = w . y + e . (z Phi(z))

since the logit reads W2 only through e. The loss is the mean over the batch of the binary cross
entropy. Backward, D x for d loss / d x, summed over strings where x has none:

    D e = sum D logit z Phi(z)           D z = D logit e (Phi(z) + z phi(z))
    D w = sum D logit y + W2 D e         D W2 = w (x) D e
    D W1 = sum D z (x) y^                D y = D logit w + norm'(W1^T D z)
    D Wo = sum D y (x) u                 D u = Wo^T D y
    D v_jk = sum a_hk D u_j              D score_hk = sum a_hk (D u_h . v_hk - D u_h . u_h)
    D q_h = sum_k D score_hk key_hk / sqrt(d)          D key_hk = D score_hk q_h / sqrt(d)
    D Wq = D q (x) x^_CLS    D Wk = D key x^^T    D Wv = D v x^^T
    D x^ = Wk^T D key + Wv^T D v, and Wq^T D q at CLS;   D x = norm'(D x^), and sum D y at CLS

A member's numbers depend only on its parameters and strings: sums over strings are added up in the
order of the tiles, and within a tile in an order that the compiler has fixed.
"""

import math

import numpy as np

from seqcls.engines.compiled.arithmetic import adamw, cross_entropy_row, exp_row
from seqcls.engines.compiled.compiling import entry, inlined
from seqcls.engines.compiled.machine_code import FUSED
from seqcls.engines.fused.forward import (
    TILE,
    add,
    copy,
    dot,
    forward,
    new_tile,
    new_token_types,
    types_forward,
    views,
)

# The loss of a tile of strings and its slope.


@inlined
def sigmoids(x, out, tile):
    """Writes 1 / (1 + exp(-x)) to `out`, and exp(-|x|) to `tile.slope`."""
    number = x.dtype.type
    zero, one = number(0), number(1)
    for s in range(TILE):
        tile.slope[s] = -abs(x[s])
    exp_row(tile.slope, tile.powers)
    for s in range(TILE):
        small = tile.slope[s]
        out[s] = (small if x[s] < zero else one) / (one + small)


@inlined
def scale_logits(tile):
    """Applies z <- -z / (1 + sigmoid(z)) twice; writes the derivative to `tile.other`."""
    number = tile.logit.dtype.type
    one = number(1)
    tile.other[:] = one
    for _ in range(2):
        sigmoids(tile.logit, tile.row, tile)
        for s in range(TILE):
            z, p = tile.logit[s], tile.row[s]
            divisor = one / (one + p)
            tile.logit[s] = -z * divisor
            tile.other[s] *= -divisor * (one - z * p * (one - p) * divisor)


@inlined
def losses(targets, weights, shape, tile):
    """Returns the sum of the tile's losses in nats; writes D logit to `tile.slope`.

    Targets are 1 for positive strings, else 0; weights (T) are those of the losses in the gradient,
    0 for padding.
    """
    number = tile.logit.dtype.type
    zero = number(0)
    if shape.scaled_loss:
        scale_logits(tile)
    sigmoids(tile.logit, tile.row, tile)
    cross_entropy_row(tile.logit, tile.slope, targets, tile.loss)
    total = 0.0
    for s in range(TILE):
        if weights[s] > zero:
            # In double precision: an epoch's sum is large compared with a string's loss.
            total += np.float64(tile.loss[s])
    for s in range(TILE):
        tile.slope[s] = (tile.row[s] - targets[s]) * weights[s]
    if shape.scaled_loss:
        for s in range(TILE):
            tile.slope[s] *= tile.other[s]
    return total


@inlined
def norm_backward(d, parameters, d_parameters, shape, unit, scale, parallel, mean):
    """Replaces the gradient d (H, N) of the normalized columns by that of the columns."""
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
    """Adds a tile's share of all gradients to `d` and to the sums in `types`."""
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
    for head in range(shape.heads):
        attention_backward(head, factor, shape, types, tile)


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
    """Adds the gradients that follow from the sums over strings."""
    # D e is a part of the gradients of the classifier and of the outer layer.
    for i in range(shape.hidden):
        d.classifier[0, i] += dot(p.outer[i], types.d_effect)
        add(d.outer[i], p.classifier[0, i], types.d_effect)
    project_backward(p, d, shape, types)
    norm_backward(
        types.d_normed, p.norm_a, d.norm_a, shape, types.unit, types.scale, types.row, types.other
    )
    for i in range(shape.hidden):
        for k in range(shape.token_types):
            d.embedding[k, i] += types.d_normed[i, k]
        d.embedding[0, i] += types.d_read[i]


@inlined
def project_backward(p, d, shape, types):
    """Computes D x^ and the gradients of the projections from D score and D v of token types."""
    number = p.embedding.dtype.type
    per_root = number(1 / math.sqrt(shape.head_size))
    types.d_normed[:] = number(0)
    for j in range(types.query.size):
        d_score = types.d_score[j // shape.head_size]
        d_query = dot(d_score, types.key[j]) * per_root
        factor = types.query[j] * per_root
        for i in range(shape.hidden):
            normed = types.normed[i]
            d.query[j, i] += d_query * normed[0]
            d.key[j, i] += factor * dot(d_score, normed)
            d.value[j, i] += dot(types.d_value[j], normed)
            types.d_normed[i, 0] += p.query[j, i] * d_query
            add(types.d_normed[i], p.key[j, i] * factor, d_score)
            add(types.d_normed[i], p.value[j, i], types.d_value[j])
        if shape.biases:
            d.query_bias[j] += d_query
            d.key_bias[j] += factor * d_score.sum()
            d.value_bias[j] += types.d_value[j].sum()


@entry(FUSED)
def train_epoch(flat, moments, step, update, shape, counts, factors, targets, weights, ends):
    """Trains one model for an epoch, in place; returns the sum of its losses over all strings.

    Args:
        flat: the parameters.
        moments: (2, parameter) AdamW's first and second moments.
        step: the number of steps made before.
        update: an `Update`.
        shape: a `Shape`.
        counts: (tile, K, T).
        factors: (tile, T) the factors of scores where `log_length` is set.
        targets: (tile, T) 1 for positive strings, else 0.
        weights: (tile, T) weights of the losses in the gradient of their batch; 0 for padding.
        ends: the end of each batch's tiles, exclusive.
    """
    gradient = np.zeros_like(flat)
    p, d = views(flat, shape), views(gradient, shape)
    types, tile = new_token_types(flat, shape), new_tile(flat, shape)
    total, first = 0.0, 0
    for batch in range(ends.size):
        # Sums over the strings of one batch; `adamw` clears the parameters' gradient itself.
        types.d_score[:] = 0
        types.d_value[:] = 0
        types.d_effect[:] = 0
        types.d_read[:] = 0
        types_forward(p, shape, types)
        for number in range(first, ends[batch]):
            forward(counts[number], factors[number], p, shape, types, tile)
            total += losses(targets[number], weights[number], shape, tile)
            backward(factors[number], p, d, shape, types, tile)
        types_backward(p, d, shape, types)
        # AdamW counts its steps from 1: its correction would divide by 0 at step 0.
        adamw(flat, gradient, moments, step + batch + 1, update.rates[batch], update)
        first = ends[batch]
    return total


@entry(FUSED)
def evaluate(flat, shape, counts, factors, targets, weights, logits):
    """Writes the logits of strings to `logits` (tile, T); returns the sum of their losses.

    The other arguments are those of `train_epoch`.
    """
    p = views(flat, shape)
    types, tile = new_token_types(flat, shape), new_tile(flat, shape)
    types_forward(p, shape, types)
    total = 0.0
    for number in range(counts.shape[0]):
        forward(counts[number], factors[number], p, shape, types, tile)
        copy(logits[number], tile.logit)
        total += losses(targets[number], weights[number], shape, tile)
    return total
