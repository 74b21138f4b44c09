"""What a model's page says of its outcome beside its causes."""

import shutil
from pathlib import Path

import pytest

from seqcls.results import Confusion
from sweeps.store import writer
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads import queries
from tests.app import open_app
from tests.conftest import ROOT


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return Path(shutil.copy(ROOT / "runs.db", tmp_path / "runs.db"))


def test_a_model_that_hangs_on_rounding_is_marked_with_its_range(
    monkeypatch: pytest.MonkeyPatch, db: Path
) -> None:
    own = [Confusion(4329, 0, 1333, 4322), Confusion(4329, 0, 0, 5655)]
    writer.record_perturbations(open_writer(str(db)), 41, own)
    assert queries.run_status(open_reader(str(db)), 41).state == "done"
    app = open_app(monkeypatch, db, "model", run="41")
    (warning,) = app.warning
    assert "misclassifies 0 to 1,333 test strings" in warning.value
