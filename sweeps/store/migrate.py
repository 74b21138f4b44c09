"""Brings a database to the newest schema, through the migrations."""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from alembic.command import upgrade as alembic_upgrade
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, select, text
from sqlalchemy import update as sql_update

from seqcls.errors import StoreBusyError
from seqcls.evaluation import range_counts
from seqcls.text import count
from sweeps.results import range_values
from sweeps.store.databases import sqlite
from sweeps.store.databases.engine import SCHEMA_VERSION, Store, schema_version
from sweeps.store.databases.postgres import take_turns
from sweeps.store.reads.stored import problem_of
from sweeps.store.reads.workers import GRACE_SECONDS
from sweeps.store.tables import Config as ConfigTable
from sweeps.store.tables import LengthScore, Run, RunState, now


@dataclass(frozen=True)
class Upgraded:
    """What an upgrade did."""

    before: str
    after: str
    backup: Path | None
    """The copy of the file as it was; None for a server, whose own tools copy it."""


def alembic_config() -> Config:
    """Alembic's configuration: where the migrations are."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    config.set_main_option("path_separator", "os")
    return config


def upgrade(store: Store) -> None:
    """Runs every migration that the database lacks, all in one transaction.

    Raises:
        StoreError: a migration failed; the database is as before.
    """
    config = alembic_config()
    with store.begin() as connection:
        take_turns(connection)
        config.attributes["connection"] = connection
        alembic_upgrade(config, "head")
        if "proof" not in inspect(connection).get_table_names():
            # As a database has it that was made before the migration was finished.
            newest = ScriptDirectory.from_config(config).get_revision("head")
            newest.module.make_proofs(connection)
        _fill_from_lengths(connection)


def _fill_from_lengths(connection: Connection) -> None:
    """Fills in how finished runs did within and beyond trained lengths, as their tests say.

    Left as they are: runs whose test holds too few strings of trained lengths, those of models
    trained elsewhere, and those whose plug-in is not installed here.
    """
    lacking = Run.state == RunState.DONE, Run.within_from.is_(None)
    ids = select(Run.config_id).where(*lacking)
    configs = select(ConfigTable.id, ConfigTable.json).where(ConfigTable.id.in_(ids))
    for config_id, config in connection.execute(configs).all():
        problem = problem_of(config)
        if problem is None or not problem.knows_trained_lengths:
            continue
        query = (
            select(LengthScore.run_id, LengthScore.length, LengthScore.tested, LengthScore.wrong)
            .join(Run, Run.id == LengthScore.run_id)
            .where(Run.config_id == config_id, *lacking)
        )
        scores: dict[int, list[Any]] = defaultdict(list)
        for run_id, *score in connection.execute(query):
            scores[run_id].append(score)
        for run_id, rows in scores.items():
            counted = range_counts(problem, *np.array(rows, dtype=np.int64).T)
            filled = sql_update(Run).where(Run.id == run_id).values(**range_values(counted))
            connection.execute(filled)


def upgrade_with_backup(store: Store) -> Upgraded | None:
    """Upgrades a database of an older version, after a copy of its file beside it.

    Returns:
        None where it is of the newest version already.

    Raises:
        StoreError: the copy cannot be made, or a migration failed; the database is as before.
    """
    version = schema_version(store)
    if version is None or version == SCHEMA_VERSION:
        return None
    _refuse_while_trained(store)
    backup = None if store.path is None else _backed_up(store, store.path, version)
    upgrade(store)
    return Upgraded(version, SCHEMA_VERSION, backup)


def _refuse_while_trained(store: Store) -> None:
    """Workers of an older version would go on writing what the new tables do not have."""
    at_work = text(
        "SELECT count(*) FROM run JOIN worker ON worker.id = run.worker_id "
        "WHERE run.state = 'running' AND worker.heartbeat_at >= :since"
    )
    with store.begin() as connection:
        runs = connection.scalar(at_work, {"since": now(GRACE_SECONDS)})
    if runs:
        raise StoreBusyError(
            f"workers are training {count(runs, 'run')} into {store.name!r}; end them, then upgrade"
        )


def _backed_up(store: Store, path: Path, version: str) -> Path:
    backup = path.with_name(f"{path.name}.schema-{version}")
    sqlite.back_up(store.engine, store.name, backup)
    return backup
