"""Scores that fall linearly with the distance, each head at its own slope."""

import torch

from seqcls.config import NetworkConfig
from seqcls.models.positions.base import Bias, Places, Positions
from seqcls.models.positions.numbers import slopes


class Alibi(Positions):
    """Scores minus m |i - j|, in both directions alike (Press et al. 2022)."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        self._slopes = torch.tensor(slopes(config.num_attention_heads), dtype=torch.float64)

    def bias(self, queries: Places, keys: Places) -> Bias:
        """Minus the distance times the head's slope."""
        distance = (queries.unsqueeze(2) - keys.unsqueeze(1)).abs().unsqueeze(1)
        slope = self._slopes.to(queries.device, getattr(torch, self.config.precision))
        return -distance * slope[:, None, None]
