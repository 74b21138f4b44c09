"""Computations that end soon after nobody waits for their answer any longer.

A thread cannot be ended from without, and an exception that is thrown into one may leave a lock
held or half an answer kept. So what takes long looks between its pieces, each of which takes a
fraction of a second, whether it is still wanted: by `check`, wherever strings are run, a database
is asked or a grid is written out. Whoever waits says with `cancelled_when` how to tell that they
have left.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Piece = TypeVar("Piece")

before_loading: Callable[[], None] | None = None
"""Called before code from outside is loaded: a command keeps its output apart from what that may
print, then and later."""


class Cancelled(BaseException):
    """Nobody waits for the answer; no `Exception`, so that what handles errors does not go on."""


# Every thread has its own: whoever leaves ends nobody else's computation.
_has_left: ContextVar[Callable[[], bool] | None] = ContextVar("has left", default=None)


@contextmanager
def cancelled_when(has_left: Callable[[], bool]) -> Iterator[None]:
    """A block in which `check` looks whether whoever waits has left.

    Args:
        has_left: answers at once; it is asked often.
    """
    before = _has_left.set(has_left)
    try:
        yield
    finally:
        _has_left.reset(before)


def is_cancelled() -> bool:
    """Whether whoever waits for what this thread computes has left."""
    has_left = _has_left.get()
    return has_left is not None and has_left()


def check() -> None:
    """Ends a computation that nobody waits for; to be called between its pieces.

    Raises:
        Cancelled: whoever waited has left.
    """
    if is_cancelled():
        raise Cancelled


def check_each(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """These pieces, before each of which `check` is called."""
    for piece in pieces:
        check()
        yield piece
