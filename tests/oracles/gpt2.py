"""GPT-2's blocks by the published equations (Radford et al. 2019)."""

import math

import torch
from torch import Tensor
from torch.nn.functional import softmax

HEADS, HEAD_SIZE = 2, 4
SCALE = 1 / math.sqrt(HEAD_SIZE)


def gpt2_states(weights: dict[str, Tensor], ids: list[int], scale: float = SCALE) -> Tensor:
    """The states of one string after the last norm."""

    def linear(x: Tensor, name: str) -> Tensor:
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(x: Tensor, name: str) -> Tensor:
        mean = x.mean(dim=1, keepdim=True)
        variance = ((x - mean) ** 2).mean(dim=1, keepdim=True)
        normal = (x - mean) / (variance + 1e-5).sqrt()
        return normal * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def gelu(x: Tensor) -> Tensor:
        return x / 2 * (1 + (math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)).tanh())

    x = weights["embedding.weight"][ids] + weights["positions.table.weight"][: len(ids)]
    later = torch.ones(len(ids), len(ids)).triu(1).bool()
    block = 0
    while (inside := f"blocks.{block}") + ".attention_norm.weight" in weights:
        block += 1
        read = norm(x, f"{inside}.attention_norm")
        q, k, v = (linear(read, f"{inside}.attention.{y}") for y in ("query", "key", "value"))
        heads = []
        for head in range(HEADS):
            own = slice(head * HEAD_SIZE, (head + 1) * HEAD_SIZE)
            scores = q[:, own] @ k[:, own].T * scale
            heads.append(softmax(scores.masked_fill(later, -torch.inf), dim=1) @ v[:, own])
        x = x + linear(torch.cat(heads, dim=1), f"{inside}.attention.output")
        inner = linear(norm(x, f"{inside}.feed_forward_norm"), f"{inside}.feed_forward.input")
        x = x + linear(gelu(inner), f"{inside}.feed_forward.output")
    return norm(x, "final_norm")
