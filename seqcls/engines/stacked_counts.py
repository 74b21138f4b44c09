"""All members of a group at once, from letter counts."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from seqcls.config import NetworkConfig
from seqcls.counts.forward import group_logits, log_counts
from seqcls.engines.computation import Losses
from seqcls.engines.stacked_group import StackedGroup
from seqcls.tokens.strings import TokenStrings

STATES_AT_ONCE = 4096
"""Token types of strings in a piece: keeps a group's widest state within tens of megabytes."""


class ByCounts:
    """A `seqcls.engines.computation.Computation` where letter counts suffice."""

    def __init__(
        self, config: NetworkConfig, group: StackedGroup, batch_size: int, device: torch.device
    ) -> None:
        self._config = config
        self._group = group
        self._batch_size = batch_size
        self._device = device

    def batches(self, strings: TokenStrings) -> Iterator[Tensor]:
        """An epoch's batches, in order, as logarithms of counts."""
        yield from self._encoded(strings).split(self._batch_size)

    def backward(self, batch: Tensor, losses: Losses) -> Float[Tensor, " member"]:
        """Each member's mean loss, its gradients left with the group's parameters."""
        parameters = self._group.parameters
        means = losses(group_logits(self._config, parameters, batch)).mean(dim=1)
        for value in parameters.values():
            value.grad = None
        means.sum().backward()
        return means.detach()

    def pieces(self, strings: TokenStrings) -> Iterator[tuple[Int64[np.ndarray, " row"], Tensor]]:
        """All of the strings in pieces that fit in memory, with their rows."""
        encoded = self._encoded(strings)
        # With one block all strings share the states of their token types.
        types = 1 if self._config.num_blocks == 1 else encoded.shape[1] + 1
        size = max(STATES_AT_ONCE // types, 1)
        rows = torch.arange(len(encoded)).split(size)
        for piece_rows, piece in zip(rows, encoded.split(size), strict=True):
            yield piece_rows.numpy(), piece

    @torch.no_grad()
    def logits(self, piece: Tensor) -> Float[Tensor, "member string"]:
        """Every member's logits; dropout is off."""
        return group_logits(self._config, self._group.parameters, piece)

    def keep(self, rows: Sequence[int]) -> None:
        """Holds nothing of any member but what the group holds."""

    def _encoded(self, strings: TokenStrings) -> Float[Tensor, "string token_type"]:
        return log_counts(self._config, strings.counts).to(self._device)
