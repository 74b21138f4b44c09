"""PostgreSQL whose connections end while runs are claimed and results are committed."""

import logging
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from sqlalchemy import Connection, make_url

import sweeps.work.worker
from seqcls.errors import StoreBusyError
from sweeps import api
from sweeps.store import database, writer
from sweeps.store.database import Store
from sweeps.store.opening import open_writer
from sweeps.store.reads import sweep_queries
from sweeps.store.verification import verify
from sweeps.work.machine import WorkOptions
from sweeps.work.worker import work
from tests.app import open_app, page_text
from tests.chaos import swept
from tests.chaos.moments import BEFORE_STATEMENT, COMMIT, Moments, end_backend
from tests.commands import run_main
from tests.conftest import LONG, ROOT, SHORT
from tests.databases import rows, spec, started_server


def is_main_thread(_: Connection) -> bool:
    return threading.current_thread() is threading.main_thread()


def writes(connection: Connection) -> bool:
    return is_main_thread(connection) and (
        "postgresql_readonly" not in connection.get_execution_options()
    )


STRIDE = 7 if LONG else 21
"""A case ends the connection at every so-manieth moment; other seeds begin at others."""


@pytest.mark.cases(STRIDE)
@pytest.mark.parametrize("kind", [BEFORE_STATEMENT, COMMIT])
def test_a_worker_survives_a_backend_terminated_at_any_statement_or_commit(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, seed: int, kind: str
) -> None:
    monkeypatch.setattr(sweeps.work.worker, "LOOK_SECONDS", 0.01)
    store = open_writer(postgres_url)
    small = spec(fixed=SHORT, axes={"hidden_size": [2]})
    commits = kind == COMMIT
    stride = 3 if commits else STRIDE
    end = end_backend(postgres_url, commits=commits)
    moments = Moments(end, kind, counts=writes if commits else is_main_thread)
    # The first time none is, to see how many there are.
    fatal, tried = 0, 0
    while fatal <= moments.seen or not tried:
        sweep_id = writer.submit(store, small)
        with moments.at(fatal):
            recorded = train(store, sweep_id, again=commits)
        # Results whose commit was not answered may have been counted as another's.
        assert commits or recorded == 3, f"statement {fatal}"
        assert rows(store, "SELECT state, count(*) FROM run GROUP BY 1") == [("done", 3)]
        assert rows(store, "SELECT count(*) FROM failure") == [(0,)]
        assert verify(store).damages == []
        writer.delete(store, sweep_id)
        fatal += stride if fatal else 1 + seed % stride
        tried += 1
    assert tried > 2


def train(store: Store, sweep_id: int, *, again: bool) -> int:
    """Trains a sweep; returns the number of recorded runs.

    Args:
        store: of the sweep.
        sweep_id: of it.
        again: whether a worker that could not begin, or report its end, is started again.
    """
    while True:
        try:
            return work(store, [sweep_id], WorkOptions(0)).recorded
        except StoreBusyError:
            if not again:
                raise


SHORT_COMMANDS = {
    "submit": ("submit", "s.toml"),
    "stop": ("stop", "s"),
    "resume": ("resume", "s"),
    "retry": ("retry", "s"),
    "status": ("status", "--json"),
    "runs": ("runs", "--json"),
    "delete": ("delete", "s", "--yes"),
}


@pytest.mark.cases(STRIDE)
def test_a_short_command_repeats_a_statement_whose_backend_was_terminated(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr("sweeps.processes.AGAIN_SECONDS", (0.0, 0.0))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text('name = "s"\nmodel_seeds = [0, 1]\n')
    store = open_writer(postgres_url)
    moments = Moments(end_backend(postgres_url))
    for name, command in SHORT_COMMANDS.items():
        found, fatal = list[Any](), 0
        while not found or fatal <= moments.seen:
            if name != "submit":
                writer.submit(store, spec(name="s", model_seeds=[0, 1]))
            with moments.at(fatal):
                completed = run_main(*command, "--db", postgres_url)
            assert (completed.returncode, completed.stderr) == (0, ""), f"{name}: statement {fatal}"
            found.append(rows(store, "SELECT name, state FROM sweep_state"))
            assert found[-1] == found[0], name
            if name == "submit":
                writer.delete(store, sweep_queries.find_sweep(store, "s"))
            fatal += STRIDE if fatal else 1 + seed % STRIDE


def test_a_submission_of_unknown_outcome_is_not_repeated(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text('name = "s"\nmodel_seeds = [0, 1]\n')
    store = open_writer(postgres_url)
    moments = Moments(end_backend(postgres_url), COMMIT, counts=writes)
    with moments.at(0):
        assert run_main("submit", "s.toml", "--db", postgres_url).returncode == 0
    writer.delete(store, sweep_queries.find_sweep(store, "s"))
    with moments.at(moments.seen):
        completed = run_main("submit", "s.toml", "--db", postgres_url)
    assert completed.returncode == 3
    assert completed.stderr.count("\n") == 1
    assert "see whether it is, before you repeat it" in completed.stderr


@pytest.mark.cases(20)
def test_a_page_whose_backend_is_terminated_is_drawn_again(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    store = open_writer(postgres_url)
    api.merge(store, ROOT / "runs.db")
    moments = Moments(end_backend(postgres_url))
    generator, shown = random.Random(seed), ""
    for fatal in (0, 1, 2):
        with store.write():
            pass  # Nothing that was read before is remembered.
        with moments.at(fatal and generator.randint(1, moments.seen)):
            app = open_app(monkeypatch, postgres_url)
        assert not app.error
        shown = shown or page_text(app)
        assert page_text(app) == shown


def test_a_command_that_waits_for_a_lock_reports_the_lock(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.submit(open_writer(postgres_url), swept.spec("small"))
    monkeypatch.setattr(database, "LOCK_SECONDS", 0.2)
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres_url, application_name="somebody's tool") as holder:
        holder.execute("LOCK TABLE run IN ACCESS EXCLUSIVE MODE")
        for command in (("status",), ("runs",), ("verify",), ("stop", "small")):
            completed = run_main(*command, "--db", postgres_url)
            assert completed.returncode == 3
            assert completed.stderr.count("\n") == 1
            assert "due to lock timeout; `SELECT" in completed.stderr


def test_no_log_and_no_error_contains_the_password(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    url = make_url(postgres_url).set(password="hunter2").render_as_string(hide_password=False)
    errors = []
    for fatal in range(1, 12):
        with Moments(end_backend(postgres_url)).at(fatal):
            try:
                writer.submit(open_writer(url), swept.spec("small"))
            except Exception as error:
                errors.append(f"{error!r} {error.__cause__!r}")
    assert errors
    assert "hunter2" not in "\n".join(errors) + caplog.text


@pytest.fixture
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server that nobody else needs."""
    server = started_server(tmp_path_factory.mktemp("own") / "pg")
    yield server
    server.cleanup()


@pytest.mark.cases(10)
def test_a_server_killed_during_a_sweep_loses_and_duplicates_no_result(
    own_server: Any, seed: int
) -> None:
    store = open_writer(own_server.get_uri())
    writer.submit(store, swept.spec("small"))
    workers, max_kills = (3, 3) if LONG else (1, 1)
    _trained_while_killed(store, own_server, workers, max_kills, random.Random(seed))
    swept.assert_whole(own_server.get_uri(), "small")


RUNS = swept.spec("small").num_runs()


def _trained_while_killed(
    store: Store, server: Any, workers: int, max_kills: int, generator: random.Random
) -> None:
    """Trains a sweep in new processes, restarted where they end, while the server is killed."""
    command = [sys.executable, "-m", "sweeps", "work", "small", "--workers", "0"]
    going: list[subprocess.Popen[bytes]] = []
    kills = 0
    try:
        while (done := _done(store)) < RUNS:
            going = [own for own in going if own.poll() is None]
            while len(going) < workers:
                own = subprocess.Popen(
                    command,
                    env={**os.environ, "SEQCLS_DB": server.get_uri()},
                    stderr=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    cwd=ROOT,
                )
                going.append(own)
            if 0 < done < RUNS and kills < max_kills:
                time.sleep(generator.uniform(0, 0.3))
                _kill(server)
                kills += 1
                time.sleep(generator.uniform(0, 1))
                # Other tests that begin meanwhile may have taken the folder's permissions away.
                server.ensure_pgdata_inited()
                server.ensure_postgres_running()
            time.sleep(0.05)
    finally:
        for own in going:
            own.kill()
            own.wait()
    assert kills, "the server was never killed"


def _done(store: Store) -> int:
    ((done,),) = rows(store, "SELECT count(*) FROM run WHERE state = 'done'")
    return int(done)


def _kill(server: Any) -> None:
    """Kills the server and all its processes at once, as a loss of power would."""
    own = psutil.Process(server.get_pid())
    processes = [own, *own.children(recursive=True)]
    for process in processes:
        process.kill()
    psutil.wait_procs(processes, timeout=120)


def test_transactions_that_the_server_could_not_serialize_are_retried(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeps.work.worker, "LOOK_SECONDS", 0.01)
    store = open_writer(postgres_url)
    writer.submit(store, spec(fixed=SHORT, axes={"hidden_size": [2, 3]}))
    with store.write(quiet=True) as connection:
        for statement in _REFUSING:
            connection.exec_driver_sql(statement)
    assert work(store, None, WorkOptions(0)).recorded == 6
    ((refused,),) = rows(store, "SELECT last_value / 4 FROM tries")
    assert refused >= 3
    assert rows(store, "SELECT state, count(*) FROM run GROUP BY 1") == [("done", 6)]
    assert rows(store, "SELECT count(*) FROM failure") == [(0,)]
    assert verify(store).damages == []


_REFUSING = (
    "CREATE SEQUENCE tries",
    # A number once taken stays taken, though what took it is undone.
    """
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF mod(nextval('tries'), 4) = 1 THEN
            RAISE EXCEPTION 'could not serialize access due to concurrent update'
            USING ERRCODE = 'serialization_failure';
        END IF;
        RETURN NULL;
    END $$
    """,
    "CREATE TRIGGER refuse BEFORE UPDATE ON run FOR EACH STATEMENT EXECUTE FUNCTION refuse()",
)
"""Every fourth change of runs is refused, as by a server of stricter transactions."""
