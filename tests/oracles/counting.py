"""A Transformer of letter counts of any depth, written out in NumPy in float64.

States are of the *types* of tokens, (string, type, hidden): the one beside the letters, where there
is one, then each letter. A type that occurs n times weighs n exp(score).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import erf

from seqcls.config import NetworkConfig
from seqcls.interpretability.trained_model import TrainedModel

Weights = Mapping[str, np.ndarray]
Changes = Mapping[str, Callable[[np.ndarray], np.ndarray]]
"""Replacements of states by their names; those of heads are (string, head, type, …)."""


def true_logits(
    model: TrainedModel, counts: np.ndarray, changes: Changes | None = None
) -> np.ndarray:
    """The logits of a model for strings of any length, given as letter counts."""
    return logits_of_counts(model.problem.network, model.weights, counts, changes)


def logits_of_counts(
    config: NetworkConfig, weights: Weights, counts: np.ndarray, changes: Changes | None = None
) -> np.ndarray:
    """The logits of strings given as letter counts, (string, letter)."""
    w = {name: np.asarray(value, dtype=float) for name, value in weights.items()}
    mean = config.readout == "mean"
    times = counts.astype(float) if mean else np.insert(counts.astype(float), 0, 1, axis=1)
    own = _ByCounts(config, w, times, changes or {})
    # Of the embedding's rows the first is CLS, or the end, the second padding.
    types = np.r_[[] if mean else [0], 2 : 2 + config.num_letters].astype(int)
    states = own.named("embedding", np.repeat(w["embedding.weight"][types][None], len(counts), 0))
    for block in range(config.num_blocks):
        for part, inner in (("attention", own.mixed), ("feed_forward", own.active)):
            name = f"blocks.{block}.{part}"
            is_pre = config.norm_placement == "pre"
            added = inner(name, own.normal(f"{name}_norm", states) if is_pre else states)
            states = states + own.named(f"{name}.output", own.linear(f"{name}.output", added))
            states = states if is_pre else own.normal(f"{name}_norm", states)
    if config.final_norm:
        states = own.normal("final_norm", states)
    shares = times / np.maximum(times.sum(axis=1, keepdims=True), 1e-300)
    read = (shares[:, :, None] * states).sum(axis=1) if mean else states[:, 0]
    return own.linear("classifier", read)[:, 0]


@dataclass
class _ByCounts:
    """The parts of a network, for strings in which types occur so many times."""

    config: NetworkConfig
    w: Weights
    times: np.ndarray
    changes: Changes

    def named(self, name: str, state: np.ndarray) -> np.ndarray:
        return self.changes[name](state) if name in self.changes else state

    def linear(self, name: str, x: np.ndarray) -> np.ndarray:
        return np.asarray(x @ self.w[f"{name}.weight"].T + self.w.get(f"{name}.bias", 0.0))

    def normal(self, name: str, x: np.ndarray) -> np.ndarray:
        if not self.config.has_norms:
            return x
        centered = x - (x.mean(axis=-1, keepdims=True) if self.config.layer_norm == "nn" else 0)
        scale = np.sqrt((centered**2).mean(axis=-1, keepdims=True) + self.config.layer_norm_eps)
        weight, bias = self.w[f"{name}.weight"], self.w.get(f"{name}.bias", 0.0)
        return np.asarray(weight * centered / scale + bias)

    def mixed(self, name: str, x: np.ndarray) -> np.ndarray:
        """Values mixed by attention, those of all heads side by side."""
        config, heads = self.config, self.config.num_attention_heads
        query, key, value = (
            self.linear(f"{name}.{part}", x)
            .reshape(*x.shape[:2], heads, config.attention_head_size)
            .swapaxes(1, 2)
            for part in ("query", "key", "value")
        )
        factor = np.log(np.maximum(self.times.sum(axis=1), 1))[:, None, None, None]
        if config.attention_scale == "sqrt":
            factor = np.ones_like(factor)
        if config.attention_scale == "learned_log_length":
            scale, bias = (self.w[f"{name}.length_{y}"][:, None, None] for y in ("scale", "bias"))
            factor = scale * factor + bias
        scores = query @ key.swapaxes(2, 3) * factor / config.attention_head_size**0.5
        scores = self.named(f"{name}.scores", scores)
        times = self.times[:, None, None].copy()
        if config.no_attend_cls and config.readout != "mean":
            times[..., 0] = 0
        highest = np.where(times > 0, scores, -np.inf).max(axis=3, keepdims=True)
        scores = scores - np.where(np.isfinite(highest), highest, 0)
        weights = times * np.exp(np.minimum(scores, 0))
        sums = weights.sum(axis=3, keepdims=True)
        weights = self.named(f"{name}.weights", weights / np.where(sums > 0, sums, 1))
        mixed = self.named(f"{name}.mixed_value", weights @ value).swapaxes(1, 2)
        return mixed.reshape(*x.shape[:2], heads * config.attention_head_size)

    def active(self, name: str, x: np.ndarray) -> np.ndarray:
        """Activations of a feed-forward layer."""
        inner = self.linear(f"{name}.input", x)
        if self.config.activation == "relu":
            active = np.maximum(inner, 0)
        elif self.config.activation == "gelu":
            active = inner * (1 + erf(inner / 2**0.5)) / 2
        else:
            active = inner * (1 + np.tanh((2 / np.pi) ** 0.5 * (inner + 0.044715 * inner**3))) / 2
        return self.named(f"{name}.activation", active)
