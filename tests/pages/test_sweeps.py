"""The page Sweeps and what stands beside every page: following, steering, describing, archiving."""

import sys
import time
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from dashboard.views.scores import limits
from streamlit.testing.v1 import AppTest

from dashboard import actions
from dashboard.views import running
from seqcls.errors import StoreError
from seqcls.results import EpochLosses
from sweeps.api.old_pages import overview as pages
from sweeps.api.old_pages.curves import losses_in_training, newest_losses
from sweeps.api.old_pages.overview import Note
from sweeps.api.old_pages.work_logs import read_log
from sweeps.grid.grouping import make_groups
from sweeps.grid.spec import parse_spec
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads import sweep_queries
from sweeps.store.reads.workers import queued_runs
from sweeps.store.verification import verify
from sweeps.work import background_worker
from tests.app import metrics, open_app, rerun, run, said
from tests.conftest import ROOT, SHORT
from tests.databases import file_of, put_failure, rows
from tests.shown import charts_of
from tests.stock import copy_of

OWN = {"name": "mine", "model_seeds": [0, 1, 2], "fixed": {**SHORT, "hidden_size": 4}}
FIRST = "lower_magnitude_initializations"


@pytest.fixture
def shipped(tmp_path: Path) -> Store:
    """The shipped sweeps, to be changed."""
    path = tmp_path / "runs.db"
    path.write_bytes((ROOT / "runs.db").read_bytes())
    return open_writer(str(path))


def sweep_of(store: Store, name: str) -> int:
    return {named: key for key, named in sweep_queries.sweep_names(store).items()}[name]


def wait(holds: Callable[[], bool]) -> None:
    while not holds():
        time.sleep(0.05)


# What is written about a sweep.


def test_what_is_written_about_a_sweep_is_kept_and_goes_with_it(any_db: str) -> None:
    store = open_writer(any_db)
    first = writer.submit(store, parse_spec({"name": "heads", "model_seeds": [0]}))
    assert pages.notes(store) == {}
    writer.write_note(store, first, " Two heads ", "Try four.", ["b", "a", "a ", ""])
    assert pages.notes(store) == {first: Note("Two heads", "Try four.", ("a", "b"))}
    writer.archive(store, first, True)
    assert pages.notes(store)[first].archived_at is not None
    assert pages.notes(store)[first].title == "Two heads"
    writer.archive(store, first, False)
    writer.write_note(store, first, "", "", ["c"])
    assert pages.notes(store) == {first: Note(tags=("c",))}
    with pytest.raises(StoreError, match="a title of 300 characters"):
        writer.write_note(store, first, "x" * 300, "", [])
    writer.delete(store, first)
    assert pages.notes(store) == {}
    assert verify(store).damages == []


def named(store: Store) -> dict[str, Note]:
    names = sweep_queries.sweep_names(store)
    return {names[key]: own for key, own in pages.notes(store).items()}


def test_merging_carries_titles_notes_and_tags_about_the_same_models(tmp_path: Path) -> None:
    store, target = (open_writer(str(tmp_path / name)) for name in ("two.db", "target.db"))
    heads, widths = (
        writer.submit(store, parse_spec({"name": name, "model_seeds": seeds, "fixed": SHORT}))
        for name, seeds in (("heads", [0, 1]), ("widths", [2]))
    )
    writer.write_note(store, heads, "More heads", "for the talk", ["paper", "heads"])
    writer.archive(store, widths, archived=True)
    # There one name stands for other models.
    own = writer.submit(target, parse_spec({"name": "first", "model_seeds": "0..9"}))
    writer.submit(target, parse_spec({"name": "heads", "model_seeds": [7], "fixed": SHORT}))
    writer.write_note(target, own, "Ours", "", ["kept"])
    assert writer.merge(target, store).renamed == {"heads": "heads (two)"}
    assert named(target)["heads (two)"] == Note("More heads", "for the talk", ("heads", "paper"))
    assert named(target)["widths"].archived_at is not None
    assert named(target)["first"] == Note("Ours", tags=("kept",))
    before = named(target)
    writer.merge(target, store)
    assert named(target) == before, "a second time adds nothing"
    # What is written there stays when more comes.
    writer.write_note(store, heads, "Theirs", "", ["new"])
    writer.merge(target, store)
    assert named(target)["heads (two)"] == Note(
        "More heads", "for the talk", ("heads", "new", "paper")
    )


def test_a_title_and_tags_are_typed_on_the_page_and_shown(
    shipped: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = sweep_of(shipped, FIRST)
    app = open_app(monkeypatch, file_of(shipped), "sweeps", sweep_id=str(own))
    app.text_input(key=f"title {own}").set_value("Two *heads*")
    app.multiselect(key=f"tags {own}").set_value(["pilot"])
    app.text_area(key=f"note_text {own}").set_value("Look again.")
    next(button for button in app.button if button.label == "Save").click()
    app = rerun(app)
    assert not app.error
    texts = [text.value for text in app.text]
    assert any(text.startswith(f"Two *heads*\n{FIRST}") for text in texts)
    assert "Look again." in texts
    # By its tag it is found on every page.
    app = open_app(monkeypatch, file_of(shipped), tag="pilot")
    assert metrics(app)["Models tested"] == "8"


def test_an_archived_sweep_is_hidden_and_not_lost(
    shipped: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    db, own = file_of(shipped), sweep_of(shipped, FIRST)

    def names(app: AppTest) -> list[str]:
        found: list[str] = app.dataframe[0].value["name"].tolist()
        return found

    app = open_app(monkeypatch, db, "sweeps", sweep_id=str(own))
    everything = names(app)
    app.button(f"archive {own}").click()
    rerun(app)
    app = open_app(monkeypatch, db, "sweeps")
    assert names(app) == [x for x in everything if x != FIRST]
    assert rows(shipped, "SELECT count(*) FROM run") == [(43,)]
    app.toggle(key="show_archived").set_value(True)
    assert names(run(app)) == everything
    # A link to it still shows its models; a tag does not find it.
    writer.write_note(shipped, own, "", "", ["pilot"])
    app = open_app(monkeypatch, db, "failing", sweep=FIRST)
    assert "8 of 43 runs match the filters." in said(app)
    assert not app.warning
    assert "0 of 43 runs match" in said(open_app(monkeypatch, db, tag="pilot"))
    # A sweep takes no model with it that is another's, too.
    writer.archive(shipped, sweep_of(shipped, "generalization_errors"), archived=True)
    assert metrics(open_app(monkeypatch, db))["Models tested"] == "35"
    app = open_app(monkeypatch, db, "sweeps", sweep_id=str(own))
    app.button(f"archive {own}").click()
    rerun(app)
    assert metrics(open_app(monkeypatch, db))["Models tested"] == "43"


# What a sweep is, and how it goes.


def test_a_sweep_is_shown_as_a_file_that_makes_the_same_sweep(
    monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    spec = parse_spec({"name": 'a "name"', "model_seeds": [3, 1], "axes": {"hidden_size": [2, 4]}})
    writer.submit(store, spec)
    app = open_app(monkeypatch, file_of(store), "sweeps")
    shown = next(code.value for code in app.code if "model_seeds" in code.value)
    assert parse_spec(tomllib.loads(shown)) == spec


def test_why_training_failed_is_on_the_page_of_sweeps(
    monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    writer.submit(store, parse_spec({"name": "s", "model_seeds": [0]}))
    with store.write(quiet=True) as connection:
        connection.exec_driver_sql("UPDATE run SET state = 'failed', error = 'diverged *here*'")
    put_failure(store, [1], "diverged *here*")
    app = open_app(monkeypatch, file_of(store))
    assert "training failed for all of these runs" in app.info[0].value
    app = open_app(monkeypatch, file_of(store), "sweeps")
    assert app.dataframe[1].value["reason"].tolist() == ["diverged *here*"]
    assert "Retry 1 failed" in [button.label for button in app.button]


def test_loss_curves_of_models_in_training_grow_though_no_revision_tells_of_it(
    monkeypatch: pytest.MonkeyPatch, kinds: Path, tmp_path: Path
) -> None:
    """One model was trained; another waits, trains, and loses its worker."""
    del kinds
    store = open_writer(str(copy_of("kinds", "kinds.db", tmp_path)))
    sweep_id = sweep_of(store, "counted")
    with store.write(quiet=True) as connection:
        connection.exec_driver_sql(
            "UPDATE run SET state = 'queued' WHERE id = (SELECT max(run_id) FROM sweep_run "
            f"WHERE sweep_id = {sweep_id})"
        )

    def drawn() -> dict[str, int]:
        """How many points of each state the chart has."""
        frames = [x for chart in charts_of(rerun(app)) for x in chart if "state" in x]
        return dict(Counter(max(frames, key=len)["state"]))

    app = open_app(monkeypatch, file_of(store), "sweeps", sweep_id=str(sweep_id))
    finished = newest_losses(open_reader(str(file_of(store))), sweep_id, 8, 96)
    assert finished["model_seed"].nunique() == 2
    assert (finished["validation_loss"] > 0).all()
    assert drawn() == {"finished": len(finished)} == {"finished": 3}
    (group,) = make_groups(queued_runs(store, [sweep_id]))
    worker_id = writer.register_worker(store)
    claim = writer.claim(store, worker_id, group)
    assert claim is not None
    for epoch in (1, 2):
        writer.record_losses(store, [(claim, [EpochLosses(0, epoch, 4.0, 2.0)])])
        assert drawn() == {"finished": 3, "in training": epoch}
    with store.write(quiet=True) as connection:
        connection.exec_driver_sql("UPDATE worker SET heartbeat_at = '2001-01-01T00:00:00+00:00'")
    assert drawn() == {"finished": 3, "worker died": 2}
    assert "The worker of 1 model" in said(app)
    writer.release(store, worker_id)
    assert drawn() == {"finished": 3}
    # Of a long training few epochs are drawn.
    claim = writer.claim(store, worker_id, group)
    assert claim is not None
    told = [EpochLosses(0, epoch, 4.0, 2.0) for epoch in range(1, 1002)]
    writer.record_losses(store, [(claim, told)])
    epochs = losses_in_training(store, sweep_id, 8, 32)["epoch"].tolist()
    assert epochs == [*range(1, 1001, 6), 1001]


def test_the_end_of_training_or_validation_is_drawn_only_among_the_tested_lengths(
    monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    monkeypatch.setenv("SEQCLS_DB", str(file_of(store)))
    fixed = {"train_max_length": 8, "test_max_length": 20, "validation_max_length": 50}
    for name, own in (("short", fixed), ("longer", {**fixed, "train_max_length": 12})):
        writer.submit(store, parse_spec({"name": name, "model_seeds": [0], "fixed": own}))
    assert limits([1]).to_numpy().tolist() == [[8, "end of training", 1]], "and where it begins"
    marks = [[8, "end of training: 8", 1], [12, "end of training: 12", 1]]
    assert limits([1, 2]).to_numpy().tolist() == marks, "each length once"


# Steering it, from every page.


def test_a_sweep_that_nobody_trains_is_said_to_wait_and_is_resumed_stopped_and_deleted(
    monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    started: list[object] = []
    monkeypatch.setattr(
        background_worker, "start_worker", lambda *given, **_: started.append(given)
    )
    writer.submit(store, parse_spec(OWN))
    writer.submit(store, parse_spec({**OWN, "name": "other", "model_seeds": [2, 3]}))
    db = file_of(store)
    app = open_app(monkeypatch, db)
    assert "0 of 3 models · no worker" in said(app)
    app.button("resume sidebar 1").click()
    rerun(app)
    assert len(started) == 1
    with store.write(quiet=True) as connection:
        connection.exec_driver_sql("UPDATE run SET state = 'running' WHERE id = 1")
    app = open_app(monkeypatch, db)
    app.button("stop sidebar 1").click()
    rerun(app)
    assert rows(store, "SELECT state FROM sweep_state WHERE sweep_id = 1") == [("stopped",)]
    assert "0 of 3 models · 1 in training · stopped" in said(app)
    assert "resume sidebar 1" in [button.key for button in app.button]
    with store.write(quiet=True) as connection:
        connection.exec_driver_sql("UPDATE run SET state = 'queued'")
    app = open_app(monkeypatch, db, "sweeps", sweep_id="1")
    assert app.button("delete 1").label == "Delete these 3 models"
    app.button("delete 1").click()
    rerun(app)
    assert rows(store, "SELECT name FROM sweep ORDER BY id") == [("other",)]
    assert rows(store, "SELECT model_seed FROM run ORDER BY 1") == [(2,), (3,)]
    # What cannot be done is said, once.
    app = open_app(monkeypatch, db)
    monkeypatch.setenv("SEQCLS_DB", str(db.parent / "no folder" / "x.db"))
    app.button("resume sidebar 2").click()
    rerun(app)
    assert "That didn't work." in [error.value for error in app.error]
    assert actions.PROBLEM not in app.session_state


def test_a_deletion_spares_another_file_in_the_place_of_the_database(
    monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    monkeypatch.setenv("SEQCLS_DB", str(file_of(store)))
    writer.submit(store, parse_spec(OWN))
    app = open_app(monkeypatch, file_of(store), "sweeps", sweep_id="1")
    with store.write(quiet=True) as connection:
        connection.exec_driver_sql("UPDATE sweep SET name = 'of another file'")
    app.button("delete 1").click()
    rerun(app)
    assert rows(store, "SELECT count(*) FROM sweep") == [(1,)]
    assert "That didn't work." in [error.value for error in app.error]


def test_a_worker_that_compiles_is_said_to(monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    said_first = "compiling for this machine (transformer), once: about half a minute"
    told = f"import time; print({said_first!r}, flush=True); time.sleep(600)"
    monkeypatch.setattr(background_worker, "python", lambda *_: [sys.executable, "-c", told])
    before = len(background_worker._started)
    background_worker.start_worker(store, {writer.submit(store, parse_spec(OWN)): "mine"})
    try:
        wait(lambda: said_first in (read_log(store, 1) or ""))
        app = open_app(monkeypatch, file_of(store), "sweeps")
        shown = [x.value.replace("\\", "") for x in app.caption]
        assert shown.count(f"0 of 3 models · {said_first}") == 2, "in the sidebar and on the page"
        assert list(app.dataframe[0].value) == ["name", "state", "models", "done"], "no empty one"
    finally:
        for process in list(background_worker._started)[before:]:
            process.kill()
            process.wait()


def test_only_the_page_of_sweeps_shows_new_results_by_itself(
    monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    writer.submit(store, parse_spec(OWN))
    for page, waits in (("sweeps", False), ("compare", True)):
        revisions = iter([1, 2])
        monkeypatch.setattr(running, "_revision_of", lambda _, r=revisions: next(r, 2))
        app = open_app(monkeypatch, file_of(store), page)
        assert ("refresh" in [button.key for button in app.button]) == waits
