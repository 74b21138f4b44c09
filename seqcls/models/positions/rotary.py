"""Queries and keys turned by angles that grow with the place."""

import torch

from seqcls.config import NetworkConfig
from seqcls.models.positions.base import Heads, Places, Positions


class Rotary(Positions):
    """Pairs (x_2k, x_2k+1) of each head are turned by i * 10000^(-k / (c/2)) (Su et al. 2021).

    c is the head size, an even number.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        pairs = config.attention_head_size // 2
        steps = torch.arange(pairs, dtype=torch.float64)
        self._frequencies = 10_000 ** (-steps / max(pairs, 1))

    def rotate(self, heads: Heads, places: Places) -> Heads:
        """Turns every pair of every head."""
        # In double precision: a place of hundreds times a frequency loses digits in single.
        angles = places[:, None, :, None] * self._frequencies.to(places.device)
        cos, sin = angles.cos().to(heads.dtype), angles.sin().to(heads.dtype)
        even, odd = heads[..., 0::2], heads[..., 1::2]
        turned = torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1)
        return turned.flatten(-2)
