"""Sweeps: their progress, their results, and all actions on a sweep."""

import shutil
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dashboard import actions
from dashboard.training import sections
from seqcls.errors import StoreError
from seqcls.results import EpochLosses
from sweeps.api import watching
from sweeps.api.watching import Note
from sweeps.grid.grouping import make_groups
from sweeps.grid.spec import parse_spec
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads import sweep_queries
from sweeps.store.reads.workers import queued_runs
from sweeps.store.verification import verify
from sweeps.work import background_worker
from tests.app import open_app, plain, rerun
from tests.conftest import ROOT, SHORT
from tests.databases import change, file_of, put_failure, rows
from tests.oracles.facts import Facts, outcome
from tests.stock import copy_of

OWN = {"name": "mine", "model_seeds": [0, 1, 2], "fixed": {**SHORT, "hidden_size": 4}}
FIRST = "lower_magnitude_initializations"


@pytest.fixture
def shipped(tmp_path: Path) -> Store:
    """The shipped sweeps, to be changed."""
    return open_writer(str(shutil.copy(ROOT / "runs.db", tmp_path)))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The workers that would have been started."""
    found: list[object] = []
    monkeypatch.setattr(background_worker, "start_worker", lambda *given, **_: found.append(given))
    return found


def sweep_of(store: Store, name: str) -> int:
    return {named: key for key, named in sweep_queries.sweep_names(store).items()}[name]


def press(app: AppTest, key: str) -> AppTest:
    app.button(key).click()
    return rerun(app)


def lines(app: AppTest) -> list[str]:
    """The texts of the progress bars."""
    return [x.proto.text.replace("\\", "") for x in app.get("progress")]


# What came of all of them.


def test_every_sweep_shows_how_many_models_learned_and_generalize(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = open_app(monkeypatch, ROOT / "runs.db", "sweeps")
    table = app.dataframe[0].value
    assert "**Nothing is in training.**" in plain(app)
    names = rows(ROOT / "runs.db", "SELECT name FROM sweep ORDER BY id DESC")
    assert table["sweep"].tolist() == [name for (name,) in names], "the newest first"
    facts = Facts(ROOT / "runs.db")
    for name, models, result in table[["sweep", "models", "result"]].itertuples(index=False):
        own = Counter(outcome(run) for run in facts.sweeps[name])
        assert sum(own.values()) == models
        if models > 1:
            generalize = own["generalizes"] + own["at every length"]
            learned = generalize + own["fails beyond"]
            assert result.startswith(f"{learned} of {models} learned; of these {generalize} gener")
    assert not app.header, "nothing is selected"


def test_a_link_selects_a_sweep_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    number = rows(ROOT / "runs.db", f"SELECT id FROM sweep WHERE name = '{FIRST}'")[0][0]
    for link in ({"shown": FIRST}, {"sweep_id": str(number)}):
        app = open_app(monkeypatch, ROOT / "runs.db", "sweeps", **link)
        assert app.header[0].value == FIRST.replace("_", r"\_")
        assert "7 of 8 models learned; of these 2 generalize." in plain(app)
        assert f"`seqcls delete {FIRST}` deletes it for good" in plain(app)
        query = {x.proto.label: x.proto.query_string for x in app.get("page_link")}
        assert query["Results"] == f"sweep={FIRST}"
        assert query["Start a new one from it"] == f"start={FIRST}"
        assert app.query_params["shown"] == FIRST


# What is written about a sweep.


def test_notes_on_a_sweep_are_stored_and_deleted_with_it(any_db: str) -> None:
    store = open_writer(any_db)
    first = writer.submit(store, parse_spec({"name": "heads", "model_seeds": [0]}))
    assert watching.notes(store) == {}
    writer.write_note(store, first, " Two heads ", "Try four.", ["b", "a", "a ", ""])
    assert watching.notes(store) == {first: Note("Two heads", "Try four.", ("a", "b"))}
    writer.archive(store, first, True)
    assert watching.notes(store)[first].archived_at is not None
    assert watching.notes(store)[first].title == "Two heads"
    writer.archive(store, first, False)
    writer.write_note(store, first, "", "", ["c"])
    assert watching.notes(store) == {first: Note(tags=("c",))}
    with pytest.raises(StoreError, match="a title of 300 characters"):
        writer.write_note(store, first, "x" * 300, "", [])
    writer.delete(store, first)
    assert watching.notes(store) == {}
    assert verify(store).damages == []


def named(store: Store) -> dict[str, Note]:
    names = sweep_queries.sweep_names(store)
    return {names[key]: own for key, own in watching.notes(store).items()}


def test_merging_carries_titles_notes_and_tags_about_the_same_models(tmp_path: Path) -> None:
    store, target = (open_writer(str(tmp_path / name)) for name in ("two.db", "target.db"))
    heads, widths = (
        writer.submit(store, parse_spec({"name": name, "model_seeds": seeds, "fixed": SHORT}))
        for name, seeds in (("heads", [0, 1]), ("widths", [2]))
    )
    writer.write_note(store, heads, "More heads", "for the talk", ["paper", "heads"])
    writer.archive(store, widths, archived=True)
    # There one name is that of other models.
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
    app = open_app(monkeypatch, file_of(shipped), "sweeps", shown=FIRST)
    app.text_input(key=f"title {own}").set_value("Two *heads*")
    app.multiselect(key=f"tags {own}").set_value(["pilot"])
    app.text_area(key=f"note_text {own}").set_value("Look again.")
    next(button for button in app.button if button.label == "Save").click()
    app = rerun(app)
    assert not app.error
    assert app.header[0].value == r"Two \*heads\*"
    assert "Look again." in plain(app)
    table = app.dataframe[0].value.set_index("sweep")
    assert (table["title"][FIRST], table["tags"][FIRST]) == ("Two *heads*", "pilot")


def test_an_archived_sweep_is_hidden_and_can_be_restored(
    shipped: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    db, own = file_of(shipped), sweep_of(shipped, FIRST)

    def names(app: AppTest) -> list[str]:
        found: list[str] = app.dataframe[0].value["sweep"].tolist()
        return found

    app = open_app(monkeypatch, db, "sweeps", shown=FIRST)
    everything = names(app)
    press(app, f"archive {own}")
    app = open_app(monkeypatch, db, "sweeps")
    assert names(app) == [x for x in everything if x != FIRST]
    assert rows(shipped, "SELECT count(*) FROM run") == [(43,)]
    app.toggle(key="show_archived").set_value(True)
    assert names(rerun(app)) == everything
    app = open_app(monkeypatch, db, "sweeps", shown=FIRST)
    assert names(app) == everything, "a link to it shows it"
    press(app, f"archive {own}")
    assert names(open_app(monkeypatch, db, "sweeps")) == everything


# What a sweep is made of.


def test_the_shown_specification_parses_to_the_same_sweep(
    monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    spec = parse_spec({"name": 'a "name"', "model_seeds": [3, 1], "axes": {"hidden_size": [2, 4]}})
    writer.submit(store, spec)
    app = open_app(monkeypatch, file_of(store), "sweeps", shown='a "name"')
    shown = next(code.value for code in app.code if "model_seeds" in code.value)
    assert parse_spec(tomllib.loads(shown)) == spec
    section, names = sections.protocol(open_reader(str(file_of(store))), 'a "name"', 1)
    assert names == ["width 2", "width 4"]
    assert any("AdamW with learning rate 0.01" in sentence for sentence in section.says)
    assert any(sentence.startswith("Trained on ") for sentence in section.says)


def test_failed_training_is_explained_and_retried_from_the_page(
    monkeypatch: pytest.MonkeyPatch, store: Store, started: list[object]
) -> None:
    writer.submit(store, parse_spec({"name": "s", "model_seeds": [0]}))
    change(store, "UPDATE run SET state = 'failed', error = 'diverged *here*'")
    put_failure(store, [1], "diverged *here*")
    app = open_app(monkeypatch, file_of(store), "sweeps", shown="s")
    table = next(x.value for x in app.dataframe if "why_failed" in x.value)
    assert table["why_failed"].tolist() == ["diverged *here*"]
    assert app.dataframe[0].value["training_failed"].tolist() == [1]
    press(app, "retry 1")
    assert len(started) == 1
    assert rows(store, "SELECT state FROM run") == [("queued",)]


def test_losses_in_training_are_drawn_without_a_new_revision(
    monkeypatch: pytest.MonkeyPatch, kinds: Path, tmp_path: Path
) -> None:
    """One model was trained; another waits, trains, and loses its worker."""
    del kinds
    store = open_writer(str(copy_of("kinds", "kinds.db", tmp_path)))
    sweep_id = sweep_of(store, "counted")
    change(
        store,
        "UPDATE run SET state = 'queued' WHERE id = (SELECT max(run_id) FROM sweep_run "
        f"WHERE sweep_id = {sweep_id})",
    )

    def drawn() -> dict[str, int]:
        """The number of points of each state in the panels."""
        found = Counter[str]()
        for panel in sections.losses(store, sweep_id, 8).panels:
            for points in panel.spec["datasets"].values():
                found.update(point["state"] for point in points)
        return dict(found)

    finished = watching.losses(open_reader(str(file_of(store))), sweep_id, 8, 96)
    assert (finished["loss"] > 0).all()
    assert drawn() == {"finished": len(finished)} == {"finished": 3}
    app = open_app(monkeypatch, file_of(store), "sweeps", shown="counted")
    assert "Validation loss by epoch" in [x.value for x in app.header]
    assert len(app.get("vega_lite_chart") or app.get("arrow_vega_lite_chart")) > 0
    (group,) = make_groups(queued_runs(store, [sweep_id]))
    worker_id = writer.register_worker(store)
    claim = writer.claim(store, worker_id, group)
    assert claim is not None
    for epoch in (1, 2):
        writer.record_losses(store, [(claim, [EpochLosses(0, epoch, 4.0, 2.0)])])
        assert drawn() == {"finished": 3, "in training": epoch}
    change(store, "UPDATE worker SET heartbeat_at = '2001-01-01T00:00:00+00:00'")
    assert drawn() == {"finished": 3, "worker died": 2}
    writer.release(store, worker_id)
    assert drawn() == {"finished": 3}
    # Of a long training few epochs are drawn.
    claim = writer.claim(store, worker_id, group)
    assert claim is not None
    epoch_losses = [EpochLosses(0, epoch, 4.0, 2.0) for epoch in range(1, 1002)]
    writer.record_losses(store, [(claim, epoch_losses)])
    every = watching.losses(store, sweep_id, 8, 32)
    epochs = every.loc[every["state"] != "finished", "epoch"].tolist()
    assert epochs == [*range(1, 1001, 6), 1001]


# Steering it.


def test_a_sweep_without_a_worker_is_shown_stopped_and_resumed(
    monkeypatch: pytest.MonkeyPatch, store: Store, started: list[object]
) -> None:
    writer.submit(store, parse_spec(OWN))
    writer.submit(store, parse_spec({**OWN, "name": "other", "model_seeds": [2, 3]}))
    db = file_of(store)
    for page in ("results", "failures", "guide"):
        waiting = open_app(monkeypatch, db, page)
        assert lines(waiting)[0] == "**mine** · 0 of 3 models · no worker", page
    app = open_app(monkeypatch, db, "sweeps")
    assert lines(app)[0] == "**mine** · 0 of 3 models · no worker"
    press(app, "resume 1")
    assert len(started) == 1
    change(store, "UPDATE run SET state = 'running' WHERE id = 1")
    app = open_app(monkeypatch, db, "sweeps")
    assert "0 of 3 models · 1 in training" in lines(app)[0]
    assert lines(app)[0].endswith(" left"), "its cost tells before the first epoch has ended"
    press(app, "stop 1")
    assert rows(store, "SELECT state FROM sweep_state WHERE sweep_id = 1") == [("stopped",)]
    assert lines(app)[0] == "**mine** · 0 of 3 models · 1 in training · stopped"
    assert "No model is finished yet; stopped" in app.dataframe[0].value["result"].tolist()
    # A failed action is reported, once.
    monkeypatch.setenv("SEQCLS_DB", str(db.parent / "no folder" / "x.db"))
    press(app, "resume 1")
    assert "That didn't work." in [error.value for error in app.error]
    assert actions.PROBLEM not in app.session_state


def test_a_compiling_worker_is_shown(monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    first_line = "compiling for this machine (lanes), once: about a minute"
    program = f"import time; print({first_line!r}, flush=True); time.sleep(600)"
    monkeypatch.setattr(background_worker, "python", lambda *_: [sys.executable, "-c", program])
    before = len(background_worker._started)
    background_worker.start_worker(store, {writer.submit(store, parse_spec(OWN)): "mine"})
    try:
        wait(lambda: first_line in (watching.read_log(store, 1) or ""))
        app = open_app(monkeypatch, file_of(store), "sweeps")
        assert f"0 of 3 models · {first_line}" in lines(app)[0]
        assert list(app.dataframe[0].value) == ["sweep", "result", "models", "submitted"]
    finally:
        for process in list(background_worker._started)[before:]:
            process.kill()
            process.wait()


def wait(holds: Callable[[], bool]) -> None:
    while not holds():
        time.sleep(0.05)


def test_a_sweep_gets_more_seeds_and_epochs_from_the_page(
    monkeypatch: pytest.MonkeyPatch, shipped: Store, started: list[object]
) -> None:
    db = file_of(shipped)

    def seeds(name: str) -> Any:
        spec = tomllib.loads(next(x.value for x in app.code if f'name = "{name}"' in x.value))
        return spec["model_seeds"], spec.get("until")

    app = open_app(monkeypatch, db, "sweeps", shown=FIRST)
    own = sweep_of(shipped, FIRST)
    assert seeds(FIRST) == ("0..7", None)
    app.number_input(key="more_seeds").set_value(4)
    rerun(app)
    press(app, f"more {own}")
    assert seeds(FIRST) == ("0..11", None)
    assert rows(shipped, "SELECT count(*) FROM run WHERE state = 'queued'") == [(4,)]
    app.text_input(key="until").set_value("share ± 10 %")
    rerun(app)
    press(app, f"until {own}")
    assert seeds(FIRST) == ("0..11", "share ± 10 %")
    app.text_input(key="until").set_value("share ± much")
    rerun(app)
    press(app, f"until {own}")
    assert "until='share ± much': expected" in plain(app)
    other = "default_embeddings_initialization"
    app = open_app(monkeypatch, db, "sweeps", shown=other)
    press(app, f"longer {sweep_of(shipped, other)}")
    name = f"{other}-4x"
    assert rows(shipped, f"SELECT name FROM sweep WHERE name = '{name}'") == [(name,)]
    assert len(started) == 3


def test_a_read_only_page_controls_nothing(monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    writer.submit(store, parse_spec(OWN))
    monkeypatch.setenv("SEQCLS_READ_ONLY", "1")
    app = open_app(monkeypatch, file_of(store), "sweeps", shown="mine")
    assert lines(app), "what runs is seen"
    assert all(button.disabled for button in app.button)
    assert all(box.disabled for box in app.text_input if box.label == "Title")
