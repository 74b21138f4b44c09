"""Runs to groups of one shape, the same groups whoever asks."""

from collections.abc import Iterable
from dataclasses import dataclass

from seqcls.config import RunConfig

MAX_MEMBERS = 64
"""Beyond this many members a step's arithmetic outweighs what stacking saves."""


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


RunGroup = tuple[PlannedRun, ...]


def make_groups(runs: Iterable[PlannedRun]) -> list[RunGroup]:
    """Groups of runs that can train together, the longest first, so that cores end together."""
    by_key: dict[tuple[str, bool, bool], list[PlannedRun]] = {}
    for run in sorted(runs, key=lambda run: run.id):
        by_key.setdefault((run.config.group_key, run.every_epoch, run.verdict), []).append(run)
    groups = [
        tuple(alike[start : start + MAX_MEMBERS])
        for alike in by_key.values()
        for start in range(0, len(alike), MAX_MEMBERS)
    ]
    return sorted(groups, key=_expected_cost, reverse=True)


def _expected_cost(group: RunGroup) -> float:
    config = group[0].config
    strings = config.train_size
    if config.train_sampler == "fixed_length":
        strings = config.num_letters ** (config.sequence_length - 1)
    steps = config.max_num_epochs * strings / config.train_batch_size
    # A step costs about as much as ten members' arithmetic before the first member is counted.
    return steps * (10 + len(group))
