"""How many runs a sweep asks for, how many are there already, and how long the rest will take."""

import socket
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import ceil, sqrt

from seqcls.cancellation import check_each
from seqcls.config import RunConfig
from seqcls.engines.member import steps_of_epoch
from seqcls.problem import Problem, obstacle_of, resolve
from seqcls.sampling.streams import stream
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
from sweeps.work.machine import shortage

MOST_TIMED = 8
"""Groups that are timed; others are judged by them."""

COMPILE_SECONDS = {"fused": 60, "lanes": 20}
"""About how long compiling takes, by the engine; it is done once on a machine."""


@dataclass(frozen=True)
class GroupToTime:
    """A group to time."""

    config: RunConfig
    members: int
    verdict: bool = False
    """Whether its models are checked exhaustively too."""


@dataclass(frozen=True)
class GroupTime:
    """What a group takes, in seconds."""

    epoch: float
    """A member's epoch, with its validation."""
    epoch_once: float
    """An epoch's preparation, once for all members of a group."""
    test: float
    """Testing a member, with the exhaustive check where it is asked for."""
    test_once: float
    """The preparation of a test."""
    draw_epoch: float
    """Drawing an epoch's strings, once for all groups that train on them."""
    draw_tests: float
    """Seconds for the strings of validation and test."""

    def seconds(self, members: int, epochs: float) -> float:
        """A group's training and testing, the drawing of strings left out."""
        # Also for an epoch that ends early.
        once = max(epochs, 1) * self.epoch_once + self.test_once
        return once + members * (epochs * self.epoch + self.test)


@dataclass(frozen=True)
class Times:
    """What was timed."""

    start: float = 0.0
    """Seconds until a process is ready to train."""
    groups: Mapping[str, GroupTime] = field(default_factory=dict)
    """By `RunConfig.group_key`; those that were not reached, or cannot be timed, are missing."""


Timer = Callable[[Sequence[GroupToTime]], Times]
"""What times groups: `sweeps.work.timing.time_groups`."""


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


@dataclass(frozen=True)
class _MeasuredTimes:
    """What finished runs took."""

    by_key: Mapping[str, float]
    """Mean seconds of training of each configuration."""
    per_unit: Mapping[str, float]
    """Seconds per unit of cost, by the engine, since what one takes for a unit says little of
    another."""
    epochs: Mapping[str, float]
    """Mean epochs of each configuration, and of those that are alike in `_stopping`."""
    beside: float
    """Seconds a run beside its training: testing it and storing its results."""
    runs: int
    here: bool


def estimate(
    store: Store | None, specs: Iterable[SweepSpec], workers: int, timer: Timer | None = None
) -> Estimate:
    """What these sweeps will take with so many processes.

    A configuration that was trained on this machine takes what it took then. Any other is timed
    for a moment. Without a timer it takes the time that the same engine took for every unit of
    `sweeps.grid.grouping`.

    Args:
        store: the database; None where there is none yet.
    """
    planned = _plan_runs(specs)
    there = finished_runs(store, {key for key, _ in planned}) & set(planned) if store else set()
    missing = [run for key, run in planned.items() if key not in there]
    if not missing:
        return Estimate(len(planned), len(there), 0.0, "All runs are there.")
    groups = make_groups(missing)
    # To time one of those would take all the memory that there is, for nothing.
    reasons = [shortage(group[0].problem) for group in groups]
    too_large = sum(len(group) for group, reason in zip(groups, reasons, strict=True) if reason)
    if too_large == len(missing):
        said = f"All of the rest fail at once: {next(filter(None, reasons))}."
        return Estimate(len(planned), len(there), 0.0, said)
    fitting = [group for group, reason in zip(groups, reasons, strict=True) if not reason]
    judged = _Judge(store, fitting, timer)
    seconds = judged.seconds(workers)
    said = judged.basis()
    if too_large:
        said += f" {too_large:,} of the rest fail at once: {next(filter(None, reasons))}."
    return Estimate(len(planned), len(there), seconds, said)


def _plan_runs(specs: Iterable[SweepSpec]) -> dict[tuple[str, int], PlannedRun]:
    """The runs that are asked for, by the key of their configuration and their model seed."""
    planned: dict[tuple[str, int], PlannedRun] = {}
    for spec in specs:
        for config, seeds in spec.members():
            for seed in seeds:
                run = PlannedRun(len(planned), config, seed, spec.every_epoch, spec.verdict)
                planned.setdefault((config.key, seed), run)
    return planned


class _Judge:
    """Says what groups will take, by what was measured and timed."""

    def __init__(self, store: Store | None, groups: list[RunGroup], timer: Timer | None) -> None:
        self._groups, self._timer = groups, timer
        keys = {run.config.key for group in groups for run in group}
        self._measured = _measure(store, keys) if store is not None else None
        to_time = [] if timer is None else self._to_time()
        self._times = timer(to_time) if timer is not None and to_time else Times()
        self._rates = self._timed_rates()
        self._unknown: str | None = None
        problems = [group[0].problem for group in groups]
        engines = [(engine_of(problem), problem) for problem in problems]
        self._compiled = {
            x.name: COMPILE_SECONDS.get(x.name, 0) for x, each in engines if not x.is_ready(each)
        }
        self._early: tuple[float, int] | None = None

    def seconds(self, workers: int) -> float | None:
        """Seconds of all groups, by so many processes; None where nothing tells it."""
        loads = [0.0] * max(1, min(workers, len(self._groups)))
        taken = [self._of_group(group) for group in check_each(self._groups)]
        if any(seconds is None for seconds in taken):
            return None
        for seconds in sorted(filter(None, taken), reverse=True):
            loads[loads.index(min(loads))] += seconds
        compiling = sum(self._compiled.values())
        return max(loads) + self._times.start + self._drawing() + compiling

    def basis(self) -> str:
        """What that rests on."""
        said = [self._measured_where()]
        if self._compiled:
            seconds = sum(self._compiled.values())
            names = ", ".join(self._compiled)
            said.append(f"About {seconds} seconds of it go to compiling ({names}), once.")
        if self._early is not None:
            assumed, most = self._early
            number = f"{assumed:.0f}" if assumed >= 1 else f"{assumed:.2g}"
            said.append(
                f"Training may stop early: it is assumed to take {number} of "
                f"{count(most, 'epoch')}."
            )
        return " ".join(said)

    def _measured_where(self) -> str:
        if self._unknown is not None:
            return self._unknown
        if self._times.groups:
            return "Estimated by timing a part of an epoch and of the test on this machine."
        assert self._measured is not None
        machine = "this machine" if self._measured.here else "another machine"
        return f"Estimated from {count(self._measured.runs, 'run')} trained on {machine}."

    def _is_measured_here(self, group: RunGroup) -> bool:
        measured = self._measured
        return bool(
            measured and measured.here and all(x.config.key in measured.by_key for x in group)
        )

    def _to_time(self) -> list[GroupToTime]:
        """Groups not trained here: of each engine and architecture the costliest first."""
        groups = {
            group[0].config.group_key: GroupToTime(group[0].config, len(group), group[0].verdict)
            for group in reversed(self._groups)
            if not self._is_measured_here(group)
        }
        costliest = list(groups.values())[::-1]
        firsts = {_alike(each.config): each for each in reversed(costliest)}
        others = [each for each in costliest if each not in firsts.values()]
        return [*firsts.values(), *others][:MOST_TIMED]

    def _timed_rates(self) -> dict[tuple[str, str], list[tuple[float, GroupTime]]]:
        """What was timed, with the cost of an epoch, by engine and architecture."""
        rates: dict[tuple[str, str], list[tuple[float, GroupTime]]] = {}
        for group in self._groups:
            config = group[0].config
            if config.group_key in self._times.groups:
                timed = (_epoch_cost(config), self._times.groups[config.group_key])
                rates.setdefault(_alike(config), []).append(timed)
        return rates

    def _of_group(self, group: RunGroup) -> float | None:
        config, measured = group[0].config, self._measured
        if measured is not None and self._is_measured_here(group):
            return sum(measured.by_key[x.config.key] + measured.beside for x in group)
        if timed := self._timing_of(config):
            scale, time = timed
            # Checks within epochs are not timed.
            time = replace(time, epoch=time.epoch * (1 + cost_of_checks(resolve(config))))
            return scale * time.seconds(len(group), self._epochs(config))
        return self._of_finished(group)

    def _timing_of(self, config: RunConfig) -> tuple[float, GroupTime] | None:
        """What was timed of a group, or of one like it and how much more costly this one is."""
        if config.group_key in self._times.groups:
            return 1.0, self._times.groups[config.group_key]
        alike = self._rates.get(_alike(config))
        if not alike:
            return None
        cost = _epoch_cost(config)
        nearest, time = min(alike, key=lambda each: max(each[0] / cost, cost / each[0]))
        return cost / nearest, time

    def _of_finished(self, group: RunGroup) -> float | None:
        """By what runs took that the same engine trained, wherever that was."""
        problem, measured = resolve(group[0].config), self._measured
        engine = engine_of(problem)
        if measured is None:
            self._unknown = (
                "It cannot be timed on this machine, and no run has been timed yet, so the "
                "training time is unknown."
                if self._timer
                else "No run has been timed yet, so the training time is unknown."
            )
            return None
        known = [measured.by_key.get(run.config.key) for run in group]
        rate = measured.per_unit.get(engine.name)
        if rate is None and None in known:
            self._unknown = (
                f"No run of engine {engine.name!r}, which will train some of these, has been timed "
                "yet."
            )
            return None
        scaled = (rate or 0.0) * cost_of_training(problem)
        training = sum(scaled if seconds is None else seconds for seconds in known)
        return training + measured.beside * len(group)

    def _epochs(self, config: RunConfig) -> float:
        """How many epochs a member will train for.

        Where nothing like it was trained, halfway between the fewest and the most, as factors go.
        """
        measured = self._measured
        for key in (config.key, _stopping(config)):
            if measured is not None and key in measured.epochs:
                return measured.epochs[key]
        fewest, most = fewest_epochs(config), config.max_num_epochs
        assumed = sqrt(fewest * most)
        if fewest < most:
            self._early = (assumed, most)
        return assumed

    def _drawing(self) -> float:
        """Drawing strings that this machine has not kept, once for all groups."""
        problems = {group[0].config.group_key: resolve(group[0].config) for group in self._groups}
        drawn: dict[object, float] = {}
        for key, problem in problems.items():
            if (time := self._times.groups.get(key)) is not None:
                drawn |= _draws(problem, time, self._epochs(problem.config))
        return sum(drawn.values())


def _draws(problem: Problem, time: GroupTime, epochs: float) -> dict[object, float]:
    """Seconds of drawing by the sampler that draws."""
    number = 1 if problem.train.repeats else ceil(epochs)
    kept = sum(stream(problem.train).is_kept(index) for index in range(number))
    tests = sum(not stream(x).is_kept(0) for x in (problem.validation, problem.test))
    return {
        problem.train: (number - kept) * time.draw_epoch,
        (problem.validation, problem.test): tests / 2 * time.draw_tests,
    }


def _alike(config: RunConfig) -> tuple[str, str]:
    """What configurations share that are judged by each other."""
    return engine_of(resolve(config)).name, config.architecture


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


def _measure(store: Store, keys: Collection[str]) -> _MeasuredTimes | None:
    measured, known = timings(store, keys)
    name = socket.gethostname()
    here = [run for run in measured if (run.host or "").partition(" ")[0] == name]
    used = here or measured
    if not used:
        return None
    by_key = _means((run.key, run.train_seconds) for run in used)
    configs = {key: known[key] for key in by_key}
    epochs = _means((run.key, run.epochs) for run in measured)
    epochs |= _means((_stopping(known[run.key]), run.epochs) for run in measured)
    rates = _rates(configs, by_key)
    return _MeasuredTimes(by_key, rates, epochs, _beside(used), len(used), bool(here))


def _means(pairs: Iterable[tuple[str, float]]) -> dict[str, float]:
    by_key: dict[str, list[float]] = {}
    for key, value in pairs:
        by_key.setdefault(key, []).append(value)
    return {key: statistics.fmean(values) for key, values in by_key.items()}


def _rates(configs: Mapping[str, RunConfig], seconds: Mapping[str, float]) -> dict[str, float]:
    """Seconds a unit of cost, the median of each engine's configurations."""
    rates: dict[str, list[float]] = {}
    for key, config in configs.items():
        # One of a plug-in that is not installed here says nothing that can be scaled.
        if obstacle_of(config) is None:
            problem = resolve(config)
            of_engine = rates.setdefault(engine_of(problem).name, [])
            of_engine.append(seconds[key] / cost_of_training(problem))
    return {engine: statistics.median(values) for engine, values in rates.items()}


def _beside(runs: Sequence[Timing]) -> float:
    """Seconds a run between its group's claim and its commit that were not spent on training."""
    groups: dict[tuple[int | None, str], list[Timing]] = {}
    for run in runs:
        groups.setdefault((run.worker_id, run.started_at), []).append(run)
    beside = []
    for (_, started), group in groups.items():
        ended = max(datetime.fromisoformat(run.finished_at) for run in group)
        in_all = (ended - datetime.fromisoformat(started)).total_seconds()
        training = sum(run.train_seconds for run in group)
        beside.append(max(0.0, in_all - training) / len(group))
    return float(statistics.median(beside))
