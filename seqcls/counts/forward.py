r"""The Transformer as a function of letter counts, for all members of a group at once.

Without positions a string is only its letter counts: equal letters have equal states. For each
head the `CLS` query q scores each *kind* of token once, and a letter that occurs n times weighs
n exp(score), so with v the kinds' values

    attention = sum_k softmax_k(q . key_k / sqrt(head_size) + log n_k) v_k

costs the same for 10 letters and for 10 million. Kinds are the letters and, where it is attended
to, `CLS`, which occurs once; `PAD` vanishes. `seqcls.models.transformer` is the same function,
string by string.
"""

import math
from collections.abc import Mapping

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional

from seqcls.config import NetworkConfig
from seqcls.tokenizer import CLS, FIRST_LETTER

Parameters = Mapping[str, Tensor]
"""Parameters by the names of the plain model, each with a leading member axis."""


def log_counts(
    config: NetworkConfig, counts: Int64[np.ndarray, "string letter"]
) -> Float[Tensor, "string kind"]:
    """The logarithm of how often each kind of token occurs, -inf where it does not."""
    occurrences = torch.from_numpy(counts).double()
    if not config.no_attend_cls:
        occurrences = functional.pad(occurrences, (1, 0), value=1.0)
    return occurrences.log().to(getattr(torch, config.precision))


def group_logits(
    config: NetworkConfig, parameters: Parameters, log_counts: Float[Tensor, "string kind"]
) -> Float[Tensor, "member string"]:
    """Logits of every member for every string; dropout is off."""
    embedding = parameters["embedding.weight"]
    cls = embedding[:, CLS : CLS + 1]
    letters = embedding[:, FIRST_LETTER:]
    kinds = letters if config.no_attend_cls else torch.cat([cls, letters], dim=1)

    attention = _attention(config, parameters, cls, kinds, log_counts)
    states = cls + attention
    normalized = _norm(config, parameters, "feed_forward_norm", states)
    inner = functional.gelu(_linear(parameters, "feed_forward.input", normalized))
    states = states + _linear(parameters, "feed_forward.output", inner)
    logits: Tensor = (states @ parameters["classifier.weight"].mT).squeeze(-1)
    return logits


def _attention(
    config: NetworkConfig,
    parameters: Parameters,
    cls: Float[Tensor, "member 1 hidden"],
    kinds: Float[Tensor, "member kind hidden"],
    log_counts: Float[Tensor, "string kind"],
) -> Float[Tensor, "member string hidden"]:
    heads = (config.num_attention_heads, config.attention_head_size)
    kinds = _norm(config, parameters, "attention_norm", kinds)
    cls = _norm(config, parameters, "attention_norm", cls)

    def split(states: Tensor) -> Float[Tensor, "member head position head_size"]:
        unflattened: Tensor = states.unflatten(2, heads)
        return unflattened.transpose(1, 2)

    query = split(_linear(parameters, "attention.query", cls))
    key = split(_linear(parameters, "attention.key", kinds))
    value = split(_linear(parameters, "attention.value", kinds))
    scores = query @ key.mT / math.sqrt(config.attention_head_size)
    # The least finite number instead of -inf, whose softmax has no gradient for an empty string.
    weights = (scores + log_counts.clamp_min(torch.finfo(scores.dtype).min)).softmax(dim=-1)
    mixed = (weights * log_counts.isfinite()) @ value
    return _linear(parameters, "attention.output", mixed.transpose(1, 2).flatten(2))


def _linear(
    parameters: Parameters, name: str, states: Float[Tensor, "member string input"]
) -> Float[Tensor, "member string output"]:
    return states @ parameters[f"blocks.0.{name}.weight"].mT


def _norm(
    config: NetworkConfig,
    parameters: Parameters,
    name: str,
    states: Float[Tensor, "member string hidden"],
) -> Float[Tensor, "member string hidden"]:
    if not config.has_norms:
        return states
    weight = parameters[f"blocks.0.{name}.weight"].unsqueeze(1)
    shape = (config.hidden_size,)
    if config.layer_norm == "rms":
        return functional.rms_norm(states, shape, eps=config.layer_norm_eps) * weight
    bias = parameters[f"blocks.0.{name}.bias"].unsqueeze(1)
    return functional.layer_norm(states, shape, eps=config.layer_norm_eps) * weight + bias
