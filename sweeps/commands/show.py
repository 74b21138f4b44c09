"""How commands print tables, JSON, times and counts."""

import json

import pandas as pd
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

WIDE = 10_000
"""Columns of output that nobody has to read on a screen."""


def print_json(frame: pd.DataFrame) -> None:
    """Prints a frame's rows as a list of objects."""
    records = frame.astype(object).where(frame.notna(), None).to_dict("records")
    typer.echo(json.dumps(records, indent=1, allow_nan=False))


def table_of(frame: pd.DataFrame, title: str) -> Table:
    """A frame as a table for the terminal; its text is shown as it is."""
    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE, pad_edge=False)
    for name in frame.columns:
        numeric = pd.api.types.is_numeric_dtype(frame[name])
        table.add_column(Text(name), justify="right" if numeric else "left", overflow="fold")
    for row in frame.itertuples(index=False):
        # Text, so that brackets in a string are not read as markup.
        table.add_row(*(Text("" if pd.isna(value) else str(value)) for value in row))
    return table


def print_table(frame: pd.DataFrame, title: str) -> None:
    """Prints a frame as a table."""
    # Into a file or another program a line may be as long as it is.
    Console(width=None if Console().is_terminal else WIDE).print(table_of(frame, title))


def duration(seconds: float | None) -> str:
    """Seconds as one reads them: 8 s, 3 min, 2.5 h."""
    if seconds is None:
        return ""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def count(number: int, noun: str) -> str:
    """A number of things: 1 run, 2,000 runs."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
