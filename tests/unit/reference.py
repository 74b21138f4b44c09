"""The network written out with loops over numbers, in float64: slow, and plain to check."""

import math

import numpy as np

from seqcls.config import NetworkConfig

Weights = dict[str, np.ndarray]


def reference_logit(config: NetworkConfig, weights: Weights, ids: list[int]) -> float:
    """The logit of one string, given as `CLS` and its letters without padding."""
    states = [weights["embedding.weight"][token] for token in ids]
    normed = [_norm(config, weights, "attention_norm", x) for x in states]
    w = {name.removeprefix("blocks.0."): value for name, value in weights.items()}
    attended = [p for p in range(len(ids)) if not (p == 0 and config.no_attend_cls)]
    d = config.attention_head_size
    values = []
    for head in range(config.num_attention_heads):
        rows = slice(head * d, (head + 1) * d)
        query = w["attention.query.weight"][rows] @ normed[0]
        scores = [
            float(query @ (w["attention.key.weight"][rows] @ normed[p])) / math.sqrt(d)
            for p in attended
        ]
        total = sum(math.exp(s - max(scores)) for s in scores)
        value = np.zeros(d)
        for p, score in zip(attended, scores, strict=True):
            weight = math.exp(score - max(scores)) / total
            value += weight * (w["attention.value.weight"][rows] @ normed[p])
        values.append(value)
    mixed = np.concatenate(values) if values else np.zeros(0)
    state = states[0] + w["attention.output.weight"] @ mixed
    inner = w["feed_forward.input.weight"] @ _norm(config, weights, "feed_forward_norm", state)
    gelu = np.array([x * 0.5 * (1 + math.erf(x / math.sqrt(2))) for x in inner])
    state = state + w["feed_forward.output.weight"] @ gelu
    return float(weights["classifier.weight"][0] @ state)


def _norm(config: NetworkConfig, weights: Weights, name: str, x: np.ndarray) -> np.ndarray:
    if config.layer_norm_eps == 0:
        return x
    weight = weights[f"blocks.0.{name}.weight"]
    if config.layer_norm == "rms":
        return np.asarray(weight * x / np.sqrt((x**2).mean() + config.layer_norm_eps))
    bias = weights[f"blocks.0.{name}.bias"]
    return np.asarray(weight * (x - x.mean()) / np.sqrt(x.var() + config.layer_norm_eps) + bias)
