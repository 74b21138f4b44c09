"""The layers of models; `seqcls.models.initialization` draws their values."""

from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Bool, Float, Integer
from torch import Tensor, nn
from torch.nn import functional

from seqcls.config import NetworkConfig


class Dropout(nn.Module):
    """Dropout that draws from a given generator, never from the global one."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.generator: torch.Generator | None = None

    def forward(self, states: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return states
        mask = torch.empty_like(states).bernoulli_(1 - self.rate, generator=self.generator)
        # Scaled up in training, so that nothing is scaled down without dropout.
        return states * mask.div_(1 - self.rate)


class Linear(nn.Module):
    """A linear layer whose values `seqcls.models.initialization` draws.

    Not `nn.Linear`, which draws values from the global generator; PyTorch's way around that takes
    seconds to load.
    """

    def __init__(self, inputs: int, outputs: int, *, bias: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.bias = nn.Parameter(torch.empty(outputs)) if bias else None

    def forward(self, states: Float[Tensor, "*batch input"]) -> Float[Tensor, "*batch output"]:
        return functional.linear(states, self.weight, self.bias)


class Embedding(nn.Module):
    """A vector for every token id, times `scale`; `seqcls.models.initialization` draws them."""

    def __init__(self, tokens: int, hidden: int, scale: float = 1.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(tokens, hidden))
        self.scale = scale

    def forward(self, ids: Integer[Tensor, "*batch"]) -> Float[Tensor, "*batch hidden"]:
        embedded = functional.embedding(ids, self.weight)
        return embedded if self.scale == 1 else embedded * self.scale


def activation_of(config: NetworkConfig) -> Callable[[Tensor], Tensor]:
    """The function between the two halves of a feed-forward, number by number."""
    known: dict[str, Callable[[Tensor], Tensor]] = {
        "gelu": functional.gelu,
        "gelu_tanh": partial(functional.gelu, approximate="tanh"),
        "relu": functional.relu,
    }
    return known[config.activation]


def make_norm(config: NetworkConfig) -> nn.Module:
    """A norm over the hidden numbers: `weight * x / sqrt(mean(x^2) + eps)` for `rms`."""
    if not config.has_norms:
        return nn.Identity()
    kind: type[nn.RMSNorm | nn.LayerNorm]
    kind = nn.RMSNorm if config.layer_norm == "rms" else nn.LayerNorm
    return kind(config.hidden_size, eps=config.layer_norm_eps)


def masked_softmax(
    scores: Float[Tensor, "*batch position"], attendable: Bool[Tensor, "*#batch position"]
) -> Float[Tensor, "*batch position"]:
    """Softmax over the last axis where attendable; zeros where nothing is."""
    # The least finite number instead of -inf, whose softmax has no gradient where all are masked.
    masked = scores.masked_fill(~attendable, torch.finfo(scores.dtype).min)
    return masked.softmax(dim=-1) * attendable


def masked_mean(
    states: Float[Tensor, "string position hidden"],
    read: Bool[Tensor, "string position"] | Float[Tensor, "string position"],
) -> Float[Tensor, "string hidden"]:
    """The mean over the positions read, weighted by how often they are; zeros if there is none."""
    weights = read.unsqueeze(2).to(states.dtype)
    # Without any token this makes 0 / tiny = 0 of what would be NaN.
    total = weights.sum(dim=1).clamp_min(torch.finfo(states.dtype).tiny)
    return (states * weights).sum(dim=1) / total
