"""How the members of a group compute their logits and gradients: what each way answers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int64
from torch import Tensor

from seqcls.cancellation import checked
from seqcls.tokens.strings import TokenStrings


class Losses(NamedTuple):
    """The loss of every string of one batch, from what the head gives of each."""

    of: Callable[[Float[Tensor, "..."]], Float[Tensor, "*member string"]]
    units: int
    """By what their sum is divided, to be trained on."""

    def __call__(self, outputs: Float[Tensor, "..."]) -> Float[Tensor, "*member string"]:
        return self.of(outputs)


@runtime_checkable
class Members(Protocol):
    """The parameters of a group's members, and the optimizer that moves them.

    It works on each value alone, so no member's step depends on who trains beside it.
    """

    @property
    def parameters(self) -> Mapping[str, Tensor]:
        """Every parameter, with a leading member axis."""
        ...

    def __len__(self) -> int: ...

    def set_learning_rate(self, learning_rate: float) -> None:
        """The rate of the next steps."""
        ...

    def step(self) -> None:
        """One step of AdamW down the gradients, each member's no longer than it may be."""
        ...

    def keep(self, rows: Sequence[int]) -> None:
        """Drops all members but these, with their optimizer state."""
        ...


@runtime_checkable
class Computation(Protocol):
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

    def logits(self, piece: Any) -> Float[Tensor, "member string *output"]:
        """Every member's logits, without dropout and without gradients."""
        ...

    def keep(self, rows: Sequence[int]) -> None:
        """Drops all members but these; the group has already dropped them."""
        ...


def all_logits(
    computation: Computation, strings: TokenStrings, members: int
) -> Float[np.ndarray, "member string *output"]:
    """Every member's logits for every string, piece by piece."""
    logits: np.ndarray | None = None
    for rows, piece in checked(computation.pieces(strings)):
        piece_logits = computation.logits(piece).cpu().numpy()
        if logits is None:
            logits = np.empty(
                (members, len(strings), *piece_logits.shape[2:]), dtype=piece_logits.dtype
            )
        logits[:, rows] = piece_logits
    return np.empty((members, 0)) if logits is None else logits
