"""What the places of tokens mean in each scheme, in NumPy; PyTorch is not loaded.

The definitions are those of `seqcls.models.positions`, and tested so.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int64

from seqcls.config import NetworkConfig
from seqcls.engines.lanes.packing import filled
from seqcls.engines.lanes.transformer.kernel import Places
from seqcls.models.positions import table_size
from seqcls.models.positions.numbers import angles, buckets, slopes, waves


def make_places(
    config: NetworkConfig,
    rows: Int64[np.ndarray, " group"],
    places: Sequence[Int64[np.ndarray, " token"]],
    tokens: int,
) -> Places:
    """The places of strings in groups.

    Args:
        config: the network.
        rows: of each group, which of `places` are its tokens'.
        places: one after another, or drawn at random.
        tokens: of the longest string, filled up.
    """
    numbers = np.zeros((len(places), tokens), np.int64)
    for row, drawn in zip(numbers, places, strict=True):
        row[: len(drawn)] = drawn[:tokens]
    scheme = config.positions
    added = cosines = sines = np.zeros((1, 1, 1), np.float32)
    distances, slope = np.zeros(1, np.int64), np.zeros(1, np.float32)
    if scheme == "sinusoidal":
        added = np.zeros((*numbers.shape, filled(config.hidden_size)), np.float32)
        added[:, :, : config.hidden_size] = waves(numbers, config.hidden_size)
    elif scheme == "learned":
        # Beyond the table there is only padding: strings that are longer are not asked about.
        numbers = np.minimum(numbers, (table_size(config) or 1) - 1)
    elif scheme == "rotary":
        turned = angles(numbers, config.attention_head_size)
        cosines, sines = np.cos(turned).astype(np.float32), np.sin(turned).astype(np.float32)
    elif scheme == "alibi":
        slope = np.array(slopes(config.num_attention_heads), np.float32)
    elif scheme == "relative":
        both = config.attention_mask == "full"
        distances = buckets(np.arange(-tokens, tokens + 1), both_directions=both)
    return Places(rows, numbers, added, cosines, sines, distances, slope)
