"""What visitors of a read-only dashboard may have computed: a budget each, and one queue for all.

What waits and what is being computed ends with the visit.
Where the dashboard may write, it is its user's own, and nothing waits or is counted.
"""

import os
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from math import isfinite
from typing import Any, Generic, TypeVar

import streamlit as st
from streamlit import runtime
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import ScriptRunContext, StopException, get_script_run_ctx

from dashboard.server.shared_answers import MODELS, SharedAnswers
from seqcls import cancellation
from seqcls.cancellation import Cancelled, cancelled_when
from seqcls.errors import ConfigError, VisitorError
from sweeps.access import is_read_only
from sweeps.terminal import format_duration

SECONDS_VARIABLE = "SEQCLS_VISITOR_SECONDS"
DEFAULT_SECONDS = 60.0
WINDOW = 600.0
"""Seconds in which a budget that is used up is full again."""

MOST_MODELS = 1_000
"""That a visitor's form may ask for: what launching them would mean takes a moment each."""

BUDGET = "budget of this visit"
LOOK_AGAIN = 1.0
"""Seconds after which who waits is told where they stand, and a visit that has ended is noticed."""

Answer = TypeVar("Answer")

now: Callable[[], float] = time.monotonic


def budget_seconds() -> float:
    """The computing time that a visit has in ten minutes.

    Raises:
        ConfigError: `SEQCLS_VISITOR_SECONDS` is no number above 0.
    """
    text = os.environ.get(SECONDS_VARIABLE, "").strip()
    if not text:
        return DEFAULT_SECONDS
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not (isfinite(seconds) and seconds > 0):
        raise ConfigError(
            f"{SECONDS_VARIABLE}={text[:60]!r}: expected seconds above 0, such as 60, that a "
            "visitor may have computed within ten minutes"
        )
    return seconds


class VisitorBudget:
    """The computing time of one visit, which comes back as time passes."""

    def __init__(self, seconds: float) -> None:
        self._most = self._left = seconds
        self._at = now()
        self.questions = 0.0
        """Seconds of processor that questions took of their threads, within what is charged."""
        self.download = threading.Lock()
        """Held while a download of the visit waits or is made."""

    def check(self) -> None:
        """Refuses a question where nothing is left.

        A question is not cut off, so that the last one may take more than there was: that has to
        come back before the next.

        Raises:
            VisitorError: with when more is available.
        """
        self._refill()
        if self._left <= 0:
            wait = max(1.0, -self._left * WINDOW / self._most)
            raise VisitorError(
                f"Compute limit reached ({self._most:g} s per {format_duration(WINDOW)}). Try "
                f"again in {format_duration(wait)}; earlier answers are still shown."
            )

    def charge(self, seconds: float) -> None:
        """Takes what a question took; nobody waits for more than a window."""
        self._refill()
        self._left = max(self._left - seconds, -self._most)

    def _refill(self) -> None:
        moment = now()
        self._left = min(self._most, self._left + (moment - self._at) * self._most / WINDOW)
        self._at = moment


class Queue:
    """Who asked first is answered first, one at a time; the thread that has its turn keeps it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[int] = deque()

    @property
    def is_mine(self) -> bool:
        """Whether this thread has its turn: a question may be part of another."""
        with self._changed:
            return bool(self._waiting) and self._waiting[0] == threading.get_ident()

    @contextmanager
    def turn(self, tell: Callable[[int], None]) -> Iterator[None]:
        """A block that runs alone.

        Args:
            tell: is called with the number of those that come first, again and again while there
                are any; an exception of it gives up the place in the queue.
        """
        thread = threading.get_ident()
        with self._changed:
            self._waiting.append(thread)
        try:
            while before := self._before(thread):
                tell(before)
                with self._changed:
                    self._changed.wait_for(lambda: self._waiting[0] == thread, LOOK_AGAIN)
            yield
        finally:
            with self._changed:
                self._waiting.remove(thread)
                self._changed.notify_all()

    def _before(self, thread: int) -> int:
        with self._changed:
            return self._waiting.index(thread)


QUEUE = Queue()
"""The queue of this server."""


def ask(
    key: Hashable, make: Callable[[], Answer], says: str = "", of: SharedAnswers = MODELS
) -> Answer:
    """The answer to a question that takes more than a moment; the one way by which pages ask them.

    Args:
        key: tells it from all others; in its name, what the database was as well.
        make: computes it.
        says: what the page says meanwhile.
        of: where it is remembered.

    Raises:
        VisitorError: the budget of the visit is used up, and the answer not known yet.
    """
    if key in of:
        return of.answer(key, make)
    with one_at_a_time(), st.spinner(says or "Asking the model", show_time=True):
        return of.answer(key, make)


def later(make: Callable[[], Answer]) -> Callable[[], Answer]:
    """What makes a download once it is clicked: in its turn, and charged to the visit.

    Args:
        make: makes it, in a thread that knows of no visit.
    """
    context, budget = get_script_run_ctx(suppress_warning=True), _budget()
    if context is None or budget is None:
        return make
    has_left = _has_left(context)

    def refuse_ended(_: int = 0) -> None:
        if has_left():
            raise VisitorError("This visit has ended.")

    def prepare() -> Answer:
        if not budget.download.acquire(blocking=False):
            raise VisitorError("A download is being prepared; try again when it is done.")
        try:
            with QUEUE.turn(refuse_ended):
                refuse_ended()
                with _charge(budget), cancelled_when(has_left):
                    return make()
        except Cancelled:
            raise VisitorError("This visit has ended.") from None
        finally:
            budget.download.release()

    return prepare


MOST_KEPT = 1_000
"""Answers of one kind that were made beside pages, and that a server knows of."""

# One at a time: two would slow each other down, and a timing would tell the wrong time.
_BESIDE = ThreadPoolExecutor(1, "beside pages")


class Beside(Generic[Answer]):
    """What is made beside the drawing of pages, in a thread of its own, and kept by its key."""

    def __init__(self) -> None:
        self._begun: OrderedDict[Hashable, Future[Answer]] = OrderedDict()
        self._lock = threading.Lock()

    def is_done(self, key: Hashable) -> bool:
        """Whether all is known that making it can tell."""
        begun = self._begun.get(key)
        return begun is not None and begun.done() and not _was_left(begun)

    def begin_making(
        self,
        key: Hashable,
        make: Callable[[], Answer],
        is_unwanted: Callable[[], bool] = lambda: False,
    ) -> Future[Answer]:
        """Makes what was not begun before.

        It ends where the visit does for which it was begun; another visit begins it anew.

        Args:
            key: tells it from all others.
            make: makes it.
            is_unwanted: whether even a visitor who is still there waits for it no longer.
        """
        with self._lock:
            begun = self._begun.get(key)
            if begun is None or _was_left(begun):
                gone = (end_of_visit(), is_unwanted)
                self._begun[key] = _BESIDE.submit(_make_unless, make, gone)
            ended = [x for x, each in self._begun.items() if each.done() and x != key]
            for oldest in ended[: max(0, len(self._begun) - MOST_KEPT)]:
                del self._begun[oldest]
            return self._begun[key]

    def answer(self, key: Hashable) -> Answer:
        """What was made; to be asked where `is_done`."""
        return self._begun[key].result()


def _make_unless(make: Callable[[], Answer], gone: Sequence[Callable[[], bool]]) -> Answer:
    with cancelled_when(lambda: any(each() for each in gone)):
        cancellation.check()
        return make()


def _was_left(begun: Future[Any]) -> bool:
    return begun.done() and isinstance(begun.exception(), Cancelled)


@contextmanager
def drawing() -> Iterator[None]:
    """A block that draws a page, whose processor time is charged beside that of its questions.

    It is drawn whatever is left: what the visit asks for afterwards waits.
    """
    budget = _budget()
    if budget is None:
        yield
        return
    began, questions = time.thread_time(), budget.questions
    try:
        with _while_there():
            yield
    finally:
        took = time.thread_time() - began - (budget.questions - questions)
        budget.charge(max(0.0, took))


def refuse_many(models: int) -> None:
    """Refuses what a visitor asks for before it is made.

    Raises:
        VisitorError: it is more than a visitor may.
    """
    if is_read_only() and models > MOST_MODELS:
        raise VisitorError(
            f"{models:,} models are asked for; a visitor of a read-only page may look at up to "
            f"{MOST_MODELS:,}: take fewer seeds or values"
        )


def _budget() -> VisitorBudget | None:
    """That of the visit; None where nothing is counted."""
    if not is_read_only() or get_script_run_ctx(suppress_warning=True) is None:
        return None
    budget: VisitorBudget = st.session_state.setdefault(BUDGET, VisitorBudget(budget_seconds()))
    return budget


@contextmanager
def _charge(budget: VisitorBudget) -> Iterator[None]:
    budget.check()
    began, processor = now(), time.thread_time()
    try:
        yield
    finally:
        budget.charge(now() - began)
        budget.questions += time.thread_time() - processor


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """A block that waits for its turn, and is charged to the visit.

    Raises:
        VisitorError: the budget of the visit is used up.
    """
    budget = _budget()
    if budget is None or QUEUE.is_mine:
        yield
        return
    budget.check()
    places: list[DeltaGenerator] = []

    def tell(before: int) -> None:
        if not places:
            places.append(st.empty())
        places[0].info(said_to_wait(before), icon=":material/hourglass_top:")

    with QUEUE.turn(tell):
        for place in places:
            place.empty()
        with _charge(budget), _while_there():
            yield


@contextmanager
def _while_there() -> Iterator[None]:
    """A block of the script of a page, which is computed no further once the visit has ended."""
    context = get_script_run_ctx(suppress_warning=True)
    try:
        with cancelled_when(_has_left(context)):
            yield
    except Cancelled:
        raise StopException from None


def _has_left(context: ScriptRunContext | None) -> Callable[[], bool]:
    """What tells whether the browser of a visit is gone."""
    session = context.session_id if context is not None and runtime.exists() else None

    def has_left() -> bool:
        # A server that has ended knows of no visit.
        known = session is not None and runtime.exists()
        return known and not runtime.get_instance().is_active_session(str(session))

    return has_left


def end_of_visit() -> Callable[[], bool]:
    """What tells, in any thread, whether the visit whose page is being drawn has ended."""
    return _has_left(get_script_run_ctx(suppress_warning=True))


def said_to_wait(before: int) -> str:
    """What a visitor reads while others are answered first."""
    first = "1 question comes" if before == 1 else f"{before} questions come"
    return f"Waiting: {first} first. This server answers one question about a model at a time."
