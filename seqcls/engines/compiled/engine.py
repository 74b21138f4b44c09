"""What the compiled engines have in common as engines."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from seqcls.engines.base import Member, Progress
from seqcls.problem import Problem
from seqcls.results import TrainedMember, Weights

if TYPE_CHECKING:
    from seqcls.engines.compiled.training import Program


class CompiledEngine(ABC):
    """One member after another, on the CPU. To name an engine loads no Numba."""

    name: ClassVar[str]
    one_thread = True
    wants_initial = True

    def obstacle(self, problem: Problem, device: str) -> str | None:
        """Why it cannot train and test this; None where it can."""
        if device == "cuda":
            return "device='cuda' is no CPU"
        if steps := problem.config.warm_up_steps:
            return self._obstacle(problem) or f"warm_up_steps={steps} is not compiled"
        return self._obstacle(problem)

    @abstractmethod
    def _obstacle(self, problem: Problem) -> str | None:
        """The obstacle of task and network."""

    def group_size(self, problem: Problem) -> int:
        """Few: members are trained one after another, and small groups keep all cores at work."""
        del problem
        return 16

    def train(
        self,
        members: Sequence[Member],
        initial: Sequence[Weights] | None,
        *,
        every_epoch: bool,
        progress: Progress,
        device: str,
    ) -> list[TrainedMember]:
        """Implements `Engine.train`. Drawing initial parameters loads PyTorch."""
        del device
        from seqcls.engines.compiled.training import train_one_by_one

        return train_one_by_one(
            members,
            initial,
            self._programs(),
            engine=self.name,
            every_epoch=every_epoch,
            progress=progress,
        )

    @abstractmethod
    def _programs(self) -> "Callable[[Problem], Program]":
        """What makes the program that trains for a problem."""
