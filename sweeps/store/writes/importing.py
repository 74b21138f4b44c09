"""Storing results of models trained elsewhere, each import in one transaction."""

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, delete, select

from seqcls.config import IMPORTED, RunConfig
from seqcls.errors import ConfigError, MachineError, Parameter
from seqcls.fields import TestSet
from seqcls.strings.datasets import dataset_of
from seqcls.text import canonical_json
from sweeps.grid.grouping import PlannedRun
from sweeps.grid.spec import spec_as_written
from sweeps.results import RunResult
from sweeps.store.database import Store, take_turns
from sweeps.store.reads.queries import same_run
from sweeps.store.statements import insert_new, insert_sweep, queue_runs
from sweeps.store.tables import Sweep, SweepRun
from sweeps.store.test_sets import store_dataset, store_test_set
from sweeps.store.writes.names import names_of_imported
from sweeps.store.writes.recording import insert_results
from sweeps.store.writes.sweep_actions import config_ids_of, delete_runs

DESCRIPTION = "Results of models trained elsewhere."


def check_sweep(store: Store, name: str) -> None:
    """Refuses an invalid name of a sweep, and that of a sweep of models trained here.

    Raises:
        ConfigError: it is one of these.
    """
    spec_as_written(json.loads(_spec(name)))
    with store.read() as connection:
        _known_sweep(connection, name)


class ImportedRun(NamedTuple):
    """A run that was trained elsewhere, checked and ready to be stored."""

    config: RunConfig
    seed: int
    result: RunResult


def record_imported(
    store: Store, sweep: str, runs: Sequence[ImportedRun], drawn: TestSet, replace: bool
) -> list[int]:
    """Stores runs and their results, all or none, and adds them to the sweep.

    The sweep is created if it is missing.

    Returns:
        The runs' ids.

    Raises:
        ConfigError: a run exists already, and is not to be replaced.
    """
    with store.write("configs", "members") as connection:
        take_turns(connection)
        sweep_id = _known_sweep(connection, sweep)
        if sweep_id is None:
            sweep_id = insert_sweep(connection, sweep, DESCRIPTION, _spec(sweep))
        for digest in sorted({run.config.dataset for run in runs} - {""}):
            store_dataset(connection, dataset_of(digest))
        names = names_of_imported(connection, [run.config for run in runs], sweep)
        return [_record(connection, sweep_id, run, drawn, replace, names) for run in runs]


def _record(
    connection: Connection,
    sweep_id: int,
    run: ImportedRun,
    drawn: TestSet,
    replace: bool,
    names: Mapping[str, str],
) -> int:
    sweep_ids, same = {sweep_id}, same_run(run.config, run.seed)
    if (known := connection.scalar(same)) is not None:
        if not replace:
            raise ConfigError(
                f"model {json.loads(run.config.imported)['model']!r:.60} with seed {run.seed} is "
                f"already in the database, as run {known}; use ",
                Parameter("replace", True),
                ", or another name: ",
                Parameter("model", "NAME"),
            )
        # The new run belongs to every sweep that had the replaced one.
        sweep_ids |= {*connection.scalars(select(SweepRun.sweep_id).filter_by(run_id=known))}
        # Before the run itself, which these rows reference.
        connection.execute(delete(SweepRun).where(SweepRun.run_id == known))
        delete_runs(connection, [known])
    if run.config.dataset:
        store_dataset(connection, dataset_of(run.config.dataset))
    (config_id,) = config_ids_of(connection, [run.config], names)
    queue_runs(connection, [(config_id, run.seed)])
    run_id = connection.scalars(same).one()
    if store_test_set(connection, run.config, drawn) != drawn.digest:
        raise MachineError("the database holds other test strings under this key")
    planned = PlannedRun(run_id, run.config, run.seed, every_epoch=False, verdict=False)
    insert_results(connection, [(planned, run.result)])
    rows = [{"sweep_id": sweep_id, "run_id": run_id} for sweep_id in sorted(sweep_ids)]
    insert_new(connection, SweepRun, rows)
    return run_id


def _spec(name: str) -> str:
    fixed = {"architecture": IMPORTED}
    spec = {"name": name, "description": DESCRIPTION, "model_seeds": [0], "fixed": fixed}
    return canonical_json(spec)


def _known_sweep(connection: Connection, name: str) -> int | None:
    row = connection.execute(select(Sweep.id, Sweep.spec).where(Sweep.name == name)).one_or_none()
    if row is not None and row.spec != _spec(name):
        raise ConfigError(f"sweep {name!r} trains models here; give imported results another name")
    return None if row is None else int(row.id)
