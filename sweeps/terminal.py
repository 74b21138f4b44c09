"""What is printed: texts of a database, a file or an argument never steer the terminal."""

import logging
import re

import typer

_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""What moves the cursor, colors, or turns the direction of writing; lines and tabs may stay."""


def visible(text: str) -> str:
    """A text whose control characters are written as Python writes them."""
    return _CONTROL.sub(_escaped, text)


def say(text: str, *, err: bool = False) -> None:
    """Prints a text, to stderr if wanted: the one way by which commands do, but for tables.

    Args:
        text: lines, without the last end.
        err: whether it goes to stderr.
    """
    typer.echo(visible(text), err=err)


class VisibleFormatter(logging.Formatter):
    """Messages of a log, as they may be shown by a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """A record as text."""
        return visible(super().format(record))


def _escaped(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"
