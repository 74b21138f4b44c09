"""Pages while runs are deleted, and texts that would be links."""

import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from dashboard import data
from dashboard.server.shared_answers import SharedAnswers
from dashboard.text import UNSEEN, verbatim
from seqcls.errors import StoreBusyError, StoreError
from sweeps.cli.app import app as command
from sweeps.store import writer
from sweeps.store.databases.engine import as_of_now, one_moment
from sweeps.store.opening import open_reader, open_writer, pack
from sweeps.store.reads import overview, queries
from sweeps.store.reads.selection import View
from sweeps.work.machine import WorkOptions
from sweeps.work.worker import work
from tests.app import PAGES, metrics, open_app, said
from tests.conftest import ROOT, SHORT
from tests.databases import rows, spec


@pytest.mark.parametrize("page", PAGES)
def test_a_page_that_is_drawn_while_a_sweep_is_deleted_is_drawn_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    db = tmp_path / "x.db"
    store = open_writer(str(db))
    fixed = {**SHORT, "max_num_epochs": 1}
    wanted = {"stays": [2, 3], "goes": [4, 5]}
    ids = [
        writer.submit(store, spec(name=name, model_seeds=[0], fixed=fixed, axes={"hidden_size": x}))
        for name, x in wanted.items()
    ]
    work(store, ids, WorkOptions(0))
    deleted: list[int] = []
    settings, memberships = data.settings, data.memberships

    def deleting(then: Any) -> Any:
        def answer() -> pd.DataFrame:
            if not deleted:
                deleted.append(writer.delete(store, ids[1]))
            found: pd.DataFrame = then()
            return found

        return answer

    monkeypatch.setattr(data, "settings", deleting(settings))
    monkeypatch.setattr(data, "memberships", deleting(memberships))
    app = open_app(monkeypatch, db, page)
    assert not app.error
    if deleted:
        assert deleted == [2]


COUNTED = [
    f"{query.__module__}.{query.__qualname__}"
    for query in (
        overview.configurations,
        overview.count_failing_models,
        overview.count_runs,
        overview.failing_models,
    )
]
"""Queries that tell how many models fail, each of which a page asks once or twice."""


@pytest.mark.parametrize("page", ["failing", "compare"])
def test_a_page_that_is_drawn_while_results_are_stored_agrees_with_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    db = tmp_path / "stored.db"
    shutil.copy(ROOT / "runs.db", db)
    store, answer, changed = open_writer(str(db)), SharedAnswers.answer, list[int]()

    def storing(self: SharedAnswers, key: Any, make: Any) -> Any:
        if key[0] in COUNTED:
            with store.change() as connection:
                written = connection.exec_driver_sql(
                    "UPDATE run SET wrong = 1, wrong_beyond = 1, fn = 1, tp = tp - 1 WHERE id = "
                    "(SELECT min(id) FROM run WHERE wrong = 0)"
                )
            changed.append(written.rowcount)
        return answer(self, key, make)

    with monkeypatch.context() as patched:
        patched.setattr(SharedAnswers, "answer", storing)
        app = open_app(monkeypatch, db, page, failing="true")
    if page == "failing":
        above = f"{len(app.dataframe[0].value)} models misclassify"
    else:
        above = f"{metrics(app)['Match the filters']} of 43 runs match"
        table = app.dataframe[0].value
        # Such as "0..3, 5", and nothing of none.
        listed = ", ".join(filter(None, [*table["beyond_seeds"], *table["unlearned_seeds"]]))
        spans = [list(map(int, each.split(".."))) for each in listed.split(", ")]
        seeds = sum(span[-1] - span[0] + 1 for span in spans)
        assert seeds == int(metrics(app)["Match the filters"])
    assert above in said(app)
    assert len(changed) > 2, "results are stored between the questions of a page"
    assert set(changed) == {1}, "each time another model has come to fail"
    # No answer is kept under the revision before that which it is of.
    ((failing,),) = rows(db, "SELECT count(*) FROM run WHERE wrong > 0")
    assert f"{failing} of 43 runs match" in said(open_app(monkeypatch, db, failing="true"))


def test_what_a_page_reads_is_of_one_moment(any_db: str) -> None:
    store = open_writer(any_db)
    writer.submit(store, spec(name="first"))
    reader = open_reader(any_db)
    with one_moment():
        assert len(queries.runs(reader)) == 3
        # It holds up no writer.
        writer.submit(store, spec(name="second", model_seeds=[7]))
        assert len(queries.runs(reader)) == 3
        assert len(queries.runs(open_reader(any_db))) == 3
        with as_of_now():
            assert len(queries.runs(reader)) == 4
        with pytest.raises(StoreError), reader.begin() as connection:
            connection.exec_driver_sql("SELECT 1 FROM nowhere")
        assert len(queries.runs(reader)) == 4, "an error ends the moment"
    assert len(queries.runs(reader)) == 4


def test_a_page_says_what_is_no_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "no.db").write_bytes(b"no database at all" * 300)
    app = open_app(monkeypatch, tmp_path / "no.db")
    assert "it is no SQLite database" in said(app)


def test_a_page_holds_up_no_writer_of_a_packed_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = tmp_path / "packed.db"
    store = open_writer(str(db))
    writer.submit(store, spec(name="first"))
    pack(str(db))
    monkeypatch.setenv("SEQCLS_DB", str(db))
    with data.at_one_revision():
        assert data.count_runs(View()) == 3
        writer.submit(open_writer(str(db)), spec(name="second", model_seeds=[7]))
        # What is of another revision than the page's is not shown, and the page drawn anew.
        with pytest.raises(StoreBusyError, match="written while it was read"):
            data.count_runs(View(failing=True))
        assert data.is_outdated()
    assert data.count_runs(View()) == 4


def test_a_page_that_is_broken_is_shown_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> pd.DataFrame:
        raise KeyError("broken")

    # A file of its own: what another page has found of one is not looked up again.
    db = shutil.copy(ROOT / "runs.db", tmp_path / "runs.db")
    monkeypatch.setattr(data, "memberships", broken)
    with pytest.raises(AssertionError, match="broken"):
        open_app(monkeypatch, db)


@pytest.mark.parametrize(
    "text",
    ["http://evil.example", "see https://evil.example/x", "www.evil.example", "me@evil.example"],
)
def test_what_looks_like_an_address_is_no_link(text: str) -> None:
    shown = verbatim(text).replace("\\", "")
    assert shown.replace(UNSEEN, "") == text
    assert text not in shown
    assert "://" not in shown
    assert "www." not in shown


def test_more_workers_than_cores_are_not_started(
    monkeypatch: pytest.MonkeyPatch, short_spec: Path, tmp_path: Path
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    said = CliRunner().invoke(
        command, ["sweep", str(short_spec), "--db", str(tmp_path / "x.db"), "--workers", "64"]
    )
    assert said.exit_code == 0, said.output
    assert "--workers 64: this machine has 1 core; using 1" in said.stderr


@pytest.mark.parametrize("string", ["ab{%d}", "b{2}c{%d}", "a{%d}b{%d}c{%d}"])
@pytest.mark.parametrize("count", [2**62 - 1, 2**62, 2**63 - 1])
def test_letters_may_be_repeated_as_often_as_can_be_written(string: str, count: int) -> None:
    asked = string.replace("%d", str(count))
    for what in ("predict", "explain"):
        said = CliRunner().invoke(
            command, [what, "all_initializations/2", asked, "--db", str(ROOT / "runs.db")]
        )
        assert said.exit_code == 0, said.output
        assert "nan" not in said.stdout
        assert "-" + f"{count:,}" not in said.stdout
