"""What every engine can do: train members of one group, and answer strings with trained ones."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from jaxtyping import Float

from seqcls.config import RunConfig
from seqcls.results import EpochLosses, TrainedMember, Weights
from seqcls.strings import TokenStrings

Progress = Callable[[float, Sequence[EpochLosses]], None]
"""Told how many members' worth of training is done, parts included, and which epochs of which
members have ended since it was told last."""

Member = tuple[RunConfig, int]
"""A configuration and a model seed."""


class Engine(Protocol):
    """One way of computing what the plain model defines.

    Asking its name, its obstacles and its sizes loads no library for numbers: only training and
    answering do.
    """

    @property
    def name(self) -> str: ...

    def obstacle(self, config: RunConfig, device: str) -> str | None:
        """Why it cannot train and test this configuration; None where it can."""
        ...

    def group_size(self, config: RunConfig) -> int:
        """How many members a group should have at most."""
        ...

    def load(self) -> None:
        """Imports what it computes with, which takes a second or more, before there is any work."""
        ...

    def train(
        self,
        members: Sequence[Member],
        initial: Sequence[Weights] | None,
        *,
        every_epoch: bool,
        progress: Progress,
        device: str,
    ) -> list[TrainedMember]:
        """Trains the members of one group, in their order.

        Args:
            members: alike in their `group_key`.
            initial: their initial parameters; drawn where they are missing.
            every_epoch: keep the weights of every epoch instead of the best one's.
            progress: called after every epoch.
            device: `auto`, `cpu` or `cuda`.
        """
        ...

    def logits(
        self,
        config: RunConfig,
        weights: Sequence[Weights],
        strings: TokenStrings,
        *,
        device: str,
    ) -> Float[np.ndarray, "member string"]:
        """Logits of models of one configuration's shape; positive means label 1, dropout is off."""
        ...
