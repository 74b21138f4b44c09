"""The members of a group where letter counts suffice, all in one step."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from seqcls.counts.forward import group_logits, log_counts
from seqcls.engines.pytorch.members import Losses, Members
from seqcls.strings.token_strings import TokenStrings

TYPES_AT_ONCE = 4096
"""Token types of strings in a piece: keeps a group's widest state within tens of megabytes."""


class CountedMembers(Members):
    """Members that read a string as the logarithms of its counts."""

    def backward(self, batch: Any, losses: Losses) -> Float[Tensor, " member"]:
        for gradient in self.gradients.values():
            gradient.zero_()
        means = losses(group_logits(self.config, self.parameters, batch)).mean(dim=1)
        means.sum().backward()
        return means.detach()

    def batches(self, strings: TokenStrings, batch_size: int, places: Any) -> Iterator[Any]:
        yield from self._encode(strings).split(batch_size)

    def pieces(self, strings: TokenStrings) -> Iterator[tuple[Int64[np.ndarray, " row"], Any]]:
        encoded = self._encode(strings)
        # With one block all strings share the states of their token types.
        types = 1 if self.config.num_blocks == 1 else encoded.shape[1] + 1
        size = max(TYPES_AT_ONCE // types, 1)
        rows = torch.arange(len(encoded)).split(size)
        for piece_rows, piece in zip(rows, encoded.split(size), strict=True):
            yield piece_rows.numpy(), piece

    @torch.no_grad()
    def logits(self, piece: Any) -> Float[Tensor, "member string"]:
        return group_logits(self.config, self.parameters, piece)

    def _encode(self, strings: TokenStrings) -> Float[Tensor, "string token_type"]:
        return log_counts(self.config, strings.counts).to(self.device)
