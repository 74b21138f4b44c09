"""A page that breaks on the content of a file reports that the file is damaged."""

import shutil
from pathlib import Path

import pytest

from tests.app import open_app, page_text
from tests.conftest import ROOT
from tests.databases import change


@pytest.mark.parametrize("page", ["results", "failures", "sweeps"])
def test_a_page_of_a_damaged_run_has_no_traceback(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, page: str
) -> None:
    db = Path(shutil.copy(ROOT / "runs.db", tmp_path / "runs.db"))
    change(
        db, "PRAGMA ignore_check_constraints = ON", "UPDATE run SET lengths = '[[1' WHERE id = 3"
    )
    app = open_app(monkeypatch, db, page)
    assert "Traceback" not in page_text(app)
    if app.error:
        assert "restore a copy" in page_text(app)
    else:
        assert app.dataframe, "all others are shown"
