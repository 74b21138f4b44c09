"""Attention as one mixer among others: causal, with positions that are in its scores alone."""

import torch

from seqcls.config import NetworkConfig
from seqcls.models.base import Hidden, Recorder
from seqcls.models.blocks import Attending, Attention, Caching, attending_next
from seqcls.models.mixing import Mixer, MixerMemory, State
from seqcls.models.positions import POSITIONS
from seqcls.models.positions.schemes import Positions


class AttentionMixer(Mixer):
    """Softmax attention of the Transformer's blocks, to a token and those before it.

    Its memory, the keys and values of all tokens, grows with the string.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        self.attention = Attention(config)
        self.positions: Positions = POSITIONS[config.positions].load()(config)

    def forward(self, states: Hidden, record: Recorder) -> Hidden:
        places = torch.arange(states.shape[1], device=states.device).unsqueeze(0)
        attendable = (places <= places.mT).expand(len(states), -1, -1)
        # A token reads itself and all before it: its position plus one is N in log-length scaling.
        read = (places + 1).to(states.dtype)
        scale = torch.ones_like(read) if self.config.attention_scale == "sqrt" else read.log()
        bias = self.positions.bias(places, places)
        attending = Attending(attendable, scale[:, None, :, None], self.positions, places, bias)
        output: Hidden = self.attention(states, attending, record)
        return output

    def nothing(self, state: State) -> MixerMemory:
        return self.begin(state, 0)

    def begin(self, state: State, most_tokens: int) -> MixerMemory:
        """Implements `Mixer.begin`: the number of tokens read, and room for keys and values."""
        heads, size = self.heads
        buffers = state.new_zeros(2, len(state), heads, most_tokens, size)
        return state.new_zeros(len(state), dtype=torch.long), buffers[0], buffers[1].clone()

    def step(self, state: State, cached: MixerMemory) -> tuple[State, MixerMemory]:
        lengths, keys, values = cached
        attending = attending_next(self.config, self.positions, lengths)
        record = Caching(lengths, {"key": keys, "value": values})
        given: Hidden = self.attention(state.unsqueeze(1), attending, record)
        return given[:, 0], (lengths + 1, keys, values)
