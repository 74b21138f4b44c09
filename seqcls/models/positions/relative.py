"""A learned number for every head and range of distances, added to scores."""

import math

import torch
from jaxtyping import Integer
from torch import Tensor

from seqcls.config import NetworkConfig
from seqcls.models.layers import Embedding
from seqcls.models.positions.base import Bias, Places, Positions
from seqcls.models.positions.numbers import BUCKETS, FARTHEST


class Relative(Positions):
    """A learned scalar for each bucket of distances and head, the same in every block (T5)."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        self.table = Embedding(BUCKETS, config.num_attention_heads)

    def bias(self, queries: Places, keys: Places) -> Bias:
        """The scalar of each pair's bucket."""
        distances = keys.unsqueeze(1) - queries.unsqueeze(2)
        both = self.config.attention_mask == "full"
        scalars: Tensor = self.table(buckets(distances, both_directions=both))
        return scalars.permute(0, 3, 1, 2)


def buckets(
    distances: Integer[Tensor, "*pair"], *, both_directions: bool
) -> Integer[Tensor, "*pair"]:
    """The bucket of each distance, of the attended place minus that of the attending one.

    In both directions 16 buckets each, in one (backwards) all 32: half of them for single
    distances, half by the logarithm up to 128.
    """
    after = torch.zeros_like(distances)
    buckets = BUCKETS
    if both_directions:
        buckets //= 2
        after = (distances > 0) * buckets
        distances = distances.abs()
    else:
        distances = (-distances).clamp_min(0)
    single = buckets // 2
    share = (distances.clamp_min(single).double() / single).log() / math.log(FARTHEST / single)
    far = (single + (share * (buckets - single)).long()).clamp_max(buckets - 1)
    return after + torch.where(distances < single, distances, far)
