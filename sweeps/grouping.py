"""Runs to groups of one shape, the same groups whoever asks."""

from collections.abc import Iterable
from dataclasses import dataclass

from seqcls.config import RunConfig

MAX_MEMBERS = 64
"""Beyond this many members a step's arithmetic outweighs what stacking saves."""

MAX_FAILURES = 3
"""A run that failed this often is not tried again by itself."""

FEW_MEMBERS = 16
"""Members that are trained one after another gain nothing from company: small groups keep all of a
machine's cores at work, and lose little when one is."""


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


RunGroup = tuple[PlannedRun, ...]


def make_groups(runs: Iterable[PlannedRun]) -> list[RunGroup]:
    """Groups of runs that can train together, the longest first, so that cores end together."""
    by_key: dict[tuple[str, bool, bool, int], list[PlannedRun]] = {}
    for run in sorted(runs, key=lambda run: run.id):
        size = _size(run)
        key = (run.config.group_key, run.every_epoch, run.verdict, size)
        by_key.setdefault(key, []).append(run)
    groups = [
        tuple(alike[start : start + size])
        for (*_, size), alike in by_key.items()
        for start in range(0, len(alike), size)
    ]
    return sorted(groups, key=_expected_cost, reverse=True)


def _size(run: PlannedRun) -> int:
    """How many members its group may have.

    A run that was lost with its group is tried in a smaller one, at last alone: so one run that
    kills its process takes no other with it for good.
    """
    largest = FEW_MEMBERS if run.config.dropout_rate == 0 else MAX_MEMBERS
    return (largest, largest // 8, 1)[min(run.failures, MAX_FAILURES - 1)]


def training_strings(config: RunConfig) -> int:
    """How many strings one epoch has."""
    if config.train_sampler == "fixed_length":
        return int(config.num_letters ** (config.sequence_length - 1))
    return config.train_size


def _expected_cost(group: RunGroup) -> float:
    config = group[0].config
    steps = config.max_num_epochs * training_strings(config) / config.train_batch_size
    # A step costs about as much as ten members' arithmetic before the first member is counted.
    return steps * (10 + len(group))
