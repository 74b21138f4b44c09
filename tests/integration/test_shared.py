"""What the page of one session has computed is given to all, of the same state of one database."""

import os
import shutil
import threading
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd
import pytest
from sqlalchemy import Engine, event
from streamlit.testing.v1 import AppTest

from dashboard import data, placement
from dashboard.server.shared_answers import SharedAnswers
from seqcls.errors import StoreError
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads import queries
from sweeps.store.reads.selection import View
from tests.app import PAGES, metrics, open_app, rerun
from tests.conftest import ROOT
from tests.databases import rows
from tests.results import filled

SHIPPED = ROOT / "runs.db"


@pytest.fixture(autouse=True)
def _nothing_is_remembered_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    remember(monkeypatch, SharedAnswers())


def remember(monkeypatch: pytest.MonkeyPatch, answers: SharedAnswers) -> None:
    for module in (data, placement):
        monkeypatch.setattr(module, "ANSWERS", answers, raising=False)


@contextmanager
def computed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What is computed in the block: questions to the database, sums of frames, charts."""
    found: list[str] = []

    def asked(*arguments: Any) -> None:
        if arguments[2] != "BEGIN" and "FROM revision" not in arguments[2]:
            found.append(arguments[2])

    with monkeypatch.context() as patched:
        for owner, name in ((pd.DataFrame, "groupby"), (alt.Chart, "to_dict")):
            real = getattr(owner, name)

            def counted(*args: Any, real: Any = real, name: str = name, **kwargs: Any) -> Any:
                found.append(name)
                return real(*args, **kwargs)

            patched.setattr(owner, name, counted)
        event.listen(Engine, "before_cursor_execute", asked)
        yield found
        event.remove(Engine, "before_cursor_execute", asked)


def elements(app: AppTest) -> list[bytes]:
    """All that is sent to a browser, in order."""

    def walk(node: Any) -> Iterator[bytes]:
        if hasattr(node, "children"):
            for child in node.children.values():
                yield from walk(child)
        elif hasattr(node, "proto"):
            if hasattr(node.proto, "deferred_file_id"):
                node.proto.deferred_file_id = ""  # Drawn anew for each session.
            yield node.proto.SerializeToString(deterministic=True)

    return [sent for part in (app.main, app.sidebar) for sent in walk(part)]


@pytest.mark.parametrize("page", ["compare", "map"])
def test_a_second_session_with_the_same_filters_computes_nothing(
    monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    with computed(monkeypatch) as first:
        one = open_app(monkeypatch, SHIPPED, page)
    with computed(monkeypatch) as second:
        two = open_app(monkeypatch, SHIPPED, page)
    assert {"groupby", "to_dict"} <= set(first)
    assert second == []
    assert elements(one) == elements(two)


@pytest.mark.parametrize("page", [*PAGES, "model"])
def test_a_page_of_shared_answers_is_the_same_to_the_last_character(
    monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    shared = [elements(open_app(monkeypatch, SHIPPED, page, seed=["0", "1"])) for _ in range(2)]
    remember(monkeypatch, SharedAnswers(most_bytes=0))
    alone = elements(open_app(monkeypatch, SHIPPED, page, seed=["0", "1"]))
    assert shared == [alone, alone]
    assert len(alone) > 20


def test_sessions_with_different_filters_see_each_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    views: list[dict[str, Any]] = [{}, {"seed": ["0"]}, {"seed": ["1"]}, {"below": "50.0"}]
    shown = [elements(open_app(monkeypatch, SHIPPED, **view)) for view in views]
    remember(monkeypatch, SharedAnswers(most_bytes=0))
    assert shown == [elements(open_app(monkeypatch, SHIPPED, **view)) for view in views]
    assert len(set(map(str, shown))) == len(views)


def test_a_change_of_the_database_is_seen_by_every_session_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "x.db"
    store = filled(open_writer(str(path)))
    sessions = [open_app(monkeypatch, path) for _ in range(2)]
    assert {metrics(own)["Models tested"] for own in sessions} == {"3"}
    filled(store, name="more", model_seeds=[7, 8])
    assert {metrics(rerun(own))["Models tested"] for own in sessions} == {"5"}


@pytest.mark.parametrize("replaced", [False, True])
def test_two_databases_of_the_same_revision_are_not_taken_for_one_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, replaced: bool
) -> None:
    stores = [filled(open_writer(str(tmp_path / f"{n}.db")), first=n) for n in (0, 5)]
    assert len({queries.revision(store) for store in stores}) == 1
    wrong = "SELECT sum(fp + fn) FROM run"
    assert rows(stores[0], wrong) != rows(stores[1], wrong)
    paths = [Path(store.location) for store in stores]
    for number, path in enumerate(paths):
        if replaced:
            # The second is moved to where the first was, while the server goes on.
            os.replace(shutil.copy(path, tmp_path / "moved.db"), path := tmp_path / "shown.db")
        monkeypatch.setenv("SEQCLS_DB", str(path))
        found = data.configurations(View())
        own = int(found[["false_positives", "false_negatives"]].to_numpy().sum())
        assert [(own,)] == rows(stores[number], wrong)


def test_an_error_is_not_remembered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    open_writer(str(path))
    monkeypatch.setenv("SEQCLS_DB", str(path))
    problems = [StoreError("busy")]

    def asked() -> str:
        if problems:
            raise problems.pop()
        return "answer"

    shared = data.shared(asked)
    with pytest.raises(StoreError, match="busy"):
        shared()
    assert shared() == "answer"


def test_what_is_newly_left_out_as_damaged_makes_an_answer_old(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "x.db"
    open_writer(str(path))
    monkeypatch.setenv("SEQCLS_DB", str(path))
    asked = []
    shared = data.shared(lambda: asked.append(1))
    shared()
    store = open_reader()
    survey = type("Found", (), {"lines": ["run 1: damaged"]})()
    left_out = type(store)(store.name, store.engine, store.path, survey)
    monkeypatch.setattr(data, "open_reader", lambda: left_out)
    shared()
    shared()
    assert len(asked) == 2


def test_what_is_asked_by_many_at_once_is_computed_once_and_copied() -> None:
    answers, made, start = SharedAnswers(), [], threading.Barrier(8)

    def make() -> list[int]:
        made.append(1)
        return [1, 2]

    def ask(_: int) -> list[int]:
        start.wait(10)
        return answers.answer("key", make)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, range(8)))
    found[0].append(3)
    assert (len(made), found[1]) == (1, [1, 2])
    assert answers.answer("key", make) == [1, 2]


def test_answers_take_no_more_memory_than_they_may() -> None:
    answers, made = SharedAnswers(most_bytes=10_000), []

    def ask(key: int) -> None:
        def make() -> bytes:
            made.append(key)
            return bytes(3_000)

        assert answers.answer(key, make) == bytes(3_000)

    for key in (0, 1, 2, 0, 3, 0, 2, 1):
        ask(key)
    assert made == [0, 1, 2, 3, 1], "those used last stay"
    assert len(answers.answer("large", lambda: bytes(20_000))) == 20_000
    ask(1)
    assert made[-1] == 1, "what is larger than all may be is not kept, nor does it stay"


def test_a_server_looks_for_no_garbage_after_every_page_and_for_no_changed_source() -> None:
    config = tomllib.loads((ROOT / "dashboard" / ".streamlit" / "config.toml").read_text())
    assert config["runner"]["postScriptGC"] is False
    assert config["server"]["fileWatcherType"] == "none"
