"""Divides runs into groups of one shape, the same groups for every caller."""

from collections.abc import Iterable
from dataclasses import dataclass

from seqcls.config import RunConfig
from seqcls.engines.choice import choose_engine, engine_named
from seqcls.problem import Problem, resolve
from sweeps.grid.cost import cost_of_training

STEP_MEMBERS = 10
"""A step costs about as much as so many members' arithmetic before the first member is counted."""

MAX_FAILURES = 3
"""A run that failed this often is not tried again by itself."""


@dataclass(frozen=True)
class PlannedRun:
    """A run that is still to be trained."""

    id: int
    config: RunConfig
    model_seed: int
    every_epoch: bool
    """Whether a sweep wants the weights of every epoch."""
    verdict: bool
    """Whether a sweep wants the exhaustive check."""
    failures: int = 0
    """How often it was lost or failed since it was queued by hand."""

    @property
    def problem(self) -> Problem:
        """What it is trained for."""
        return resolve(self.config)


RunGroup = tuple[PlannedRun, ...]


def make_groups(
    runs: Iterable[PlannedRun], engine: str = "auto", device: str = "auto"
) -> list[RunGroup]:
    """Groups of runs that can train together, the longest first, so that cores end together.

    Args:
        runs: what is to be trained.
        engine: as for `choose_engine`; how many members a group has is the engine's to say.
        device: likewise.

    Raises:
        EngineError: the engine is unknown, or cannot train one of them.
    """
    by_key: dict[tuple[str, bool, bool, int], list[PlannedRun]] = {}
    largest: dict[str, int] = {}
    for run in sorted(runs, key=lambda run: run.id):
        alike = run.config.group_key
        if alike not in largest:
            chosen = engine_named(choose_engine(run.problem, engine, device).name)
            largest[alike] = chosen.group_size(run.problem)
        size = _size(run, largest[alike])
        key = (alike, run.every_epoch, run.verdict, size)
        by_key.setdefault(key, []).append(run)
    groups = [
        tuple(runs_alike[start : start + size])
        for (*_, size), runs_alike in by_key.items()
        for start in range(0, len(runs_alike), size)
    ]
    return sorted(groups, key=_expected_cost, reverse=True)


def _size(run: PlannedRun, largest: int) -> int:
    """How many members its group may have.

    A run that was lost with its group is tried in a smaller one, at last alone: so one run that
    kills its process takes no other with it for good.
    """
    return (largest, max(1, largest // 8), 1)[min(run.failures, MAX_FAILURES - 1)]


def _expected_cost(group: RunGroup) -> float:
    return cost_of_training(group[0].problem) * (STEP_MEMBERS + len(group))
