"""How many runs a sweep asks for, how many are there already, and how long the rest will take.

Finished runs of this machine tell it: those of the configuration itself, else those most like it,
by the units of `sweeps.grid.grouping`. Where there are none, a part of a group is trained and
tested for a moment.
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
"""Once so much is spent on an estimate, no further group is timed."""

COMPILED = {"fused": (60, 100.0), "lanes": (20, 10.0)}
"""About how many seconds compiling an engine takes, once on a machine, and how many times as fast
it then is as the one that trains meanwhile."""


USUAL_PACE = {"fused": 1e-9, "counts": 1.2e-9, "lanes": 1e-10, "strings": 2e-9}
"""About how many seconds a unit of cost takes an ordinary processor, by engine; measured once, for
what is said before anything was timed here."""


class Times(NamedTuple):
    """Seconds of a member's epoch with its validation; of its test, with the exhaustive check where
    that is asked for; and of drawing an epoch's strings, once for all groups that train on them.
    """

    epoch: float
    test: float
    drawing: float


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
    """What the estimate rests on, in a few sentences."""


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
                # A run that several of these sweeps have is trained once.
                planned.setdefault((config.key, seed), run)
    there = finished_runs(store, {key for key, _ in planned}) & planned.keys() if store else set()
    left = make_groups([run for key, run in planned.items() if key not in there])
    known = _measure(store) if store else {}
    loads, once = [0.0] * max(1, min(workers, len(left))), dict[object, float]()
    sentences, began = {"basis": ""}, time.thread_time()
    for group in check_each(left):
        problem, engine = group[0].problem, engine_of(group[0].problem)
        # To time one that fails would take all the memory that there is, for nothing.
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
            # What was timed tells of groups like it, and, less surely, of others of its engine.
            known |= {alike[-1]: pace, engine.name: pace}
        if (pace := pace or known.get(engine.name)) is None:
            basis = f"No run of engine {engine.name!r} has been timed yet: the time is unknown."
            return Estimate(len(planned), len(there), None, basis)
        sentences["basis"] = f"Estimated {pace.source}."
        # Each group goes to the process that is free first, as workers take them.
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
    """How it is known how long training takes, its epochs, the seconds for a unit of an epoch's
    cost, and those for drawing an epoch's strings where no finished run has them within its own.
    """

    source: str
    epochs: float
    seconds: float
    drawing: float = 0.0


def _alike(problem: Problem) -> tuple[Hashable, ...]:
    """By what finished runs tell of a problem, the nearest first: all of it, its end, its steps."""
    config, engine = problem.config, engine_of(problem).name
    ends = (
        *(config.max_num_epochs, config.min_num_epochs, config.patience),
        *(config.check_every, config.train_more_steps),
    )
    how = (config.task, config.stop_when_right, config.min_validation_loss)
    return config.key, (engine, config.architecture, *how, *ends), (engine, config.architecture)


def _measure(store: Store) -> dict[Hashable, _Pace]:
    """How training went on this machine, by the keys of `_alike`."""
    runs, found = timings(store), defaultdict[Hashable, list[tuple[float, float]]](list)
    config: Any
    for config, own in runs.groupby("config", sort=False):
        # One of a plug-in that is not installed here says nothing that can be scaled.
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
    """After how many epochs training may be expected to end: halfway from the fewest to the most,
    as factors go; parts of one where it is checked within it.
    """
    fewest, more = float(max(config.min_num_epochs, 1)), 0.0
    if config.stop_when_right:
        steps = steps_of_epoch(resolve(config))
        fewest, more = min(config.check_every / steps or 1, 1), config.train_more_steps / steps
    halfway = sqrt(min(fewest, config.max_num_epochs) * config.max_num_epochs)
    return min(halfway + more, config.max_num_epochs)


# What a group takes here, from a moment of its training and testing.

_known: dict[tuple[str, int, bool], Times | None] = {}
"""What was timed as long as this process lives; None where that came to nothing."""


def known_times(group: RunGroup) -> Times | None:
    """What is known of a group, without timing it."""
    return _known.get((group[0].config.group_key, len(group), group[0].verdict))


def guess_times(group: RunGroup) -> Times | None:
    """What is known of a group, else what it would take an ordinary processor by its cost."""
    problem = group[0].problem
    pace = USUAL_PACE.get(engine_of(problem).name)
    if (known := known_times(group)) is not None or pace is None:
        return known
    cost = cost_of_training(problem) / problem.config.max_num_epochs
    return Times(pace * cost / (1 + cost_of_checks(problem)), 0.0, 0.0)


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
    members = len(group) if engine.reads_counts(whole) and not engine.is_compiled else 1
    weights: list[Weights] = []

    def train() -> None:
        seeds = [(some, run.model_seed) for run in group[:members]]
        trained = train_group(seeds, engine=engine.name, progress=lambda *_: check())
        weights[:] = [member.kept_weights for member in trained if member.failure is None]

    # Few strings may all be right by chance, or none of them of trained lengths.
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
            # The first time they draw strings and load what they need.
            train()
            if not weights:
                return None
            test()
            epoch, tested = _seconds(train), _seconds(test)
            # The clock measures 30 ms well enough, and nobody should wait for more than 300.
            if min(epoch, tested) > 0.03 or max(epoch, tested) > 0.3:
                break
        tested /= share * len(weights)
        if group[0].verdict and unaffordable(whole) is None:
            tested += _seconds(partial(verdicts, whole, weights[:1], engine=engine.name))
    chosen = choose_engine(whole).name
    faster = COMPILED[chosen][1] if chosen != engine.name and chosen in COMPILED else 1.0
    return Times(epoch / share / members / faster, tested / faster, drawing)


def _first(sampler: Sampler, share: float) -> LengthSubset:
    """The first strings of a sampler, so large a share of them."""
    return LengthSubset(sampler, sampler.lengths, max(1, round(share * sampler.epoch_size)))


def _seconds(act: Callable[[], object]) -> float:
    # Of this thread alone, so that what else the machine does now is not taken for its own.
    check()
    started = time.thread_time()
    act()
    return time.thread_time() - started
