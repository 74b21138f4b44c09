"""Limits for visitors of a read-only dashboard: one question at a time, within a time limit.

What is being computed ends with the visit. Where the dashboard may write, it is its user's own, and
nothing waits or is limited.
"""

import os
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from math import isfinite
from typing import TypeVar

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from dashboard.server.opened_models import MODELS
from seqcls.cancellation import Cancelled, cancelled_when
from seqcls.errors import ConfigError, VisitorError
from sweeps.access import is_read_only

SECONDS_VARIABLE = "SEQCLS_VISITOR_SECONDS"
DEFAULT_SECONDS = 60.0

WAIT_SECONDS = 30.0
"""Seconds that a question waits for those of others."""

MOST_MODELS = 1_000
"""Most models of a visitor's form, since estimating each takes a moment."""

Answer = TypeVar("Answer")

# A question may be part of another.
_turn = threading.RLock()


def limit_seconds() -> float:
    """The seconds that a visitor's question may take.

    Raises:
        ConfigError: `SEQCLS_VISITOR_SECONDS` is no number above 0.
    """
    text = os.environ.get(SECONDS_VARIABLE, "").strip() or str(DEFAULT_SECONDS)
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not (isfinite(seconds) and seconds > 0):
        raise ConfigError(
            f"{SECONDS_VARIABLE}={text[:60]!r}: expected seconds above 0, such as 60, that a "
            "visitor's question may take"
        )
    return seconds


def ask(key: Hashable, make: Callable[[], Answer], says: str = "") -> Answer:
    """Returns the cached or computed answer to a question that takes more than a moment.

    Args:
        key: unique to the question and the state of the database.
        make: computes it.
        says: text of the page's spinner.

    Raises:
        VisitorError: the server is busy, or it takes longer than a visitor's question may.
    """
    # What is known already takes no turn.
    if key in MODELS:
        return MODELS.answer(key, make)
    # The spinner comes first, so that it also turns while the question waits for others.
    with st.spinner(says or "Asking the model", show_time=True), one_question():
        return MODELS.answer(key, make)


def later(make: Callable[[], Answer]) -> Callable[[], Answer]:
    """A function that makes a download on a click, in a thread outside of the visit."""
    has_left = _has_left()

    def prepare() -> Answer:
        with one_question(has_left):
            return make()

    return prepare


@contextmanager
def one_question(has_left: Callable[[], bool] | None = None) -> Iterator[None]:
    """A block that runs alone, for a visitor, and no longer than it may.

    Args:
        has_left: returns True if the visit has ended; by default that of the page being drawn.

    Raises:
        VisitorError: the server is busy, or the time is over.
    """
    if not is_read_only():
        yield
        return
    gone = has_left or _has_left()
    if not _turn.acquire(timeout=WAIT_SECONDS):
        raise VisitorError("The server answers others. Try again in a moment.")
    try:
        seconds = limit_seconds()
        # Counted from the turn on: waiting for others takes nothing away.
        end = time.monotonic() + seconds
        with cancelled_when(lambda: gone() or time.monotonic() > end):
            yield
    except Cancelled:
        raise VisitorError(
            f"That takes more than {seconds:g} s, which is as long as a question may take here."
        ) from None
    finally:
        _turn.release()


def refuse_many(models: int) -> None:
    """Refuses a visitor's request before it is computed.

    Raises:
        VisitorError: it is more than a visitor may.
    """
    if is_read_only() and models > MOST_MODELS:
        raise VisitorError(
            f"{models:,} models are asked for; a visitor of a read-only page may look at up to "
            f"{MOST_MODELS:,}: take fewer seeds or values"
        )


def _has_left() -> Callable[[], bool]:
    """A function that returns True, in any thread, if the current page's visit has ended."""
    context = get_script_run_ctx(suppress_warning=True)
    # Without a runtime, where a script runs alone, nobody leaves.
    session = context.session_id if context is not None and runtime.exists() else None
    return lambda: session is not None and not runtime.get_instance().is_active_session(session)
