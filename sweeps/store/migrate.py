"""Brings a database to the newest schema, through the migrations."""

from pathlib import Path

from alembic.command import upgrade as alembic_upgrade
from alembic.config import Config

from sweeps.store.databases.engine import Store
from sweeps.store.databases.postgres import take_turns


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
