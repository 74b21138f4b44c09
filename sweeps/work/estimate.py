"""How many runs a sweep asks for, how many are there already, and how long the rest will take."""

import socket
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from seqcls.config import RunConfig
from seqcls.problem import obstacle_of, resolve
from sweeps.grid.cost import cost_of_training, engine_of
from sweeps.grid.grouping import PlannedRun, make_groups
from sweeps.grid.spec import SweepSpec
from sweeps.store.databases.engine import Store
from sweeps.store.reading.timings import Timing, finished, timings


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
class _Measured:
    """Seconds of training: of each configuration, and per unit of cost over all of them."""

    by_key: Mapping[str, float]
    per_unit: Mapping[str, float]
    """By the engine, since what one takes for a unit says little of another."""
    beside: float
    """Seconds a run beside its training: testing it and storing its results."""
    runs: int
    here: bool


def estimate(store: Store | None, specs: Iterable[SweepSpec], workers: int) -> Estimate:
    """What these sweeps will take with so many processes, judged by the runs in the database.

    A configuration that was trained before takes what it took then; another one the time that the
    same engine took for every unit of `sweeps.grid.cost`.

    Args:
        store: the database; None where there is none yet.
        specs: the sweeps.
        workers: processes that train at once.
    """
    configs, wanted = _wanted(specs)
    there = finished(store, configs) & wanted if store is not None else set()
    missing = wanted - there
    measured = _measured(store) if store is not None else None
    if not missing:
        return Estimate(len(wanted), len(there), 0.0, "All runs are there.")
    if measured is None:
        basis = "No run was measured yet, so the training time is unknown."
        return Estimate(len(wanted), len(there), None, basis)
    unknown = _never_measured([configs[key] for key, _ in missing], measured)
    if unknown is not None:
        basis = (
            f"No run was measured yet that engine {unknown!r} trained, as it will some of these."
        )
        return Estimate(len(wanted), len(there), None, basis)
    training = sum(_seconds(configs[key], measured) for key, _ in missing)
    place = "on this machine" if measured.here else "on another machine"
    basis = f"Estimated from {measured.runs:,} runs trained {place}."
    at_once = min(workers, _num_groups(configs, missing))
    seconds = (training + measured.beside * len(missing)) / at_once
    return Estimate(len(wanted), len(there), seconds, basis)


Wanted = set[tuple[str, int]]
"""Runs, by the key of their configuration and their model seed."""


def _wanted(specs: Iterable[SweepSpec]) -> tuple[dict[str, RunConfig], Wanted]:
    configs: dict[str, RunConfig] = {}
    wanted: Wanted = set()
    for spec in specs:
        by_key = {config.key: config for config in spec.configs()}
        configs |= by_key
        wanted |= {(key, seed) for key in by_key for seed in spec.model_seeds}
    return configs, wanted


def _measured(store: Store) -> _Measured | None:
    measured, known = timings(store)
    here = [one for one in measured if one.host == socket.gethostname()]
    used = here or measured
    if not used:
        return None
    seconds: dict[str, list[float]] = {one.key: [] for one in used}
    for one in used:
        seconds[one.key].append(one.train_seconds)
    by_key = {key: statistics.fmean(values) for key, values in seconds.items()}
    configs = {key: known[key] for key in by_key}
    return _Measured(by_key, _rates(configs, by_key), _beside(used), len(used), bool(here))


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


def _num_groups(configs: Mapping[str, RunConfig], missing: "Wanted") -> int:
    """How many groups the runs make, which is how many processes can train at once."""
    runs = [PlannedRun(0, configs[key], seed, False, False) for key, seed in missing]
    return len(make_groups(runs))


def _never_measured(configs: Iterable[RunConfig], measured: _Measured) -> str | None:
    """An engine that will train one of these, and that never trained any; None for no such."""
    for config in configs:
        if config.key in measured.by_key:
            continue
        engine = engine_of(resolve(config)).name
        if engine not in measured.per_unit:
            return engine
    return None


def _seconds(config: RunConfig, measured: _Measured) -> float:
    known = measured.by_key.get(config.key)
    if known is not None:
        return known
    problem = resolve(config)
    return measured.per_unit[engine_of(problem).name] * cost_of_training(problem)
