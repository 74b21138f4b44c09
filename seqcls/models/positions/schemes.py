"""The position schemes: they add to embeddings, turn queries and keys, or bias scores."""

import math
from typing import ClassVar

import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn

from seqcls.config import NetworkConfig
from seqcls.models.layers import Embedding, Linear
from seqcls.models.positions import table_size
from seqcls.models.positions.numbers import BUCKETS, FARTHEST, slopes

Places = Integer[Tensor, "#string position"]
"""Where each token stands, for every string alike or for each its own."""

QueryPlaces = Integer[Tensor, "#string query"]
KeyPlaces = Integer[Tensor, "#string key"]

States = Float[Tensor, "string position hidden"]
Heads = Float[Tensor, "string head position head_size"]
Bias = Float[Tensor, "#string head query key"]


class Positions(nn.Module):
    """No positions; a scheme is a subclass that overrides one of the three methods or more.

    One of them serves all blocks of a model. Its parameters are layers of `seqcls.models.layers`.
    """

    reads: ClassVar[frozenset[str]] = frozenset()
    """The settings that it reads beside the network's sizes; `position_range` where its places may
    be drawn at random."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config

    @classmethod
    def obstacle(cls, config: NetworkConfig) -> str | None:
        """Why a network cannot have these positions; None where it can."""
        return None

    @classmethod
    def table_size(cls, config: NetworkConfig) -> int | None:
        """How many places there are; None where there is no end to them."""
        return None

    def embed(self, states: States, places: Places) -> States:
        """The tokens' embeddings, with what their places add to them."""
        return states

    def rotate(self, heads: Heads, places: Integer[Tensor, "#string _"]) -> Heads:
        """Queries or keys, turned by their places; between two streams no places are meant."""
        return heads

    def bias(self, queries: QueryPlaces, keys: KeyPlaces) -> Bias | None:
        """What is added to the scaled scores; None for nothing.

        Args:
            queries: the places of the tokens that attend.
            keys: those of the tokens that they attend to.
        """
        return None


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


class Learned(Positions):
    """A table of as many places as the longest training string has tokens, as the model reads it.

    With `position_range` there are so many; with `position_draw` `shifted` as many as the longest
    test string needs, where that is longer. Beyond its end the model cannot be asked.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        size = table_size(config)
        assert size is not None
        self.table = Embedding(size, config.hidden_size)

    def embed(self, states: States, places: Places) -> States:
        """Adds each place's vector."""
        # Beyond the longest string there is only padding, which nothing reads.
        vectors: Tensor = self.table(places.clamp_max(len(self.table.weight) - 1))
        return states + vectors


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


class Alibi(Positions):
    """Scores minus m |i - j|, in both directions alike (Press et al. 2022)."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        self._slopes = torch.tensor(slopes(config.num_attention_heads), dtype=torch.float64)

    def bias(self, queries: QueryPlaces, keys: KeyPlaces) -> Bias:
        """Minus the distance times the head's slope."""
        distance = (queries.unsqueeze(2) - keys.unsqueeze(1)).abs().unsqueeze(1)
        slope = self._slopes.to(queries.device, getattr(torch, self.config.precision))
        return -distance * slope[:, None, None]


class Relative(Positions):
    """A learned scalar for each bucket of distances and head, the same in every block (T5)."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        self.table = Embedding(BUCKETS, config.num_attention_heads)

    def bias(self, queries: QueryPlaces, keys: KeyPlaces) -> Bias:
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

    def bias(self, queries: QueryPlaces, keys: KeyPlaces) -> Bias:
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
