"""Text on the page: what comes from the database or a user is shown as it is."""

import os
import re
import string
from datetime import UTC, datetime
from pathlib import Path

from seqcls.errors import SeqclsError
from seqcls.text import visible
from sweeps.access import DB_VARIABLE, is_read_only

UNSEEN = "\N{WORD JOINER}"
"""Has no width. Within what looks like something else it keeps the page from making that of it."""

_MADE_INTO = re.compile(
    r"(?<=[:@])(?=[\w/])|(?<=www)(?=\.)|(?<=[<>~-])(?=[->=])|^(?=[ \t])",
    re.IGNORECASE | re.MULTILINE,
)
"""Places where Markdown makes a link of an address, a picture of a name between colons, an arrow of
`->`, and code of an indented line, whether escaped or not.
"""


# The SHA-256 of a file of strings, too long for a table of settings.
_DIGEST = re.compile("[0-9a-f]{64}")

_MARKS = {*string.punctuation} - {","}
"""Characters to escape; a comma needs it not, and is part of choices that links name."""


def plain(text: str) -> str:
    """Escapes text so that Markdown shows it unchanged: the one way to show what others wrote.

    Its texts, labels and tooltips, and the choices of tabs and buttons are Markdown; options of
    lists, cells and titles of tables and charts are not. What would turn the direction of the
    page's own words is written out, as on a terminal.
    """
    shown = _MADE_INTO.sub(UNSEEN, visible(text))
    return "".join(f"\\{c}" if c in _MARKS else c for c in shown)


BOXES = {"source": "the box States of"}
"""Names on pages of parameters in error messages."""


def error_text(error: Exception) -> str:
    """The message of an error in the words of pages; for visitors of a read-only page without the
    folder of the database.
    """
    if isinstance(error, SeqclsError):
        return without_folder(error.render(lambda box: BOXES.get(box.name, str(box))))
    return without_folder(str(error))


def without_folder(text: str) -> str:
    """A text as visitors of a read-only page see it: without the folder of the database."""
    named = os.environ.get(DB_VARIABLE, "")
    # The address of a server has no folder.
    if not is_read_only() or not named or "://" in named:
        return text
    folder = Path(named).parent
    # The longer path first, of which a relative one is a part.
    for known in (str(folder.absolute()), str(folder)):
        text = text.replace(f"{known}/", "")
    return text


def format_value(value: object) -> str:
    """A setting's value as specifications have it: a fraction as short as it is the same number."""
    if isinstance(value, str) and _DIGEST.fullmatch(value):
        return f"{value[:12]}…"
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, float):
        return str(value)
    short = f"{value:g}"
    return short if float(short) == value else repr(float(value))


def clock(time: str | None) -> str:
    """A stored time to the second, in UTC; words where there is none."""
    if time is None:
        return "not yet"
    return f"{datetime.fromisoformat(time).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
