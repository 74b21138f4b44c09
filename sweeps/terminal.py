"""What is printed: texts of a database, a file or an argument never steer the terminal.

Commands that a message names can be typed as they stand: with the database of this command.
"""

import logging
import re
import shlex

import typer

_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""What moves the cursor, colors, or turns the direction of writing; lines and tabs may stay."""


def visible(text: str) -> str:
    """A text whose control characters are written as Python writes them."""
    return _CONTROL.sub(_escaped, text)


_database: str | None = None
"""What this command was given as `--db`."""

_COMMAND = re.compile(r"`seqcls (?!data|cache|estimate SPEC)[^`]+`")
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
        lambda found: found[0] if "--db" in found[0] else f"{found[0][:-1]} --db {named}`", text
    )


def say(text: str, *, err: bool = False, data: bool = False) -> None:
    """Prints a text, to stderr if wanted: the one way by which commands do, but for tables.

    Args:
        text: lines, without the last end.
        err: whether it goes to stderr.
        data: whether it is read by programs, and so left as it is.
    """
    typer.echo(visible(text if data else with_database(text)), err=err)


class VisibleFormatter(logging.Formatter):
    """Messages of a log, as they may be shown by a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """A record as text."""
        return visible(with_database(super().format(record)))


def _escaped(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"
