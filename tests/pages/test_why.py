"""Why models fail, on the pages: causes found by a button, remedies that fill the launch panel."""

import shutil
from pathlib import Path

import pytest

from dashboard.views.causes import _jobs
from seqcls.results import Confusion
from sweeps.api import failures
from sweeps.store import writer
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads import queries
from tests.app import open_app, rerun, said
from tests.conftest import ROOT
from tests.databases import rows

SWEEP = "lower_magnitude_initializations"


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return Path(shutil.copy(ROOT / "runs.db", tmp_path / "runs.db"))


def test_the_page_finds_causes_and_shows_them_by_configuration(
    monkeypatch: pytest.MonkeyPatch, db: Path
) -> None:
    app = open_app(monkeypatch, db, "failing", sweep=SWEEP)
    assert "Causes found for 0 of 6 failing models" in said(app)
    assert not any("would help" in own.value for own in app.subheader)
    app.button("find_causes").click()
    rerun(app)
    # It is done by a process of its own, whose progress every page of this database shows.
    assert "find_causes" not in [own.key for own in app.button]
    (job,) = (own for own in _jobs().values() if own.goes_on)
    job.process.wait(120)
    rerun(app)
    assert "Causes found for 6 of 6 failing models" in said(app)
    assert "find_causes" not in [own.key for own in app.button]
    app = open_app(monkeypatch, db, "failing", sweep=SWEEP, mechanism="not learned")
    (table,) = (own.value for own in app.dataframe if "parts" in own.value)
    ((run_id, told),) = table[["run_id", "parts"]].to_numpy().tolist()
    assert run_id == 38
    assert told.startswith("wrong on 75 of 508 test strings of trained lengths; ")
    assert "A seed that has not learned, by an accuracy of less than 99%" in said(app)


def test_a_remedy_fills_the_launch_panel_with_the_same_seeds_and_one_field_changed(
    monkeypatch: pytest.MonkeyPatch, db: Path
) -> None:
    failures.attribute(open_writer(str(db)), [37], 10)
    app = open_app(monkeypatch, db, "model", run="37")
    assert any(own.value.startswith("What would help model ") for own in app.subheader)
    assert "not tried yet" in said(app)
    app.button("fill 37 0").click()
    rerun(app)
    assert app.selectbox(key="launch_start").value == "Model 37"
    assert app.text_input(key="launch_seeds").value == "0, 1, 2, 3, 4, 5, 6, 7"
    assert "scale sqrt → log" in said(app)
    assert not app.button("launch_button").disabled
    assert "**8 models to train**" in said(app)
    monkeypatch.setattr("sweeps.work.background_worker.start_worker", lambda *_, **__: None)
    app.button("launch_button").click()
    rerun(app)
    (*_, of, tried) = rows(db, "SELECT name FROM config ORDER BY id")
    assert tried == (f"{of[0]}, with attention_scale=log_length",)
    app = open_app(monkeypatch, db, "model", run="37", view="Breaking point")
    assert not any("would help" in own.value for own in app.subheader), "it stands once"


def test_a_model_that_hangs_on_rounding_is_marked_with_its_range(
    monkeypatch: pytest.MonkeyPatch, db: Path
) -> None:
    own = [Confusion(4329, 0, 1333, 4322), Confusion(4329, 0, 0, 5655)]
    writer.record_perturbations(open_writer(str(db)), 41, own)
    assert queries.run_status(open_reader(str(db)), 41).state == "done"
    app = open_app(monkeypatch, db, "model", run="41")
    (warning,) = app.warning
    assert "misclassifies 0 to 1,333 test strings" in warning.value
