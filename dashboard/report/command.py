"""What `seqcls report` does."""

import logging
from pathlib import Path

import typer

from seqcls.errors import ConfigError, UnknownRunError
from sweeps.files import refuse_taken, whole_files
from sweeps.store.databases.engine import Store
from sweeps.store.opening import open_reader
from sweeps.store.reading import sweep_queries


def write_report(db: str | None, sweep: str, out: Path, *, force: bool = False) -> None:
    """Writes the report of a sweep, and says where.

    Args:
        db: the database.
        sweep: its name.
        out: the file.
        force: replace a file that this program wrote and nobody changed since.

    Raises:
        UnknownRunError: there is no such sweep, or nothing of it is trained yet.
        ConfigError: the file may not be written, or its folder is not there.
    """
    refuse_taken([out], force=force)
    if not out.parent.is_dir():
        raise ConfigError(f"--out {out}: expected a file in a folder that is there, as heads.html")
    text = written(open_reader(db), sweep)
    with whole_files(out.parent, force=force) as new:
        (new / out.name).write_text(text, encoding="utf-8")
    typer.echo(f"{out}: {len(text.encode()) // 1024:,} KiB, which needs no other file.")


def written(store: Store, sweep: str) -> str:
    """The report of a sweep, which `sweeps.api.report` hands out.

    Raises:
        UnknownRunError: there is no such sweep, or nothing of it is trained yet.
    """
    sweep_id = sweep_queries.find_sweep(store, sweep)
    _quiet()
    # Imported where it is used: charts take a second to load.
    from dashboard.report.writing import report

    text = report(store, sweep_id)
    if text is None:
        raise UnknownRunError(
            f"sweep {sweep!r} has no finished run to report on; `seqcls status {sweep}` says how "
            "far it is"
        )
    return text


def _quiet() -> None:
    """Keeps back what Streamlit says of being used outside of a page."""
    from streamlit.logger import set_log_level

    set_log_level(logging.ERROR)
