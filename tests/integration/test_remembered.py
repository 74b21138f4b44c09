"""Answers are remembered until the database changes, each query's for themselves."""

import subprocess
import sys
from pathlib import Path

import pytest

from dashboard import data
from sweeps.store import writer
from sweeps.store.engine import Store
from sweeps.store.opening import open_writer
from tests.conftest import ROOT
from tests.databases import spec


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    path = tmp_path / "x.db"
    monkeypatch.setenv("SEQCLS_DB", str(path))
    return open_writer(str(path))


@pytest.mark.usefixtures("asked")
def test_many_answers_of_one_query_drive_out_none_of_another() -> None:
    calls = []

    def seldom(_: Store) -> int:
        calls.append("seldom")
        return 1

    def often(_: Store, number: int) -> int:
        return number

    remembered, others = data._cached(seldom), data._cached(often)
    assert remembered() == 1
    assert [others(number) for number in range(100)] == list(range(100))
    assert remembered() == 1
    assert calls == ["seldom"]


def test_a_change_makes_an_answer_old(asked: Store) -> None:
    def sweeps_seen(store: Store) -> int:
        with store.begin() as connection:
            return int(connection.exec_driver_sql("SELECT count(*) FROM sweep").scalar() or 0)

    remembered = data._cached(sweeps_seen)
    assert remembered() == 0
    writer.submit(asked, spec())
    assert remembered() == 1


def test_a_server_starts_without_a_word_on_its_caches() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import dashboard.app"], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert "No runtime found" not in done.stderr
