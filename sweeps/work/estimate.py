"""How many runs a sweep asks for, how many are there already, and how long the rest will take.

Finished runs of this machine tell it: those of the configuration itself, else those of its engine
and architecture, by the units of `sweeps.grid.grouping`. Where there are none, a group is trained
for about a second; where that cannot be, runs of another machine tell it.
"""

import socket
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
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
from sweeps.store.databases.engine import Store
from sweeps.store.reads.workers import Timing, finished_runs, timings
from sweeps.work.jobs import on_one_thread
from sweeps.work.machine import shortage

COMPILED = {"fused": (60, 100.0), "lanes": (20, 10.0)}
"""About how many seconds compiling an engine takes, once on a machine, and how many times as fast
it then is as the one that trains meanwhile."""

START_SECONDS = 1.0
"""What importing PyTorch or Numba takes of a processor."""

TRIED_SECONDS = 3.0
"""Once so much is spent on an estimate, no further group is timed."""


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
    fitting = [group for group in groups if shortage(group[0].problem) is None]
    failing = [group for group in groups if shortage(group[0].problem) is not None]
    seconds, said = _judge(store, fitting, workers, timer) if fitting else (0.0, "")
    if failing:
        number = f"{sum(map(len, failing)):,}" if fitting else "All"
        said += f" {number} of the rest fail at once: {shortage(failing[0][0].problem)}."
    return Estimate(len(planned), len(there), seconds, said.strip() or "All runs are there.")


def _judge(
    store: Store | None, groups: list[RunGroup], workers: int, timer: Timer | None
) -> tuple[float | None, str]:
    """Seconds of all groups, None where nothing tells it; and what that rests on."""
    keys = {run.config.key for group in groups for run in group}
    measured = _measure(store, keys) if store is not None else _Measured()
    loads = [0.0] * max(1, min(workers, len(groups)))
    timed: dict[str | tuple[str, str], tuple[float, float] | None] = {}
    drawing: dict[object, float] = {}
    sources, early, compiled = set[str](), "", dict[str, int]()
    began = time.thread_time()
    for group in check_each(groups):
        config, engine = group[0].config, engine_of(group[0].problem)
        alike = (engine.name, config.architecture)
        epochs = measured.epochs.get(config.key) or measured.epochs.get(_stopping(config))
        if epochs is None:
            # Halfway between the fewest and the most, as factors go.
            epochs = sqrt(fewest_epochs(config) * config.max_num_epochs)
            if epochs < config.max_num_epochs and not early:
                number = f"{epochs:.0f}" if epochs >= 1 else f"{epochs:.2g}"
                most = count(config.max_num_epochs, "epoch")
                early = f" Training may stop early: it is assumed to take {number} of {most}."
        cost = epochs * _epoch_cost(config)
        rate = measured.rates.get(config.key) or measured.rates.get(alike)
        source = measured.source
        if timer is not None and not (rate and measured.is_here):
            if alike not in timed and time.thread_time() - began < TRIED_SECONDS:
                timed[alike] = None
                if times := timer(group):
                    epoch = times.epoch * (1 + cost_of_checks(group[0].problem))
                    timed[alike] = (epochs * epoch + times.test) / cost, times.drawing
                    timed.setdefault(engine.name, timed[alike])
            if trial := timed.get(alike) or timed.get(engine.name):
                rate, source = trial[0], "by timing a few steps on this machine"
                drawing[group[0].problem.train] = trial[1] * _undrawn(group[0].problem, epochs)
        if not rate:
            why = "has been timed yet, so the training time is unknown"
            return None, f"No run of engine {engine.name!r} {why}."
        loads[loads.index(min(loads))] += len(group) * cost * rate
        sources.add(source)
        if engine.name in COMPILED and not engine.is_ready(group[0].problem):
            compiled[engine.name] = COMPILED[engine.name][0]
    once = START_SECONDS * bool(timed) + sum(compiled.values()) + sum(drawing.values())
    said = f"Estimated {' and '.join(sorted(sources))}."
    if compiled:
        names = ", ".join(compiled)
        said += f" About {sum(compiled.values())} seconds of it go to compiling ({names}), once."
    return max(loads) + once, said + early


def _undrawn(problem: Problem, epochs: float) -> int:
    """How many epochs' strings this machine has not kept."""
    number = 1 if problem.train.repeats else ceil(epochs)
    return sum(not stream(problem.train).is_kept(index) for index in range(number))


def _epoch_cost(config: RunConfig) -> float:
    return cost_of_training(resolve(config)) / config.max_num_epochs


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


@dataclass(frozen=True)
class _Measured:
    """What finished runs took: means by the key of their configuration, and medians of those alike
    in engine and architecture, or in `_stopping`.
    """

    epochs: Mapping[str, float] = field(default_factory=dict)
    rates: Mapping[str | tuple[str, str], float] = field(default_factory=dict)
    """Seconds a unit of cost, with what a run takes beside its training."""
    source: str = ""
    is_here: bool = False


def _measure(store: Store, keys: Collection[str]) -> _Measured:
    runs, known = timings(store, keys)
    # One of a plug-in that is not installed here says nothing that can be scaled.
    known = {key: config for key, config in known.items() if obstacle_of(config) is None}
    epochs: dict[str, list[float]] = defaultdict(list)
    for run in (run for run in runs if run.key in known):
        epochs[run.key].append(run.epochs)
        epochs[_stopping(known[run.key])].append(run.epochs)
    name = socket.gethostname()
    here = [run for run in runs if (run.host or "").partition(" ")[0] == name]
    groups: dict[tuple[int | None, str], list[Timing]] = defaultdict(list)
    for run in here or runs:
        groups[run.worker_id, run.started_at].append(run)
    rates: dict[str | tuple[str, str], list[float]] = defaultdict(list)
    for (_, started), group in groups.items():
        ended = max(datetime.fromisoformat(run.finished_at) for run in group)
        in_all = (ended - datetime.fromisoformat(started)).total_seconds()
        training = sum(run.train_seconds for run in group)
        for run in (run for run in group if run.key in known):
            config = known[run.key]
            seconds = run.train_seconds + max(0.0, in_all - training) / len(group)
            rate = seconds / (max(1, run.epochs) * _epoch_cost(config))
            rates[run.key].append(rate)
            rates[engine_of(resolve(config)).name, config.architecture].append(rate)
    machine = "this machine" if here else "another machine"
    return _Measured(
        {key: fmean(values) for key, values in epochs.items()},
        {key: median(values) for key, values in rates.items()},
        f"from {count(len(here or runs), 'run')} trained on {machine}",
        bool(here),
    )


# What a group takes here, from about a second of its training and testing.

FEW = 4
"""Strings of the first try; each further one has so many times as many."""

DRAWN = 500
"""Strings whose drawing is timed."""

ENOUGH_SECONDS = 0.1
"""What took so long is extrapolated from."""

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
        # That it cannot be trained is said where it is launched.
        times = None
        with suppress(SeqclsError, MemoryError, RuntimeError):
            times = _time(group)
        _known[key] = times
    return _known[key]


def _time(group: RunGroup) -> Times | None:
    # Imported where they are used: training and testing load PyTorch or Numba.
    from seqcls.evaluation import distinct_test_strings, evaluate
    from seqcls.interpretability.verdicts import unaffordable, verdicts
    from seqcls.training import train_group

    whole = group[0].problem
    engine = engine_named(choose_engine(whole, ready=True).name)
    # Of a step that moves all members together each has a part.
    members = len(group) if engine.by_counts and not engine.one_thread else 1
    weights: list[Weights] = []

    def train(strings: int) -> None:
        problem = shorten(whole, "train", strings)
        seeds = [(problem, run.model_seed) for run in group[:members]]
        trained = train_group(seeds, engine=engine.name, progress=lambda *_: check())
        weights[:] = [x.kept_weights for x in trained if x.failure is None]

    def test(strings: int) -> None:
        problem = shorten(whole, "test", strings)
        # As what is made once for all members.
        distinct_test_strings(problem.test)
        evaluate(problem, weights, engine=engine.name)

    with on_one_thread(engine.name):
        epoch = _seconds_of_all(whole, "train", train)
        if not weights:
            return None
        tested = _seconds_of_all(whole, "test", test) / len(weights)
        if group[0].verdict and unaffordable(whole) is None:
            check_all = partial(verdicts, whole, weights[:1], engine=engine.name)
            check_all()
            tested += _seconds(check_all)
    chosen = choose_engine(whole).name
    faster = COMPILED[chosen][1] if chosen != engine.name and chosen in COMPILED else 1.0
    some = min(DRAWN, whole.train.epoch_size)
    drawing = _seconds(lambda: next(shorten(whole, "train", some).train.epochs()))
    drawing *= whole.train.epoch_size / some
    return Times(epoch / members / faster, tested / faster, drawing)


def _seconds_of_all(whole: Problem, part: str, act: Callable[[int], None]) -> float:
    """Seconds that all strings of a part take, by acting on more and more of them."""
    size = whole.sampler(part).epoch_size
    strings = min(FEW, size)
    while True:
        # The first time it draws the strings, and loads what acting needs.
        act(strings)
        spent = _seconds(partial(act, strings))
        if spent >= ENOUGH_SECONDS or strings == size:
            return spent * size / strings
        strings = min(FEW * strings, size)


def shorten(whole: Problem, part: str, strings: int) -> Problem:
    """The same problem with fewer strings of a part, and one epoch."""
    sizes = {part: strings}
    if part == "train":
        share = strings / whole.train.epoch_size
        sizes["validation"] = max(1, round(share * whole.validation.epoch_size))
    update: dict[str, Any] = {f"{name}_size": size for name, size in sizes.items()}
    update |= {f"{x}_batch_size": min(n, whole.sampler(x).batch_size) for x, n in sizes.items()}
    update |= {"max_num_epochs": 1, "min_num_epochs": 1, "disjoint": False}
    # Few strings may all be right by chance, or none of them of trained lengths.
    update |= {"stop_when_right": False, "check_every": 0}
    problem = resolve(whole.config.model_copy(update=update))
    # Of some samplers no setting gives the size, and the network is that of all lengths.
    samplers: dict[str, Any] = {
        name: OfLengths(problem.sampler(name), problem.sampler(name).lengths, size)
        for name, size in sizes.items()
        if problem.sampler(name).epoch_size > size
    }
    return replace(problem, network=whole.network, **samplers)


def _seconds(act: Callable[[], object]) -> float:
    # Of this thread alone, so that what else the machine does now is not taken for its own.
    check()
    started = time.thread_time()
    act()
    return time.thread_time() - started
