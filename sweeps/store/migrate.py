"""Brings a database to the newest schema, through the migrations."""

from dataclasses import dataclass
from pathlib import Path

from alembic.command import upgrade as alembic_upgrade
from alembic.config import Config
from sqlalchemy import text

from seqcls.errors import StoreBusyError
from sweeps.store.databases import sqlite
from sweeps.store.databases.engine import SCHEMA_VERSION, Store, schema_version
from sweeps.store.databases.postgres import take_turns
from sweeps.store.migrations.packed_views import (
    NEW_IN_VIEWS,
    postgres_views,
    sqlite_views,
    wrong_output_view,
)
from sweeps.store.runs.claiming import GRACE_SECONDS
from sweeps.store.schema.tables import now


@dataclass(frozen=True)
class Upgraded:
    """What an upgrade did."""

    before: str
    after: str
    backup: Path | None
    """The copy of the file as it was; None for a server, whose own tools copy it."""
    damaged: list[str]
    """What did not fit its digest before, runs mostly, and is kept as damaged."""


def alembic_config() -> Config:
    """Alembic's configuration: where the migrations are."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    config.set_main_option("path_separator", "os")
    return config


def upgrade(store: Store) -> list[str]:
    """Runs every migration that the database lacks, all in one transaction.

    Returns:
        What was found to be damaged, a line each.

    Raises:
        StoreError: a migration failed; the database is as before.
    """
    config = alembic_config()
    with store.begin() as connection:
        take_turns(connection)
        config.attributes["connection"] = connection
        alembic_upgrade(config, "head")
    damaged: list[str] = config.attributes.get("damaged", [])
    return damaged


def upgrade_with_backup(store: Store) -> Upgraded | None:
    """Upgrades a database of an older version, after a copy of its file beside it.

    One of the newest version gets the views that a new one has: releases before 0.3.0 made views
    that give numbers, or on a server an error, where a logit is NaN.

    Returns:
        None where it is of the newest version already.

    Raises:
        StoreError: the copy cannot be made, or a migration failed; the database is as before.
    """
    version = schema_version(store)
    if version == SCHEMA_VERSION:
        _renew_views(store)
    if version is None or version == SCHEMA_VERSION:
        return None
    _refuse_while_trained(store)
    backup = None if store.path is None else _backed_up(store, store.path, version)
    return Upgraded(version, SCHEMA_VERSION, backup, upgrade(store))


def _renew_views(store: Store) -> None:
    dialect = store.engine.dialect.name
    errors = {"sqlite": sqlite_views, "postgresql": postgres_views}[dialect]()[0]
    views = {"string_error": errors, "wrong_output": wrong_output_view(dialect)}
    is_server = dialect == "postgresql"
    kept = "SELECT sql FROM sqlite_schema WHERE name = :name"
    if is_server:
        kept = "SELECT definition FROM pg_views WHERE viewname = :name"
        kept += " AND schemaname = current_schema()"
    with store.begin() as connection:
        for name, made_by in views.items():
            before = connection.scalar(text(kept), {"name": name})
            if before is None or NEW_IN_VIEWS in before:
                continue
            if is_server:
                # Views of others may rest on it.
                made_by = made_by.replace("CREATE VIEW", "CREATE OR REPLACE VIEW", 1)
            else:
                connection.exec_driver_sql(f"DROP VIEW {name}")
            connection.exec_driver_sql(made_by)


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
            f"workers are training {runs:,} runs into {store.name!r}; end them, then upgrade"
        )


def _backed_up(store: Store, path: Path, version: str) -> Path:
    backup = path.with_name(f"{path.name}.schema-{version}")
    sqlite.back_up(store.engine, store.name, backup)
    return backup
