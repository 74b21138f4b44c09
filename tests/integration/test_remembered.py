"""Answers are remembered until the database changes, each query's for themselves."""

import subprocess
import sys
from pathlib import Path

import altair as alt
import pandas as pd
import pytest

from dashboard import data, placement
from dashboard.charts.themes import LIGHT
from sweeps.store import writer
from sweeps.store.databases.engine import Store
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

    remembered, others = data.cached(seldom), data.cached(often)
    assert remembered() == 1
    assert [others(number) for number in range(100)] == list(range(100))
    assert remembered() == 1
    assert calls == ["seldom"]


def test_a_change_makes_an_answer_old(asked: Store) -> None:
    def sweeps_seen(store: Store) -> int:
        with store.begin() as connection:
            return int(connection.exec_driver_sql("SELECT count(*) FROM sweep").scalar() or 0)

    remembered = data.cached(sweeps_seen)
    assert remembered() == 0
    writer.submit(asked, spec())
    assert remembered() == 1


def test_a_server_starts_without_a_word_on_its_caches() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import dashboard.app"], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert "No runtime found" not in done.stderr


def test_a_page_asks_once_whether_the_database_has_changed(asked: Store) -> None:
    def sweeps_seen(store: Store) -> int:
        with store.begin() as connection:
            return int(connection.exec_driver_sql("SELECT count(*) FROM sweep").scalar() or 0)

    remembered = data.cached(sweeps_seen)
    with data.at_one_revision():
        assert remembered() == 0
        writer.submit(asked, spec())
        assert remembered() == 0, "the page is of one state"
    assert remembered() == 1


def test_a_chart_is_built_once_of_the_same_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "ground", lambda: LIGHT)
    built = []

    def chart(frame: pd.DataFrame, name: str) -> alt.Chart:
        built.append(name)
        drawn: alt.Chart = alt.Chart(frame).mark_point().encode(x="x:Q", y=alt.Y(f"{name}:Q"))
        return drawn

    few, many = (pd.DataFrame({"x": range(n), "y": range(n)}) for n in (3, 2_000))
    specs = [placement.build(chart, frame, "y") for frame in (few, few.copy(), many)]
    assert built == ["y", "y"]
    assert specs[0] == specs[1]
    renamed = placement.build(chart, few.rename(columns={"y": "z"}), "z")
    assert renamed["encoding"]["y"]["field"] == "z"
    assert "usermeta" not in specs[0], "a small chart can be read mark by mark"
    assert specs[2]["usermeta"]["embedOptions"]["renderer"] == "canvas"
    assert specs[2]["description"] == specs[0]["description"]
