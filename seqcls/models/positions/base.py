"""What a position scheme can do: add to embeddings, turn queries and keys, and bias scores."""

from typing import ClassVar

from jaxtyping import Float, Integer
from torch import Tensor, nn

from seqcls.config import NetworkConfig

Places = Integer[Tensor, "#string position"]
"""Where each token stands, for every string alike or for each its own."""

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
        del config
        return None

    @classmethod
    def table_size(cls, config: NetworkConfig) -> int | None:
        """How many places there are; None where there is no end to them."""
        del config
        return None

    def embed(self, states: States, places: Places) -> States:
        """The tokens' embeddings, with what their places add to them."""
        del places
        return states

    def rotate(self, heads: Heads, places: Places) -> Heads:
        """Queries or keys, turned by their places."""
        del places
        return heads

    def bias(self, queries: Places, keys: Places) -> Bias | None:
        """What is added to the scaled scores; None for nothing.

        Args:
            queries: the places of the tokens that attend.
            keys: those of the tokens that they attend to.
        """
        del queries, keys
        return None
