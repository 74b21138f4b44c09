"""How many runs a sweep asks for, how many are there already, and how long the rest will take.

Finished runs of this machine tell it: those of the configuration itself, else those of its engine
and architecture, by the units of `sweeps.grid.grouping`. Where there are none, a part of a group is
trained and tested.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from math import ceil, sqrt
from statistics import fmean, median
from typing import Any, NamedTuple

from seqcls.cancellation import check, check_each
from seqcls.config import RunConfig
from seqcls.engines.choice import choose_engine, engine_named
from seqcls.engines.member import steps_of_epoch
from seqcls.errors import SeqclsError
from seqcls.problem import Problem, obstacle_of, resolve
from seqcls.results import Weights
from seqcls.sampling.streams import OfLengths, stream
from seqcls.text import count
from sweeps.grid.grouping import (
    PlannedRun,
    RunGroup,
    cost_of_checks,
    cost_of_training,
    engine_of,
    make_groups,
)
from sweeps.grid.spec import SweepSpec
from sweeps.store.database import Store
from sweeps.store.reads.workers import START_SECONDS, finished_runs, timings
from sweeps.work.jobs import on_one_thread
from sweeps.work.machine import shortage

COMPILED = {"fused": (60, 100.0), "lanes": (20, 10.0)}
"""About how many seconds compiling an engine takes, once on a machine, and how many times as fast
it then is as the one that trains meanwhile."""

TRIED_SECONDS = 3.0
"""Once so much is spent on an estimate, no further group is timed."""

TRIED_STRINGS = (4, 64, 1024, 16384)
"""So many are trained on and tested in turn, until that takes long enough."""


class Times(NamedTuple):
    """What a group takes, in seconds."""

    epoch: float
    """A member's, with its validation."""
    test: float
    """A member's, with the exhaustive check where it is asked for."""
    drawing: float
    """An epoch's strings, once for all groups that train on them."""


Timer = Callable[[RunGroup], Times | None]
"""Times a group: `time_group`, or `known_times`, which times none anew."""


@dataclass(frozen=True)
class Estimate:
    """What a sweep will take."""

    runs: int
    there: int
    """Runs that are done already."""
    seconds: float | None
    """How long the others will take; None where nothing was measured that tells it."""
    basis: str
    """What the estimate rests on, in one sentence."""


def estimate(
    store: Store | None, specs: Iterable[SweepSpec], workers: int, timer: Timer | None = None
) -> Estimate:
    """What these sweeps will take with so many processes.

    Args:
        store: the database; None where there is none yet.
        specs: the sweeps.
        workers: processes that train at once.
        timer: what times a group that no finished run tells of; None where none is to be timed.
    """
    planned: dict[tuple[str, int], PlannedRun] = {}
    for spec in specs:
        for config, seeds in spec.members():
            for seed in seeds:
                run = PlannedRun(len(planned), config, seed, spec.every_epoch, spec.verdict)
                planned.setdefault((config.key, seed), run)
    there = finished_runs(store, {key for key, _ in planned}) & set(planned) if store else set()
    groups = make_groups([run for key, run in planned.items() if key not in there])
    # To time one that fails would take all the memory that there is, for nothing.
    failing = [group for group in groups if shortage(group[0].problem) is not None]
    fitting = [group for group in groups if group not in failing]
    seconds, said = _judge(store, fitting, workers, timer) if fitting else (0.0, "")
    if failing:
        number = f"{sum(map(len, failing)):,}" if fitting else "All"
        said += f" {number} of the rest fail at once: {shortage(failing[0][0].problem)}."
    return Estimate(len(planned), len(there), seconds, said.strip() or "All runs are there.")


class _Rate(NamedTuple):
    """How long training takes, and how that is known."""

    seconds: float
    """For a unit of cost, with what a run takes beside its training."""
    source: str
    drawing: float = 0.0
    """Seconds for the strings of an epoch, once for all groups that train on them."""


def _judge(
    store: Store | None, groups: list[RunGroup], workers: int, timer: Timer | None
) -> tuple[float | None, str]:
    """Seconds of all groups, None where nothing tells it; and what that rests on."""
    known_epochs, rates = _measure(store) if store is not None else ({}, {})
    loads = [0.0] * max(1, min(workers, len(groups)))
    once, sources, early = dict[object, float](), set[str](), ""
    began = time.thread_time()
    for group in check_each(groups):
        problem, config = group[0].problem, group[0].config
        engine = engine_of(problem)
        epochs = known_epochs.get(config.key) or known_epochs.get(_stopping(config))
        if epochs is None:
            # Halfway between the fewest and the most, as factors go.
            epochs, most = (
                sqrt(fewest_epochs(config) * config.max_num_epochs),
                config.max_num_epochs,
            )
            if epochs < most and not early:
                number = f"{epochs:.0f}" if epochs >= 1 else f"{epochs:.2g}"
                assumed = f"{number} of {count(most, 'epoch')}"
                early = f" Training may stop early: it is assumed to take {assumed}."
        cost = epochs * cost_of_training(problem) / config.max_num_epochs
        alike = f"{engine.name} {config.architecture}"
        rate = rates.get(config.key) or rates.get(alike)
        may_time = rate is None and time.thread_time() - began < TRIED_SECONDS
        if timer and may_time and (times := timer(group)):
            epoch = times.epoch * (1 + cost_of_checks(problem))
            source = "by timing a few steps on this machine"
            rate = _Rate((epochs * epoch + times.test) / cost, source, times.drawing)
            rates[alike] = rate
            rates.setdefault(engine.name, rate)
        if (rate := rate or rates.get(engine.name)) is None:
            why = "has been timed yet, so the training time is unknown"
            return None, f"No run of engine {engine.name!r} {why}."
        loads[loads.index(min(loads))] += len(group) * cost * rate.seconds
        sources.add(rate.source)
        if rate.drawing:
            drawn = range(1 if problem.train.repeats else ceil(epochs))
            new = sum(not stream(problem.train).is_kept(index) for index in drawn)
            once |= {problem.train: rate.drawing * new, "start": START_SECONDS}
        if engine.name in COMPILED and not engine.is_ready(problem):
            once[engine.name] = COMPILED[engine.name][0]
    said = f"Estimated {' and '.join(sorted(sources))}."
    if compiled := [name for name in COMPILED if name in once]:
        seconds = sum(once[name] for name in compiled)
        said += f" About {seconds:.0f} seconds of it go to compiling ({', '.join(compiled)}), once."
    return max(loads) + sum(once.values()), said + early


def fewest_epochs(config: RunConfig) -> float:
    """After how many epochs training may end at the earliest; parts of one where it is checked
    within it.
    """
    least: float = max(config.min_num_epochs, 1)
    if config.stop_when_right:
        every, steps = config.check_every, steps_of_epoch(resolve(config))
        least = min(every / steps, 1) if every else 1
    elif config.min_validation_loss == 0:
        # Only running out of patience ends it.
        least += config.patience - 1
    return min(least, config.max_num_epochs)


def _stopping(config: RunConfig) -> str:
    """What tells after how many epochs training ends."""
    names = (
        *("task", "architecture", "max_num_epochs", "min_num_epochs", "patience"),
        *("min_validation_loss", "stop_when_right", "check_every"),
    )
    return repr([getattr(config, name) for name in names])


def _measure(store: Store) -> tuple[Mapping[str, float], dict[str, _Rate]]:
    """How many epochs finished runs of this machine took, and how long those: by the key of their
    configuration, by what tells when training ends, and by engine and architecture.
    """
    epochs, rates = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
    runs = timings(store)
    # One of a plug-in that is not installed here says nothing that can be scaled.
    problems = {x: resolve(x) for x in {run.config for run in runs} if obstacle_of(x) is None}
    costs = {x: cost_of_training(problem) / x.max_num_epochs for x, problem in problems.items()}
    alike = {x: f"{engine_of(own).name} {x.architecture}" for x, own in problems.items()}
    for config, taken, seconds in (run for run in runs if run.config in problems):
        for key in (config.key, _stopping(config)):
            epochs[key].append(taken)
        for key in (config.key, alike[config]):
            rates[key].append(seconds / (max(1, taken) * costs[config]))
    source = f"from {count(len(runs), 'run')} trained on this machine"
    return (
        {key: fmean(values) for key, values in epochs.items()},
        {key: _Rate(median(values), source) for key, values in rates.items()},
    )


# What a group takes here, from a moment of its training and testing.

ENOUGH_SECONDS = 0.03
"""Training and testing that took so long are extrapolated from, or one of them ten times so."""

_known: dict[tuple[str, int, bool], Times | None] = {}
"""What was timed as long as this process lives; None where that came to nothing."""


def known_times(group: RunGroup) -> Times | None:
    """What is known of a group, without timing it."""
    return _known.get((group[0].config.group_key, len(group), group[0].verdict))


def time_group(group: RunGroup) -> Times | None:
    """Times a group on one thread; None where it cannot be trained here, or diverges at once.

    Raises:
        Cancelled: whoever waits has left.
    """
    key = (group[0].config.group_key, len(group), group[0].verdict)
    if key not in _known:
        times = None
        # That it cannot be trained is said where it is launched.
        with suppress(SeqclsError, MemoryError, RuntimeError):
            times = _time(group)
        _known[key] = times
    return _known[key]


def _time(group: RunGroup) -> Times | None:
    # Imported where they are used: training and testing load PyTorch or Numba.
    from seqcls.evaluation import evaluate
    from seqcls.interpretability.verdicts import unaffordable, verdicts
    from seqcls.training import train_group

    whole = group[0].problem
    engine = engine_named(choose_engine(whole, ready=True).name)
    # Of a step that moves all members together each has a part.
    members = len(group) if engine.by_counts and not engine.one_thread else 1
    weights: list[Weights] = []

    def draw() -> None:
        next(iter(some.train.epochs()))

    def train() -> None:
        seeds = [(some, run.model_seed) for run in group[:members]]
        trained = train_group(seeds, engine=engine.name, progress=lambda *_: check())
        weights[:] = [member.kept_weights for member in trained if member.failure is None]

    def test() -> None:
        evaluate(some, weights, engine=engine.name)

    with on_one_thread(engine.name):
        for strings in TRIED_STRINGS:
            some = shorten(whole, strings)
            # The first time it draws the strings, once for all members, and loads what it needs.
            drawing = _seconds(draw)
            train()
            if not weights:
                return None
            test()
            epoch, tested = _seconds(train), _seconds(test)
            if min(epoch, tested) > ENOUGH_SECONDS or max(epoch, tested) > 10 * ENOUGH_SECONDS:
                break
        share = some.train.epoch_size / whole.train.epoch_size
        tested *= whole.test.epoch_size / some.test.epoch_size / len(weights)
        if group[0].verdict and unaffordable(whole) is None:
            tested += _seconds(lambda: verdicts(whole, weights[:1], engine=engine.name))
    chosen = choose_engine(whole).name
    faster = COMPILED[chosen][1] if chosen != engine.name and chosen in COMPILED else 1.0
    return Times(epoch / share / members / faster, tested / faster, drawing / share)


def shorten(whole: Problem, strings: int) -> Problem:
    """The same problem with few strings of each part, and one epoch."""
    sizes = {part: min(strings, whole.sampler(part).epoch_size) for part in ("train", "test")}
    share = sizes["train"] / whole.train.epoch_size
    sizes["validation"] = max(1, round(share * whole.validation.epoch_size))
    update: dict[str, Any] = {f"{part}_size": size for part, size in sizes.items()}
    update |= {f"{x}_batch_size": min(n, whole.sampler(x).batch_size) for x, n in sizes.items()}
    update |= {"max_num_epochs": 1, "min_num_epochs": 1, "disjoint": False}
    # Few strings may all be right by chance, or none of them of trained lengths.
    update |= {"stop_when_right": False, "check_every": 0}
    problem = resolve(whole.config.model_copy(update=update))
    # Of some samplers no setting gives the size, and the network is that of all lengths.
    samplers: dict[str, Any] = {
        part: OfLengths(problem.sampler(part), problem.sampler(part).lengths, size)
        for part, size in sizes.items()
        if problem.sampler(part).epoch_size > size
    }
    return replace(problem, network=whole.network, **samplers)


def _seconds(act: Callable[[], object]) -> float:
    # Of this thread alone, so that what else the machine does now is not taken for its own.
    check()
    started = time.thread_time()
    act()
    return time.thread_time() - started
