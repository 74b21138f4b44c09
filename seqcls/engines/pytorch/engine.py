"""The two engines that compute with PyTorch: by letter counts, and string by string."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from jaxtyping import Float

from seqcls.config import NetworkConfig
from seqcls.counts import counts_suffice
from seqcls.engines.base import Member, Progress
from seqcls.problem import Problem
from seqcls.results import TrainedMember, Weights
from seqcls.strings.token_strings import TokenStrings

if TYPE_CHECKING:
    import torch

    from seqcls.engines.pytorch.groups import Computation, Members


class _TorchEngine(ABC):
    """What both do alike. PyTorch is imported where it is used: to name an engine loads none."""

    name: ClassVar[str]
    one_thread = False
    wants_initial = False

    def reads_counts(self, problem: Problem) -> bool:
        return False

    def group_size(self, problem: Problem) -> int:
        """Beyond this many members a step's arithmetic outweighs what stacking saves."""
        return 64

    def prepare(self, problems: Iterable[Problem]) -> None:
        """Implements `Engine.prepare`: nothing is kept."""
        del problems

    def is_ready(self, problem: Problem) -> bool:
        return True

    def parameter_shapes(self, config: NetworkConfig) -> None:
        """Implements `Engine.parameter_shapes`: only PyTorch knows them."""
        del config

    def load(self) -> None:
        from seqcls.engines.pytorch import training as stacked  # noqa: F401

    def train(
        self,
        members: Sequence[Member],
        initial: Sequence[Weights] | None,
        *,
        every_epoch: bool,
        progress: Progress,
        device: str,
    ) -> list[TrainedMember]:
        from seqcls.engines.member import Unfinished, draw_initial
        from seqcls.engines.pytorch.training import GroupTraining, choose_device

        torch_device = choose_device(device)
        weights = draw_initial(members) if initial is None else initial
        where = f"{self.name} {torch_device}"
        unfinished = Unfinished(where, members, weights, every_epoch=every_epoch)
        if content := unfinished.read():
            return GroupTraining.unpack(content).run(progress, unfinished)
        group, computation = self._training(members[0][0], weights, torch_device)
        training = GroupTraining(members, group, computation, torch_device, every_epoch=every_epoch)
        return training.run(progress, unfinished)

    def logits(
        self,
        problem: Problem,
        weights: Sequence[Weights],
        strings: TokenStrings,
        *,
        device: str,
    ) -> Float[np.ndarray, "member string *output"]:
        from seqcls.engines.pytorch.groups import all_logits
        from seqcls.engines.pytorch.training import choose_device

        computation = self._answering(problem, weights, len(strings), choose_device(device))
        return all_logits(computation, strings, len(weights), at_places=problem.at_places)

    @abstractmethod
    def _training(
        self, problem: Problem, weights: Sequence[Weights], device: "torch.device"
    ) -> "tuple[Members, Computation]":
        """Members with their optimizer, and how they are trained."""

    @abstractmethod
    def _answering(
        self, problem: Problem, weights: Sequence[Weights], strings: int, device: "torch.device"
    ) -> "Computation":
        """How trained members answer so many strings."""


class PyTorchCounts(_TorchEngine):
    """All members at once, from letter counts."""

    name = "counts"

    def obstacle(self, problem: Problem, device: str) -> str | None:
        return problem.lacks("labels") or counts_suffice(problem.network, training=True)

    def reads_counts(self, problem: Problem) -> bool:
        return True

    def _training(
        self, problem: Problem, weights: Sequence[Weights], device: "torch.device"
    ) -> "tuple[Members, Computation]":
        from seqcls.engines.pytorch.computations import ByCounts
        from seqcls.engines.pytorch.groups import StackedGroup
        from seqcls.engines.pytorch.training import optimizer_of

        group = StackedGroup(weights, device, **optimizer_of(problem))
        return group, ByCounts(problem.network, group, problem.config.train_batch_size, device)

    def _answering(
        self, problem: Problem, weights: Sequence[Weights], strings: int, device: "torch.device"
    ) -> "Computation":
        from seqcls.engines.pytorch.computations import ByCounts
        from seqcls.engines.pytorch.groups import StackedGroup

        return ByCounts(problem.network, StackedGroup(weights, device), strings, device)


class PyTorchStrings(_TorchEngine):
    """All members in one step on a GPU; elsewhere, with dropout and of pictures, one at a time."""

    name = "strings"

    def obstacle(self, problem: Problem, device: str) -> str | None:
        return None

    def _training(
        self, problem: Problem, weights: Sequence[Weights], device: "torch.device"
    ) -> "tuple[Members, Computation]":
        from seqcls.engines.pytorch.computations import OneByOne, Stacked
        from seqcls.engines.pytorch.groups import FlatGroup, StackedGroup
        from seqcls.engines.pytorch.training import optimizer_of

        config = problem.config
        settings = (problem.network, config.train_batch_size, device, config.train_seed)
        network = problem.network
        if device.type == "cuda" and network.dropout_rate == 0 and not network.picture:
            stacked = StackedGroup(weights, device, **optimizer_of(problem))
            return stacked, Stacked(stacked, *settings)
        flat = FlatGroup(weights, device, **optimizer_of(problem))
        return flat, OneByOne(flat, *settings)

    def _answering(
        self, problem: Problem, weights: Sequence[Weights], strings: int, device: "torch.device"
    ) -> "Computation":
        from seqcls.engines.pytorch.computations import OneByOne
        from seqcls.engines.pytorch.groups import FlatGroup

        return OneByOne(FlatGroup(weights, device), problem.network, strings, device)
