"""A sweep as one file: `seqcls report`."""

import re
import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dashboard.cli import app
from sweeps.analysis import causes
from sweeps.grid.spec import parse_spec
from sweeps.store import writer
from sweeps.store.opening import open_writer
from tests.conftest import ROOT
from tests.databases import file_of

SHIPPED = str(ROOT / "runs.db")


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("SEQCLS_DB", SHIPPED)  # restored afterwards
    out = tmp_path / "heads.html"
    said = CliRunner().invoke(
        app, ["report", "all_initializations", "--db", SHIPPED, "-o", str(out)]
    )
    assert said.exit_code == 0, said
    assert "which needs no other file" in said.stdout
    return out.read_text(encoding="utf-8")


def test_it_holds_the_table_the_charts_and_the_causes(written: str) -> None:
    assert "<strong>7 of 8 models fail</strong>" in written
    assert "Median accuracy 93.84%." in written
    assert "89.1% to 97.9%" in written
    assert written.count("<svg") == 3
    assert "Its worst model is run 3, seed 0" in written
    assert re.search(r"<li>\d+ of \d+: \w+", written), "causes of its errors"
    assert "name = &quot;all_initializations&quot;" in written


def test_it_needs_no_other_file_and_runs_no_program(written: str) -> None:
    asked = re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?([^"')\s>]+)""", written)
    assert not [address for address in asked if not address.startswith("#")]
    assert "<script" not in written
    for svg in re.findall(r"<svg.*?</svg>", written, re.DOTALL):
        ElementTree.fromstring(svg)


def test_a_sweep_without_results_and_a_name_that_is_not_there_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_writer(str(tmp_path / "new.db"))
    writer.submit(store, parse_spec({"name": "new", "model_seeds": [0]}))
    monkeypatch.setenv("SEQCLS_DB", file_of(store).as_posix())
    out = ["-o", str(tmp_path / "new.html"), "--db", str(file_of(store))]
    for name, says in (("new", "has no finished run"), ("nev", "did you mean 'new'?")):
        result = CliRunner().invoke(app, ["report", name, *out])
        assert says in str(result.exception)
    bad = CliRunner().invoke(app, ["report", "new", "-o", str(tmp_path / "no" / "x.html")])
    assert "expected a file in a folder that is there" in str(bad.exception)
    assert not (tmp_path / "new.html").exists()


def test_causes_that_are_stored_are_those_of_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = shutil.copy(SHIPPED, tmp_path / "runs.db")
    monkeypatch.setenv("SEQCLS_DB", str(db))
    causes.attribute(open_writer(str(db)), [3], 10)
    out = tmp_path / "heads.html"
    command = ["report", "all_initializations", "--db", str(db), "-o", str(out)]
    assert CliRunner().invoke(app, command).exit_code == 0
    told = out.read_text(encoding="utf-8")
    assert told.count("errors that were looked at") == 1
    assert re.search(r"Of 10 errors that were looked at:</p><ul><li>\d+%: \w+", told)
