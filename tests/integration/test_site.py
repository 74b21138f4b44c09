"""A folder for a static host: `seqcls site`."""

import json
import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dashboard.cli import app
from sweeps.api.sweeping import delete
from sweeps.grid.spec import parse_spec
from sweeps.store import writer
from sweeps.store.opening import open_writer
from sweeps.store.reads import sweep_queries
from tests.conftest import ROOT

SHIPPED = str(ROOT / "runs.db")
MARKUP = "<img src=x onerror=alert(1)>"


@pytest.fixture(autouse=True)
def _no_other_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQCLS_DB", SHIPPED)  # restored afterwards


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The files of the site of the shipped database, by their names."""
    folder = tmp_path_factory.mktemp("site") / "public"
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SEQCLS_DB", SHIPPED)  # restored afterwards
        said = CliRunner().invoke(app, ["site", str(folder), "--db", SHIPPED])
    assert said.exit_code == 0, said
    assert "9 sweeps and index.html" in said.stdout
    return {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir()}


def test_the_shipped_database_takes_less_than_5_mb_and_all_links_lead_to_its_files(
    public: dict[str, str],
) -> None:
    assert sum(len(text.encode()) for text in public.values()) < 5_000_000
    links = re.findall(r'<a href="([^"#]+)"', public["index.html"])
    assert len(links) == 9
    assert {"index.html", "vega.js", *links} == set(public)
    for name in ("index.html", *links):
        assert '<script src="vega.js"></script>' in public[name], "shared, not in every page"
        assert "script-src 'self' 'sha256-" in public[name]


def test_models_of_the_index_lead_to_the_page_that_has_their_strings(
    public: dict[str, str],
) -> None:
    index = public["index.html"]
    (text,) = re.findall(r'<script type="application/json" id="pages">(.*?)</script>', index)
    pages = json.loads(text)
    assert len(pages) == 43
    assert 'id="strings-' not in index
    for run in re.findall(r'"run_id": ?(\d+)', index):
        assert run in pages
    for run in ("1", "2"):
        assert f'<details id="run-{run}">' in public[pages[run]]


def test_a_name_with_markup_is_text_and_a_sweep_without_results_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = str(shutil.copy(SHIPPED, tmp_path / "runs.db"))
    store = open_writer(db)
    for name in list(sweep_queries.specifications(store))[1:-1]:
        delete(store, name)
    with store.change() as connection:
        connection.exec_driver_sql("UPDATE sweep SET name = ? WHERE id = 1", (MARKUP,))
    writer.submit(store, parse_spec({"name": "new", "model_seeds": [0]}))
    monkeypatch.setenv("SEQCLS_DB", db)
    folder = tmp_path / "public"
    assert CliRunner().invoke(app, ["site", str(folder), "--db", db]).exit_code == 0
    texts = [file.read_text(encoding="utf-8") for file in folder.iterdir()]
    assert len(texts) == 4, "the index, what draws the charts, and two sweeps of three"
    pages = [text for text in texts if text.startswith("<!doctype html>")]
    assert len(pages) == 3
    assert not any("<img" in text for text in pages)
    assert any("&lt;img src=x" in text for text in texts)
    assert all("/" not in file.name and "<" not in file.name for file in folder.iterdir())


def test_what_cannot_be_written_is_said_and_nothing_is_left(tmp_path: Path) -> None:
    folder = tmp_path / "public"
    said = CliRunner().invoke(app, ["site", str(folder), "--sweep", "none", "--db", SHIPPED])
    assert "no sweep 'none'" in str(said.exception)
    assert not folder.exists()
    folder.mkdir()
    (folder / "index.html").write_text("mine")
    said = CliRunner().invoke(app, ["site", str(folder), "--db", SHIPPED])
    assert "is there; move it" in str(said.exception)
    assert [file.name for file in folder.iterdir()] == ["index.html"]
