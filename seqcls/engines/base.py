"""The interface of engines: train the members of one group, and evaluate trained ones."""

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
"""Called with the number of members trained so far, fractions included, and the epochs that have
ended since the last call."""

Member = tuple[Problem, int]
"""A problem to train a model for, and the model's seed."""


@runtime_checkable
class Engine(Protocol):
    """One way of computing what the readable model defines.

    Its name, obstacles and sizes are available without loading a numerical library: only training
    and evaluation load one.
    """

    @property
    def name(self) -> str: ...

    @property
    def is_compiled(self) -> bool:
        """True if it trains in compiled code: on one thread, and without loading PyTorch."""
        ...

    def obstacle(self, problem: Problem, device: str) -> str | None:
        """Returns the reason why it cannot train and test a problem; None where it can."""
        ...

    def reads_counts(self, problem: Problem) -> bool:
        """Returns True if it reads strings by their letter counts, so that the cost of a string
        does not depend on its length.
        """
        ...

    def group_size(self, problem: Problem) -> int:
        """Returns the recommended largest number of members in a group."""
        ...

    def prepare(self, problems: Iterable[Problem]) -> None:
        """Prepares and caches what training these problems needs, once for all processes.

        Raises:
            OSError, RuntimeError: the cache cannot be written.
        """
        del problems

    def is_ready(self, problem: Problem) -> bool:
        """Returns True if nothing has to be prepared before it can evaluate models."""
        del problem
        return True

    def parameter_shapes(self, config: NetworkConfig) -> Mapping[str, tuple[int, ...]] | None:
        """Returns the shapes of a model's parameters by name; None where only PyTorch knows."""
        del config
        return None

    def load(self) -> None:
        """Imports the libraries it computes with, which takes a second or more, ahead of work."""
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
            initial: their initial parameters; drawn if None.
            every_epoch: return the weights of every epoch instead of the best one's.
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
        """Returns the logits of models of one shape, without dropout; positive means label 1."""
        ...


@runtime_checkable
class Writer(Protocol):
    """An engine that scores targets and writes outputs without the readable model."""

    def score(self, problem: Problem, weights: Weights, examples: Examples) -> Scored:
        """Scores a model's targets by teacher forcing."""
        ...

    def write(
        self,
        problem: Problem,
        weights: Weights,
        inputs: TokenStrings,
        limits: Int64[np.ndarray, " string"],
    ) -> list[Written]:
        """Decodes a model's outputs greedily.

        Args:
            problem: the transduction that it was trained for.
            weights: its parameters.
            inputs: strings that it has positions for.
            limits: the largest number of tokens in each output, at least 1.
        """
        ...
