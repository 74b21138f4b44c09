"""Attention without a softmax, whose memory is a matrix that only adds up: without decay."""

import torch
from torch import Tensor
from torch.nn import functional

from seqcls.config import NetworkConfig
from seqcls.models.base import Recorder
from seqcls.models.heads import Hidden
from seqcls.models.layers import Linear
from seqcls.models.mixing.body import Kept, Mixer, Mixing, State, summed_products


class LinearAttentionMixer(Mixer):
    """S_t = S_{t-1} + v_t f(k_t)^T, o_t = S_t f(q_t) / sum_s f(k_s)^T f(q_t), with f = elu + 1.

    (Katharopoulos et al. 2020)
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        size = self.heads[0] * self.heads[1]
        self.query, self.key, self.value = (Linear(config.hidden_size, size) for _ in range(3))
        self.output = Linear(size, config.hidden_size)

    def forward(self, states: Hidden, record: Recorder) -> Hidden:
        """Implements `Mixer.forward`: the weights of all pairs of tokens, instead of the memory."""
        query, key, value = (x.transpose(1, 2) for x in self._read(states))
        record.aside("state", lambda: summed_products(value, key))
        weights = (query @ key.mT).tril()
        total = weights.sum(dim=3, keepdim=True).clamp_min(_least(weights))
        mixed = record("mixed_value", (weights @ value) / total)
        output: Tensor = self.output(mixed.transpose(1, 2).flatten(2))
        return record("output", output)

    def nothing(self, state: State) -> Kept:
        """Implements `Mixer.nothing`: the memory, and the sum of keys."""
        heads, size = self.heads
        memory = state.new_zeros(len(state), heads, size, size)
        return memory, memory[..., 0]

    def step(self, state: State, kept: Kept) -> tuple[State, Kept]:
        """Implements `Mixer.step`."""
        query, key, value = self._read(state)
        memory = kept[0] + value.unsqueeze(3) * key.unsqueeze(2)
        keys = kept[1] + key
        total = (keys * query).sum(dim=2, keepdim=True).clamp_min(_least(query))
        mixed = (memory @ query.unsqueeze(3)).squeeze(3) / total
        output: Tensor = self.output(mixed.flatten(1))
        return output, (memory, keys)

    def _read(self, states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = (
            self.by_head(layer(states)) for layer in (self.query, self.key, self.value)
        )
        return functional.elu(query) + 1, functional.elu(key) + 1, value


class LinearAttention(Mixing):
    """Blocks of linear attention."""

    mixer = LinearAttentionMixer


def _least(values: Tensor) -> float:
    """What a sum of positive numbers is at least, so that one may be divided by it."""
    return torch.finfo(values.dtype).tiny
