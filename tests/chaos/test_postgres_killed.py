"""PostgreSQL that is killed in mid-sweep and started again, or refuses what it could not order."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

import sweeps.work.worker
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_writer
from sweeps.store.verification import verify
from sweeps.work.machine import WorkOptions
from sweeps.work.worker import work
from tests.chaos import swept
from tests.conftest import LONG, ROOT, SHORT
from tests.databases import rows, spec, started_server


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
    """Trains a sweep in processes of their own, begun anew where they end; the server is killed."""
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
