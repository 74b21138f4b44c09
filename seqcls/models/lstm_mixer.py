"""An LSTM's cell as the mixer of a block."""

import torch

from seqcls.config import NetworkConfig
from seqcls.models.mixing import MixerMemory, State, SteppingMixer
from seqcls.models.recurrent import LSTMCell


class LSTMMixer(SteppingMixer):
    """h_t = o tanh(c_t), c_t = f c_{t-1} + i g, where the gates read x_t and h_{t-1}."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        self.cell = LSTMCell(config)

    def nothing(self, state: State) -> MixerMemory:
        return torch.zeros_like(state), torch.zeros_like(state)

    def step(self, state: State, cached: MixerMemory) -> tuple[State, MixerMemory]:
        after = self.cell.step(self.cell.from_input(state), *cached)
        return after.state, (after.state, after.cell)
