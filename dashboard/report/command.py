"""The command `seqcls report`: a sweep as one file, sweeps as a static folder."""

import logging
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seqcls.errors import ConfigError, UnknownRunError
from seqcls.text import as_argument
from sweeps.api import Store, open_reader, reading
from sweeps.api.selecting import selection_of
from sweeps.cli.printing import Answer, Table
from sweeps.files import refuse_taken, whole_files
from sweeps.results import LEARNED_AT

MOST_ROWS = 20
"""Rows of a table that a terminal shows of a summary."""


def write_report(
    db: str | None,
    sweeps: Sequence[str],
    out: Path,
    chosen: Mapping[str, Any],
    *,
    force: bool = False,
) -> str:
    """Writes the report of sweeps; where, in a sentence.

    Args:
        db: the database.
        sweeps: their names.
        out: the file.
        chosen: which of their runs, as for `sweeps.api.selecting.selection_of`.
        force: replace a file that is no database.

    Raises:
        UnknownRunError: there is no such sweep, or nothing of them is trained yet.
        ConfigError: the file may not be written, or its folder is not there.
    """
    # Before anything is read: a refusal should not take as long as a report.
    refuse_taken([out], force=force)
    if not out.parent.is_dir():
        raise ConfigError(f"--out {out}: expected a file in an existing folder, such as heads.html")
    text = write(open_reader(db), *sweeps, **chosen)
    with whole_files(out.parent, force=force) as new:
        (new / out.name).write_text(text, encoding="utf-8")
    return f"{out}: {len(text.encode()) // 1024:,} KiB, which needs no other file."


def answer(store: Store, sweeps: Sequence[str], chosen: Mapping[str, Any]) -> Answer:
    """The report of sweeps for a terminal, or as records.

    Raises:
        UnknownRunError: there is no such sweep, or nothing of them is trained yet.
    """
    # Imported where it is used: charts take a second to load.
    from dashboard.report.contents import task_sections
    from dashboard.words.columns import as_text

    selection = selection_of(store, sweeps, **chosen)
    models = reading.models(store, selection)
    if not (models["picked"] > 0).any():
        raise _nothing_to_report(sweeps, chosen)
    records: list[dict[str, Any]] = []
    parts: list[str | Table] = []
    for task, _, sections in task_sections(store, selection, models):
        records += [{"task": task, **section.record()} for section in sections]
        for section in sections:
            title = section.title or task
            parts += [sentence.replace("`", "") for sentence in section.says]
            if section.table is not None and (rows := len(section.table)):
                if rows > MOST_ROWS:
                    title += f" The first {MOST_ROWS} of {rows:,}; --json prints all."
                parts.append(Table(as_text(section.table.head(MOST_ROWS), section.shown), title))
    return Answer(records, parts)


def write(store: Store, *sweeps: str, **chosen: Any) -> str:
    """The report of sweeps, which `sweeps.api.report` hands out.

    Args:
        store: the database.
        *sweeps: their names.
        **chosen: which of their runs, as for `sweeps.api.selecting.selection_of`.

    Raises:
        UnknownRunError: there is no such sweep, or nothing of them is trained yet.
    """
    selection = selection_of(store, sweeps, **chosen)
    quieten()
    # Imported where it is used: charts take a second to load.
    from dashboard.report.contents import report

    text = report(store, selection, only=_describe(chosen))
    if text is None:
        raise _nothing_to_report(sweeps, chosen)
    return text


def _nothing_to_report(sweeps: Sequence[str], chosen: Mapping[str, Any]) -> UnknownRunError:
    named = ", ".join(map(repr, sweeps)) or "of this database"
    what = f"sweep {named} has" if len(sweeps) == 1 else f"sweeps {named} have"
    if _describe(chosen):
        return UnknownRunError(f"{what} no finished run that is chosen; leave out an option")
    status = " ".join(["seqcls status", *map(as_argument, sweeps[:1])])
    return UnknownRunError(f"{what} no finished run to report on; `{status}` says how far it is")


def _describe(chosen: Mapping[str, Any]) -> str:
    """Describes the selection in a line; empty if there is none."""
    filters = [
        f"{name.replace('_', ' ')} {', '.join(map(str, x)) if isinstance(x, list | tuple) else x}"
        for name, x in chosen.items()
        if x not in (USUAL.get(name), [], ())
    ]
    return f"Filtered by {'; '.join(filters)}." if filters else ""


def quieten() -> None:
    """Silences Streamlit's warnings of being used outside of a page."""
    from streamlit.logger import set_log_level

    set_log_level(logging.ERROR)


USUAL = {"failing": False, "below": 1.0, "learned_at": LEARNED_AT}
"""Options that restrict nothing."""

INDEX = "index.html"
TITLE = "Sweeps"


def write_site(
    db: str | None,
    folder: Path,
    sweeps: Sequence[str],
    chosen: Mapping[str, Any],
    *,
    force: bool = False,
) -> str:
    """Writes the pages of sweeps; where, in a sentence.

    Args:
        db: the database.
        folder: where they go; it is made where it is missing.
        sweeps: names; all that have a finished run, if none are given.
        chosen: which of their runs, as for `sweeps.api.selecting.selection_of`.
        force: replace files, in a folder that holds no others.

    Raises:
        UnknownRunError: there is no such sweep, or nothing is trained yet.
        ConfigError: a file may not be written.
    """
    refuse_taken([folder / INDEX], force=force)
    pages = _pages(open_reader(db), sweeps, chosen)
    with whole_files(folder, force=force) as new:
        for name, text in pages.items():
            (new / name).write_text(text, encoding="utf-8")
    size = sum(len(text.encode()) for text in pages.values())
    return f"{folder}: {len(pages) - 1} sweeps and {INDEX}, {size // 1024:,} KiB."


def _pages(store: Store, sweeps: Sequence[str], chosen: Mapping[str, Any]) -> dict[str, str]:
    """The text of each file."""
    # Imported where it is used: charts take a second to load.
    from dashboard.report.contents import report

    quieten()
    texts: dict[str, str] = {}
    files: dict[str, str] = {}
    # A sweep that is named twice gets one page.
    for name in dict.fromkeys(sweeps or reading.specifications(store)):
        try:
            text = write(store, name, **chosen)
        except UnknownRunError:
            # A sweep that was named is missed; of all sweeps those without results are left out.
            if sweeps:
                raise
            continue  # Nothing of it is trained yet.
        # Numbered, as names that differ in signs alone would share a file.
        files[name] = f"sweep_{len(files) + 1}_{re.sub(r'[^A-Za-z0-9_-]+', '_', name)[:60]}.html"
        texts[files[name]] = text
    selection, only = selection_of(store, list(files), **chosen), _describe(chosen)
    index = report(store, selection, title=TITLE, only=only, pages=files) if files else None
    if index is None:
        raise UnknownRunError(
            f"{store.name!r} has no finished run to show; `seqcls status` says how far they are"
        )
    return {INDEX: index, **texts}
