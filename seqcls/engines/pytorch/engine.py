"""The two engines that compute with PyTorch: string by string, and by letter counts."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from seqcls.config import NetworkConfig
from seqcls.counts import counts_suffice
from seqcls.engines.base import Member, Progress
from seqcls.problem import Problem
from seqcls.results import TrainedMember, Weights
from seqcls.strings.token_strings import TokenStrings

if TYPE_CHECKING:
    from seqcls.engines.pytorch.members import Members


class PyTorchStrings:
    """Any model, on a GPU too.

    To name the engine loads no PyTorch, which is imported where it is used.
    """

    name = "strings"
    one_thread = False
    wants_initial = False

    def obstacle(self, problem: Problem, device: str) -> str | None:
        return None

    def reads_counts(self, problem: Problem) -> bool:
        return False

    def members(self, problem: Problem, weights: Sequence[Weights], device: str) -> "Members":
        """The models of a group, side by side."""
        from seqcls.engines.pytorch.members import Members
        from seqcls.engines.pytorch.training import choose_device

        seed, by_counts = problem.config.train_seed, self.reads_counts(problem)
        settings = (problem.network, weights, choose_device(device))
        return Members(*settings, seed=seed, by_counts=by_counts)

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
    """The same from letter counts, all members in one step."""

    name = "counts"

    def obstacle(self, problem: Problem, device: str) -> str | None:
        return problem.lacks("labels") or counts_suffice(problem.network, training=True)

    def reads_counts(self, problem: Problem) -> bool:
        return True
