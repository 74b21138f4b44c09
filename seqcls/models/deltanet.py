"""DeltaNet: a matrix of memory that forgets what it holds at a key before it writes there."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from seqcls.config import NetworkConfig
from seqcls.models.base import Hidden, Recorder
from seqcls.models.layers import Linear
from seqcls.models.mixing import (
    Mixer,
    MixerMemory,
    Mixing,
    ShortConvolution,
    State,
    summed_products,
)

NORM_EPS = 1e-5


class _DeltaNetInputs(NamedTuple):
    """What tokens ask, and write, and how much: (..., head, head_size), and (..., head)."""

    query: Tensor
    key: Tensor
    value: Tensor
    strength: Tensor


class DeltaNetMixer(Mixer):
    """S_t = S_{t-1} (I - b_t k_t k_t^T) + b_t v_t k_t^T, o_t = S_t q_t, and an RMS norm a head.

    The eigenvalue along k_t is 1 - b_t: with the range `positive` b_t is a sigmoid, with `signed`
    twice that, so that it may be below 0 (Yang et al. 2024; Grazzi et al. 2024).
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        size = self.heads[0] * self.heads[1]
        self.query, self.key, self.value = (Linear(config.hidden_size, size) for _ in range(3))
        self.strength = Linear(config.hidden_size, self.heads[0])
        self.convolution = ShortConvolution(3 * size) if config.short_convolution else None
        self.norm = torch.nn.RMSNorm(self.heads[1], eps=NORM_EPS)
        self.output = Linear(size, config.hidden_size)

    def forward(self, states: Hidden, record: Recorder) -> Hidden:
        """Implements `Mixer.forward`.

        What token t writes is u_t = b_t (v_t - S_{t-1} k_t), and S_t is the sum of u_s k_s^T up to
        it: one triangular system gives all u, as exactly as token after token.
        """
        given = self._project(states)
        if self.convolution is not None:
            given = self.convolution(given)
        query, key, value, strength = self._read(states, given)
        record.aside("eigenvalue", lambda: 1 - strength)
        query, key, value = (x.transpose(1, 2) for x in (query, key, value))
        scaled = strength.transpose(1, 2).unsqueeze(3)
        written = torch.linalg.solve_triangular(
            (scaled * (key @ key.mT)).tril(-1), scaled * value, upper=False, unitriangular=True
        )
        record.aside("state", lambda: summed_products(written, key))
        mixed = record("mixed_value", (query @ key.mT).tril() @ written)
        output: Tensor = self.output(self.norm(mixed).transpose(1, 2).flatten(2))
        return record("output", output)

    def nothing(self, state: State) -> MixerMemory:
        """Implements `Mixer.nothing`: the memory, and the tokens that the convolution reads
        again.
        """
        heads, size = self.heads
        memory = state.new_zeros(len(state), heads, size, size)
        if self.convolution is None:
            return (memory,)
        return memory, self.convolution.none_kept(self._project(state))

    def step(self, state: State, kept: MixerMemory) -> tuple[State, MixerMemory]:
        given, after = self._project(state), kept[1:]
        if self.convolution is not None:
            given, window = self.convolution.step(given, kept[1])
            after = (window,)
        query, key, value, strength = self._read(state, given)
        held = (kept[0] @ key.unsqueeze(3)).squeeze(3)
        written = strength.unsqueeze(2) * (value - held)
        memory = kept[0] + written.unsqueeze(3) * key.unsqueeze(2)
        mixed = (memory @ query.unsqueeze(3)).squeeze(3)
        output: Tensor = self.output(self.norm(mixed).flatten(1))
        return output, (memory, *after)

    def units(self) -> tuple[str, ...]:
        return ("eigenvalue",)

    def _project(self, states: Tensor) -> Tensor:
        """Queries, keys and values beside one another."""
        return torch.cat([layer(states) for layer in (self.query, self.key, self.value)], dim=-1)

    def _read(self, states: Tensor, given: Tensor) -> _DeltaNetInputs:
        query, key, value = (self.by_head(x) for x in functional.silu(given).chunk(3, dim=-1))
        strength = self.strength(states).sigmoid()
        if self.config.eigenvalue_range == "signed":
            strength = 2 * strength
        query, key = functional.normalize(query, dim=-1), functional.normalize(key, dim=-1)
        return _DeltaNetInputs(query, key, value, strength)


class DeltaNet(Mixing):
    """Blocks of DeltaNet."""

    mixer = DeltaNetMixer
