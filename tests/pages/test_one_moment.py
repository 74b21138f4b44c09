"""A page shows one moment of its database, and sessions share their computed answers."""

import os
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pytest

from dashboard import data
from dashboard.server.opened_models import OpenedModels
from seqcls.errors import StoreError
from sweeps.api.reading import one_moment
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads import queries, sweep_queries
from sweeps.store.reads.selection import Selection
from sweeps.store.verification import verify
from tests.app import PAGES, open_app, page_text, rerun
from tests.chaos.moments import Moments
from tests.conftest import SHIPPED
from tests.databases import change, rows, spec
from tests.pages.shown import Shown, shown
from tests.stock import copy_of


@pytest.fixture
def empty_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """The database that pages show, which holds nothing."""
    path = copy_of("made", "made.db", tmp_path)
    monkeypatch.setenv("SEQCLS_DB", str(path))
    return open_writer(str(path))


def test_reads_within_a_block_see_one_moment(any_db: str) -> None:
    store = open_writer(any_db)
    writer.submit(store, spec(name="first"))
    reader = open_reader(any_db)
    with one_moment(reader):
        assert len(queries.runs(reader)) == 3
        # It holds up no writer.
        writer.submit(store, spec(name="second", model_seeds=[7]))
        assert len(queries.runs(reader)) == 3
        assert len(queries.runs(open_reader(any_db))) == 3
        with pytest.raises(StoreError), reader.read() as connection:
            connection.exec_driver_sql("SELECT 1 FROM nowhere")
        assert len(queries.runs(reader)) == 4, "an error ends the moment"
    assert len(queries.runs(reader)) == 4


def test_a_page_drawn_while_results_change_is_consistent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, changed = shipped(tmp_path), list[int]()

    def write() -> None:
        with store.write() as connection:
            written = connection.exec_driver_sql(
                "UPDATE run SET wrong = 1, wrong_beyond = 1, fn = 1, tp = tp - 1 WHERE id = "
                "(SELECT min(id) FROM run WHERE wrong = 0)"
            )
        changed.append(written.rowcount)

    found = drawn_while(monkeypatch, store, write)
    assert sum(changed) > 1, "results are stored between the questions of a page"
    learned, judged, generalize = found.tables[0][["learned", "judged", "generalize"]].sum()
    sentence = f"{learned} of {judged} models learned; of these {generalize} generalize."
    assert sentence in found.text
    lines = pd.concat([frame for chart in found.charts for frame in chart if "outcome" in frame])
    came_to = lines.groupby("run")["outcome"].first()
    assert came_to.eq("generalizes").sum() == generalize, "the pictures are of that moment, too"


def test_a_page_drawn_while_a_sweep_is_deleted_shows_the_moment_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, deleted = shipped(tmp_path), list[int]()

    def delete() -> None:
        if not deleted:
            deleted.append(writer.delete(store, 1))

    before = drawn_while(monkeypatch, store, delete)
    assert deleted[0] > 0
    assert not before.errors
    assert "41 of 43 models learned" in before.text
    after = shown(open_app(monkeypatch, store.location))
    assert f"of {43 - deleted[0]} models learned" in after.text


@pytest.mark.parametrize("page", PAGES)
def test_no_page_breaks_while_a_sweep_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    """One is deleted at the third statement of the page, and another of its next visit."""
    store = shipped(tmp_path)
    left = list(sweep_queries.sweep_names(store))
    moments = Moments(lambda _: writer.delete(store, left.pop()))
    for _ in range(2):
        with moments.at(3):
            app = open_app(monkeypatch, store.location, page)
        # A wrong answer to a string is shown as an error, too.
        assert [x.value for x in app.error if "but the model predicts" not in x.value] == []
    assert len(left) == 7
    assert verify(open_reader(store.location)).damages == []


def shipped(folder: Path) -> Store:
    """The shipped models, which may be written while they are read."""
    store = open_writer(str(shutil.copy(SHIPPED, folder)))
    with store.write():
        pass
    return store


def drawn_while(monkeypatch: pytest.MonkeyPatch, store: Store, write: Callable[[], None]) -> Shown:
    """The page Results, during whose questions somebody else writes."""
    original = data.read_settings

    def ask(config_ids: tuple[int, ...]) -> pd.DataFrame:
        write()
        return original(config_ids)

    monkeypatch.setattr(data, "read_settings", ask)
    try:
        return shown(open_app(monkeypatch, store.location))
    finally:
        monkeypatch.setattr(data, "read_settings", original)


def test_a_change_invalidates_cached_answers_but_not_within_a_page(empty_store: Store) -> None:
    def sweeps_seen(store: Store) -> int:
        with store.read() as connection:
            return int(connection.exec_driver_sql("SELECT count(*) FROM sweep").scalar() or 0)

    remembered, calls = data.cached(sweeps_seen), list[int]()
    others = data.cached(lambda _, number: calls.append(number))
    for number in range(100):
        others(number)
    assert remembered() == 0
    writer.submit(empty_store, spec())
    assert remembered() == 1
    with data.at_one_moment():
        assert remembered() == 1
        writer.submit(empty_store, spec(name="t"))
        assert remembered() == 1, "the page is of one state"
    assert remembered() == 2


def test_a_change_is_seen_by_every_session(
    monkeypatch: pytest.MonkeyPatch, empty_store: Store
) -> None:
    assert empty_store.path is not None
    writer.submit(empty_store, spec())
    sessions = [open_app(monkeypatch, empty_store.path) for _ in range(2)]
    assert all("0 of 3 models" in page_text(own) for own in sessions)
    writer.submit(empty_store, spec(name="more", model_seeds=[7, 8]))
    assert all("0 of 2 models" in page_text(rerun(own)) for own in sessions)


@pytest.mark.parametrize("replaced", [False, True])
def test_databases_of_the_same_revision_are_not_confused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, replaced: bool
) -> None:
    paths = [Path(shutil.copy(SHIPPED, tmp_path / f"{number}.db")) for number in (0, 1)]
    ((revision,),) = rows(paths[0], "SELECT runs FROM revision")
    errors = "UPDATE run SET fp = fp + 1, tn = tn - 1, wrong = wrong + 1"
    change(paths[1], errors, f"UPDATE revision SET runs = {revision}")
    wrong = "SELECT sum(fp + fn) FROM run"
    known = [rows(path, wrong) for path in paths]
    assert known[0] != known[1]
    for path, true in zip(paths, known, strict=True):
        at = path
        if replaced:
            # The second is moved to where the first was, while the server goes on.
            at = tmp_path / "shown.db"
            os.replace(shutil.copy(path, tmp_path / "moved.db"), at)
        monkeypatch.setenv("SEQCLS_DB", str(at))
        found = data.configurations(Selection())
        counted = int(found[["false_positives", "false_negatives"]].to_numpy().sum())
        assert [(counted,)] == true


@pytest.mark.usefixtures("empty_store")
def test_an_error_is_not_cached() -> None:
    problems, calls = [StoreError("busy")], list[int]()

    def answer(_: Store) -> str:
        calls.append(1)
        if problems:
            raise problems.pop()
        return "answer"

    shared = data.cached(answer)
    with pytest.raises(StoreError, match="busy"):
        shared()
    assert [shared(), shared()] == ["answer"] * 2
    assert len(calls) == 2


def test_concurrent_equal_questions_are_computed_once() -> None:
    models, made, start = OpenedModels(), [], threading.Barrier(8)

    def make() -> list[int]:
        made.append(1)
        return [1, 2]

    def ask(_: int) -> list[int]:
        start.wait(10)
        return models.answer("key", make)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, range(8)))
    assert (len(made), found) == (1, [[1, 2]] * 8)


def test_opened_models_stay_within_their_memory_limit() -> None:
    models, made = OpenedModels(most_bytes=10_000), []

    def ask(key: int) -> None:
        def make() -> bytes:
            made.append(key)
            return bytes(3_000)

        assert models.answer(key, make) == bytes(3_000)

    for key in (0, 1, 2, 0, 3, 0, 2, 1):
        ask(key)
    assert made == [0, 1, 2, 3, 1], "those used last stay"
    assert len(models.answer("large", lambda: bytes(20_000))) == 20_000
    ask(1)
    assert made[-1] == 1, "what is larger than all may be does not stay beside another"
