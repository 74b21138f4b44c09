"""A learned vector for every place up to the longest string trained on, or tested."""

from torch import Tensor

from seqcls.config import NetworkConfig
from seqcls.models.layers import Embedding
from seqcls.models.positions import table_size
from seqcls.models.positions.base import Places, Positions, States


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
