"""No command overwrites a file without `--force`."""

import shutil
from pathlib import Path
from typing import get_type_hints

import altair as alt
import pandas as pd
import pytest

from dashboard.figures.figure import Figure
from tests.commands import printed, refused, shown_commands
from tests.conftest import ROOT
from tests.databases import load_parity

RUN = "lower_magnitude_initializations/2"
WRITING = {
    "report": ("report", "walkthrough", "-o", "out/report.html"),
    "report --site": ("report", "--site", "out", "--sweep", "walkthrough"),
    "figures": ("figures", RUN, "baac", "-o", "out"),
    "export": ("export", "out"),
    "give": ("give", RUN, "out"),
    "prove": ("prove", "hand/0", "--certificate", "out/proof.json"),
    "remedies": ("remedies", RUN, "--save", "out"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the shipped database."""
    shutil.copy(ROOT / "runs.db", tmp_path / "runs.db")
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEQCLS_DB", "runs.db")
    return tmp_path / "out"


def one_figure() -> Figure:
    frame = pd.DataFrame({"x": [1, 2]})
    return Figure.from_chart(1, "Units", "", "", alt.Chart(frame).mark_point().encode(x="x:Q"))


def test_every_command_that_writes_files_is_tested_here() -> None:
    """A place is a parameter of the type `Path`: its command has `--force` and a row above."""
    found = {}
    for name, command in shown_commands().items():
        assert command.callback is not None
        kinds = get_type_hints(command.callback)
        if {Path, Path | None} & set(kinds.values()):
            found[name] = "force" in kinds
    assert found == dict.fromkeys((name.split()[0] for name in WRITING), True)


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("command", WRITING)
def test_a_command_replaces_files_only_by_force_and_never_a_database(
    folder: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # All figures of a model take seconds to make.
    monkeypatch.setattr("dashboard.model.files.draw_figures", lambda *_: [one_figure()])
    arguments = WRITING[command]
    if command == "prove":
        load_parity(folder.parent / "runs.db")
    printed(*arguments)
    assert "already exists; move it or name another, or" in refused(*arguments)
    printed(*arguments, "--force")
    # Others that are not replaced are tested in `test_files`.
    path, *others = sorted(folder.iterdir())
    before = {own: own.read_bytes() for own in others}
    shutil.copy(ROOT / "runs.db", path)
    assert f"{path.name}' already exists; " in refused(*arguments, "--force")
    database = (ROOT / "runs.db").read_bytes()
    assert {own: own.read_bytes() for own in (path, *others)} == {path: database, **before}
