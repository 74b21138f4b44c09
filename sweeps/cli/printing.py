"""Printing of answers of commands: sentences and tables, or JSON."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from textwrap import fill
from typing import TYPE_CHECKING, Any

from seqcls.errors import ConfigError
from seqcls.text import visible, with_nulls
from sweeps.processes import note_lasting
from sweeps.terminal import output, say

if TYPE_CHECKING:
    import pandas as pd
    from rich import table

    from seqcls.interpretability import wording


FITTED = 80
"""Width of sentences where tables are fitted to a terminal."""

SPACE = 3
"""Characters between two columns of a table."""

MOST_LISTED = 12
"""Maximum number of columns in the message about an unknown one."""

STRINGS = ["string", "target", "output"]
"""Columns in which the empty string is printed as two quotation marks."""


@dataclass(frozen=True)
class TableOptions:
    """The columns of a table to show."""

    wide: bool = False
    """True for all of them, however wide the terminal is."""
    columns: str | None = None
    """Names of columns, separated by commas; None for as many as fit."""


@dataclass(frozen=True)
class Table:
    """A frame as a part of an answer."""

    frame: "pd.DataFrame"
    title: str
    look: TableOptions | None = None
    """The columns chosen by the user; None where the command has no such options."""


@dataclass(frozen=True)
class Answer:
    """The output of a command."""

    record: Any
    """The output of `--json`: an object, or rows as a list or a frame."""
    parts: "Iterable[str | Table | wording.Table]"
    """Sentences and tables; evaluated only where they are printed."""
    status: int = 0
    """The exit status of the command."""


def print_answer(answer: Answer, *, as_json: bool) -> int:
    """Prints an answer, and returns the exit status; NaN is null in JSON."""
    if as_json:
        from sweeps.results import rows_of

        record = answer.record
        data = record if isinstance(record, Mapping | list) else rows_of(record)
        say(json.dumps(with_nulls(data), indent=1, allow_nan=False), data=True)
        return answer.status
    for part in answer.parts:
        if isinstance(part, str):
            say(part)
        elif isinstance(part, Table):
            print_table(part.frame, part.title, part.look)
        else:
            print_table(frame_of(part.rows), part.title)
    return answer.status


def frame_of(rows: "Sequence[Mapping[str, Any]]") -> "pd.DataFrame":
    """Converts rows to a frame; integers stay integers beside missing cells."""
    import pandas as pd

    frame = pd.DataFrame(rows)
    values = {name: [row[name] for row in rows] for name in frame.columns}
    # With None in a column pandas would convert integers to floats.
    whole = [x for x in values if all(y is None or isinstance(y, int) for y in values[x])]
    return frame.astype(dict.fromkeys(whole, "Int64"))


def table_of(
    frame: "pd.DataFrame", title: str, widths: Sequence[int | None] | None = None
) -> "table.Table":
    """Converts a frame to a table for the terminal.

    Args:
        frame: the rows.
        title: the heading.
        widths: minimum width of each column, in characters.
    """
    from rich import box
    from rich import table as rich_table
    from rich.text import Text

    head = Text(visible(title))
    shown = rich_table.Table(title=head, title_justify="left", box=box.SIMPLE, pad_edge=False)
    for name, width in zip(frame.columns, widths or [None] * frame.shape[1], strict=True):
        side: Any = "right" if is_number(frame[name]) else "left"
        heading = Text(visible(str(name)))
        shown.add_column(heading, justify=side, overflow="fold", min_width=width)
    for row in zip(*(cell_texts(frame[name]) for name in frame.columns), strict=True):
        # Text, so that brackets in a string are not read as markup.
        shown.add_row(*map(Text, row))
    return shown


def cell_texts(column: "pd.Series[Any]") -> list[str]:
    """Formats the values of a column."""
    cells = zip(column, column.isna(), strict=True)
    return ["" if is_missing else visible(str(value)) for value, is_missing in cells]


def share_text(value: Any, places: int = 2) -> str:
    """Formats a share as percent; empty where it is missing."""
    import pandas as pd

    from seqcls.interpretability.wording import percent

    return "" if pd.isna(value) else percent(value, places)


def toml_values(frame: "pd.DataFrame", except_for: Sequence[str] = ()) -> "pd.DataFrame":
    """Formats columns of settings as in a specification: 0.0, true, "balanced"."""

    def text(value: Any) -> str:
        return json.dumps(value) if isinstance(value, bool | str) else str(value)

    settings = frame.columns.difference(list(except_for))
    return frame.assign(**{x: frame[x].map(text, na_action="ignore") for x in settings})


def readable(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Formats strings, which are "not known" where missing, and scores for a table."""
    import pandas as pd

    from seqcls.interpretability.wording import score_text

    frame = frame.copy()
    for name in frame.columns.intersection(STRINGS):
        frame[name] = frame[name].fillna("not known")
    # Imported predictions may have no scores.
    for name in frame.columns.intersection(["logit", "margin", "log_probability"]):
        frame[name] = ["" if pd.isna(x) else score_text(x) for x in frame[name]]
    if "probability" in frame:
        frame["probability"] = ["" if pd.isna(x) else f"{x:.6f}" for x in frame["probability"]]
    return frame


def is_fitted(look: TableOptions) -> bool:
    """True if a table must fit the terminal; lines in a file may have any length."""
    from rich.console import Console

    return not look.wide and look.columns is None and Console(file=output()).is_terminal


def print_table(frame: "pd.DataFrame", title: str, look: TableOptions | None = None) -> None:
    """Prints a frame as a table, of which a terminal shows as many columns as fit.

    Args:
        frame: its columns in the order of importance: the last are left out first.
        title: the heading.
        look: the columns chosen by the user; None where the command has no such options.

    Raises:
        ConfigError: a chosen column does not exist.
    """
    from rich.cells import cell_len
    from rich.console import Console

    strings = frame.columns.intersection(STRINGS)
    frame = frame.assign(**{name: frame[name].replace("", '""') for name in strings})
    terminal, columns = Console(file=output()), {str(x): frame[x] for x in frame.columns}
    texts = {name: cell_texts(column) for name, column in columns.items()}
    widths = {x: max(map(cell_len, [visible(x), *column])) for x, column in texts.items()}
    chosen, fits = list(columns), look is not None and is_fitted(look)
    if look is not None and look.columns is not None:
        chosen = named_columns(frame, look.columns)
    elif fits:
        ends = accumulate(widths[name] + SPACE for name in chosen)
        those = [x for x, end in zip(chosen, ends, strict=True) if end <= terminal.width]
        # The first one is shown in any case.
        chosen = those or chosen[:1]
    # Output may have been read: the command is not run again after this.
    note_lasting()
    width = sum(widths[name] + SPACE for name in chosen)
    # A command without such options shows all columns, in cells of several lines if needed.
    folds = (fits or (look is None and terminal.is_terminal)) and width > terminal.width
    # As wide as the table unless it folds, or Rich would cut its cells.
    console = Console(file=output(), width=terminal.width if folds else width)
    if folds or console.options.ascii_only:
        console.print(table_of(frame[chosen], title))
    else:
        # Rich lays out each cell anew, which takes minutes for a hundred thousand rows.
        with console.capture() as captured:
            console.print(table_of(frame[:0][chosen], title, [widths[name] for name in chosen]))
        lines = captured.get().splitlines(keepends=True)
        padded = [_pad(texts[x], widths[x], right=is_number(columns[x])) for x in chosen]
        rows = (f" {(' ' * SPACE).join(row)} \n" for row in zip(*padded, strict=True))
        output().writelines(chain(lines[:-1], rows, lines[-1:]))
    left = [name for name in columns if name not in chosen]
    if left and fits:
        say(fill(f"not shown: {', '.join(left)} (--wide shows all, --columns picks)", FITTED))


def is_number(column: "pd.Series[Any]") -> bool:
    """True if a column is aligned to the right."""
    import pandas as pd

    return pd.api.types.is_numeric_dtype(column)


def _pad(texts: Sequence[str], width: int, *, right: bool) -> Iterator[str]:
    from rich.cells import cell_len

    for text in texts:
        space = " " * (width - cell_len(text))
        yield space + text if right else text + space


def named_columns(frame: "pd.DataFrame", names: str) -> list[str]:
    """Returns the named columns, in the given order.

    Raises:
        ConfigError: there is no such column.
    """
    from seqcls.text import closest

    # The longest first: the name of an imported model's setting may contain a comma.
    known = sorted(map(str, frame.columns), key=len, reverse=True)
    any_known = "|".join(map(re.escape, known))
    given = re.findall(rf"\s*({any_known}|[^,]*?)\s*(?:,|$)", names)
    chosen = [name for name in given if name]
    for name in chosen:
        if name not in known:
            near = closest(name, known)
            hint = f"did you mean {near!r}? " if near else ""
            first = ", ".join(map(str, frame.columns[:MOST_LISTED]))
            more = len(known) - MOST_LISTED
            rest = f" and {more} more" if more > 0 else ""
            raise ConfigError(f"no column {name!r}: {hint}There are {first}{rest}")
    return chosen or list(map(str, frame.columns))
