"""DeltaNet: a matrix memory that erases its value at a key before it writes a new one there.

Gated DeltaNet has a decay too, which depends on the token; DeltaProduct writes several times with
each token.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
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
    summed_products,
)

NORM_EPS = 1e-5

FASTEST = 16.0
"""The upper end of the uniform distribution, from 0, of initial decay rates."""


class DeltaNetMixer(Mixer):
    """S_t = S_{t-1} (I - b_t k_t k_t^T) + b_t v_t k_t^T, o_t = S_t q_t, and an RMS norm a head.

    The eigenvalue along k_t is 1 - b_t: with the range `positive` b_t is a sigmoid, with `signed`
    twice that, so that it may be below 0 (Yang et al. 2024; Grazzi et al. 2024).

    Args:
        steps: how often each token writes.
    """

    def __init__(self, config: NetworkConfig, steps: int = 1) -> None:
        super().__init__(config)
        self.steps, self.size = steps, self.heads[0] * self.heads[1]
        self.query = Linear(config.hidden_size, self.size)
        self.key, self.value = (Linear(config.hidden_size, steps * self.size) for _ in range(2))
        self.strength = Linear(config.hidden_size, steps * self.heads[0])
        channels = (1 + 2 * steps) * self.size
        self.convolution = ShortConvolution(channels) if config.short_convolution else None
        self.norm = nn.RMSNorm(self.heads[1], eps=NORM_EPS)
        self.output = Linear(self.size, config.hidden_size)

    def log_decay(self, states: Tensor) -> Tensor | None:
        """The logarithm of each head's decay before a token writes, (..., head); None for none."""
        del states
        return None

    def apply_gate(self, normed: Tensor, states: Tensor) -> Tensor:
        """Applies an output gate, if there is one, to each head: (..., head, head_size)."""
        del states
        return normed

    def forward(self, states: Hidden, record: Recorder) -> Hidden:
        """Implements `Mixer.forward`.

        Step t writes u_t = b_t (v_t - a_t S_{t-1} k_t), where a_t is the decay, and S_t is the sum
        of u_s k_s^T up to it, each times the decays since. One triangular system gives all u, as
        exactly as step after step.
        """
        given = self._project(states)
        if self.convolution is not None:
            given = self.convolution(given)
        query, key, value, strength = self._read(states, given)
        log_decay = self._by_step(self.log_decay(states))
        record.aside("eigenvalue", lambda: self._eigenvalues(strength, log_decay).flatten(2))
        # A token's steps one after another, heads first.
        key, value = (x.flatten(1, 2).transpose(1, 2) for x in (key, value))
        scaled = strength.flatten(1, 2).transpose(1, 2).unsqueeze(3)
        query = query.transpose(1, 2)
        # Each step gets a row, as keys have one, though only a token's last step is read.
        queries = query if self.steps == 1 else query.repeat_interleave(self.steps, dim=2)
        pairs, read = key @ key.mT, queries @ key.mT
        since: Tensor | None = None
        if log_decay is not None:
            # Differences of logarithms: quotients of products would be 0 / 0 once both vanish.
            sums = log_decay.flatten(1, 2).transpose(1, 2).cumsum(dim=2)
            # Above the diagonal they grow, and are read nowhere.
            since = (sums.unsqueeze(3) - sums.unsqueeze(2)).tril().exp()
            pairs, read = pairs * since, read * since
        written = torch.linalg.solve_triangular(
            (scaled * pairs).tril(-1), scaled * value, upper=False, unitriangular=True
        )
        last = slice(self.steps - 1, None, self.steps)
        record.aside("state", lambda: _memories(written, key, since)[:, last])
        mixed = record("mixed_value", read.tril()[:, :, last] @ written)
        return record("output", self._answer(mixed.transpose(1, 2), states))

    def nothing(self, state: State) -> MixerMemory:
        """Implements `Mixer.nothing`: the memory, and the window of the convolution."""
        heads, size = self.heads
        memory = state.new_zeros(len(state), heads, size, size)
        if self.convolution is None:
            return (memory,)
        return memory, self.convolution.empty_window(self._project(state))

    def step(self, state: State, cached: MixerMemory) -> tuple[State, MixerMemory]:
        given, after = self._project(state), cached[1:]
        if self.convolution is not None:
            given, window = self.convolution.step(given, cached[1])
            after = (window,)
        query, keys, values, strengths = self._read(state, given)
        memory, log_decay = cached[0], self.log_decay(state)
        if log_decay is not None:
            memory = memory * log_decay.exp()[:, :, None, None]
        for step in range(self.steps):
            key = keys[:, step]
            held = (memory @ key.unsqueeze(3)).squeeze(3)
            written = strengths[:, step].unsqueeze(2) * (values[:, step] - held)
            memory = memory + written.unsqueeze(3) * key.unsqueeze(2)
        mixed = (memory @ query.unsqueeze(3)).squeeze(3)
        return self._answer(mixed, state), (memory, *after)

    def units(self) -> tuple[str, ...]:
        return ("eigenvalue",)

    def _answer(self, mixed: Tensor, states: Tensor) -> Tensor:
        output: Tensor = self.output(self.apply_gate(self.norm(mixed), states).flatten(-2))
        return output

    def _by_step(self, log_decay: Tensor | None) -> Tensor | None:
        """Expands decays to steps: a token's decay comes before its first step alone."""
        if log_decay is None:
            return None
        others = log_decay.new_zeros(()).expand(*log_decay.shape[:2], self.steps - 1, self.heads[0])
        return torch.cat([log_decay.unsqueeze(2), others], dim=2)

    def _eigenvalues(self, strength: Tensor, log_decay: Tensor | None) -> Tensor:
        along = 1 - strength
        return along if log_decay is None else along * log_decay.exp()

    def _project(self, states: Tensor) -> Tensor:
        """Concatenates queries, keys and values."""
        return torch.cat([layer(states) for layer in (self.query, self.key, self.value)], dim=-1)

    def _read(self, states: Tensor, given: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Queries (..., head, head_size); keys and values (..., step, head, head_size); and
        strengths (..., step, head).
        """
        sizes = self.size, self.steps * self.size, self.steps * self.size
        query, key, value = functional.silu(given).split(sizes, dim=-1)
        by_step = (self.steps, *self.heads)
        query, key = self.by_head(query), key.unflatten(-1, by_step)
        strength = self.strength(states).sigmoid().unflatten(-1, (self.steps, self.heads[0]))
        if self.config.eigenvalue_range == "signed":
            strength = 2 * strength
        # Only with a key of length 1 is 1 - b the eigenvalue along it.
        query, key = functional.normalize(query, dim=-1), functional.normalize(key, dim=-1)
        return query, key, value.unflatten(-1, by_step), strength


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


class DeltaProductMixer(DeltaNetMixer):
    """S_t = S_{t-1} prod_j (I - b_tj k_tj k_tj^T) + sum_j b_tj v_tj k_tj^T prod_{i>j} (I - b_ti
    k_ti k_ti^T), j = 1..n in order: n steps of DeltaNet, each with another key, value and strength,
    and S_t q_t read after the last (Siems et al. 2025, without their optional gates).
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config, steps=config.householder_steps)


def _log_of_rates(log_rate: Tensor, generator: torch.Generator) -> None:
    # `rand` may be 0 but never 1, so the logarithm is finite.
    log_rate.copy_((FASTEST * (1 - torch.rand(len(log_rate), generator=generator))).log())


def _memories(written: Tensor, keys: Tensor, since: Tensor | None) -> Tensor:
    """The memory after every step, all heads in one row; `since` holds the decays between steps."""
    if since is None:
        return summed_products(written, keys)
    products = written.unsqueeze(4) * keys.unsqueeze(3)
    return (since.tril() @ products.flatten(3)).transpose(1, 2).flatten(2)
