"""A Transformer of letter counts of any depth, written out in NumPy in float64.

States are of the *types* of tokens, (string, type, hidden): the one beside the letters, where there
is one, then each letter. A type that occurs n times weighs n exp(score).
"""

from collections.abc import Mapping

import numpy as np
from scipy.special import erf

from seqcls.config import NetworkConfig

Weights = Mapping[str, np.ndarray]


def logits_of_counts(config: NetworkConfig, weights: Weights, counts: np.ndarray) -> np.ndarray:
    """The logits of strings given as letter counts, (string, letter)."""
    w = {name: np.asarray(value, dtype=float) for name, value in weights.items()}
    mean = config.readout == "mean"
    times = counts.astype(float) if mean else np.insert(counts.astype(float), 0, 1, axis=1)
    # Of the embedding's rows the first is CLS, or the end, the second padding.
    states = w["embedding.weight"][
        np.r_[[] if mean else [0], 2 : 2 + config.num_letters].astype(int)
    ]
    states = np.repeat(states[None], len(counts), axis=0)
    total = times.sum(axis=1)
    attended = times.copy()
    if config.no_attend_cls and not mean:
        attended[:, 0] = 0
    for block in range(config.num_blocks):
        inside = f"blocks.{block}."
        for part, change in (("attention", _attention), ("feed_forward", _feed_forward)):
            name = f"{inside}{part}"
            if config.norm_placement == "pre":
                normed = _norm(config, w, f"{name}_norm", states)
                states = states + change(config, w, name, normed, attended, total)
            else:
                states = states + change(config, w, name, states, attended, total)
                states = _norm(config, w, f"{name}_norm", states)
    if config.final_norm:
        states = _norm(config, w, "final_norm", states)
    if mean:
        shares = times / np.maximum(total, 1e-300)[:, None]
        return _linear(w, "classifier", (shares[:, :, None] * states).sum(axis=1))[:, 0]
    return _linear(w, "classifier", states[:, 0])[:, 0]


def _attention(
    config: NetworkConfig,
    w: Weights,
    name: str,
    x: np.ndarray,
    times: np.ndarray,
    total: np.ndarray,
) -> np.ndarray:
    size, mixed = config.attention_head_size, []
    query, key, value = (_linear(w, f"{name}.{part}", x) for part in ("query", "key", "value"))
    logs = np.log(np.maximum(total, 1))[:, None, None]
    for head in range(config.num_attention_heads):
        own = slice(head * size, (head + 1) * size)
        factor = np.ones_like(logs) if config.attention_scale == "sqrt" else logs
        if config.attention_scale == "learned_log_length":
            factor = w[f"{name}.length_scale"][head] * logs + w[f"{name}.length_bias"][head]
        scores = query[..., own] @ key[..., own].swapaxes(1, 2) * factor / size**0.5
        there = np.where(times[:, None] > 0, scores, -np.inf).max(axis=2, keepdims=True)
        scores = scores - np.where(np.isfinite(there), there, 0)
        weights = times[:, None] * np.exp(np.minimum(scores, 0))
        sums = weights.sum(axis=2, keepdims=True)
        mixed.append(weights / np.where(sums > 0, sums, 1) @ value[..., own])
    joined = np.concatenate(mixed, axis=2) if mixed else x[..., :0]
    return _linear(w, f"{name}.output", joined)


def _feed_forward(
    config: NetworkConfig, w: Weights, name: str, x: np.ndarray, *_: np.ndarray
) -> np.ndarray:
    inner = _linear(w, f"{name}.input", x)
    if config.activation == "relu":
        active = np.maximum(inner, 0)
    elif config.activation == "gelu":
        active = inner * (1 + erf(inner / 2**0.5)) / 2
    else:
        active = inner * (1 + np.tanh((2 / np.pi) ** 0.5 * (inner + 0.044715 * inner**3))) / 2
    return _linear(w, f"{name}.output", active)


def _linear(w: Weights, name: str, x: np.ndarray) -> np.ndarray:
    return np.asarray(x @ w[f"{name}.weight"].T + w.get(f"{name}.bias", 0.0))


def _norm(config: NetworkConfig, w: Weights, name: str, x: np.ndarray) -> np.ndarray:
    if not config.has_norms:
        return x
    centered = x - (x.mean(axis=-1, keepdims=True) if config.layer_norm == "nn" else 0)
    scale = np.sqrt((centered**2).mean(axis=-1, keepdims=True) + config.layer_norm_eps)
    return np.asarray(w[f"{name}.weight"] * centered / scale + w.get(f"{name}.bias", 0.0))
