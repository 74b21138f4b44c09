"""One attention block with positions, written out string by string, in float64 with gradients."""

import math

import torch
from torch import Tensor
from torch.nn import functional

from seqcls.config import NetworkConfig

SLOPES = {
    1: [1 / 256],
    2: [1 / 16, 1 / 256],
    3: [1 / 16, 1 / 256, 1 / 4],
    4: [1 / 4, 1 / 16, 1 / 64, 1 / 256],
}
"""ALiBi's, by the number of heads."""


def reference_logit(
    config: NetworkConfig, w: dict[str, Tensor], letters: list[int], positions: list[int]
) -> Tensor:
    """The logit of one string whose tokens, the special one included, have these positions."""
    special = 0 if config.readout == "first" else len(letters)
    ids = [letter + 2 for letter in letters]
    ids.insert(special, 0)
    states = w["embedding.weight"][ids]
    if config.positions == "sinusoidal":
        half = -(-config.hidden_size // 2)
        waves = [
            [math.sin(i / 10_000 ** (2 * k / config.hidden_size)) for k in range(half)]
            + [math.cos(i / 10_000 ** (2 * k / config.hidden_size)) for k in range(half)]
            for i in positions
        ]
        states = states + torch.tensor(waves, dtype=torch.float64)[:, : config.hidden_size]
    if config.positions == "learned":
        states = states + w["positions.table.weight"][positions]
    normed = norm(config, w, "attention_norm", states)
    mixed = []
    for head in range(config.num_attention_heads):
        c = config.attention_head_size
        rows = slice(head * c, (head + 1) * c)
        query, key, value = (
            linear(w, f"blocks.0.attention.{name}", normed)[:, rows]
            for name in ("query", "key", "value")
        )
        if config.positions == "rotary":
            query, key = turned(query, positions), turned(key, positions)
        scores = key @ query[special] / math.sqrt(c)
        if config.attention_scale == "log_length":
            scores = scores * math.log(len(ids))
        if config.attention_scale == "learned_log_length":
            factor, offset = (w[f"blocks.0.attention.length_{x}"][head] for x in ("scale", "bias"))
            scores = scores * (factor * math.log(len(ids)) + offset)
        for token, position in enumerate(positions):
            distance = position - positions[special]
            if config.positions == "alibi":
                slope = SLOPES[config.num_attention_heads][head]
                scores[token] = scores[token] - slope * abs(distance)
            if config.positions == "relative":
                row = bucket(distance, config.attention_mask == "full")
                scores[token] = scores[token] + w["positions.table.weight"][row, head]
        attended = [i for i in range(len(ids)) if i != special or not config.no_attend_cls]
        if attended:
            mixed.append(scores[attended].softmax(0) @ value[attended])
        else:
            mixed.append(torch.zeros(c, dtype=torch.float64))
    state = states[special] + linear(w, "blocks.0.attention.output", torch.cat(mixed))
    inner = linear(w, "blocks.0.feed_forward.input", norm(config, w, "feed_forward_norm", state))
    inner = inner.relu() if config.activation == "relu" else functional.gelu(inner)
    state = state + linear(w, "blocks.0.feed_forward.output", inner)
    return linear(w, "classifier", state)[0]


def linear(w: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    return functional.linear(x, w[f"{name}.weight"], w.get(f"{name}.bias"))


def norm(config: NetworkConfig, w: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    if not config.has_norms:
        return x
    weight, bias = w[f"blocks.0.{name}.weight"], w.get(f"blocks.0.{name}.bias", torch.zeros(1))
    mean = x.mean(-1, keepdim=True) if config.layer_norm == "nn" else 0
    variance = ((x - mean) ** 2).mean(-1, keepdim=True)
    return weight * (x - mean) / (variance + config.layer_norm_eps).sqrt() + bias


def turned(heads: Tensor, positions: list[int]) -> Tensor:
    """Pairs as complex numbers, multiplied by e^(i angle)."""
    pairs = heads.shape[1] // 2
    angles = torch.tensor(
        [[i / 10_000 ** (k / pairs) for k in range(pairs)] for i in positions], dtype=torch.float64
    )
    numbers = torch.view_as_complex(heads.reshape(len(positions), pairs, 2).contiguous())
    turns = torch.polar(torch.ones_like(angles), angles)
    return torch.view_as_real(numbers * turns).flatten(1)


def bucket(distance: int, both: bool) -> int:
    """T5's, one distance at a time."""
    size = 16 if both else 32
    after = size if both and distance > 0 else 0
    far = abs(distance) if both else max(-distance, 0)
    if far < size // 2:
        return after + far
    share = math.log(far / (size // 2)) / math.log(128 / (size // 2))
    return after + min(size - 1, size // 2 + int(share * (size - size // 2)))
