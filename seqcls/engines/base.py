"""What every engine can do: train members of one group, and answer strings with trained ones."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int64

from seqcls.config import NetworkConfig
from seqcls.kinds import Examples
from seqcls.kinds.base import Scored, Written
from seqcls.problem import Problem
from seqcls.results import EpochLosses, TrainedMember, Weights
from seqcls.strings.token_strings import TokenStrings

Progress = Callable[[float, Sequence[EpochLosses]], None]
"""Told how many members' worth of training is done, parts included, and which epochs of which
members have ended since it was told last."""

Member = tuple[Problem, int]
"""What a model is trained for, and its seed."""


@runtime_checkable
class Engine(Protocol):
    """One way of computing what the plain model defines.

    Asking its name, its obstacles and its sizes loads no library for numbers: only training and
    answering do.
    """

    @property
    def name(self) -> str: ...

    @property
    def one_thread(self) -> bool:
        """Whether it computes on one thread whatever PyTorch's settings are."""
        ...

    @property
    def wants_initial(self) -> bool:
        """Whether members' initial parameters should be handed over: it trains without PyTorch,
        which drawing them would load.
        """
        ...

    def obstacle(self, problem: Problem, device: str) -> str | None:
        """Why it cannot train and test this; None where it can."""
        ...

    def reads_counts(self, problem: Problem) -> bool:
        """Whether it reads strings by their letter counts, so that one costs it the same however
        long it is.
        """
        ...

    def group_size(self, problem: Problem) -> int:
        """How many members a group should have at most."""
        ...

    def prepare(self, problems: Iterable[Problem]) -> None:
        """Makes what training these needs and this machine keeps, before processes each would.

        Raises:
            OSError, RuntimeError: it cannot be kept.
        """
        ...

    def is_ready(self, problem: Problem) -> bool:
        """Whether it can answer without making first what this machine keeps."""
        ...

    def parameter_shapes(self, config: NetworkConfig) -> Mapping[str, tuple[int, ...]] | None:
        """The shapes of a model's parameters by name, where PyTorch is not needed to know them."""
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
            members: of configurations alike in their `group_key`.
            initial: their initial parameters; drawn where they are missing.
            every_epoch: keep the weights of every epoch instead of the best one's.
            progress: called after every epoch.
            device: `auto`, `cpu` or `cuda`.
        """
        ...

    def logits(
        self,
        problem: Problem,
        weights: Sequence[Weights],
        strings: TokenStrings,
        *,
        device: str,
    ) -> Float[np.ndarray, "member string *output"]:
        """Logits of models of one shape; positive means label 1, dropout is off."""
        ...


@runtime_checkable
class Writer(Protocol):
    """An engine that scores targets and writes outputs without the plain model."""

    def score(self, problem: Problem, weights: Weights, examples: Examples) -> Scored:
        """Has a model read inputs with their targets."""
        ...

    def write(
        self,
        problem: Problem,
        weights: Weights,
        inputs: TokenStrings,
        limits: Int64[np.ndarray, " string"],
    ) -> list[Written]:
        """What a model writes for inputs, the likeliest token at every place.

        Args:
            problem: what it was trained for: a transduction.
            weights: its parameters.
            inputs: strings that it has places for.
            limits: tokens of each output at most, at least 1.
        """
        ...
