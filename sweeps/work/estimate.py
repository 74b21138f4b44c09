"""Estimates of the number of runs of a sweep and of the time that the remaining ones will take.

They rest on finished runs of this machine: those of the configuration itself, else the most similar
ones, scaled by the costs of `sweeps.grid.grouping`. If there are none, a part of a group is trained
and tested for a moment.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
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
from seqcls.sampling.streams import LengthSubset, Sampler, stream
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

TRIED_SECONDS = 3.0
"""The time spent on an estimate after which no further group is timed."""

COMPILED = {"fused": (60, 100.0), "lanes": (20, 10.0)}
"""Approximate seconds to compile an engine, once on a machine, and its speed relative to the engine
that trains meanwhile."""


USUAL_PACE = {"fused": 1e-9, "counts": 1.2e-9, "lanes": 1e-10, "strings": 2e-9}
"""Approximate seconds for a unit of cost on an ordinary processor, by engine; used before anything
was timed here."""


class Times(NamedTuple):
    """Seconds for a member's epoch with its validation; for its test, with the exhaustive check if
    required; and for drawing an epoch's strings, once for all groups that train on them.
    """

    epoch: float
    test: float
    drawing: float


Timer = Callable[[RunGroup], Times | None]
"""A function that times a group: `time_group`, or `known_times`, which times none anew."""


@dataclass(frozen=True)
class Estimate:
    """The number of runs of some sweeps, and the time that they will take."""

    runs: int
    there: int
    """Number of runs that are done already."""
    seconds: float | None
    """The time that the others will take; None without measurements."""
    basis: str
    """The basis of the estimate, in a few sentences."""


def estimate(
    store: Store | None, specs: Iterable[SweepSpec], workers: int, timer: Timer | None = None
) -> Estimate:
    """Estimates the time that these sweeps will take.

    Args:
        store: the database; None if there is none yet.
        specs: the sweeps.
        workers: the number of processes that train.
        timer: times a group for which finished runs give no estimate; None to time none.
    """
    planned: dict[tuple[str, int], PlannedRun] = {}
    for spec in specs:
        for config, seeds in spec.members():
            for seed in seeds:
                run = PlannedRun(len(planned), config, seed, spec.every_epoch, spec.verdict)
                # A run in several of these sweeps is trained once.
                planned.setdefault((config.key, seed), run)
    there = finished_runs(store, {key for key, _ in planned}) & planned.keys() if store else set()
    left = make_groups([run for key, run in planned.items() if key not in there])
    known = _measure(store) if store else {}
    loads, once = [0.0] * max(1, min(workers, len(left))), dict[object, float]()
    sentences, began = {"basis": ""}, time.thread_time()
    for group in check_each(left):
        problem, engine = group[0].problem, engine_of(group[0].problem)
        # Timing one that fails would exhaust the memory, in vain.
        if reason := shortage(problem):
            sentences["memory"] = f"Some of the rest fail at once: {reason}."
            continue
        alike, most = _alike(problem), problem.config.max_num_epochs
        pace = next((known[key] for key in alike if key in known), None)
        if (epochs := next((known[key].epochs for key in alike[:2] if key in known), 0.0)) == 0:
            epochs = assumed_epochs(problem.config)
            if epochs < most:
                assumed = f"{round(epochs, 2 if epochs < 1 else None)} of {count(most, 'epoch')}"
                sentences.setdefault("early", f"Assumes training stops early, after {assumed}.")
        cost = cost_of_training(problem) / most
        may_time = timer and pace is None and time.thread_time() - began < TRIED_SECONDS
        if timer and may_time and (times := timer(group)):
            seconds = times.epoch * (1 + cost_of_checks(problem)) + times.test / epochs
            timed = "by timing a few steps on this machine"
            pace = _Pace(timed, epochs, seconds / cost, times.drawing)
            # The result holds for similar groups, and, less surely, for others of its engine.
            known |= {alike[-1]: pace, engine.name: pace}
        if (pace := pace or known.get(engine.name)) is None:
            basis = f"No run of engine {engine.name!r} has been timed yet: the time is unknown."
            return Estimate(len(planned), len(there), None, basis)
        sentences["basis"] = f"Estimated {pace.source}."
        # Each group goes to the process that is free first, as in training.
        loads[loads.index(min(loads))] += len(group) * epochs * cost * pace.seconds
        if pace.drawing:
            drawn = range(1 if problem.train.repeats else ceil(epochs))
            new = sum(not stream(problem.train).is_cached(index) for index in drawn)
            # Strings are drawn once for all groups that train on them.
            once |= {problem.train: pace.drawing * new, "start": START_SECONDS}
        if engine.name in COMPILED and not engine.is_ready(problem):
            once[engine.name] = COMPILED[engine.name][0]
            sentences[engine.name] = f"About {once[engine.name]} seconds go to compiling, once."
    basis = " ".join(filter(None, sentences.values()))
    return Estimate(len(planned), len(there), max(loads) + sum(once.values()), basis)


class _Pace(NamedTuple):
    """The source of an estimate, the number of epochs, the seconds for a unit of an epoch's cost,
    and those for drawing an epoch's strings if they are not included.
    """

    source: str
    epochs: float
    seconds: float
    drawing: float = 0.0


def _alike(problem: Problem) -> tuple[Hashable, ...]:
    """Keys by which finished runs resemble a problem, the closest first: the whole configuration,
    the rules that end training, the steps.
    """
    config, engine = problem.config, engine_of(problem).name
    ends = (
        *(config.max_num_epochs, config.min_num_epochs, config.patience),
        *(config.check_every, config.train_more_steps),
    )
    how = (config.task, config.stop_when_right, config.min_validation_loss)
    return config.key, (engine, config.architecture, *how, *ends), (engine, config.architecture)


def _measure(store: Store) -> dict[Hashable, _Pace]:
    """The paces of finished runs on this machine, by the keys of `_alike`."""
    runs, found = timings(store), defaultdict[Hashable, list[tuple[float, float]]](list)
    config: Any
    for config, own in runs.groupby("config", sort=False):
        # The cost of a plug-in that is not installed here is unknown.
        if obstacle_of(config) is None:
            problem = resolve(config)
            cost = own["epochs"] * cost_of_training(problem) / config.max_num_epochs
            for key in _alike(problem):
                found[key] += zip(own["epochs"], own["seconds"] / cost, strict=True)
    source = f"from {count(len(runs), 'run')} trained on this machine"
    columns = {key: list(zip(*own, strict=True)) for key, own in found.items()}
    # The median of paces, since some runs shared the machine with other work.
    return {key: _Pace(source, fmean(own[0]), median(own[1])) for key, own in columns.items()}


def assumed_epochs(config: RunConfig) -> float:
    """The expected number of epochs: the geometric mean of the fewest and the most; fractional if
    training is checked within an epoch.
    """
    fewest, more = float(max(config.min_num_epochs, 1)), 0.0
    if config.stop_when_right:
        steps = steps_of_epoch(resolve(config))
        fewest, more = min(config.check_every / steps or 1, 1), config.train_more_steps / steps
    halfway = sqrt(min(fewest, config.max_num_epochs) * config.max_num_epochs)
    return min(halfway + more, config.max_num_epochs)


# The time that a group takes here, measured in a moment of training and testing.

_known: dict[tuple[str, int, bool], Times | None] = {}
"""Results of `time_group` in this process."""


def known_times(group: RunGroup) -> Times | None:
    """The earlier result of `time_group` for a group; None without one."""
    return _known.get((group[0].config.group_key, len(group), group[0].verdict))


def guess_times(group: RunGroup) -> Times | None:
    """The known times of a group, else those on an ordinary processor by its cost."""
    problem = group[0].problem
    pace = USUAL_PACE.get(engine_of(problem).name)
    if (known := known_times(group)) is not None or pace is None:
        return known
    cost = cost_of_training(problem) / problem.config.max_num_epochs
    return Times(pace * cost / (1 + cost_of_checks(problem)), 0.0, 0.0)


def time_group(group: RunGroup) -> Times | None:
    """Times a group on one thread; None if it cannot be trained here, or diverges at once.

    Raises:
        Cancelled: nobody waits for it any longer.
    """
    key = (group[0].config.group_key, len(group), group[0].verdict)
    if key not in _known:
        times = None
        # A group that cannot be trained is reported where it is launched.
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
    # Members that are trained in one step share its time.
    members = len(group) if engine.reads_counts(whole) and not engine.is_compiled else 1
    weights: list[Weights] = []

    def train() -> None:
        seeds = [(some, run.model_seed) for run in group[:members]]
        trained = train_group(seeds, engine=engine.name, progress=lambda *_: check())
        weights[:] = [member.kept_weights for member in trained if member.failure is None]

    # Rules that end training early are disabled: few strings may all be right by chance.
    update = {"max_num_epochs": 1, "min_num_epochs": 1, "stop_when_right": False, "check_every": 0}
    short = resolve(whole.config.model_copy(update=update))
    drawing = _seconds(partial(next, iter(whole.train.epochs())))
    with on_one_thread(engine.name):
        for share in (0.001, 0.01, 0.1, 1.0):
            parts: dict[str, Any] = {
                part: _first(short.sampler(part), share) for part in ("train", "validation", "test")
            }
            some = replace(short, **parts)
            test = partial(evaluate, some, weights, engine=engine.name)
            # The first calls draw strings and load modules.
            train()
            if not weights:
                return None
            test()
            epoch, tested = _seconds(train), _seconds(test)
            # The clock measures 30 ms well enough, and more than 300 ms are not worth the wait.
            if min(epoch, tested) > 0.03 or max(epoch, tested) > 0.3:
                break
        tested /= share * len(weights)
        if group[0].verdict and unaffordable(whole) is None:
            tested += _seconds(partial(verdicts, whole, weights[:1], engine=engine.name))
    chosen = choose_engine(whole).name
    faster = COMPILED[chosen][1] if chosen != engine.name and chosen in COMPILED else 1.0
    return Times(epoch / share / members / faster, tested / faster, drawing)


def _first(sampler: Sampler, share: float) -> LengthSubset:
    """The given share of a sampler's strings, the first ones."""
    return LengthSubset(sampler, sampler.lengths, max(1, round(share * sampler.epoch_size)))


def _seconds(act: Callable[[], object]) -> float:
    # The time of this thread alone, so that other work of the machine does not count.
    check()
    started = time.thread_time()
    act()
    return time.thread_time() - started
