"""PostgreSQL whose connections are cut while runs are claimed and results are committed."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event, make_url

import sweeps.work.worker
from seqcls.errors import StoreBusyError
from sweeps import api
from sweeps.store import writer
from sweeps.store.databases import postgres
from sweeps.store.databases.engine import Store
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads import sweep_queries
from sweeps.store.verification import verify
from sweeps.work import reports
from sweeps.work.machine import WorkOptions
from sweeps.work.worker import work
from tests.app import open_app, said
from tests.chaos.contents import contents
from tests.chaos.cutting import Cutting
from tests.commands import run_main
from tests.conftest import ROOT, SHORT
from tests.databases import rows, spec

SPEC = spec(fixed=SHORT, axes={"hidden_size": [2, 3, 4], "train_seed": [1, 2]})


@pytest.mark.timeout(3600)
def test_cut_connections_lose_and_double_nothing(
    tmp_path: Path, postgres_url: str, long: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed = open_writer(str(tmp_path / "undisturbed.db"))
    work(undisturbed, [writer.submit(undisturbed, SPEC)], WorkOptions(0))
    store = open_writer(postgres_url)
    monkeypatch.setattr(sweeps.work.worker, "LOOK_SECONDS", 0.05)
    cuts = 0
    # Different steps cut different statements of a claim and of a commit.
    for number, every in enumerate((7, 8, 9, 11, 13, 17) if long else (11, 17)):
        folder = tmp_path / str(number)
        folder.mkdir()
        sweep_id = writer.submit(store, SPEC)
        cutting = Cutting(folder, postgres_url, every, 20 if long else 8)
        _trained(cutting.url, sweep_id)
        cutting.close()
        cuts += cutting.cuts
        assert rows(store, "SELECT count(*) FROM failure") == [(0,)]
        assert rows(store, "SELECT state, count(*) FROM run GROUP BY 1") == [("done", 18)]
        assert contents(open_reader(postgres_url)) == contents(undisturbed)
        assert verify(store).damages == []
        writer.delete(store, sweep_id)
    print(f"{cuts} connections cut")
    assert cuts >= (80 if long else 10)


def _trained(url: str, sweep_id: int) -> None:
    """Trains a sweep; a worker that could not even begin, or say that it ended, is started anew."""
    while True:
        with suppress(StoreBusyError):
            work(open_writer(url), [sweep_id], WorkOptions(0))
            return


@pytest.mark.timeout(3600)
def test_a_backend_terminated_at_any_statement_of_a_worker_is_waited_for(
    postgres_url: str, long: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeps.work.worker, "LOOK_SECONDS", 0.01)
    store = open_writer(postgres_url)
    small = spec(fixed=SHORT, axes={"hidden_size": [2]})
    statements = 0
    fatal = 0

    def terminate(connection: Connection, *_: object) -> None:
        nonlocal statements
        statements += threading.current_thread() is threading.main_thread()
        if statements == fatal:
            statements += 1
            _terminate(connection, postgres_url)

    event.listen(store.engine, "before_cursor_execute", terminate)
    event.listen(store.reader().engine, "before_cursor_execute", terminate)
    tried = 0
    # The first time none is, to see how many there are.
    while fatal <= statements or not tried:
        statements = -1_000_000
        sweep_id = writer.submit(store, small)
        statements = 0
        assert work(store, [sweep_id], WorkOptions(0)).recorded == 3, f"statement {fatal}"
        reached, statements = statements, -1_000_000
        assert rows(store, "SELECT state, count(*) FROM run GROUP BY 1") == [("done", 3)]
        assert rows(store, "SELECT count(*) FROM failure") == [(0,)]
        writer.delete(store, sweep_id)
        statements = reached
        tried += 1
        fatal += 1 if long or not fatal else 3
    print(f"{tried - 1} statements")
    assert tried > (20 if long else 5)


def _terminate(connection: Connection, url: str) -> None:
    """Ends the server's process of a connection, and waits until it has."""
    driver: Any = connection.connection.driver_connection
    with pytest.importorskip("psycopg").connect(url, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [driver.info.backend_pid])


class Terminating:
    """Has a server end the connection of this process's n-th statement from now on."""

    def __init__(self, url: str, what: str = "before_cursor_execute") -> None:
        self.url, self.what = url, what
        self.seen = self.fatal = 0

    def _see(self, connection: Connection, *_: object) -> None:
        if self.what == "commit" and postgres.CHANGES not in connection.info:
            return
        self.seen += 1
        if self.seen == self.fatal:
            _terminate(connection, self.url)

    @contextmanager
    def at(self, fatal: int) -> Iterator[None]:
        """A block whose statement of this number is the last of its connection; none is at 0."""
        self.seen, self.fatal = 0, fatal
        event.listen(Engine, self.what, self._see)
        try:
            yield
        finally:
            event.remove(Engine, self.what, self._see)


SHORT_COMMANDS = {
    "submit": ("submit", "s.toml"),
    "stop": ("stop", "s"),
    "resume": ("resume", "s"),
    "retry": ("retry", "s"),
    "status": ("status", "--json"),
    "runs": ("runs", "--json"),
    "delete": ("delete", "s", "--yes"),
}


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", SHORT_COMMANDS)
def test_a_backend_terminated_at_any_statement_of_a_short_command_is_asked_again(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, long: bool, name: str
) -> None:
    monkeypatch.setattr("sweeps.processes.AGAIN_SECONDS", (0.0, 0.0))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text('name = "s"\nmodel_seeds = [0, 1]\n')
    store = open_writer(postgres_url)
    terminating = Terminating(postgres_url)
    found: list[tuple[str, Any]] = []
    fatal = 0
    while not found or fatal <= terminating.seen:
        if name != "submit":
            writer.submit(store, spec(name="s", model_seeds=[0, 1]))
        with terminating.at(fatal):
            ended = run_main(*SHORT_COMMANDS[name], "--db", postgres_url)
        assert (ended.returncode, ended.stderr) == (0, ""), f"statement {fatal}"
        found.append((ended.stdout, rows(store, "SELECT name, state FROM sweep")))
        assert found[-1][1] == found[0][1]
        if name == "submit":
            writer.delete(store, sweep_queries.find_sweep(store, "s"))
        fatal += 1 if long or not fatal else 3
    assert len(found) > 2


def test_what_may_have_been_kept_is_not_done_twice(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text('name = "s"\nmodel_seeds = [0, 1]\n')
    store = open_writer(postgres_url)
    terminating = Terminating(postgres_url, "commit")
    with terminating.at(0):
        assert run_main("submit", "s.toml", "--db", postgres_url).returncode == 0
    writer.delete(store, sweep_queries.find_sweep(store, "s"))
    with terminating.at(terminating.seen):
        ended = run_main("submit", "s.toml", "--db", postgres_url)
    assert ended.returncode == 3
    assert ended.stderr.count("\n") == 1
    assert "see whether it is, before you repeat it" in ended.stderr


def test_a_page_whose_backend_is_terminated_is_drawn_anew(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, long: bool
) -> None:
    store = open_writer(postgres_url)
    api.merge(store, ROOT / "runs.db")
    terminating = Terminating(postgres_url)
    fatal, shown = 0, ""
    while not shown or fatal <= terminating.seen:
        with store.change():
            pass  # Nothing that was read before is remembered.
        with terminating.at(fatal):
            app = open_app(monkeypatch, postgres_url)
        assert not app.error, f"statement {fatal}"
        shown = shown or said(app)
        assert said(app) == shown
        fatal += 1 if long or not fatal else 150


def test_connections_lost_in_silence_are_given_up(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_writer(postgres_url)
    sweep_id = writer.submit(store, SPEC)
    monkeypatch.setattr(sweeps.work.worker, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(postgres, "STATEMENT_SECONDS", 1.0)
    monkeypatch.setattr(postgres, "GONE_SECONDS", 0.5)
    losing = Cutting(tmp_path, postgres_url, 23, 4, in_silence=True)
    _trained(losing.url, sweep_id)
    losing.close()
    assert losing.cuts == 4
    assert rows(store, "SELECT state, count(*) FROM run GROUP BY 1") == [("done", 18)]
    assert verify(store).damages == []


def test_a_worker_whose_database_does_not_answer_stops_beating(
    store: Store, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "BEAT_SECONDS", 0.05)
    monkeypatch.setattr(reports, "SILENT_SECONDS", 0.5)
    beats: list[float] = []
    monkeypatch.setattr(writer, "beat", lambda *_: beats.append(time.monotonic()))
    with reports.heartbeat(store, 1), open_writer(postgres_url).begin() as connection:
        began = time.monotonic()
        connection.exec_driver_sql("SELECT pg_sleep(2)")
        ended = time.monotonic()
        time.sleep(0.5)
    assert [when for when in beats if when < began + 0.5]
    assert not [when for when in beats if began + 1 < when < ended]
    assert [when for when in beats if when > ended]


def test_who_waits_for_a_lock_is_told_who_holds_it(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.submit(open_writer(postgres_url), SPEC)
    monkeypatch.setattr(postgres, "LOCK_SECONDS", 0.2)
    postgres._engine.cache_clear()
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres_url, application_name="somebody's tool") as holder:
        holder.execute("LOCK TABLE run IN ACCESS EXCLUSIVE MODE")
        for command in (("status",), ("runs",), ("verify",), ("stop", "s")):
            said = run_main(*command, "--db", postgres_url)
            assert said.returncode == 3
            assert said.stderr.count("\n") == 1
            assert (
                f"waited for a lock held by process {holder.info.backend_pid} (somebody's tool of"
            ) in said.stderr


def test_whose_turn_it_is_to_submit_is_said_to_who_waits(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_writer(postgres_url)
    monkeypatch.setattr(postgres, "TOLD_SECONDS", 0.1)
    with store.begin() as first:
        postgres.take_turns(first)
        second = threading.Thread(target=writer.submit, args=(store, SPEC))
        second.start()
        second.join(1.0)
        assert second.is_alive()
    second.join()
    assert "waiting for a lock held by process" in caplog.text
    assert rows(store, "SELECT count(*) FROM sweep") == [(1,)]


def test_the_password_is_in_no_log_and_no_error(
    tmp_path: Path, postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    url = make_url(postgres_url).set(password="hunter2").render_as_string(hide_password=False)
    cutting = Cutting(tmp_path, url, 3, 1000)
    said = []
    for _ in range(20):
        try:
            writer.submit(open_writer(cutting.url), SPEC)
        except Exception as error:
            said.append(f"{error!r} {error.__cause__!r}")
    cutting.close()
    assert said
    assert "hunter2" not in "\n".join(said) + caplog.text
