"""The table of places that a network learns."""

from seqcls.config import NetworkConfig
from seqcls.models.positions.numbers import BUCKETS

LEARNED = ("learned", "relative")


def learned_places(config: NetworkConfig) -> tuple[int, int]:
    """The shape of the learned table of places; no rows where none is learned."""
    if config.positions == "learned":
        return config.position_range or config.trained_length + 1, config.hidden_size
    if config.positions == "relative":
        return BUCKETS, config.num_attention_heads
    return 0, 1
