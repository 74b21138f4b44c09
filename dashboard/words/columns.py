"""Columns of tables, by name: what they are called, how they are shown, and what they mean.

The help of a column is the only place where its term is defined.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pandas as pd


class Column(NamedTuple):
    """Title, format and help of a table's column."""

    title: str
    kind: str = "text"
    """`text`, `string` (of letters), `whole`, `number`, `percent`, `share` (a bar), `p` or `link`.

    Percents and shares are in [0, 1].
    """
    help: str | None = None
    width: int | None = None
    """In pixels; a page has 1,130."""
    wraps: bool = False
    """True if a text too long for one line wraps."""


COLUMNS: dict[str, Column] = {
    "configuration": Column("Configuration", width=270),
    "length": Column("Length", "whole", width=70),
    "models": Column("Models", "whole", width=75),
    "sweep": Column("Sweep", width=240),
    "seed": Column("Seed", "whole", width=60),
    "outcome": Column("Outcome", width=120),
    "string": Column("String", "string", width=300),
    "setting": Column("Setting", width=200),
    "value": Column("Value", width=200),
}
"""Those that several subjects share; `columns_of` adds a subject's own."""

LEGEND = {
    "at every length": "right at every length", "generalizes": "generalizes",
    "fails beyond": "fails beyond", "not learned": "not learned", "not known": "not known",
    "right": "right", "wrong": "wrong", "ink": "median", "muted": "best shortcut",
    "up": "above 0", "down": "below 0",
    "false positive": "false positive", "false negative": "false negative",
}  # fmt: skip
"""Meanings of colors, by name."""


def add_columns(columns: dict[str, Column]) -> dict[str, Column]:
    """Declares the columns of a subject, beside the sections that have them.

    Raises:
        ValueError: a name has another meaning already.
    """
    if taken := {x for x in columns if COLUMNS.get(x, columns[x]) != columns[x]}:
        raise ValueError(f"columns {sorted(taken)}: expected names that no other subject has")
    COLUMNS.update(columns)
    return columns


_FORMATS: dict[str, Callable[[Any], str]] = {
    "string": lambda x: str(x) or '""',
    "percent": lambda x: f"{x:.2%}",
    "share": lambda x: f"{x:.0%}",
    "p": lambda x: f"{x:.3g}",
    "number": lambda x: f"{x:.3f}",
    "whole": lambda x: f"{x:,.0f}",
}


def column_of(name: str) -> Column:
    """Returns the declaration of a column; an undeclared one is titled by its name."""
    return COLUMNS.get(name, Column(name.replace("_", " "), width=110))


def as_text(table: pd.DataFrame, shown: Sequence[str] = ()) -> pd.DataFrame:
    """A table as texts, its columns named: what terminals and files show.

    Args:
        shown: the columns, in order; all that are declared where it is empty.
    """
    known = {name: column_of(name) for name in shown or [x for x in table if x in COLUMNS]}
    return pd.DataFrame(
        {
            column.title: [
                "" if pd.isna(value) else _FORMATS.get(column.kind, str)(value)
                for value in table[name]
            ]
            for name, column in known.items()
        }
    )
