"""Mamba-1: many small memories whose decay depends on the token (Gu & Dao 2023)."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from seqcls.config import NetworkConfig
from seqcls.models.base import Hidden, Recorder
from seqcls.models.layers import Linear
from seqcls.models.mixing import (
    Mixer,
    MixerMemory,
    ShortConvolution,
    State,
    inverse_softplus_of_steps,
)
from seqcls.models.parts import Site

Numbers = Float[Tensor, "string position *numbers"]


def scan(decay: Numbers, given: Numbers) -> Numbers:
    """Returns the state after every token, h_t = a_t h_{t-1} + b_t elementwise from 0."""
    state = given.new_zeros(len(given), *given.shape[2:])
    # Slices of one tensor would each have a gradient of its whole size; unbound, they are stacked.
    states = [
        state := torch.addcmul(now, factor, state)
        for factor, now in zip(decay.unbind(dim=1), given.unbind(dim=1), strict=True)
    ]
    return torch.stack(states, dim=1) if states else torch.empty_like(given)


class MambaMixer(Mixer):
    """h_t = exp(D_t A) h_{t-1} + D_t B_t u_t, y_t = C_t h_t + skip u_t, and a gate SiLU(z_t).

    u and z are linear in the token and `expand` times as wide; u goes through a short convolution
    and SiLU; the step D_t, B_t and C_t are linear in u. With the range `signed` 2 exp(D_t A) - 1
    replaces exp(D_t A) (Grazzi et al. 2024).
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        self.width = config.expand * config.hidden_size
        # The authors' default (`dt_rank` of their code).
        self.rank = math.ceil(config.hidden_size / 16)
        self.input = Linear(config.hidden_size, 2 * self.width)
        self.convolution = ShortConvolution(self.width, bias=True)
        self.selection = Linear(self.width, self.rank + 2 * config.state_size)
        self.step_size = Linear(self.rank, self.width, bias=True)
        # S4D-Real: the rates 1, 2, ..., n for every channel (Gu et al. 2022).
        rates = torch.arange(1, config.state_size + 1).log()
        self.log_rate = nn.Parameter(rates.repeat(self.width, 1))
        self.skip = nn.Parameter(torch.ones(self.width))
        self.output = Linear(self.width, config.hidden_size)

    def draws(self) -> Iterator[tuple[Callable[..., Any], Tensor]]:
        """Implements `Mixer.draws`: biases that give steps of many sizes."""
        assert self.step_size.bias is not None
        yield inverse_softplus_of_steps, self.step_size.bias

    def forward(self, states: Hidden, record: Recorder) -> Hidden:
        inner, gate = self.input(states).chunk(2, dim=2)
        inner = functional.silu(self.convolution(inner))
        decay, given, read, step = self._read(inner)
        record("step_size", step)
        memory = scan(decay, given)
        record.aside("state", lambda: memory.flatten(2))
        mixed = record("mixed_value", self._answer(memory, read, inner))
        output: Tensor = self.output(mixed * functional.silu(gate))
        return record("output", output)

    def nothing(self, state: State) -> MixerMemory:
        """Implements `Mixer.nothing`: the memories, and the window of the convolution."""
        memory = state.new_zeros(len(state), self.width, self.config.state_size)
        return memory, self.convolution.empty_window(memory[:, :, 0])

    def step(self, state: State, cached: MixerMemory) -> tuple[State, MixerMemory]:
        inner, gate = self.input(state).chunk(2, dim=1)
        inner, window = self.convolution.step(inner, cached[1])
        inner = functional.silu(inner)
        decay, given, read, _ = self._read(inner)
        memory = decay * cached[0] + given
        mixed = self._answer(memory, read, inner)
        output: Tensor = self.output(mixed * functional.silu(gate))
        return output, (memory, window)

    def sites(self, block: int) -> Mapping[Site, tuple[str, ...]]:
        """Implements `Mixer.sites`: channels."""
        units = range(self.width)
        return {Site("unit", block, unit, in_block=True): ("mixed_value",) for unit in units}

    def units(self) -> tuple[str, ...]:
        return "mixed_value", "step_size"

    def _read(self, inner: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Decays and inputs of memories, (..., channel, state); read vectors and step sizes."""
        sizes = self.rank, self.config.state_size, self.config.state_size
        step, write, read = self.selection(inner).split(sizes, dim=-1)
        step = functional.softplus(self.step_size(step))
        decay = (step.unsqueeze(-1) * -self.log_rate.exp()).exp()
        if self.config.eigenvalue_range == "signed":
            decay = 2 * decay - 1
        given = (step * inner).unsqueeze(-1) * write.unsqueeze(-2)
        return decay, given, read, step

    def _answer(self, memory: Tensor, read: Tensor, inner: Tensor) -> Tensor:
        return (memory @ read.unsqueeze(-1)).squeeze(-1) + self.skip * inner
