"""A folder for a static host: `seqcls site`."""

import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dashboard.cli import app
from sweeps.grid.spec import parse_spec
from sweeps.store import writer
from sweeps.store.opening import open_writer
from tests.conftest import ROOT

SHIPPED = str(ROOT / "runs.db")
MARKUP = "<img src=x onerror=alert(1)>"


@pytest.fixture(autouse=True)
def _no_other_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQCLS_DB", SHIPPED)  # restored afterwards


def test_the_shipped_database_takes_less_than_5_mb_and_all_links_lead_to_its_files(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "public"
    said = CliRunner().invoke(app, ["site", str(folder), "--db", SHIPPED])
    assert said.exit_code == 0, said
    files = {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir()}
    assert sum(len(text.encode()) for text in files.values()) < 5_000_000
    links = re.findall(r'href="([^"#]+)"', files["index.html"])
    assert len(links) == 9
    assert {"index.html", *links} == set(files)
    assert not any("<script" in text or "http-equiv" in text for text in files.values())


def test_a_name_with_markup_is_text_and_a_sweep_without_results_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = str(shutil.copy(SHIPPED, tmp_path / "runs.db"))
    store = open_writer(db)
    with store.change() as connection:
        connection.exec_driver_sql("UPDATE sweep SET name = ? WHERE id = 1", (MARKUP,))
    writer.submit(store, parse_spec({"name": "new", "model_seeds": [0]}))
    monkeypatch.setenv("SEQCLS_DB", db)
    folder = tmp_path / "public"
    assert CliRunner().invoke(app, ["site", str(folder), "--db", db]).exit_code == 0
    texts = [file.read_text(encoding="utf-8") for file in folder.iterdir()]
    assert len(texts) == 10, "the index, and nine sweeps of ten"
    assert not any("<img" in text for text in texts)
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
