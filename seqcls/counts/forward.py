r"""The Transformer as a function of letter counts, for all members of a group at once.

Without positions a string is only its letter counts: equal letters have equal states, in every
block. For each head a query q scores each *type* of token once, and a letter that occurs n times
weighs n exp(score), so with v the types' values

    attention = sum_k softmax_k(q . key_k / sqrt(head_size) + log n_k) v_k

costs the same for 10 letters and for 10 million. Token types are the letters and, where the logit
is read at a place of its own, `CLS`, which occurs once; `PAD` vanishes. Before the first block all
strings share their types' states; after it each has its own. `seqcls.models.transformer` is the
same function, string by string.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor
from torch.nn import functional

from seqcls.config import NetworkConfig
from seqcls.models.layers import activation_of
from seqcls.strings.tokenizer import CLS, FIRST_LETTER

Parameters = Mapping[str, Tensor]
"""Parameters by the names of the plain model, each with a leading member axis."""

States = Float[Tensor, "member #string token_type hidden"]
Attending = Float[Tensor, "member #string attending hidden"]
Heads = Float[Tensor, "member #string head token_type head_size"]


def log_counts(
    config: NetworkConfig, counts: Int64[np.ndarray, "string letter"]
) -> Float[Tensor, "string token_type"]:
    """The logarithm of how often each token type that is attended to occurs, -inf for never."""
    occurrences = torch.from_numpy(counts).double()
    if config.readout != "mean" and not config.no_attend_cls:
        occurrences = functional.pad(occurrences, (1, 0), value=1.0)
    return occurrences.log().to(getattr(torch, config.precision))


def group_logits(
    config: NetworkConfig, parameters: Parameters, log_counts: Float[Tensor, "string token_type"]
) -> Float[Tensor, "member string"]:
    """Logits of every member for every string; dropout is off.

    Args:
        config: the network, of which `counts_suffice` holds.
        log_counts: the strings, as the function of that name gives them.
    """
    states = parameters["embedding.weight"].unsqueeze(1)
    if config.readout == "mean":
        states = states[:, :, FIRST_LETTER:]
    else:
        states = torch.cat([states[:, :, CLS : CLS + 1], states[:, :, FIRST_LETTER:]], dim=2)
    tokens = _Tokens.of(config, log_counts)
    for number in range(config.num_blocks):
        block = _Block(config, parameters, f"blocks.{number}.", tokens)
        reads_place = number == config.num_blocks - 1 and config.readout != "mean"
        states = block.output(states[:, :, :1] if reads_place else states, states)
    if config.final_norm:
        states = _normalize(config, parameters, "final_norm", states)
    mean = config.readout == "mean"
    read = (tokens.shares @ states).squeeze(2) if mean else states[:, :, 0]
    logits = read @ parameters["classifier.weight"].mT
    if config.biases:
        logits = logits + parameters["classifier.bias"].unsqueeze(1)
    return logits.squeeze(-1).expand(-1, len(log_counts))


@dataclass(frozen=True)
class _Tokens:
    """The tokens that are attended to."""

    logarithms: Float[Tensor, "string 1 1 token_type"]
    """Logarithms of how often each type occurs; the least finite number where it does not."""
    occurring: Bool[Tensor, "string 1 1 token_type"]
    shares: Float[Tensor, "string 1 token_type"]
    """Each type's share among them; zeros where there are none."""
    scale: Float[Tensor, "string 1 1 1"] | float
    """What scores are multiplied by beside 1 / sqrt(head size)."""

    @classmethod
    def of(cls, config: NetworkConfig, log_counts: Float[Tensor, "string token_type"]) -> "_Tokens":
        # The least finite number instead of -inf, whose softmax has no gradient for an empty
        # string.
        finite = log_counts.clamp_min(torch.finfo(log_counts.dtype).min)
        occurring = log_counts.isfinite()
        scale: Tensor | float = 1.0
        if config.attention_scale != "sqrt":
            unattended = config.readout != "mean" and config.no_attend_cls
            read = functional.pad(finite, (1, 0), value=0.0) if unattended else finite
            scale = read.logsumexp(dim=1).clamp_min(0)[:, None, None, None]
        return cls(
            finite[:, None, None],
            occurring[:, None, None],
            (finite.softmax(dim=1) * occurring).unsqueeze(1),
            scale,
        )


class _Block:
    """One block of all members."""

    def __init__(
        self, config: NetworkConfig, parameters: Parameters, prefix: str, tokens: _Tokens
    ) -> None:
        self._config = config
        self._parameters = parameters
        self._prefix = prefix
        self._tokens = tokens

    def output(self, attending: Attending, states: States) -> Attending:
        """The states after the block of the attending types, given theirs and those of all."""
        if self._config.norm_placement == "pre":
            normed = self._norm("attention_norm", states)
            attending = attending + self._attention(self._norm("attention_norm", attending), normed)
            return attending + self._feed_forward(self._norm("feed_forward_norm", attending))
        attending = self._norm("attention_norm", attending + self._attention(attending, states))
        return self._norm("feed_forward_norm", attending + self._feed_forward(attending))

    def _attention(self, attending: Attending, states: States) -> Attending:
        config, tokens = self._config, self._tokens
        if config.readout != "mean" and config.no_attend_cls:
            states = states[:, :, 1:]
        query = self._split("attention.query", attending)
        key, value = self._split("attention.key", states), self._split("attention.value", states)
        scores = query @ key.mT * self._scale() / math.sqrt(config.attention_head_size)
        weights = (scores + tokens.logarithms).softmax(dim=-1)
        mixed = _mix(weights * tokens.occurring, value)
        return self._linear("attention.output", mixed.transpose(2, 3).flatten(3))

    def _scale(self) -> Tensor | float:
        """What scores are multiplied by beside 1 / sqrt(head size): (member, string, head, 1, 1),
        or one for all members and heads.
        """
        if self._config.attention_scale != "learned_log_length":
            return self._tokens.scale
        slope, bias = (
            self._parameters[f"{self._prefix}attention.length_{name}"][:, None, :, None, None]
            for name in ("scale", "bias")
        )
        return slope * self._tokens.scale + bias

    def _split(self, name: str, states: States) -> Heads:
        heads = (self._config.num_attention_heads, self._config.attention_head_size)
        unflattened: Tensor = self._linear(name, states).unflatten(3, heads)
        return unflattened.transpose(2, 3)

    def _feed_forward(self, states: Attending) -> Attending:
        inner = self._linear("feed_forward.input", states)
        return self._linear("feed_forward.output", activation_of(self._config)(inner))

    def _linear(
        self, name: str, states: Float[Tensor, "member string token_type input"]
    ) -> Float[Tensor, "member string token_type output"]:
        weight = self._parameters[f"{self._prefix}{name}.weight"]
        mapped: Tensor = (states.flatten(1, 2) @ weight.mT).unflatten(1, states.shape[1:3])
        if self._config.biases:
            mapped = mapped + self._parameters[f"{self._prefix}{name}.bias"][:, None, None]
        return mapped

    def _norm(self, name: str, states: States) -> States:
        return _normalize(self._config, self._parameters, self._prefix + name, states)


def _normalize(config: NetworkConfig, parameters: Parameters, name: str, states: States) -> States:
    if not config.has_norms:
        return states
    weight = parameters[f"{name}.weight"][:, None, None]
    shape, eps = (config.hidden_size,), config.layer_norm_eps
    if config.layer_norm == "rms":
        return functional.rms_norm(states, shape, eps=eps) * weight
    bias = parameters[f"{name}.bias"][:, None, None]
    return functional.layer_norm(states, shape, eps=eps) * weight + bias


def _mix(
    weights: Float[Tensor, "member string head attending token_type"], value: Heads
) -> Float[Tensor, "member string head attending head_size"]:
    """The values of each string's token types, or those that all strings share, by weight."""
    if value.shape[1] != 1:
        return weights @ value
    mixed: Tensor = weights.transpose(1, 2).flatten(2, 3) @ value.squeeze(1)
    by_string: Tensor = mixed.unflatten(2, (weights.shape[1], weights.shape[3]))
    return by_string.transpose(1, 2)
