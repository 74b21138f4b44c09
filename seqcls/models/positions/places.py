"""Places of tokens: one after another, or drawn at random.

With `position_range` n tokens get a sorted sample, without replacement, of so many places (Ruoss et
al. 2023). Training draws it anew for every batch. In testing a string's places depend only on its
length and on a seed of their own, so they are the same whichever strings are tested with it.

With `position_draw` `shifted` training moves each string's places by one offset, drawn anew every
time, uniform among those with which they still fit the table; testing moves none. So does training
with places that tokens share (`coupled`, `coupled_marks`), of which testing moves those of
`coupled_marks` by one offset, the same for all strings.
"""

import numpy as np
import torch
from jaxtyping import Int64, Integer
from torch import Tensor

from seqcls.config import NetworkConfig
from seqcls.models.positions import table_size
from seqcls.models.positions.coupled import coupled_places, moved_places, tested_offset
from seqcls.models.positions.numbers import drawn_places, tested_places, training_generator
from seqcls.tokens.tokenizer import PAD


class TrainingPlaces:
    """The places of one batch after another; the members of a group share them as their strings."""

    def __init__(self, config: NetworkConfig, seed: int) -> None:
        self._config = config
        self._rng = training_generator(seed)

    def draw(self, ids: Integer[Tensor, "string position"]) -> Int64[Tensor, "#string position"]:
        """The places of the next batch, no wider than the longest of its strings as it is read."""
        config = self._config
        if config.position_range:
            drawn = drawn_places(self._rng, config.position_range, ids.shape[1])
            return torch.from_numpy(drawn).unsqueeze(0)
        size = table_size(config)
        if config.coupling:
            assert size is not None
            places = coupled_places(config.coupling, ids)
            left = size - 1 - places.max(dim=1).values.numpy()
            offsets = self._rng.integers(0, left, endpoint=True)
            return moved_places(places, torch.from_numpy(offsets))
        places = places_of(config, ids)
        if config.position_draw == "sorted":
            return places
        assert size is not None
        left = size - (ids != PAD).sum(dim=1).numpy()
        offsets = self._rng.integers(0, left, endpoint=True)
        return places + torch.from_numpy(offsets).unsqueeze(1)


def places_of(
    config: NetworkConfig, ids: Integer[Tensor, "string position"]
) -> Int64[Tensor, "#string position"]:
    """The tokens' places when nothing is learned; nothing reads those of padding."""
    if config.coupling:
        offset = torch.tensor(tested_offset(config.coupling), device=ids.device)
        return moved_places(coupled_places(config.coupling, ids), offset)
    if not config.position_range:
        counted = torch.arange(ids.shape[1], device=ids.device).unsqueeze(0)
        # The largest place of a string says how long it is.
        is_asked = config.positions == "fire" and config.attention_mask == "full"
        return counted * (ids != PAD) if is_asked else counted
    lengths = (ids != PAD).sum(dim=1)
    known, rows = lengths.unique(return_inverse=True)
    places = np.zeros((len(known), ids.shape[1]), dtype=np.int64)
    for row, length in zip(places, known.tolist(), strict=True):
        drawn = tested_places(config.position_range, config.place_seed, length)
        row[: len(drawn)] = drawn
    return torch.from_numpy(places).to(ids.device)[rows]
