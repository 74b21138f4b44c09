"""A learned function of the distance, as a share of what is read so far (FIRE, Li et al. 2023)."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from seqcls.config import NetworkConfig
from seqcls.models.layers import Linear
from seqcls.models.positions.base import Bias, Places, Positions

WIDTH = 32
"""The width of the function's hidden layer."""

INITIAL_SCALE = 0.1


class Fire(Positions):
    """f(psi(|i - j|) / psi(max(L, i + 1))), psi(x) = ln(c x + 1), the same in every block.

    f is linear, ReLU, linear, one number for each head; c and L are learned and positive, as
    exponentials. They begin at 0.1 and at a quarter of the longest training string, as in the
    authors' program. Where tokens attend to those after them too, the length of the string stands
    for i + 1: places of padding are 0 then.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        self.input = Linear(1, WIDTH, bias=True)
        self.output = Linear(WIDTH, config.num_attention_heads, bias=True)
        threshold = max(config.trained_length / 4, 1.0)
        self.log_scale = nn.Parameter(torch.tensor([math.log(INITIAL_SCALE)]))
        self.log_threshold = nn.Parameter(torch.tensor([math.log(threshold)]))

    def bias(self, queries: Places, keys: Places) -> Bias:
        """The function of each pair's distance."""
        distances = (queries.unsqueeze(2) - keys.unsqueeze(1)).abs()
        causal = self.config.attention_mask == "causal"
        # Of strings without a token there is no longest place.
        read = queries if causal or not keys.numel() else keys.amax(dim=1, keepdim=True)
        threshold = self.log_threshold.exp()
        longest = torch.maximum((read + 1).to(threshold.dtype), threshold).unsqueeze(2)
        shares = self._psi(distances.to(threshold.dtype)) / self._psi(longest)
        numbers: Tensor = self.output(self.input(shares.unsqueeze(3)).relu())
        return numbers.permute(0, 3, 1, 2)

    def _psi(self, lengths: Float[Tensor, "*pair"]) -> Float[Tensor, "*pair"]:
        return (self.log_scale.exp() * lengths).log1p()
