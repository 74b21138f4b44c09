"""Visitors of a read-only page: one question at a time, in a limit of time."""

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Barrier, Event
from types import SimpleNamespace

import psycopg
import pytest

from dashboard import data
from dashboard.model.opened import Opened
from dashboard.server import visitors
from dashboard.server.opened_models import OpenedModels
from seqcls import cancellation
from seqcls.errors import ConfigError, StoreError, VisitorError
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.questions import RunModel
from sweeps.grid.spec import parse_spec
from sweeps.store import database, writer
from sweeps.store.database import Store, limit_reads
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads.selection import Selection
from tests.app import open_app, page_text, rerun
from tests.conftest import ROOT
from tests.databases import change, reseal, spec

PATIENCE = 60.0


@pytest.fixture
def public(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The shipped database for a process that only reads and has answered nothing yet."""
    copied = Path(shutil.copy(ROOT / "runs.db", tmp_path / "runs.db"))
    monkeypatch.setenv("SEQCLS_DB", str(copied))
    monkeypatch.setenv("SEQCLS_READ_ONLY", "1")
    return copied


def test_a_limit_is_a_number_of_seconds_above_0(monkeypatch: pytest.MonkeyPatch) -> None:
    assert visitors.limit_seconds() == 60
    monkeypatch.setenv("SEQCLS_VISITOR_SECONDS", "7.5")
    assert visitors.limit_seconds() == 7.5
    for text in ("0", "-3", "much", "nan", "inf"):
        monkeypatch.setenv("SEQCLS_VISITOR_SECONDS", text)
        with pytest.raises(ConfigError, match=f"SEQCLS_VISITOR_SECONDS='{text}': expected seconds"):
            visitors.limit_seconds()


@pytest.mark.usefixtures("public")
def test_twenty_visitors_are_answered_one_at_a_time() -> None:
    running, most = list[int](), list[int]()

    def long(number: int) -> Callable[[], int]:
        def make() -> int:
            running.append(number)
            most.append(len(running))
            # A part of it is a question, too, and does not wait for the whole.
            visitors.ask(("part", number), lambda: number)
            running.remove(number)
            return number

        return make

    with ThreadPoolExecutor(20) as pool:
        found = pool.map(lambda n: visitors.ask(("whole", n), long(n)), range(20))
        assert list(found) == list(range(20))
    assert most == [1] * 20


def test_a_question_over_the_time_limit_is_ended_and_the_page_is_shown(
    public: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.server.visitors.MODELS", OpenedModels())
    monkeypatch.setenv("SEQCLS_VISITOR_SECONDS", "0.001")
    app = open_app(monkeypatch, public, "model", run="3", view="Automaton")
    assert "takes more than 0.001 s" in page_text(app).replace("\\", "")
    assert app.get("tab"), "the rest of the page is there"
    monkeypatch.setenv("SEQCLS_VISITOR_SECONDS", "60")
    assert "takes more than" not in page_text(rerun(app))


@pytest.mark.usefixtures("public")
def test_a_visitor_who_waits_too_long_is_refused_as_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visitors, "WAIT_SECONDS", 0.05)
    begun, may_end = Event(), Event()

    def hold() -> None:
        with visitors.one_question():
            begun.set()
            assert may_end.wait(PATIENCE)

    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(hold)
        assert begun.wait(PATIENCE)
        with pytest.raises(VisitorError, match="Try again in a moment"):
            visitors.later(lambda: "a report")()
        may_end.set()
        held.result(PATIENCE)
    assert visitors.later(lambda: "a report")() == "a report"


def test_questions_of_a_writing_dashboard_run_concurrently(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEQCLS_READ_ONLY", raising=False)
    monkeypatch.setenv("SEQCLS_VISITOR_SECONDS", "0.000001")
    with ThreadPoolExecutor(2) as pool:
        meet = Barrier(2)
        found = pool.map(lambda n: visitors.ask(("own", n), lambda: meet.wait(PATIENCE)), range(2))
        assert sorted(found) == [0, 1], "both are computed at once"


def _first_weight(model: TrainedModel) -> float:
    name = sorted(model.weights)[0]
    return float(model.weights[name].ravel()[0])


@pytest.mark.parametrize("copied_over", [False, True])
def test_answers_follow_a_replaced_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copied_over: bool
) -> None:
    """Runs 1 and 2 of one database change places in another, in the same place."""
    path = Path(shutil.copy(ROOT / "runs.db", tmp_path / "runs.db"))
    monkeypatch.setenv("SEQCLS_DB", str(path))

    def seen() -> tuple[object, ...]:
        opened = Opened(1)
        lost = opened.ask(RunModel.ablate).outcomes
        logits = opened.ask(RunModel.predict, ("ab", "aab"))["logit"]
        return opened.ask(_first_weight), [part.errors for part in lost], logits

    before = seen()
    other = Path(shutil.copy(ROOT / "runs.db", tmp_path / "other.db"))
    for old, new in ((1, 99), (2, 1), (99, 2)):
        change(other, f"UPDATE checkpoint SET run_id = {new} WHERE run_id = {old}")
    reseal(open_writer(str(other)))
    # By another file in its place, and by what is copied over it.
    shutil.copy(other, path) if copied_over else other.replace(path)
    after = seen()
    assert [old != new for old, new in zip(before, after, strict=True)] == [True] * 3


@pytest.mark.usefixtures("public")
def test_a_computation_ends_when_its_visitor_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    left, pieces = set[str](), list[int]()
    visit = SimpleNamespace(session_id="a visit")
    server = SimpleNamespace(is_active_session=lambda session: session not in left)
    monkeypatch.setattr(visitors, "get_script_run_ctx", lambda **_: visit)
    monkeypatch.setattr("dashboard.server.visitors.runtime.exists", lambda: True)
    monkeypatch.setattr("dashboard.server.visitors.runtime.get_instance", lambda: server)

    def make() -> str:
        for piece in cancellation.check_each(range(1_000)):
            pieces.append(piece)
            if piece == 3:
                left.add(visit.session_id)
        return "nobody waits for it"

    asks: tuple[Callable[[], object], ...] = (
        lambda: visitors.ask("long", make),
        visitors.later(make),
    )
    for ask in asks:
        with pytest.raises(VisitorError):
            ask()
        assert pieces == [0, 1, 2, 3]
        pieces.clear()
        left.clear()
    assert visitors.ask("long", lambda: "whole") == "whole", "half an answer is none"


LONG: dict[str, Callable[[], Callable[[], object]]] = {
    "a grid": lambda: partial(list, parse_spec({"name": "new", "model_seeds": [0]}).configs()),
    "reading": lambda: partial(data.models, Selection()),
    "all strings": lambda: Opened(3).model.verdict,
    "a proof": lambda: Opened(3).model.proofs,
    "running strings": lambda: partial(Opened(3).model.ask_all, [(0,), (0, 1)]),
    "ablation": lambda: Opened(3).model.ablate,
}
"""Long computations, each by a function that prepares it."""


@pytest.mark.usefixtures("public")
@pytest.mark.parametrize("what", LONG)
def test_every_long_computation_checks_for_its_visitor(what: str) -> None:
    compute = LONG[what]()
    with cancellation.cancelled_when(lambda: True), pytest.raises(cancellation.Cancelled):
        compute()


ADVICE = "choose one sweep, or fewer model seeds or settings, in the filters of the sidebar"


@pytest.fixture(autouse=True)
def limits_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "read_seconds", None)


def test_a_long_question_to_a_file_is_interrupted_by_the_clock_and_when_its_visitor_leaves(
    public: Path,
) -> None:
    store, checks = open_reader(str(public)), iter([False, False])
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT sum(x) FROM n"
    limit_reads(0.2)
    with pytest.raises(StoreError, match=ADVICE), store.read() as connection:
        connection.exec_driver_sql(endless)
    limit_reads(data.PAGE_SECONDS)
    with (
        cancellation.cancelled_when(lambda: next(checks, True)),
        pytest.raises(cancellation.Cancelled),
        store.read() as connection,
    ):
        connection.exec_driver_sql(endless)


def submitted(db: str) -> Store:
    store = open_writer(db)
    writer.submit(store, spec())
    return store


def test_a_slow_question_to_a_file_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.db"
    submitted(str(path))
    # The clock is looked at once in a hundred thousand steps, more than these few rows take.
    monkeypatch.setattr(database, "STEPS", 1)
    monkeypatch.setattr(data, "PAGE_SECONDS", 0.0)
    shown = page_text(open_app(monkeypatch, path))
    assert "a page's question took too long, and was ended" in shown
    assert ADVICE in shown


def test_a_slow_question_to_a_server_is_ended(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted(postgres_url)
    # The page opens; then its table of runs is held by somebody, for as long as they please.
    monkeypatch.setattr(data, "PAGE_SECONDS", 0.2)
    with held(postgres_url, "run"):
        shown = page_text(open_app(monkeypatch, postgres_url))
    assert "a page's question took too long, and was ended" in shown
    assert ADVICE in shown


def test_writers_have_no_time_limit(tmp_path: Path) -> None:
    limit_reads(0.0)
    store = submitted(str(tmp_path / "x.db"))
    with store.write(quiet=True) as connection:
        counted = connection.exec_driver_sql(
            "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 200000) "
            "SELECT count(*) FROM n"
        )
        assert counted.scalar() == 200_000


@contextmanager
def held(url: str, table: str) -> Iterator[None]:
    """A block in which nobody else can read a table of a server."""
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        connection.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        yield
        connection.rollback()
