"""Titles, notes, tags, the archive, and saved views."""

from pathlib import Path

import pytest

from seqcls.errors import StoreError
from sweeps.grid.spec import parse_spec
from sweeps.store import writer
from sweeps.store.databases.engine import Store
from sweeps.store.opening import open_writer
from sweeps.store.reads import sweep_queries
from sweeps.store.reads.sweep_queries import NamedView, Note
from sweeps.store.verification import verify
from sweeps.work.machine import WorkOptions
from sweeps.work.worker import work
from tests.app import metrics, open_app, rerun, run, said
from tests.conftest import SHORT
from tests.databases import file_of, rows

TINY = {**SHORT, "max_num_epochs": 1}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Two sweeps of two and of one finished model."""
    store = open_writer(str(tmp_path / "two.db"))
    for name, seeds in (("heads", [0, 1]), ("widths", [2])):
        spec = {"name": name, "model_seeds": seeds, "fixed": TINY}
        work(store, [writer.submit(store, parse_spec(spec))], WorkOptions(workers=0))
    return store


def test_what_is_written_about_a_sweep_is_kept_and_goes_with_it(any_db: str) -> None:
    store = open_writer(any_db)
    first = writer.submit(store, parse_spec({"name": "heads", "model_seeds": [0]}))
    assert sweep_queries.notes(store) == {}
    writer.write_note(store, first, " Two heads ", "Try four.", ["b", "a", "a ", ""])
    assert sweep_queries.notes(store) == {first: Note("Two heads", "Try four.", ("a", "b"))}
    writer.archive(store, first, True)
    assert sweep_queries.notes(store)[first].archived_at is not None
    assert sweep_queries.notes(store)[first].title == "Two heads"
    writer.archive(store, first, False)
    writer.write_note(store, first, "", "", ["c"])
    assert sweep_queries.notes(store) == {first: Note(tags=("c",))}
    with pytest.raises(StoreError, match="a title of 300 characters"):
        writer.write_note(store, first, "x" * 300, "", [])
    writer.delete(store, first)
    assert sweep_queries.notes(store) == {}
    assert verify(store).damages == []


def test_views_are_saved_replaced_and_deleted(any_db: str) -> None:
    store = open_writer(any_db)
    writer.save_view(store, NamedView(" mine ", "map", "seed=2"))
    writer.save_view(store, NamedView("mine", "failing", "seed=3"))
    assert sweep_queries.views(store) == [NamedView("mine", "failing", "seed=3")]
    with pytest.raises(StoreError, match="expected 1 to 200 characters"):
        writer.save_view(store, NamedView("  ", "map", ""))
    writer.delete_view(store, "mine")
    assert sweep_queries.views(store) == []


def test_a_title_and_tags_are_typed_on_the_page_and_shown(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_app(monkeypatch, file_of(store), "sweeps", sweep_id="1")
    app.text_input(key="title 1").set_value("Two *heads*")
    app.multiselect(key="tags 1").set_value(["pilot"])
    app.text_area(key="note_text 1").set_value("Look again.")
    next(button for button in app.button if button.label == "Save").click()
    app = rerun(app)
    assert not app.error
    assert "Two *heads*\nheads" in [text.value for text in app.text]
    assert "Look again." in [text.value for text in app.text]
    assert [list(tags) for tags in app.dataframe[0].value["tags"]] == [[], ["pilot"]]
    # By its tag it is found on every page.
    app = open_app(monkeypatch, file_of(store), tag="pilot")
    assert metrics(app)["Models tested"] == "2"


def test_an_archived_sweep_is_hidden_and_not_lost(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_app(monkeypatch, file_of(store), "sweeps", sweep_id="1")
    app.button("archive 1").click()
    rerun(app)
    app = open_app(monkeypatch, file_of(store), "sweeps")
    assert app.dataframe[0].value["name"].tolist() == ["widths"]
    assert metrics(open_app(monkeypatch, file_of(store)))["Models tested"] == "1"
    assert rows(store, "SELECT count(*) FROM run") == [(3,)]
    app.toggle(key="show_archived").set_value(True)
    assert run(app).dataframe[0].value["name"].tolist() == ["widths", "heads"]
    # A link to it still shows it.
    app = open_app(monkeypatch, file_of(store), "sweeps", sweep_id="1")
    assert "heads" in app.dataframe[0].value["name"].tolist()
    app.button("archive 1").click()
    rerun(app)
    assert metrics(open_app(monkeypatch, file_of(store)))["Models tested"] == "3"


def test_a_link_to_an_archived_sweep_shows_its_models(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.write_note(store, 1, "", "", ["pilot"])
    writer.archive(store, 1, archived=True)
    for page in ("compare", "failing"):
        app = open_app(monkeypatch, file_of(store), page, sweep="heads")
        assert "2 of 3 runs match the filters." in said(app), page
        assert not app.warning
    app = open_app(monkeypatch, file_of(store), sweep=["heads", "widths"])
    assert metrics(app)["Models tested"] == "3"
    app = open_app(monkeypatch, file_of(store), tag="pilot")
    assert "0 of 3 runs match" in said(app), "a tag finds no archived sweep"


def test_an_archived_sweep_takes_no_model_with_it_that_is_not_its_own(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its finished models belong to no sweep then.
    writer.submit(store, parse_spec({"name": "widths", "model_seeds": [1], "fixed": TINY}))
    writer.archive(store, 1, archived=True)
    app = open_app(monkeypatch, file_of(store))
    assert "2 of 3 runs match the filters." in said(app)
    assert metrics(app)["Models tested"] == "2"


def test_a_view_is_saved_by_name_and_leads_back(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_app(monkeypatch, file_of(store), seed="1", sweep="heads")
    app.text_input(key="view_name").set_value("seed one")
    run(app)
    app.button("save_view").click()
    app = rerun(app)
    (view,) = sweep_queries.views(store)
    assert (view.name, view.page) == ("seed one", "")
    assert set(view.query.split("&")) == {"seed=1", "sweep=heads"}
    (link,) = [link for link in app.page_link if "seed one" in link.label.replace("\\", "")]
    assert set(link.proto.query_string.split("&")) == {"seed=1", "sweep=heads"}
    app.button("forget view seed one").click()
    rerun(app)
    assert sweep_queries.views(store) == []


def test_a_view_without_a_name_is_said(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app(monkeypatch, file_of(store))
    app.button("save_view").click()
    app = rerun(app)
    assert "expected 1 to 200 characters" in said(app)


def named(store: Store) -> dict[str, Note]:
    return {
        sweep_queries.sweep_names(store)[key]: own
        for key, own in sweep_queries.notes(store).items()
    }


def test_merging_carries_titles_notes_tags_and_views_about_the_same_models(
    store: Store, tmp_path: Path
) -> None:
    (heads, widths) = (key for key, _ in sorted(sweep_queries.sweep_names(store).items()))
    writer.write_note(store, heads, "More heads", "for the talk", ["paper", "heads"])
    writer.archive(store, widths, archived=True)
    writer.save_view(store, NamedView("worst", "model", "run=3&string=ab"))
    writer.save_view(store, NamedView("two", "", "sweep=heads&seed=1"))

    # There the runs have other numbers, and one name stands for other models.
    target = open_writer(str(tmp_path / "target.db"))
    own = writer.submit(target, parse_spec({"name": "first", "model_seeds": "0..9"}))
    writer.submit(target, parse_spec({"name": "heads", "model_seeds": [7], "fixed": TINY}))
    writer.write_note(target, own, "Ours", "", ["kept"])
    writer.save_view(target, NamedView("two", "map", "seed=2"))
    assert writer.merge(target, store).renamed == {"heads": "heads (two)"}

    assert named(target)["heads (two)"].title == "More heads"
    assert named(target)["heads (two)"].note == "for the talk"
    assert named(target)["heads (two)"].tags == ("heads", "paper")
    assert named(target)["widths"].archived_at is not None
    assert named(target)["first"] == Note("Ours", tags=("kept",))
    (run_here,) = rows(
        target,
        "SELECT run.id FROM run JOIN sweep_run ON run_id = run.id JOIN sweep ON sweep.id = sweep_id"
        " WHERE name = 'widths'",
    )
    assert run_here[0] != 3
    assert sweep_queries.views(target) == [
        NamedView("two", "map", "seed=2"),
        NamedView("two (two)", "", "sweep=heads+%28two%29&seed=1"),
        NamedView("worst", "model", f"run={run_here[0]}&string=ab"),
    ]
    before = named(target), sweep_queries.views(target)
    writer.merge(target, store)
    assert (named(target), sweep_queries.views(target)) == before, "a second time adds nothing"


def test_what_is_written_here_about_a_sweep_stays_when_its_copy_is_merged(
    store: Store, tmp_path: Path
) -> None:
    copy = open_writer(str(tmp_path / "copy.db"))
    writer.merge(copy, store)
    (sweep_id, *_) = sorted(sweep_queries.sweep_names(store))
    writer.write_note(store, sweep_id, "Theirs", "", ["new"])
    writer.write_note(copy, sweep_id, "Ours", "seen", ["old"])
    writer.merge(copy, store)
    assert named(copy)["heads"] == Note("Ours", "seen", ("new", "old"))
