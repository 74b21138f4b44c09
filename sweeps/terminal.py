"""What is printed: texts of a database, a file or an argument never steer the terminal.

Commands that a message names can be typed as they stand: with the database of this command.
"""

import logging
import os
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from io import TextIOWrapper
from typing import TextIO

import typer

from seqcls.text import visible
from sweeps.processes import OnProgress, note_lasting

_own: TextIO | None = None
"""Where this command's output goes, once it is kept apart from what others print."""


def begin_output() -> None:
    """To be called first: a letter that a stream cannot write is written as its number."""
    end_output()
    for stream in (sys.stdout, sys.stderr):
        # Whoever chose another way keeps it.
        if isinstance(stream, TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="backslashreplace")


def end_output() -> None:
    """To be called last: nothing more is put out."""
    global _own
    _own = None


def output() -> TextIO:
    """Where a command's output goes: all that is not said to stderr."""
    return _own or sys.stdout


def keep_output_apart() -> None:
    """From now on all that others print goes to stderr: code from outside, and its processes."""
    global _own
    if _own is not None or sys.stderr is None:
        return
    own = sys.stdout
    try:
        number = own.fileno()
    except OSError:
        # It is no file, where a test looks at it.
        _own = own
    else:
        # What is buffered so far belongs to the command's own output.
        own.flush()
        _own = open(  # noqa: SIM115 - as long as the process lives
            os.dup(number), "w", encoding=own.encoding, errors=own.errors, buffering=1
        )
        # The descriptor itself, so that what processes and C code print goes there, too.
        os.dup2(sys.stderr.fileno(), number)
    sys.stdout = sys.stderr


_database: str | None = None
"""What this command was given as `--db`."""

WITHOUT_DATABASE = ("data", "db cache", "draw", "model check", "shortcuts", "theory")
"""Commands that take none."""

_COMMAND = re.compile(rf"`seqcls (?!(?:{'|'.join(WITHOUT_DATABASE)})\b|estimate SPEC)[^`]+`")
"""A command that takes a database, as messages name it."""


def name_database(db: str | None) -> None:
    """Remembers the database that a command was given; None where it was given none."""
    global _database
    _database = db


def with_database(text: str) -> str:
    """A message in which commands name the database that this command was given."""
    if _database is None:
        return text
    # A URL may hold a password.
    named = "URL" if "://" in _database else shlex.quote(_database)
    return _COMMAND.sub(
        # A command that names a database means that one.
        lambda found: found[0] if "--db" in found[0] else f"{found[0][:-1]} --db {named}`",
        text,
    )


def say(text: str, *, err: bool = False, data: bool = False) -> None:
    """Prints a text, to stderr if wanted: the one way by which commands do, but for tables.

    Args:
        data: whether it is read by programs, and so left as it is.
    """
    note_lasting()
    shown = visible(text if data else with_database(text))
    # Named: Typer would write UTF-8 where the stream is ASCII.
    typer.echo(shown, file=sys.stderr if err else output())


class VisibleFormatter(logging.Formatter):
    """Messages of a log, as they may be shown by a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """A record as text."""
        return visible(with_database(super().format(record)))


# Durations as people say them.


def format_duration(seconds: float) -> str:
    """A duration to the second where it is short, else to the minute: 1 hour and 30 minutes."""
    import humanize

    if seconds < 1:
        return "under a second"
    # Nobody waits for that; a database may say it of a run all the same.
    if seconds >= 100 * 365 * 24 * 3600:
        return "over a century"
    unit = "seconds" if seconds < 90 else "minutes"
    return humanize.precisedelta(timedelta(seconds=round(seconds)), unit, format="%.0f")


# Progress bars for long work, on stderr and nowhere else.


@contextmanager
def progress_bar(doing: str, unit: str = "runs", *, stays: bool = False) -> Iterator[OnProgress]:
    """A bar of work on runs, or on another unit; called with how many are done, and of how many.

    It shows how far the work is, and how long it took and takes. Until the first call it shows that
    the work goes on, and for how long.

    Args:
        doing: what is done.
        unit: of what.
        stays: whether it stays when that is done, whatever stderr is; else it disappears, and is
            only shown on a terminal.
    """
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        *(TextColumn(escape(visible(doing))), BarColumn(), TaskProgressColumn()),
        *(MofNCompleteColumn(), TextColumn(unit), TimeElapsedColumn(), TextColumn("left")),
    )
    is_hidden = not (stays or console.is_terminal)
    with Progress(
        *columns, TimeRemainingColumn(), console=console, transient=not stays, disable=is_hidden
    ) as bar:
        # An unknown total shows a moving bar until the first report.
        task = bar.add_task(doing, total=None)
        # Of nothing there is no bar.
        yield lambda done, total: bar.update(task, completed=done, total=total, visible=total > 0)
