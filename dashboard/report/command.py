"""What `seqcls report` does."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from seqcls.errors import ConfigError, UnknownRunError
from sweeps.store import sweep_queries
from sweeps.store.default import DB_VARIABLE
from sweeps.store.opening import open_reader


def write_report(db: str | None, sweep: str, out: Path) -> None:
    """Writes the report of a sweep, and says where.

    Args:
        db: the database.
        sweep: its name.
        out: the file, which is replaced where it is there.

    Raises:
        UnknownRunError: there is no such sweep, or nothing of it is trained yet.
        ConfigError: the file is to be in a folder that is not there, or is a folder.
    """
    if out.is_dir() or not out.resolve().parent.is_dir():
        raise ConfigError(f"--out {out}: expected a file in a folder that is there, as heads.html")
    store = open_reader(db)
    sweep_id = sweep_queries.find_sweep(store, sweep)
    _quiet()
    # Imported where it is used: charts take a second to load.
    from dashboard.report.writing import report

    with _asked_by_pages(db):
        text = report(store, sweep_id)
    if text is None:
        raise UnknownRunError(
            f"sweep {sweep!r} has no finished run to report on; `seqcls status {sweep}` says how "
            "far it is"
        )
    out.write_text(text, encoding="utf-8")
    typer.echo(f"{out}: {len(text.encode()) // 1024:,} KiB, which needs no other file.")


@contextmanager
def _asked_by_pages(db: str | None) -> Iterator[None]:
    """Makes the pages' queries, which a report asks too, look into this database."""
    before = os.environ.get(DB_VARIABLE)
    if db is not None:
        os.environ[DB_VARIABLE] = db
    try:
        yield
    finally:
        if before is not None:
            os.environ[DB_VARIABLE] = before
        else:
            os.environ.pop(DB_VARIABLE, None)


def _quiet() -> None:
    """Keeps back what Streamlit says of being used outside of a page."""
    from streamlit.logger import set_log_level

    set_log_level(logging.ERROR)
