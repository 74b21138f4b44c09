"""The position schemes: they add to embeddings, rotate queries and keys, or bias scores."""

import math

import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn

from seqcls.config import NetworkConfig
from seqcls.models.layers import Embedding, Linear
from seqcls.models.positions import Scheme, table_size
from seqcls.models.positions.numbers import BUCKETS, buckets, slopes

Places = Integer[Tensor, "#string position"]
"""Each token's position, the same for every string or one row a string."""

QueryPlaces = Integer[Tensor, "#string query"]
KeyPlaces = Integer[Tensor, "#string key"]

States = Float[Tensor, "string position hidden"]
Heads = Float[Tensor, "string head position head_size"]
Bias = Float[Tensor, "#string head query key"]


class Positions(nn.Module, Scheme):
    """No positions; a scheme is a subclass that overrides one or more of the three methods.

    All blocks of a model share one. Its parameters are layers of `seqcls.models.layers`.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config

    def embed(self, states: States, places: Places) -> States:
        """Adds position embeddings to the tokens' embeddings."""
        return states

    def rotate(self, heads: Heads, places: Integer[Tensor, "#string _"]) -> Heads:
        """Rotates queries or keys by their positions; not called between two streams."""
        return heads

    def bias(self, queries: QueryPlaces, keys: KeyPlaces) -> Bias | None:
        """Returns the bias added to the scaled scores; None for none.

        Args:
            queries: positions of the attending tokens.
            keys: positions of the tokens attended to.
        """
        return None


class Sinusoidal(Positions):
    """f_k = 10000^(-2k/d) for k < d/2; [sin(i f), cos(i f)] is added (Vaswani et al. 2017).

    If the hidden size is odd, the last cosine is left out.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        steps = torch.arange(0, config.hidden_size, 2, dtype=torch.float64)
        self._frequencies = 10_000 ** (-steps / config.hidden_size)

    def embed(self, states: States, places: Places) -> States:
        """Adds the waves at each position."""
        # In double precision: a place of hundreds times a frequency loses digits in single.
        angles = places.unsqueeze(2) * self._frequencies.to(places.device)
        waves = torch.cat([angles.sin(), angles.cos()], dim=2)[:, :, : self.config.hidden_size]
        return states + waves.to(states.dtype)


class Learned(Positions):
    """A table with a row for each position of the longest training string, as the model reads it.

    With `position_range` there are so many rows; with `position_draw` `shifted` enough for the
    longest test string too. Strings beyond the table cannot be evaluated.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        size = table_size(config)
        assert size is not None
        self.table = Embedding(size, config.hidden_size)

    def embed(self, states: States, places: Places) -> States:
        """Adds each position's vector."""
        # Beyond the longest string there is only padding, which nothing reads.
        vectors: Tensor = self.table(places.clamp_max(len(self.table.weight) - 1))
        return states + vectors


class Rotary(Positions):
    """Rotation of pairs (x_2k, x_2k+1) of each head by i * 10000^(-k / (c/2)) (Su et al. 2021).

    c is the head size, an even number.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        pairs = config.attention_head_size // 2
        steps = torch.arange(pairs, dtype=torch.float64)
        self._frequencies = 10_000 ** (-steps / max(pairs, 1))

    def rotate(self, heads: Heads, places: Places) -> Heads:
        """Rotates every pair of every head."""
        # In double precision: a place of hundreds times a frequency loses digits in single.
        angles = places[:, None, :, None] * self._frequencies.to(places.device)
        cos, sin = angles.cos().to(heads.dtype), angles.sin().to(heads.dtype)
        even, odd = heads[..., 0::2], heads[..., 1::2]
        turned = torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1)
        return turned.flatten(-2)


class Alibi(Positions):
    """Scores minus m |i - j|, the same in both directions (Press et al. 2022)."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        self._slopes = torch.tensor(slopes(config.num_attention_heads), dtype=torch.float64)

    def bias(self, queries: QueryPlaces, keys: KeyPlaces) -> Bias:
        """Returns minus the distance times the head's slope."""
        distance = (queries.unsqueeze(2) - keys.unsqueeze(1)).abs().unsqueeze(1)
        slope = self._slopes.to(queries.device, getattr(torch, self.config.precision))
        return -distance * slope[:, None, None]


class Relative(Positions):
    """A learned scalar for each bucket of distances and head, the same in every block (T5)."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        self.table = Embedding(BUCKETS, config.num_attention_heads)

    def bias(self, queries: QueryPlaces, keys: KeyPlaces) -> Bias:
        """Returns the scalar of each pair's bucket."""
        distances = keys.unsqueeze(1) - queries.unsqueeze(2)
        both = self.config.attention_mask == "full"
        chosen = buckets(distances.cpu().numpy(), both_directions=both)
        scalars: Tensor = self.table(torch.from_numpy(chosen).to(distances.device))
        return scalars.permute(0, 3, 1, 2)


WIDTH = 32
"""The width of the function's hidden layer."""

INITIAL_SCALE = 0.1


class Fire(Positions):
    """f(psi(|i - j|) / psi(max(L, i + 1))), psi(x) = ln(c x + 1), the same in every block.

    f is linear, ReLU, linear, with one output a head; c and L are learned and positive, as
    exponentials. They begin at 0.1 and at a quarter of the longest training string, as in the
    authors' program. If tokens attend to later ones too, the length of the string replaces i + 1;
    positions of padding are 0 then.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        self.input = Linear(1, WIDTH, bias=True)
        self.output = Linear(WIDTH, config.num_attention_heads, bias=True)
        threshold = max(config.trained_length / 4, 1.0)
        self.log_scale = nn.Parameter(torch.tensor([math.log(INITIAL_SCALE)]))
        self.log_threshold = nn.Parameter(torch.tensor([math.log(threshold)]))

    def bias(self, queries: QueryPlaces, keys: KeyPlaces) -> Bias:
        """Returns the function of each pair's distance."""
        distances = (queries.unsqueeze(2) - keys.unsqueeze(1)).abs()
        causal = self.config.attention_mask == "causal"
        # Strings without a token have no longest position.
        read = queries if causal or not keys.numel() else keys.amax(dim=1, keepdim=True)
        threshold = self.log_threshold.exp()
        longest = torch.maximum((read + 1).to(threshold.dtype), threshold).unsqueeze(2)
        shares = self._psi(distances.to(threshold.dtype)) / self._psi(longest)
        numbers: Tensor = self.output(self.input(shares.unsqueeze(3)).relu())
        return numbers.permute(0, 3, 1, 2)

    def _psi(self, lengths: Float[Tensor, "*pair"]) -> Float[Tensor, "*pair"]:
        return (self.log_scale.exp() * lengths).log1p()
