"""Attention as one mixer among others: causal, with positions that are in its scores alone."""

import math

import torch
from torch import Tensor

from seqcls.config import NetworkConfig
from seqcls.models.base import Hidden, Recorder
from seqcls.models.blocks import Attending, Attention
from seqcls.models.mixing import Mixer, MixerMemory, State
from seqcls.models.positions import POSITIONS
from seqcls.models.positions.schemes import Positions
from seqcls.models.transformer import attended_once


class AttentionMixer(Mixer):
    """Softmax attention of the Transformer's blocks, to a token and those before it. What it keeps
    grows with the string: keys and values of all tokens.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        self.attention = Attention(config)
        self.positions: Positions = POSITIONS[config.positions].load()(config)

    def forward(self, states: Hidden, record: Recorder) -> Hidden:
        places = torch.arange(states.shape[1], device=states.device).unsqueeze(0)
        attendable = (places <= places.mT).expand(len(states), -1, -1)
        scale = self._scale(places + 1, states)[:, None, :, None]
        attending = Attending(attendable, scale, self.positions, places)
        output: Hidden = self.attention(states, attending, record)
        return output

    def nothing(self, state: State) -> MixerMemory:
        return self.begin(state, 0)

    def begin(self, state: State, most_tokens: int) -> MixerMemory:
        """Implements `Mixer.begin`: how many tokens were read, and room for keys and values."""
        heads, size = self.heads
        kept = state.new_zeros(2, len(state), heads, most_tokens, size)
        return state.new_zeros(len(state), dtype=torch.long), kept[0], kept[1].clone()

    def step(self, state: State, kept: MixerMemory) -> tuple[State, MixerMemory]:
        lengths, keys, values = kept
        read = torch.arange(int(lengths.max()) + 1, device=state.device) <= lengths.unsqueeze(1)
        scale = self._scale(lengths + 1, state)[:, None, None, None]
        attending = Attending(read.unsqueeze(1), scale, self.positions, lengths.unsqueeze(1))
        given = attended_once(self.attention, state.unsqueeze(1), attending, keys, values)
        return given[:, 0], (lengths + 1, keys, values)

    def _scale(self, tokens: Tensor, states: Tensor) -> Tensor:
        """What scores are multiplied by where so many tokens were read, as `length_scale`."""
        read = tokens.to(states.dtype)
        return (
            torch.full_like(read, math.e).log()
            if self.config.attention_scale == "sqrt"
            else read.log()
        )
