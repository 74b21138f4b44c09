"""Visitors of a read-only page: a budget each, one queue for all, and what is kept of models."""

import shutil
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from threading import Event, local

import pytest
from streamlit.runtime.scriptrunner import StopException

from dashboard import data
from dashboard.choosing.opened import AnyModel, open_any, open_model, remembered
from dashboard.report import document
from dashboard.server import visitors
from dashboard.server.shared_answers import SharedAnswers
from dashboard.server.visitors import Queue, VisitorBudget
from dashboard.views import ablation, answers
from seqcls import cancellation
from seqcls.errors import ConfigError, VisitorError
from seqcls.interpretability.ablation import ablate, backend_of
from seqcls.interpretability.certification import certify, errors_up_to
from seqcls.interpretability.trained_model import TrainedModel
from sweeps.grid.spec import parse_spec
from sweeps.store.database import limit_reads
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads.selection import Selection
from tests.app import open_app, rerun, said
from tests.conftest import ROOT
from tests.databases import reseal

USED = "Compute limit reached"
PATIENCE = 60.0


class Clock:
    """Time that passes only when a test lets it."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    stopped = Clock()
    monkeypatch.setattr(visitors, "now", stopped)
    return stopped


@pytest.fixture
def public(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The shipped database for a process that only reads and has answered nothing yet."""
    copied = Path(shutil.copy(ROOT / "runs.db", tmp_path / "runs.db"))
    monkeypatch.setenv("SEQCLS_DB", str(copied))
    monkeypatch.setenv("SEQCLS_READ_ONLY", "1")
    monkeypatch.setattr(visitors, "QUEUE", Queue())
    return copied


def test_a_budget_that_is_used_up_says_when_more_is_there(clock: Clock) -> None:
    budget = VisitorBudget(60)
    budget.check()
    budget.charge(59)
    budget.check()
    budget.charge(7)
    with pytest.raises(
        VisitorError, match=r"limit reached \(60 s per 10 minutes\). Try again in 1 minute"
    ):
        budget.check()
    clock.time = 59
    with pytest.raises(VisitorError, match="Try again in 1 second"):
        budget.check()
    clock.time = 61
    budget.check()
    budget.charge(100_000)
    with pytest.raises(VisitorError, match="Try again in 10 minutes"):
        budget.check()


def test_a_budget_is_a_number_of_seconds_above_0(monkeypatch: pytest.MonkeyPatch) -> None:
    assert visitors.budget_seconds() == 60
    monkeypatch.setenv("SEQCLS_VISITOR_SECONDS", "7.5")
    assert visitors.budget_seconds() == 7.5
    for text in ("0", "-3", "much", "nan", "inf"):
        monkeypatch.setenv("SEQCLS_VISITOR_SECONDS", text)
        with pytest.raises(ConfigError, match=f"SEQCLS_VISITOR_SECONDS='{text}': expected seconds"):
            visitors.budget_seconds()


def test_who_asks_first_is_answered_first_and_who_leaves_holds_nobody_up() -> None:
    queue, order, told = Queue(), list[int](), dict[int, int]()
    may_end, waits = Event(), [Event() for _ in range(4)]

    def ask(number: int) -> None:
        def tell(before: int) -> None:
            told.setdefault(number, before)
            if number == 2:
                raise ConnectionError
            waits[number].set()

        with suppress(ConnectionError), queue.turn(tell):
            assert queue.is_mine
            waits[number].set()
            assert may_end.wait(PATIENCE)
            order.append(number)
        waits[number].set()
        assert not queue.is_mine

    with ThreadPoolExecutor(4) as pool:
        asked = []
        for number in range(4):
            asked.append(pool.submit(ask, number))
            assert waits[number].wait(PATIENCE)
        may_end.set()
        for one in asked:
            one.result(PATIENCE)
    assert order == [0, 1, 3]
    assert told == {1: 1, 2: 2, 3: 2}


def test_twenty_visitors_are_answered_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visitors, "get_script_run_ctx", lambda **_: object())
    sessions = local()
    monkeypatch.setattr("dashboard.server.visitors.st.session_state", _OfThread(sessions))
    answered, running, most = SharedAnswers(copied=False), list[int](), list[int]()

    def long(number: int) -> Callable[[], int]:
        def make() -> int:
            running.append(number)
            most.append(len(running))
            # A part of it is a question, too, and does not wait for the whole.
            visitors.ask(("part", number), lambda: number, of=answered)
            running.remove(number)
            return number

        return make

    with ThreadPoolExecutor(20) as pool:
        found = pool.map(lambda n: visitors.ask(("whole", n), long(n), of=answered), range(20))
        assert list(found) == list(range(20))
    assert most == [1] * 20


class _OfThread:
    """A session state for each thread."""

    def __init__(self, sessions: local) -> None:
        self._sessions = sessions

    def setdefault(self, name: str, value: object) -> object:
        return self._sessions.__dict__.setdefault(name, value)


def test_a_visitor_whose_budget_is_used_up_is_told_so_and_sees_the_rest(
    public: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    monkeypatch.setattr(visitors, "MODELS", SharedAnswers(copied=False))
    monkeypatch.setattr("dashboard.choosing.opened.MODELS", SharedAnswers(copied=False))
    monkeypatch.setenv("SEQCLS_VISITOR_SECONDS", "5")
    app = open_app(monkeypatch, public, "model", run="3", view="Why")
    assert USED not in said(app)
    budget = app.session_state[visitors.BUDGET]
    budget.charge(6)
    assert USED not in said(rerun(app)), "what is known already costs nothing"
    app.query_params["view"] = "Breaking point"
    app.session_state["view"] = "Breaking point"
    rerun(app)
    assert f"{USED} (5 s per 10 minutes)" in said(app).replace("\\", "")
    assert "cannot be shown" not in said(app)
    assert app.get("tab"), "the rest of the page is there"
    clock.time = 1_000
    rerun(app)
    assert USED not in said(app)


def _first_weight(model: TrainedModel) -> float:
    name = sorted(model.weights)[0]
    return float(model.weights[name].ravel()[0])


weight_of = remembered(_first_weight)


@pytest.mark.parametrize("copied_over", [False, True])
def test_answers_are_those_of_the_database_that_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copied_over: bool
) -> None:
    """Runs 1 and 2 of one database change places in another, in the same place."""
    path = Path(shutil.copy(ROOT / "runs.db", tmp_path / "runs.db"))
    monkeypatch.setenv("SEQCLS_DB", str(path))

    def seen() -> tuple[object, ...]:
        opened = open_any(1)
        counted = ablation.alone(open_model(1), "zero")
        return (
            weight_of(opened),
            [part.errors for part in ablation.alone(opened, "zero")],
            [part.errors for part in counted],
            answers._predictions(1, ("ab", "aab"))["logit"].tolist(),
        )

    before = seen()
    other = Path(shutil.copy(ROOT / "runs.db", tmp_path / "other.db"))
    with closing(sqlite3.connect(other)) as file, file:
        for old, new in ((1, 99), (2, 1), (99, 2)):
            file.execute(f"UPDATE checkpoint SET run_id = {new} WHERE run_id = {old}")
    reseal(open_writer(str(other)))
    # By another file in its place, and by what is copied over it.
    shutil.copy(other, path) if copied_over else other.replace(path)
    after = seen()
    assert [old != new for old, new in zip(before, after, strict=True)] == [True] * 4


def test_a_model_in_the_place_of_one_that_is_gone_is_not_taken_for_it() -> None:
    """Python gives the id of what is gone to what comes next."""
    asked = list[str]()

    def name_of(model: str) -> str:
        asked.append(model)
        return model

    answer = remembered(name_of)
    for name in ("first", "second"):
        model = AnyModel(("a database", 1, name), name)  # type: ignore[arg-type]
        assert answer(model) == name  # type: ignore[arg-type]
        del model
    assert asked == ["first", "second"]


class _Visit:
    session_id = "a visit"


@pytest.fixture
def visit(public: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock) -> VisitorBudget:
    """The budget of a visit of a script that draws a page."""
    state: dict[str, object] = {}
    monkeypatch.setattr(visitors, "get_script_run_ctx", lambda **_: _Visit())
    monkeypatch.setattr("dashboard.server.visitors.st.session_state", state)
    monkeypatch.setenv("SEQCLS_VISITOR_SECONDS", "5")
    assert (public.exists(), clock.time) == (True, 0)
    visitors.later(lambda: None)
    budget = state[visitors.BUDGET]
    assert isinstance(budget, VisitorBudget)
    return budget


def test_a_download_waits_for_its_turn_and_is_charged(visit: VisitorBudget, clock: Clock) -> None:
    visit.check()

    def make() -> str:
        assert visitors.QUEUE.is_mine
        clock.time += 6
        return "report"

    download = visitors.later(make)
    assert download() == "report"
    with pytest.raises(VisitorError, match=USED):
        download()
    clock.time += visitors.WINDOW
    assert download() == "report"


def test_drawing_a_page_is_charged_too(visit: VisitorBudget) -> None:
    until = time.thread_time() + 0.2
    with visitors.drawing():
        while time.thread_time() < until:
            pass
    visit.charge(4.81)
    with pytest.raises(VisitorError, match=USED):
        visit.check()


class _Runtime:
    """A server whose visitors leave when a test says so."""

    def __init__(self) -> None:
        self.left = set[str]()

    def is_active_session(self, session: str) -> bool:
        return session not in self.left


@pytest.fixture
def visits(visit: VisitorBudget, monkeypatch: pytest.MonkeyPatch) -> _Runtime:
    visit.check()
    running = _Runtime()
    monkeypatch.setattr("dashboard.server.visitors.runtime.exists", lambda: True)
    monkeypatch.setattr("dashboard.server.visitors.runtime.get_instance", lambda: running)
    return running


def _left_in_the_middle(visits: _Runtime, pieces: list[int]) -> Callable[[], str]:
    def make() -> str:
        for piece in cancellation.check_each(range(1_000)):
            pieces.append(piece)
            if piece == 3:
                visits.left.add(_Visit.session_id)
        return "nobody waits for it"

    return make


def test_what_is_computed_for_a_visitor_ends_when_they_leave(visits: _Runtime) -> None:
    pieces, answered = list[int](), SharedAnswers(copied=False)
    make = _left_in_the_middle(visits, pieces)
    with pytest.raises(StopException):
        visitors.ask("long", make, of=answered)
    assert pieces == [0, 1, 2, 3]
    assert "long" not in answered, "half an answer is none"
    visits.left.clear()
    assert visitors.ask("long", lambda: "whole", of=answered) == "whole", "nobody is held up"


def test_a_download_is_made_no_further_when_its_visitor_leaves(visits: _Runtime) -> None:
    pieces = list[int]()
    with pytest.raises(VisitorError, match="This visit has ended"):
        visitors.later(_left_in_the_middle(visits, pieces))()
    assert pieces == [0, 1, 2, 3]
    visits.left.clear()
    assert visitors.later(lambda: "whole")() == "whole"


LONG: dict[str, Callable[[], Callable[[], object]]] = {
    "a grid": lambda: partial(list, parse_spec({"name": "new", "model_seeds": [0]}).configs()),
    "reading": lambda: partial(data.models, Selection()),
    "all strings": lambda: partial(errors_up_to, open_model(3).network),
    "a proof": lambda: partial(certify, open_model(3).network),
    "running strings": lambda: partial(open_any(3).model.ask_all, [(0,), (0, 1)]),
    "ablation": lambda: partial(ablate, backend_of(open_any(3).model), {}),
    "what draws a report": lambda: document.engine.__wrapped__,
}
"""What makes each, of what is at hand already."""


@pytest.mark.parametrize("what", LONG)
def test_whatever_takes_long_looks_whether_its_visitor_is_still_there(
    public: Path, what: str
) -> None:
    assert public.exists()
    compute = LONG[what]()
    with cancellation.cancelled_when(lambda: True), pytest.raises(cancellation.Cancelled):
        compute()


def test_a_question_to_the_database_is_interrupted_when_its_visitor_leaves(public: Path) -> None:
    """One that would take minutes."""
    steps = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT sum(x) FROM n"
    asked = iter([False, False])
    limit_reads(data.PAGE_SECONDS)
    store = open_reader(str(public))
    with (
        cancellation.cancelled_when(lambda: next(asked, True)),
        pytest.raises(cancellation.Cancelled),
        store.read() as connection,
    ):
        connection.exec_driver_sql(steps)
