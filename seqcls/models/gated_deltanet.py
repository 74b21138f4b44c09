"""Gated DeltaNet: DeltaNet's memory, with a decay that depends on the token."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from seqcls.config import NetworkConfig
from seqcls.models.deltanet import DeltaNetMixer
from seqcls.models.layers import Linear
from seqcls.models.mamba import inverse_softplus_of_steps

FASTEST = 16.0
"""The upper end of the uniform distribution, from 0, of initial decay rates."""


class GatedDeltaNetMixer(DeltaNetMixer):
    """S_t = a_t S_{t-1} (I - b_t k_t k_t^T) + b_t v_t k_t^T, a_t = exp(-A softplus(w x_t + c)).

    The output is the RMS norm of each head's S_t q_t times SiLU(g x_t) (Yang, Kautz & Hatamizadeh
    2024). Each head has a rate A > 0 and an offset c, drawn as in their code. Values are as wide as
    keys, where their code has them twice as wide.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        heads, size = self.heads
        self.fading = Linear(config.hidden_size, heads)
        self.log_rate = nn.Parameter(torch.empty(heads))
        self.offset = nn.Parameter(torch.empty(heads))
        self.gate = Linear(config.hidden_size, heads * size)

    def draws(self) -> Iterator[tuple[Callable[..., Any], Tensor]]:
        yield _log_of_rates, self.log_rate
        yield inverse_softplus_of_steps, self.offset

    def log_decay(self, states: Tensor) -> Tensor:
        """The logarithm of each head's decay, (..., head)."""
        return -self.log_rate.exp() * functional.softplus(self.fading(states) + self.offset)

    def apply_gate(self, normed: Tensor, states: Tensor) -> Tensor:
        return normed * functional.silu(self.by_head(self.gate(states)))


def _log_of_rates(log_rate: Tensor, generator: torch.Generator) -> None:
    # `rand` may be 0 but never 1, so the logarithm is finite.
    log_rate.copy_((FASTEST * (1 - torch.rand(len(log_rate), generator=generator))).log())
