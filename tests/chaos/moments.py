"""The moments at which something may happen to a process: its statements and commits, by number.

On either database, and whatever the program's functions are called.
"""

import os
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event

BEFORE_STATEMENT, AFTER_STATEMENT = "before_cursor_execute", "after_cursor_execute"
COMMIT = "commit"


class Moments:
    """Counts what all connections of this process do, and acts at one of them.

    Args:
        act: what happens at that moment, to the connection.
        kinds: what is counted.
        counts: whether a connection's moment counts.
    """

    def __init__(
        self,
        act: Callable[[Connection], object],
        *kinds: str,
        counts: Callable[[Connection], bool] = lambda _: True,
    ) -> None:
        self._act, self._kinds, self._counts = act, kinds or (BEFORE_STATEMENT,), counts
        self.seen = self._fatal = 0

    def _see(self, connection: Connection, *_: Any) -> None:
        if self._counts(connection):
            self.seen += 1
            if self.seen == self._fatal:
                self._act(connection)

    @contextmanager
    def at(self, fatal: int) -> Iterator[None]:
        """A block at whose moment of this number it happens; at none where it is 0."""
        self.seen, self._fatal = 0, fatal
        for kind in self._kinds:
            event.listen(Engine, kind, self._see)
        try:
            yield
        finally:
            for kind in self._kinds:
                event.remove(Engine, kind, self._see)


def forked(act: Callable[[], object]) -> int:
    """The id of a fork of this process that does something; it exits with 0 where that succeeds."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            act()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return child


def die(_: Connection) -> None:
    """Ends this process without warning."""
    os.kill(os.getpid(), signal.SIGKILL)


def end_backend(url: str, *, commits: bool = False) -> Callable[[Connection], None]:
    """A function that ends the server's process of a connection, and waits for its end.

    Args:
        url: of the server.
        commits: whether it commits first, so that only the answer to the commit is lost.
    """

    def end(connection: Connection) -> None:
        driver: Any = connection.connection.driver_connection
        if commits:
            driver.execute("COMMIT")
            # Begins a transaction, whose commit will find no server.
            driver.execute("SELECT 1")
        with pytest.importorskip("psycopg").connect(url, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", [driver.info.backend_pid])

    return end
