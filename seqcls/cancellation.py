"""Cooperative cancellation of computations that nobody waits for any longer.

A thread cannot be ended from outside, and an exception thrown into one may leave a lock held or
half a result stored. So long computations call `check` between their pieces, each of which takes a
fraction of a second: wherever strings are run, a database is queried or a grid is written out. The
caller sets the test for cancellation with `cancelled_when`.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Piece = TypeVar("Piece")

before_loading: Callable[[], None] | None = None
"""Called before plug-in code is loaded: commands separate their output from what that may print,
then and later."""


class Cancelled(BaseException):
    """Nobody waits for the result; not an `Exception`, so that error handlers do not catch it."""


# One for each thread, so that a caller who leaves ends nobody else's computation.
_has_left: ContextVar[Callable[[], bool] | None] = ContextVar("has left", default=None)


@contextmanager
def cancelled_when(has_left: Callable[[], bool]) -> Iterator[None]:
    """A block in which `check` ends the computation once the caller has left.

    Args:
        has_left: a fast function, called often.
    """
    before = _has_left.set(has_left)
    try:
        yield
    finally:
        _has_left.reset(before)


def is_cancelled() -> bool:
    """True if the caller that waits for this thread has left."""
    has_left = _has_left.get()
    return has_left is not None and has_left()


def check() -> None:
    """End a computation that nobody waits for; called between its pieces.

    Raises:
        Cancelled: the caller has left.
    """
    if is_cancelled():
        raise Cancelled


def check_each(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The pieces, with a `check` before each."""
    for piece in pieces:
        check()
        yield piece
