"""Answers computed in a background thread and cached: timings, shortcut readers."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Generic, TypeVar

import streamlit as st

from seqcls.cancellation import Cancelled, cancelled_when, check

Answer = TypeVar("Answer")

MOST_KEPT = 1_000
"""Answers of one kind that a server knows of."""

# One at a time: two would slow each other down and spoil timings.
_THREAD = ThreadPoolExecutor(1, "beside pages")


class Beside(Generic[Answer]):
    """Answers by their keys; a session's next request cancels its previous one.

    Args:
        name: distinguishes requests of one kind from those of another.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._begun: OrderedDict[Hashable, Future[Answer]] = OrderedDict()
        self._lock = Lock()

    def is_done(self, key: Hashable) -> bool:
        """Returns True if the answer is there."""
        begun = self._begun.get(key)
        return begun is not None and begun.done() and not _was_left(begun)

    def answer(self, key: Hashable) -> Answer:
        """Returns the answer; call it only if `is_done`."""
        return self._begun[key].result()

    def begin(self, key: Hashable, make: Callable[[], Answer]) -> None:
        """Makes what was not begun before, as long as this session wants it."""
        # Shared with the thread, which knows of no session.
        requested: list[Hashable] = st.session_state.setdefault(f"wanted {self._name}", [])
        requested[:] = [key]
        with self._lock:
            begun = self._begun.get(key)
            if begun is None or _was_left(begun):
                self._begun[key] = _THREAD.submit(_make, make, lambda: requested != [key])
            # What is being made stays, however many there are.
            ended = [x for x, future in self._begun.items() if future.done() and x != key]
            for oldest in ended[: max(0, len(self._begun) - MOST_KEPT)]:
                del self._begun[oldest]


def _make(make: Callable[[], Answer], is_unwanted: Callable[[], bool]) -> Answer:
    with cancelled_when(is_unwanted):
        check()
        return make()


def _was_left(begun: Future[Answer]) -> bool:
    return begun.done() and isinstance(begun.exception(), Cancelled)
