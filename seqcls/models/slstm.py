"""sLSTM: exponential gates, and recurrent weights within a head (Beck et al. 2024, xLSTM)."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from seqcls.config import NetworkConfig
from seqcls.models.base import Hidden, Recorder
from seqcls.models.layers import Linear
from seqcls.models.mixing import Mixer, MixerMemory, State
from seqcls.models.parts import Site

GATES = ("input_gate", "forget_gate", "candidate", "output_gate")
MEMORY_NAMES = ("state", "cell", "normalizer", "stabilizer")


class SLSTMMixer(Mixer):
    """h = sigmoid(o) c / n, with c = f' c + i' tanh(z) and n = f' n + i'.

    i' = exp(i - m), f' = exp(log sigmoid(f) + m_before - m), m = max(log sigmoid(f) + m_before, i);
    h does not depend on m. i, f, z and o are linear in the token and in the head's h before it.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        heads, head = self.heads
        self.size = heads * head
        self.input = Linear(config.hidden_size, len(GATES) * self.size, bias=config.biases)
        self.recurrent = nn.ModuleList([Linear(head, len(GATES) * head) for _ in range(heads)])
        self.output = Linear(self.size, config.hidden_size)

    def forward(self, states: Hidden, record: Recorder) -> Hidden:
        """Implements `Mixer.forward`, token after token."""
        given, weights = self._gate_inputs(states), self._weights()
        memory, steps = self.nothing(states), list[tuple[MixerMemory, tuple[Tensor, ...]]]()
        for place in range(states.shape[1]):
            after, gates = self._step(given[:, place], memory, weights)
            named = zip(MEMORY_NAMES, after, strict=True)
            memory = tuple(record.step(name, place, value) for name, value in named)
            steps.append((memory, gates))

        def stack(kind: int, number: int) -> Tensor:
            values = [step[kind][number] for step in steps]
            none = states.new_zeros(len(states), 0, self.size)
            return torch.stack(values, dim=1) if values else none

        for number, name in enumerate(GATES):
            record.aside(name, partial(stack, 1, number))
        # All but the state, which is recorded below, where the output reads it.
        for number, name in enumerate(MEMORY_NAMES[1:], 1):
            record.aside(name, partial(stack, 0, number))
        output: Tensor = self.output(record("state", stack(0, 0)))
        return record("output", output)

    def nothing(self, state: Float[Tensor, "string ..."]) -> MixerMemory:
        zeros = state.new_zeros(len(state), self.size)
        # With m = -inf there is nothing to forget, and the first m is the input gate's i alone.
        return zeros, zeros, zeros, zeros - torch.inf

    def step(self, state: State, cached: MixerMemory) -> tuple[State, MixerMemory]:
        after, _ = self._step(self._gate_inputs(state), cached, self._weights())
        output: Tensor = self.output(after[0])
        return output, after

    def sites(self, block: int) -> Mapping[Site, tuple[str, ...]]:
        """Implements `Mixer.sites`: the whole memory, and that of each unit."""
        units = {
            Site("unit", block, unit, in_block=True): MEMORY_NAMES for unit in range(self.size)
        }
        return {Site("layer", block): MEMORY_NAMES, **units}

    def units(self) -> tuple[str, ...]:
        return *GATES, "cell", "normalizer"

    def _gate_inputs(self, states: Tensor) -> Tensor:
        """Returns a token's share of each head's gates, (..., head, gate and head size)."""
        given: Tensor = self.input(states)
        by_head: Tensor = given.unflatten(-1, (self.heads[0], len(GATES) * self.heads[1]))
        return by_head

    def _weights(self) -> Tensor:
        """Returns the recurrent weights, (head, head size, gate and head size)."""
        layers = cast("Iterable[Linear]", self.recurrent)
        return torch.stack([layer.weight.T for layer in layers])

    def _step(
        self, given: Tensor, memory: MixerMemory, weights: Tensor
    ) -> tuple[MixerMemory, tuple[Tensor, ...]]:
        """Returns the memory after a token, and the gates in the order of `GATES`."""
        state, cell, normalizer, stabilizer = (x.unflatten(1, self.heads) for x in memory)
        gates = given + (state.unsqueeze(2) @ weights).squeeze(2)
        take, keep, candidate, give = gates.chunk(len(GATES), dim=2)
        keep = functional.logsigmoid(keep) + stabilizer
        # The state does not depend on it, so its gradient is zero.
        stabilizer = torch.maximum(keep, take).detach()
        # Neither exponent is above 0, so no gate overflows.
        take, keep = (take - stabilizer).exp(), (keep - stabilizer).exp()
        candidate, give = candidate.tanh(), give.sigmoid()
        cell = keep * cell + take * candidate
        normalizer = keep * normalizer + take
        after = give * cell / normalizer
        return (
            tuple(x.flatten(1) for x in (after, cell, normalizer, stabilizer)),
            tuple(x.flatten(1) for x in (take, keep, candidate, give)),
        )
