"""Every page, on databases good and bad."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import streamlit

from benchmarks.large import make_database
from dashboard.server import first_page
from sweeps.grid.spec import parse_spec
from sweeps.store import writer
from sweeps.store.opening import open_writer
from tests.app import INSIDE, PAGES, metrics, open_app, said
from tests.conftest import ASSETS, ROOT
from tests.databases import file_of

every_page = pytest.mark.parametrize("page", [*PAGES, *INSIDE])
every_filtered_page = pytest.mark.parametrize("page", PAGES)

SHOWN = {
    "compare": "Lowest share that generalizes first",
    "map": "Each number summarizes models",
    "failing": "16 models misclassify test strings",
    "sweeps": "One string through a model",
    "model": "Why does this model fail?",
    "guide": "Each model is one Transformer block without positions",
    "compare_two": "Strings that only one gets wrong",
}


@every_page
def test_it_shows_the_shipped_database(monkeypatch: pytest.MonkeyPatch, page: str) -> None:
    app = open_app(monkeypatch, ROOT / "runs.db", page)
    assert SHOWN[page] in said(app) + "".join(x.value for x in app.subheader)
    assert bool(app.error) == (page == "model"), "of its model an error is explained"


@every_page
@pytest.mark.parametrize("make", [Path, Path.touch], ids=["missing", "empty"])
def test_without_models_it_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, make: object, page: str
) -> None:
    db = tmp_path / "none.db"
    assert callable(make)
    make(db)
    app = open_app(monkeypatch, db, page)
    assert "no models to show yet" in app.info[0].value
    assert f"seqcls sweep report --db {db}" in [code.value for code in app.code]
    assert "Launch a sweep" in [link.label for link in app.page_link]
    assert not app.error


@every_page
def test_a_damaged_a_newer_and_an_older_file_are_explained(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, page: str
) -> None:
    damaged, newer = tmp_path / "damaged.db", tmp_path / "newer.db"
    damaged.write_bytes(b"\x00garbage" * 1000)
    open_writer(str(newer))
    with closing(sqlite3.connect(newer)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    older = tmp_path / "older.db"
    older.write_bytes((ASSETS / "databases" / "0004.db").read_bytes())
    oldest = tmp_path / "oldest.db"
    oldest.write_bytes(older.read_bytes())
    with closing(sqlite3.connect(oldest)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0003'")
        connection.commit()
    for db, says in (
        (damaged, "no SQLite database"),
        (newer, "upgrade seqcls"),
        (older, "seqcls db upgrade --db"),
        (oldest, "is of schema '0003'; seqcls 0.2"),
    ):
        app = open_app(monkeypatch, db, page)
        assert app.error[0].value == "The database cannot be shown."
        assert says in app.code[-1].value


@every_page
def test_a_file_that_is_damaged_inside_is_explained(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, page: str
) -> None:
    db = tmp_path / "torn.db"
    content = bytearray((ROOT / "runs.db").read_bytes())
    content[40_000:] = b"\xff" * (len(content) - 40_000)
    db.write_bytes(content)
    app = open_app(monkeypatch, db, page)
    assert app.error[0].value == "The database cannot be shown."
    assert "malformed" in app.code[-1].value or "damaged" in app.code[-1].value


@every_page
def test_a_sweep_without_a_finished_run_is_said_to_be_unfinished(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, page: str
) -> None:
    store = open_writer(str(tmp_path / "queued.db"))
    writer.submit(store, parse_spec({"name": "<b>*new*</b>", "model_seeds": "0..3"}))
    app = open_app(monkeypatch, file_of(store), page)
    expected = {
        "compare": "None of these runs has finished yet",
        "map": "wait for the first results",
        "failing": "wait for the first results",
        "sweeps": "0 of 4 models",
        "model": "No model is trained yet",
        "guide": "has none of the report's models",
        "compare_two": "Two trained models are needed",
    }
    assert expected[page] in said(app)
    # The name is shown as it is, in an element that knows no markup.
    assert "<b>*new*</b>" in [text.value for text in app.text]
    assert not any("new" in text.value for text in (*app.markdown, *app.caption, *app.info))


@pytest.mark.parametrize("page", [*PAGES, "model", "compare_two"])
def test_without_a_sweep_no_filter_is_to_blame(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, page: str
) -> None:
    open_writer(str(tmp_path / "new.db"))
    app = open_app(monkeypatch, tmp_path / "new.db", page)
    assert [info.value for info in app.info] == ["No sweeps yet."]
    # In a narrow window the sidebar, which has such a link too, is folded.
    links = [link.proto.label for link in app.main.get("page_link")]
    assert links == ["Launch a sweep"]


@every_filtered_page
def test_filters_that_leave_nothing_say_so(monkeypatch: pytest.MonkeyPatch, page: str) -> None:
    app = open_app(monkeypatch, ROOT / "runs.db", page, seed="5", sweep="generalization_errors")
    assert "0 of 43 runs match the filters." in said(app)
    expected = {"compare": "No run matches", "map": "No model that", "failing": "No model that"}
    assert expected.get(page, "Sweep") in said(app) + app.title[0].value


@every_filtered_page
def test_a_link_that_means_nothing_is_as_good_as_none(
    monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    names = (
        "run",
        "config",
        "sweep_id",
        "seed",
        "sweep",
        "below",
        "kind",
        "x",
        "facet",
        "models_page",
    )
    for nonsense in ("no such", "9" * 20, "-1"):
        query: dict[str, str | list[str]] = dict.fromkeys(names, nonsense)
        app = open_app(monkeypatch, ROOT / "runs.db", page, **query)
        assert SHOWN[page] in said(app)


@every_filtered_page
def test_it_shows_a_large_database_and_reads_only_a_part(
    monkeypatch: pytest.MonkeyPatch, large: Path, page: str
) -> None:
    app = open_app(monkeypatch, large, page)
    assert not app.error
    if page == "compare":
        assert metrics(app)["Models tested"] == "300"
        assert len(app.dataframe[0].value) == 50
        assert "The charts show the first 7 of 50 configurations" in said(app)
    if page == "failing":
        assert "225 models misclassify test strings" in said(app)
        assert len(app.dataframe[0].value) == 100
        assert app.get("pagination")


@every_filtered_page
def test_it_shows_a_database_of_a_server(
    monkeypatch: pytest.MonkeyPatch, postgres_url: str, page: str
) -> None:
    make_database(postgres_url, {"hidden_size": [2, 4], "num_attention_heads": [1, 2]}, seeds=4)
    app = open_app(monkeypatch, postgres_url, page, seed=["1", "2"])
    assert "8 of 16 runs match the filters." in said(app)
    assert not app.error


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fifty configurations of six seeds."""
    path = tmp_path_factory.mktemp("large") / "large.db"
    axes = {"hidden_size": [2, 4, 8, 16, 32], "num_attention_heads": list(range(1, 11))}
    make_database(str(path), axes, seeds=6, errors=20)
    return path


def test_new_results_appear_without_a_restart(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = open_writer(str(tmp_path / "growing.db"))
    writer.submit(store, parse_spec({"name": "s", "model_seeds": "0..3"}))
    assert metrics(open_app(monkeypatch, file_of(store)))["Queued or in training"] == "4"
    writer.submit(store, parse_spec({"name": "t", "model_seeds": "0..9"}))
    assert metrics(open_app(monkeypatch, file_of(store)))["Queued or in training"] == "10"


def test_every_page_of_the_navigation_is_served_by_its_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    paths: list[str] = []
    navigation = streamlit.navigation

    def noted(pages: list[Any], **how: Any) -> Any:
        paths.extend(page.url_path for page in pages)
        return navigation(pages, **how)

    monkeypatch.setattr(streamlit, "navigation", noted)
    open_app(monkeypatch, ROOT / "runs.db", "guide")
    assert set(paths) == set(first_page.PAGES), "name its path in dashboard/server/first_page.py"


def test_the_page_never_holds_a_lock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    store = open_writer(str(tmp_path / "free.db"))
    writer.submit(store, parse_spec({"name": "s", "model_seeds": "0..3"}))
    for page in PAGES:
        open_app(monkeypatch, file_of(store), page)
    with closing(sqlite3.connect(file_of(store), timeout=0, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("ROLLBACK")


def test_the_pages_load_no_pytorch_and_no_readers() -> None:
    check = (
        "import sys\n"
        "from streamlit.testing.v1 import AppTest\n"
        f"for page in {(*PAGES, 'launch')}:\n"
        "    app = AppTest.from_file('dashboard/app.py', default_timeout=60)\n"
        "    if page != 'compare': app.switch_page(f'screens/{page}.py')\n"
        "    assert not app.run().exception and len(app.title) == 1\n"
        "print({'torch', 'sklearn'} & set(sys.modules))"
    )
    said = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert said.stdout == "set()\n"


def test_what_moves_the_failing_share_is_told_of_all_seeds_whichever_are_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = open_app(monkeypatch, ROOT / "runs.db", failing="true", moves="Failing share")
    moves = next(x.value for x in app.markdown if "the failing share most" in x.value)
    assert "(difference 0%" not in moves, moves


def test_large_charts_below_others_wait_until_they_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    db = tmp_path / "large.db"
    make_database(str(db), {"hidden_size": [2, 4]}, seeds=300, errors=2)
    app = open_app(monkeypatch, db)
    folded = [x.label for x in app.expander if "grid" in x.label]
    assert folded == ["Accuracy of each seed as a grid"]
    assert "An empty cell" not in said(app)
