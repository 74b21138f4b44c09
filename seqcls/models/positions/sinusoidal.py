"""Sines and cosines of geometrically falling frequencies, added to the embedding."""

import torch

from seqcls.config import NetworkConfig
from seqcls.models.positions.base import Places, Positions, States


class Sinusoidal(Positions):
    """f_k = 10000^(-2k/d) for k < d/2; [sin(i f), cos(i f)] is added (Vaswani et al. 2017).

    Of an odd hidden size the last cosine has no room.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        steps = torch.arange(0, config.hidden_size, 2, dtype=torch.float64)
        self._frequencies = 10_000 ** (-steps / config.hidden_size)

    def embed(self, states: States, places: Places) -> States:
        """Adds the waves at each place."""
        # In double precision: a place of hundreds times a frequency loses digits in single.
        angles = places.unsqueeze(2) * self._frequencies.to(places.device)
        waves = torch.cat([angles.sin(), angles.cos()], dim=2)[:, :, : self.config.hidden_size]
        return states + waves.to(states.dtype)
