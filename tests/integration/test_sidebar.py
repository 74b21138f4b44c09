"""What stands beside every page: launching a sweep, following it, steering it."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from dashboard import actions
from dashboard.launch import fields, starting_point
from dashboard.views import running
from sweeps.grid.spec import parse_spec
from sweeps.store import writer
from sweeps.store.databases.engine import Store
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads import queries, sweep_queries
from sweeps.work import background_worker
from tests.app import open_app, rerun, said
from tests.conftest import ROOT, SHORT
from tests.databases import file_of, rows

OWN = {"name": "mine", "model_seeds": [0, 1, 2], "fixed": {**SHORT, "hidden_size": 4}}


def panel(app: AppTest, kind: str) -> AppTest:
    """The panel to launch, opened."""
    app.session_state["launch"] = True
    app.session_state["launch_kind"] = kind
    return rerun(app)


def write_own(app: AppTest) -> AppTest:
    """What `OWN` says, typed and chosen in the panel."""
    panel(app, "Your own")
    app.text_input(key="launch_name").set_value("mine")
    app.text_input(key="launch_seeds").set_value("0, 1, 2")
    for group, names in fields.GROUPS.items():
        if own := [name for name in SHORT if name in names]:
            app.multiselect(key=f"launch_more {group}").set_value(own)
    app.selectbox(key="launch_start").set_value(starting_point.DEFAULTS)
    app.multiselect(key="launch hidden_size").set_value([4])
    rerun(app)
    for field, value in SHORT.items():
        app.session_state[f"launch {field}"] = [str(value)]
    return rerun(app)


def wait_for_end(store: Store, sweep_id: int) -> None:
    deadline = time.monotonic() + 120
    while background_worker.has_worker(store, sweep_id):
        assert time.monotonic() < deadline, background_worker.read_log(store, sweep_id)
        time.sleep(0.1)


def test_a_preset_says_what_is_there_before_it_is_launched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = panel(open_app(monkeypatch, ROOT / "runs.db"), "Preset")
    assert app.selectbox(key="launch_preset").options[:2] == [
        "report",
        "report/all_fixed_length_sequences",
    ]
    assert "**43 models**, all already trained." in said(app)
    assert app.button("launch_button").disabled


def test_a_sweep_of_ones_own_is_launched_once_and_trained(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    db = tmp_path / "new.db"
    first = write_own(open_app(monkeypatch, db))
    second = write_own(open_app(monkeypatch, db))
    assert "**3 models to train**." in said(first)
    assert not db.exists(), "looking makes no database"
    first.button("launch_button").click()
    rerun(first)
    second.button("launch_button").click()
    rerun(second)
    store = open_reader(str(db))
    assert rows(store, "SELECT name FROM sweep") == [("mine",)]
    assert len(list(background_worker.log_folder(store).glob("*.log"))) == 1, (
        "a second tab starts none"
    )
    assert "mine" in [text.value for text in first.text], "it is shown as running"
    assert first.subheader[0].value == "Sweep 1", "one lands where it is followed"
    again = panel(first, "Your own")
    entered = [again.text_input(key=f"launch_{name}").value for name in ("name", "seeds")]
    assert entered == ["mine_2", "0, 1, 2"], "what was entered can be changed and launched again"
    assert again.multiselect(key="launch hidden_size").value == [4]
    wait_for_end(store, 1)
    assert sweep_queries.counts_by_state(store, [1]) == {"done": 3}
    assert queries.run_config(store, 1).hidden_size == 4
    app = panel(open_app(monkeypatch, db), "Preset")
    assert "to train** (about " in said(app), "the estimate rests on what was measured"
    app = open_app(monkeypatch, db, "sweeps")
    assert any("trained 3 runs" in code.value for code in app.code), "the log can be read"


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("launch_seeds", "0..x", "expected a range such as '0..7'"),
        ("launch_name", "  ", "expected text in quotes"),
    ],
)
def test_what_cannot_be_trained_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, field: str, value: str, says: str
) -> None:
    app = panel(open_app(monkeypatch, tmp_path / "none.db"), "Your own")
    app.text_input(key=field).set_value(value)
    rerun(app)
    assert says in said(app).replace("\\", "")
    assert "launch_button" not in [button.key for button in app.button]


def test_a_typed_value_must_be_one_of_its_field(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    app = panel(open_app(monkeypatch, tmp_path / "none.db"), "Your own")
    app.session_state["launch hidden_size"] = ["many"]
    rerun(app)
    assert "hidden_size='many': expected a valid integer" in said(app).replace("\\", "")


def test_what_no_machine_can_hold_is_said_before_it_is_launched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    app = write_own(open_app(monkeypatch, tmp_path / "none.db"))
    assert not app.warning
    # As on a machine with less memory than the smallest network takes.
    monkeypatch.setattr("sweeps.work.machine.machine_bytes", lambda: 100)
    rerun(app)
    (warning,) = app.warning
    assert "of memory to train, and this machine has" in warning.value


@contextmanager
def _shown(shown: list[str], text: str) -> Iterator[None]:
    shown.append(text)
    yield


def test_what_is_launched_is_shown_to_be_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(st, "spinner", lambda text, **_: _shown(shown, text))
    panel(open_app(monkeypatch, tmp_path / "none.db"), "Your own")
    assert "Reading the settings" in shown


def test_a_sweep_that_nobody_trains_is_said_to_wait_and_can_be_resumed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = open_writer(str(tmp_path / "waiting.db"))
    writer.submit(store, parse_spec(OWN))
    app = open_app(monkeypatch, file_of(store))
    assert "0 of 3 models · no worker" in said(app)
    app.button("resume sidebar 1").click()
    rerun(app)
    wait_for_end(store, 1)
    assert sweep_queries.counts_by_state(store, [1]) == {"done": 3}


def test_a_worker_that_compiles_is_said_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    said_first = "compiling for this machine (transformer), once: about half a minute"
    told = f"import time; print({said_first!r}, flush=True); time.sleep(60)"
    monkeypatch.setattr(background_worker, "python", lambda *_: [sys.executable, "-c", told])
    store = open_writer(str(tmp_path / "compiling.db"))
    before = len(background_worker._started)
    background_worker.start_worker(store, {writer.submit(store, parse_spec(OWN)): "mine"})
    try:
        deadline = time.monotonic() + 120
        while said_first not in (background_worker.read_log(store, 1) or ""):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        app = open_app(monkeypatch, file_of(store), "sweeps")
        shown = [x.value.replace("\\", "") for x in app.caption]
        assert shown.count(f"0 of 3 models · {said_first}") == 2, "in the sidebar and on the page"
        assert list(app.dataframe[0].value) == ["name", "state", "models", "done"], "no empty one"
    finally:
        for process in background_worker._started[before:]:
            process.kill()
            process.wait()


def test_only_the_page_of_sweeps_shows_new_results_by_itself(
    monkeypatch: pytest.MonkeyPatch, two_sweeps: Store
) -> None:
    for page, waits in (("sweeps", False), ("compare", True)):
        revisions = iter([1, 2])
        monkeypatch.setattr(running, "_revision_of", lambda _, r=revisions: next(r, 2))
        app = open_app(monkeypatch, file_of(two_sweeps), page)
        assert ("refresh" in [button.key for button in app.button]) == waits


def test_a_sweep_is_stopped_from_the_page_and_said_to_be(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = open_writer(str(tmp_path / "stopping.db"))
    writer.submit(store, parse_spec(OWN))
    with store.begin() as connection:
        connection.exec_driver_sql("UPDATE run SET state = 'running' WHERE id = 1")
        connection.exec_driver_sql("UPDATE sweep SET state = 'running'")
    app = open_app(monkeypatch, file_of(store))
    app.button("stop sidebar 1").click()
    rerun(app)
    assert rows(store, "SELECT state FROM sweep") == [("stopped",)]
    assert "0 of 3 models · 1 in training · stopped" in said(app)
    assert "resume sidebar 1" in [button.key for button in app.button]


@pytest.fixture
def two_sweeps(tmp_path: Path) -> Store:
    """Sweep 1 has a model that no other sweep has."""
    store = open_writer(str(tmp_path / "deleting.db"))
    writer.submit(store, parse_spec(OWN))
    writer.submit(store, parse_spec({**OWN, "name": "other", "model_seeds": [2, 3]}))
    return store


NAMES = "SELECT name FROM sweep ORDER BY id"


def test_a_sweep_is_deleted_after_asking(
    monkeypatch: pytest.MonkeyPatch, two_sweeps: Store
) -> None:
    monkeypatch.setattr(actions, "GRACE_SECONDS", 0.0)
    app = open_app(monkeypatch, file_of(two_sweeps), "sweeps", sweep_id="1")
    assert app.button("delete 1").label == "Delete these 3 models"
    app.button("delete 1").click()
    rerun(app)
    while rows(two_sweeps, NAMES) != [("other",)]:
        time.sleep(0.05)
    assert rows(two_sweeps, "SELECT model_seed FROM run ORDER BY 1") == [(2,), (3,)]


def test_a_deletion_is_taken_back_within_a_minute(
    monkeypatch: pytest.MonkeyPatch, two_sweeps: Store
) -> None:
    app = open_app(monkeypatch, file_of(two_sweeps), "sweeps", sweep_id="1")
    app.button("delete 1").click()
    rerun(app)
    assert "Sweep 1" not in [heading.value for heading in app.subheader], "it is gone at once"
    assert any("mine is deleted." in text.value for text in app.text)
    assert rows(two_sweeps, NAMES) == [("mine",), ("other",)], "but not from the database"
    app.button("undo 1").click()
    rerun(app)
    assert actions.deletions().waiting(two_sweeps.address) == {}
    assert "undo 1" not in [button.key for button in app.button]


def test_a_sweep_that_is_launched_again_is_not_deleted(
    monkeypatch: pytest.MonkeyPatch, two_sweeps: Store
) -> None:
    monkeypatch.setenv("SEQCLS_DB", str(file_of(two_sweeps)))
    monkeypatch.setattr(background_worker, "start_worker", lambda *_: None)
    actions.deletions().begin(two_sweeps.address, 1, "mine")
    actions.launch([parse_spec(OWN)], "token")
    actions.deletions().finish(two_sweeps.address, 1)
    assert rows(two_sweeps, NAMES) == [("mine",), ("other",)]


def test_what_cannot_be_done_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    store = open_writer(str(tmp_path / "gone.db"))
    writer.submit(store, parse_spec(OWN))
    app = open_app(monkeypatch, file_of(store))
    monkeypatch.setenv("SEQCLS_DB", str(tmp_path / "no folder" / "x.db"))
    app.button("resume sidebar 1").click()
    rerun(app)
    assert "That didn't work." in [error.value for error in app.error]
    assert actions.PROBLEM not in app.session_state, "it is said once"


def test_a_deletion_spares_a_sweep_of_another_file_that_took_the_databases_place(
    two_sweeps: Store,
) -> None:
    actions.deletions().begin(two_sweeps.address, 1, "of the file before")
    actions.deletions().finish(two_sweeps.address, 1)
    assert rows(two_sweeps, NAMES) == [("mine",), ("other",)]
    assert "the database was replaced" in actions.deletions().problems()[0]
