"""How many runs a sweep asks for, how many are there already, and how long the rest will take."""

import json
import socket
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select

from seqcls.config import RunConfig
from sweeps.grouping import PlannedRun, make_groups, training_strings
from sweeps.spec import SweepSpec
from sweeps.store.engine import Store
from sweeps.store.statements import chunks
from sweeps.store.tables import Config, Run, RunState, Worker


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
    """Seconds of training: of each configuration, and per unit of work over all of them."""

    by_key: Mapping[str, float]
    per_unit: float
    beside: float
    """Seconds a run beside its training: testing it and storing its results."""
    runs: int
    here: bool


def estimate(store: Store | None, specs: Iterable[SweepSpec], workers: int) -> Estimate:
    """What these sweeps will take with so many processes, judged by the runs in the database.

    A configuration that was trained before takes what it took then; another one the same time for
    every training string and multiply-add.

    Args:
        store: the database; None where there is none yet.
        specs: the sweeps.
        workers: processes that train at once.
    """
    configs, wanted = _wanted(specs)
    there = _there(store, wanted) if store is not None else set()
    missing = wanted - there
    measured = _measured(store) if store is not None else None
    if not missing:
        return Estimate(len(wanted), len(there), 0.0, "All runs are there.")
    if measured is None:
        basis = "No run was measured yet, so nothing tells how long it will take."
        return Estimate(len(wanted), len(there), None, basis)
    training = sum(_seconds(configs[key], measured) for key, _ in missing)
    where = "on this machine" if measured.here else "on another machine"
    basis = f"Judged by {measured.runs:,} runs that were trained {where}."
    at_once = min(workers, _num_groups(configs, missing))
    seconds = (training + measured.beside * len(missing)) / at_once
    return Estimate(len(wanted), len(there), seconds, basis)


Wanted = set[tuple[str, int]]
"""Runs, by the key of their configuration and their model seed."""


def _wanted(specs: Iterable[SweepSpec]) -> tuple[dict[str, RunConfig], Wanted]:
    configs: dict[str, RunConfig] = {}
    wanted: Wanted = set()
    for spec in specs:
        own = {config.key: config for config in spec.configs()}
        configs |= own
        wanted |= {(key, seed) for key in own for seed in spec.model_seeds}
    return configs, wanted


def _there(store: Store, wanted: Wanted) -> Wanted:
    found: Wanted = set()
    query = select(Config.key, Run.model_seed).join(Run, Run.config_id == Config.id)
    with store.begin() as connection:
        for keys in chunks(sorted({key for key, _ in wanted})):
            done = query.where(Config.key.in_(keys), Run.state == RunState.DONE)
            found |= {(key, seed) for key, seed in connection.execute(done)}
    return found & wanted


def _measured(store: Store) -> _Measured | None:
    query = (
        select(
            Config.key,
            Config.json,
            Run.train_seconds,
            Run.worker_id,
            Run.started_at,
            Run.finished_at,
            Worker.host,
        )
        .join(Run, Run.config_id == Config.id)
        .outerjoin(Worker, Worker.id == Run.worker_id)
        .where(Run.state == RunState.DONE, Run.train_seconds.is_not(None))
    )
    with store.begin() as connection:
        rows = connection.execute(query).all()
    own = [row for row in rows if row.host == socket.gethostname()]
    used = own or rows
    if not used:
        return None
    configs = {row.key: row.json for row in used}
    seconds: dict[str, list[float]] = {key: [] for key in configs}
    for row in used:
        seconds[row.key].append(row.train_seconds)
    units = {key: _units(RunConfig.from_mapping(json.loads(text))) for key, text in configs.items()}
    rates = [statistics.fmean(seconds[key]) / units[key] for key in configs]
    by_key = {key: statistics.fmean(values) for key, values in seconds.items()}
    return _Measured(by_key, statistics.median(rates), _beside(used), len(used), bool(own))


def _beside(rows: Sequence[Any]) -> float:
    """Seconds a run between its group's claim and its commit that were not spent on training."""
    groups: dict[tuple[int | None, str], list[Any]] = {}
    for row in rows:
        groups.setdefault((row.worker_id, row.started_at), []).append(row)
    beside = []
    for (_, started), own in groups.items():
        ended = max(datetime.fromisoformat(row.finished_at) for row in own)
        in_all = (ended - datetime.fromisoformat(started)).total_seconds()
        training = sum(row.train_seconds for row in own)
        beside.append(max(0.0, in_all - training) / len(own))
    return float(statistics.median(beside))


def _num_groups(configs: Mapping[str, RunConfig], missing: "Wanted") -> int:
    """How many groups the runs make, which is how many processes can train at once."""
    runs = [PlannedRun(0, configs[key], seed, False, False) for key, seed in missing]
    return len(make_groups(runs))


def _seconds(config: RunConfig, measured: _Measured) -> float:
    known = measured.by_key.get(config.key)
    return known if known is not None else measured.per_unit * _units(config)


def _units(config: RunConfig) -> float:
    """Training strings times the multiply-adds that one of them takes, roughly."""
    mixed = config.num_attention_heads * config.attention_head_size
    hidden, inner = config.hidden_size, config.feed_forward_size
    multiply_adds = mixed * (config.num_letters + hidden) + 2 * inner * hidden
    # As much again as a small model's products takes what does not depend on its size.
    return config.max_num_epochs * training_strings(config) * (100.0 + multiply_adds)
