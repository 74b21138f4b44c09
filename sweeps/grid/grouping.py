"""Groups of runs of one shape, ordered by the cost of training."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from seqcls.config import NetworkConfig, RunConfig
from seqcls.engines.base import Engine
from seqcls.engines.choice import choose_engine, engine_named
from seqcls.models import MODELS
from seqcls.problem import Problem, missing_plugin, resolve

PER_STRING = 100.0
"""Overhead of a string beside its products, by letter counts, in multiply-adds."""

PER_TOKEN = 60.0
"""Overhead of a token, where tokens are read one by one, in multiply-adds."""


def engine_of(problem: Problem) -> Engine:
    """Returns the default engine for a problem's models."""
    return engine_named(choose_engine(problem).name)


def cost_of_training(problem: Problem) -> float:
    """Estimates the cost of a member's training, comparable between problems of one engine.

    By letter counts the cost of a string does not depend on its length: one block computes the
    token that is read out, several blocks each letter once. Otherwise each token passes every
    block, and attends to every other.
    """
    network, by_counts = problem.network, engine_of(problem).reads_counts(problem)
    if by_counts and network.num_blocks == 1:
        per_string = _of_counts(network)
    else:
        tokens = network.num_letters if by_counts else mean_length(problem)
        per_string = _of_tokens(network, tokens + 1)
    strings = problem.train.epoch_size * (1 + cost_of_checks(problem))
    return problem.config.max_num_epochs * strings * per_string


ANSWERED = 1 / 3
"""Cost of predicting a string, relative to training on it."""


def cost_of_checks(problem: Problem) -> float:
    """Estimates the cost of checks within epochs, relative to training on an epoch's strings."""
    config, trained, validated = problem.config, problem.trained_lengths, problem.validation.lengths
    if not (config.stop_when_right and config.check_every):
        return 0.0
    both = range(max(trained.start, validated.start), min(trained.stop, validated.stop))
    strings = problem.validation.epoch_size * len(both) / len(validated)
    # The denominator is the number of strings trained on between two checks.
    return ANSWERED * strings / (config.check_every * problem.train.batch_size)


def _of_counts(network: NetworkConfig) -> float:
    mixed = network.num_attention_heads * network.attention_head_size
    hidden, inner = network.hidden_size, network.feed_forward_size
    first = mixed * (network.num_letters + hidden) + 2 * inner * hidden
    return PER_STRING + first


def _of_tokens(network: NetworkConfig, tokens: float) -> float:
    products = MODELS[network.architecture].count_products(network, tokens)
    read = 0 if network.head == "string" else network.hidden_size * network.num_outputs
    return tokens * (network.num_blocks * (PER_TOKEN + products) + read)


def mean_length(problem: Problem) -> float:
    """Returns the mean of the tokens read of the shortest and the longest training string; with
    the target, where there are outputs.
    """
    lengths = problem.train.lengths
    return sum(problem.kind.longest_reading(problem.task, x) for x in (lengths[0], lengths[-1])) / 2


STEP_MEMBERS = 10
"""Fixed cost of a step, in units of one member's arithmetic."""

MAX_FAILURES = 3
"""Number of failures after which a run is not retried automatically."""


@dataclass(frozen=True)
class PlannedRun:
    """A run that is still to be trained."""

    id: int
    config: RunConfig
    model_seed: int
    every_epoch: bool
    """True if a sweep stores the weights of every epoch."""
    verdict: bool
    """True if a sweep has the exhaustive check."""
    failures: int = 0
    """Number of times that it was lost or failed since the user queued it."""

    @property
    def problem(self) -> Problem:
        """The problem that it is trained for."""
        return resolve(self.config)


RunGroup = tuple[PlannedRun, ...]


def split_by_packages(runs: Iterable[PlannedRun]) -> tuple[list[PlannedRun], Counter[str]]:
    """Returns the runs whose packages are installed, and counts others by the lacking package."""
    runs = list(runs)
    configs = {run.config.key: run.config for run in runs}
    lacking = {key: missing_plugin(config) for key, config in configs.items()}
    waiting = Counter(x for run in runs if (x := lacking[run.config.key]) is not None)
    return [run for run in runs if lacking[run.config.key] is None], waiting


def make_groups(
    runs: Iterable[PlannedRun], engine: str = "auto", device: str = "auto"
) -> list[RunGroup]:
    """Groups runs that can train together, the costliest first, so that cores end together.

    Args:
        engine: as for `choose_engine`; the engine determines the size of groups.

    Raises:
        EngineError: the engine is unknown, or cannot train one of them.
    """
    by_key: dict[tuple[str, bool, bool, int], list[PlannedRun]] = {}
    largest: dict[str, int] = {}
    # By their ids, so that every worker makes the same groups.
    for run in sorted(runs, key=lambda run: run.id):
        alike = run.config.group_key
        # Runs of one group key share their engine, which is looked for once.
        if alike not in largest:
            chosen = engine_named(choose_engine(run.problem, engine, device).name)
            largest[alike] = chosen.group_size(run.problem)
        # A run that was lost with its group is retried in a smaller one, and finally alone: a run
        # that kills its process does not fail others.
        sizes = largest[alike], max(1, largest[alike] // 8), 1
        size = sizes[min(run.failures, MAX_FAILURES - 1)]
        key = (alike, run.every_epoch, run.verdict, size)
        by_key.setdefault(key, []).append(run)
    groups = [
        tuple(runs_alike[start : start + size])
        for (*_, size), runs_alike in by_key.items()
        for start in range(0, len(runs_alike), size)
    ]
    return sorted(
        groups,
        key=lambda group: cost_of_training(group[0].problem) * (STEP_MEMBERS + len(group)),
        reverse=True,
    )
