"""The two PyTorch engines, which read strings token by token and by letter counts."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from seqcls.counts import counts_suffice
from seqcls.engines.base import Engine, Member, Progress
from seqcls.problem import Problem
from seqcls.results import TrainedMember, Weights
from seqcls.strings.token_strings import TokenStrings

if TYPE_CHECKING:
    from seqcls.engines.pytorch.members import Members


class PyTorchStrings(Engine):
    """The engine of any model, on a GPU too; it imports PyTorch where it is used."""

    name = "strings"
    is_compiled = False

    def obstacle(self, problem: Problem, device: str) -> str | None:
        return None

    def reads_counts(self, problem: Problem) -> bool:
        return False

    def members(self, problem: Problem, weights: Sequence[Weights], device: str) -> "Members":
        """Returns the models of a group, with their parameters stacked."""
        from seqcls.engines.pytorch.members import Members
        from seqcls.engines.pytorch.training import choose_device

        seed, by_counts = problem.config.train_seed, self.reads_counts(problem)
        settings = (problem.network, weights, choose_device(device))
        return Members(*settings, seed=seed, by_counts=by_counts)

    def group_size(self, problem: Problem) -> int:
        """Implements `Engine.group_size`: with more members, stacking saves nothing."""
        return 64

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

        weights = draw_initial(members) if initial is None else initial
        # A GPU adds in another order than the CPU, so training goes on only where it began.
        where = f"{self.name} {choose_device(device)}"
        unfinished = Unfinished(where, members, weights, every_epoch=every_epoch)
        if content := unfinished.read():
            return GroupTraining.unpack(content).run(progress, unfinished)
        models = self.members(members[0][0], weights, device)
        training = GroupTraining(members, models, weights[0], every_epoch=every_epoch)
        return training.run(progress, unfinished)

    def logits(
        self,
        problem: Problem,
        weights: Sequence[Weights],
        strings: TokenStrings,
        *,
        device: str,
    ) -> Float[np.ndarray, "member string *output"]:
        return self.members(problem, weights, device).answer(strings)


class PyTorchCounts(PyTorchStrings):
    """The engine that reads letter counts, all members in one step."""

    name = "counts"

    def obstacle(self, problem: Problem, device: str) -> str | None:
        return problem.lacks("labels") or counts_suffice(problem.network, training=True)

    def reads_counts(self, problem: Problem) -> bool:
        return True
