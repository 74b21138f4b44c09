"""How the members of a group compute their logits and gradients: what each way answers."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int64
from torch import Tensor

from seqcls.strings import TokenStrings

Losses = Callable[[Float[Tensor, "*member string"]], Float[Tensor, "*member string"]]
"""The loss of every logit of one batch."""


@runtime_checkable
class Way(Protocol):
    """One way through the models of a group, which share their strings and nothing else."""

    def batches(self, strings: TokenStrings) -> Iterator[Any]:
        """An epoch's batches, in order, as this way reads them."""
        ...

    def backward(self, batch: Any, losses: Losses) -> Float[Tensor, " member"]:
        """Each member's mean loss, its gradients left with the group's parameters."""
        ...

    def pieces(self, strings: TokenStrings) -> Iterator[tuple[Int64[np.ndarray, " row"], Any]]:
        """All of the strings in pieces that fit in memory, with their rows."""
        ...

    def logits(self, piece: Any) -> Float[Tensor, "member string"]:
        """Every member's logits, without dropout and without gradients."""
        ...

    def keep(self, rows: Sequence[int]) -> None:
        """Drops all members but these; the group has already dropped them."""
        ...


def all_logits(way: Way, strings: TokenStrings, members: int) -> Float[np.ndarray, "member string"]:
    """Every member's logits for every string, piece by piece."""
    logits: np.ndarray | None = None
    for rows, piece in way.pieces(strings):
        own = way.logits(piece).cpu().numpy()
        if logits is None:
            logits = np.empty((members, len(strings)), dtype=own.dtype)
        logits[:, rows] = own
    return np.empty((members, 0)) if logits is None else logits
