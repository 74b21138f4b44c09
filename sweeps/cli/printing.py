"""How commands open the database that they are about, and print tables, JSON and counts."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seqcls.errors import ConfigError
from seqcls.text import count as count
from seqcls.text import visible, with_nulls
from sweeps import api
from sweeps.processes import note_lasting
from sweeps.terminal import output, say

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from sweeps.api import Store


def open_database(db: str | None) -> "Store":
    """The database, open for reading."""
    return api.open_reader(db)


def open_run(db: str | None, reference: str) -> "tuple[Store, int]":
    """The database, open for reading, and the id of the run that a reference names.

    Raises:
        UnknownRunError: there is no such run.
    """
    store = open_database(db)
    return store, api.find_run(store, reference)


WIDE = 10_000
"""Columns of output that nobody has to read on a screen."""

SPACE = 3
"""Characters between two columns of a table."""


@dataclass(frozen=True)
class TableOptions:
    """Which columns of a table are shown."""

    wide: bool = False
    """All of them, however wide the terminal is."""
    columns: str | None = None
    """Those named, separated by commas; None: as many as fit."""


def print_record(record: Mapping[str, Any]) -> None:
    """Prints an object as JSON; a number that is NaN is null, as JSON has none."""
    say(json.dumps(with_nulls(record), indent=1, allow_nan=False), data=True)


def show(as_json: bool, said: Sequence[str], record: Mapping[str, Any]) -> None:
    """Prints sentences, or the same as data."""
    if as_json:
        print_record(record)
    else:
        say("\n".join(said))


def print_json(frame: "pd.DataFrame") -> None:
    """Prints a frame's rows as a list of objects."""
    from sweeps.results import rows_of

    say(json.dumps(with_nulls(rows_of(frame)), indent=1, allow_nan=False), data=True)


def table_of(frame: "pd.DataFrame", title: str) -> "Table":
    """A frame as a table for the terminal; its text is shown as it is."""
    import pandas as pd
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(visible(title)), title_justify="left", box=box.SIMPLE, pad_edge=False)
    for name in frame.columns:
        numeric = pd.api.types.is_numeric_dtype(frame[name])
        table.add_column(
            Text(visible(str(name))), justify="right" if numeric else "left", overflow="fold"
        )
    for row in frame.itertuples(index=False):
        # Text, so that brackets in a string are not read as markup.
        table.add_row(*map(Text, map(cell_text, row)))
    return table


def cell_text(value: Any) -> str:
    """A value as a table shows it."""
    import pandas as pd

    return "" if pd.isna(value) else visible(str(value))


def is_fitted(look: TableOptions) -> bool:
    """Whether a table must fit the terminal; lines in a file may have any length."""
    from rich.console import Console

    return not look.wide and look.columns is None and Console(file=output()).is_terminal


def print_table(frame: "pd.DataFrame", title: str, look: TableOptions | None = None) -> None:
    """Prints a frame as a table, of which a terminal shows as many columns as fit.

    Args:
        frame: its columns in the order of their weight: the last are left out first.
        look: which columns the user asked for; None where the command has no such options.

    Raises:
        ConfigError: the user asked for a column that does not exist.
    """
    from rich.console import Console

    chosen, fits = list(frame.columns), False
    if look is not None and look.columns is not None:
        chosen = named_columns(frame, look.columns)
    elif look is not None and is_fitted(look):
        chosen, fits = fitting_columns(frame, Console(file=output()).width), True
    # A command without such options shows all columns, in cells of several lines if needed.
    as_wide_as_the_terminal = fits or (look is None and Console(file=output()).is_terminal)
    note_lasting()
    console = Console(file=output(), width=None if as_wide_as_the_terminal else WIDE)
    console.print(table_of(frame[chosen], title))
    left = [str(name) for name in frame.columns if name not in chosen]
    if left and fits:
        say(f"not shown: {', '.join(left)} (--wide shows all, --columns picks)")


def fitting_columns(frame: "pd.DataFrame", width: int) -> list[str]:
    """The first columns of a frame that fit side by side in so many characters.

    The first one is shown in any case.
    """
    chosen: list[str] = []
    for name in map(str, frame.columns):
        cells = max((len(cell_text(value)) for value in frame[name]), default=0)
        width -= max(len(name), cells) + SPACE
        if width < 0 and chosen:
            break
        chosen.append(name)
    return chosen


def named_columns(frame: "pd.DataFrame", names: str) -> list[str]:
    """The columns named, in the order named.

    Raises:
        ConfigError: there is no such column.
    """
    from seqcls.text import nearest

    known = sorted(map(str, frame.columns), key=len, reverse=True)
    chosen: list[str] = []
    rest = names.strip()
    while rest:
        # The longest first: a setting of a model trained elsewhere may have a comma in its name.
        fits = [name for name in known if rest == name or rest.startswith(f"{name},")]
        name = fits[0] if fits else rest.partition(",")[0].strip()
        if name and not fits and name not in known:
            raise ConfigError(f"--columns {names}: no column {name!r}: {nearest(name, known)}")
        chosen += [name] if name else []
        rest = rest[len(fits[0]) + 1 :] if fits else rest.partition(",")[2]
        rest = rest.strip()
    return chosen or list(map(str, frame.columns))
