"""Scores that fall linearly with the distance, each head at its own slope."""

import math

import torch

from seqcls.config import NetworkConfig
from seqcls.models.positions.base import Bias, Places, Positions


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


def slopes(heads: int) -> list[float]:
    """2^(-8(h+1)/H) for each head h of H, a power of two.

    For another number of heads those of the power of two below, then every other one of twice
    that power, as in the authors' program.
    """
    if heads == 0:
        return []
    below = 2 ** int(math.log2(heads))
    at_power = [2 ** (-8 * (head + 1) / below) for head in range(below)]
    between = [2 ** (-8 * (head + 1) / (2 * below)) for head in range(0, 2 * below, 2)]
    return at_power + between[: heads - below]
