"""Printing, where texts of a database, a file or an argument never control the terminal.

Commands that a message names can be typed unchanged: they contain the database of this command.
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
"""The stream of this command's output, once it is separate from that of other code."""


def begin_output() -> None:
    """Prepares streams to write letters outside their encoding as escapes; called first."""
    end_output()
    for stream in (sys.stdout, sys.stderr):
        # Other handlers are a user's choice.
        if isinstance(stream, TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="backslashreplace")


def end_output() -> None:
    """Resets the output stream; called last."""
    global _own
    _own = None


def output() -> TextIO:
    """The stream of a command's output, except messages on stderr."""
    return _own or sys.stdout


def keep_output_apart() -> None:
    """Redirects the output of other code, such as plug-ins and their processes, to stderr."""
    global _own
    if _own is not None or sys.stderr is None:
        return
    own = sys.stdout
    try:
        number = own.fileno()
    except OSError:
        # It is no file in a test that captures it.
        _own = own
    else:
        # The buffer so far belongs to the command's own output.
        own.flush()
        _own = open(  # noqa: SIM115 - as long as the process lives
            os.dup(number), "w", encoding=own.encoding, errors=own.errors, buffering=1
        )
        # The descriptor itself, so that the output of processes and C code goes there, too.
        os.dup2(sys.stderr.fileno(), number)
    sys.stdout = sys.stderr


_database: str | None = None
"""The value of this command's `--db`."""

WITHOUT_DATABASE = ("data", "db cache", "draw", "model check", "shortcuts", "theory")
"""Commands that take none."""

_COMMAND = re.compile(rf"`seqcls (?!(?:{'|'.join(WITHOUT_DATABASE)})\b|estimate SPEC)[^`]+`")
"""A command that takes a database, in a message."""


def name_database(db: str | None) -> None:
    """Stores the database that a command was given; None without one."""
    global _database
    _database = db


def with_database(text: str) -> str:
    """A message in which commands name the database that this command was given."""
    if _database is None:
        return text
    # A URL may hold a password.
    named = "URL" if "://" in _database else shlex.quote(_database)
    return _COMMAND.sub(
        # A command that already names a database is unchanged.
        lambda found: found[0] if "--db" in found[0] else f"{found[0][:-1]} --db {named}`",
        text,
    )


def say(text: str, *, err: bool = False, data: bool = False) -> None:
    """Prints a text; all output of commands except tables goes through here.

    Args:
        err: True to print to stderr.
        data: True for output that is read by programs, in which commands are not extended.
    """
    note_lasting()
    shown = visible(text if data else with_database(text))
    # The stream is passed, since Typer would write UTF-8 to an ASCII stream.
    typer.echo(shown, file=sys.stderr if err else output())


class VisibleFormatter(logging.Formatter):
    """A formatter of log messages that are safe for a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """Formats a record as text."""
        return visible(with_database(super().format(record)))


# Durations in words.


def format_duration(seconds: float) -> str:
    """A duration to the second if it is short, else to the minute: 1 hour and 30 minutes."""
    import humanize

    if seconds < 1:
        return "under a second"
    # A damaged or imported run may have any duration.
    if seconds >= 100 * 365 * 24 * 3600:
        return "over a century"
    unit = "seconds" if seconds < 90 else "minutes"
    return humanize.precisedelta(timedelta(seconds=round(seconds)), unit, format="%.0f")


# Progress bars for long work, on stderr and nowhere else.


@contextmanager
def progress_bar(doing: str, unit: str = "runs", *, stays: bool = False) -> Iterator[OnProgress]:
    """Shows a progress bar within the block; yields a callback with the numbers done and in all.

    It shows the share, the elapsed and the remaining time. Until the first call it shows the
    elapsed time alone.

    Args:
        doing: the name of the work.
        unit: the unit of the numbers.
        stays: True to show it on any stderr, and to leave it there at the end; else it disappears,
            and is only shown on a terminal.
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
        # No bar for a total of zero.
        yield lambda done, total: bar.update(task, completed=done, total=total, visible=total > 0)
