"""The members of a group where letter counts suffice: all read each letter once, in one step."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Int64

from seqcls.config import NetworkConfig
from seqcls.counts import read_counts
from seqcls.engines.pytorch.members import Members
from seqcls.models.batches import Batch
from seqcls.models.positions.places import TrainingPlaces
from seqcls.results import Weights
from seqcls.strings.token_strings import TokenStrings

NUMBERS_AT_ONCE = 2**20
"""Numbers in the widest state of strings that are answered at once: so it stays in the processor's
cache."""


class CountedMembers(Members):
    """Members that read strings by their letter counts."""

    def __init__(
        self,
        config: NetworkConfig,
        initial: Sequence[Weights],
        device: torch.device,
        *,
        seed: int = 0,
    ) -> None:
        super().__init__(config, initial, device, seed=seed)
        # So few tokens are read that a step of one member is mostly what calls cost.
        self.at_once = True

    def batches(
        self, strings: TokenStrings, batch_size: int, places: TrainingPlaces
    ) -> Iterator[Batch]:
        return (batch for _, batch in self._read(strings, batch_size))

    def pieces(self, strings: TokenStrings) -> Iterator[tuple[Int64[np.ndarray, " row"], Batch]]:
        config, tokens = self.config, strings.counts.shape[1] + 1
        scores = config.num_attention_heads * tokens
        widest = max(config.hidden_size, config.feed_forward_size, scores, 1)
        return self._read(strings, max(NUMBERS_AT_ONCE // (tokens * widest), 1))

    def _read(
        self, strings: TokenStrings, size: int
    ) -> Iterator[tuple[Int64[np.ndarray, " row"], Batch]]:
        """So many strings at a time, with their rows."""
        ids, times = map(torch.from_numpy, read_counts(self.config.readout, strings.counts))
        ids = ids.int().to(self.device)
        times = times.to(self.device, getattr(torch, self.config.precision))
        places = torch.arange(len(ids), device=self.device).unsqueeze(0)
        for start in range(0, len(times), size):
            part = times[start : start + size]
            rows = np.arange(start, start + len(part))
            yield rows, Batch(self.config, ids.expand(len(part), -1), places, part)
