r"""Forward, backward and AdamW of one model as one compiled function of letter counts.

Shapes: K token types (CLS, then the n letters), H hidden, h heads of size d, J = h d, F feed-
forward, and a tile of T strings. Arrays have the string or the token type as their last axis, so
that every inner loop runs along contiguous numbers. n_ks is how often token type k occurs in string
s. A norm is x^ = weight r (x - mean) + bias with r = (mean((x - mean)^2) + eps)^(-1/2), mean = 0
for `rms`; without norms x^ = x. Once a step, for the token types:

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

A member's numbers depend on nothing but its parameters and strings: the sums over strings are made
in the order of the tiles, each within a tile as the compiler arranged it once for all.
"""

import numpy as np

from seqcls.engines.compiled.adamw import adamw
from seqcls.engines.compiled.compiling import entry
from seqcls.engines.compiled.machine_code import FUSED
from seqcls.engines.fused.backward import backward, types_backward
from seqcls.engines.fused.buffers import new_tile, new_token_types, views
from seqcls.engines.fused.forward import copy, forward, types_forward
from seqcls.engines.fused.loss import losses


@entry(FUSED)
def train_epoch(
    flat, moments, step, update, shape, exponents, counts, factors, targets, weights, ends
):
    """Trains one model for an epoch, in place; returns the sum of its losses over all strings.

    Args:
        flat: the parameters, one after another.
        moments: (2, parameter) AdamW's first and second moments.
        step: steps done before.
        update: an `Update`.
        shape: a `Shape`.
        exponents: scratch of TILE integers as wide as the parameters.
        counts: (tile, K, T).
        factors: (tile, T) what scores are multiplied with where the shape says so.
        targets: (tile, T) 1 for positive strings, else 0.
        weights: (tile, T) what each loss counts for in the gradient of its batch; 0 where there is
            no string.
        ends: the number of the first tile after each batch.
    """
    gradient = np.zeros_like(flat)
    p, d = views(flat, shape), views(gradient, shape)
    types, tile = new_token_types(flat, shape), new_tile(flat, exponents, shape)
    total = 0.0
    first = 0
    for batch in range(ends.size):
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
        adamw(flat, gradient, moments, step + batch + 1, update)
        first = ends[batch]
    return total


@entry(FUSED)
def evaluate(flat, shape, exponents, counts, factors, targets, weights, logits):
    """Writes the logits of strings to `logits` (tile, T); returns the sum of their losses.

    The other arguments are those of `train_epoch`.
    """
    p = views(flat, shape)
    types, tile = new_token_types(flat, shape), new_tile(flat, exponents, shape)
    types_forward(p, shape, types)
    total = 0.0
    for number in range(counts.shape[0]):
        forward(counts[number], factors[number], p, shape, types, tile)
        copy(logits[number], tile.logit)
        total += losses(targets[number], weights[number], shape, tile)
    return total
