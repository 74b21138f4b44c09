"""Whole databases: opened, packed, merged, verified, converted, described."""

from collections.abc import Iterator
from pathlib import Path

from sweeps.access import READ_ONLY_VARIABLE, is_read_only
from sweeps.processes import OnProgress
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import (
    open_reader,
    open_writer,
    pack,
    schema_version,
    to_write,
    why_not_permitted,
)
from sweeps.store.reads import sweep_queries
from sweeps.store.verification import Verification
from sweeps.store.verification import verify as verify_all

__all__ = ["convert", "describe_database", "merge", "open_store", "pack", "verify"]


def open_store(db: str | Path | None = None) -> Store:
    """The database, for reading and writing; made where there is none.

    Args:
        db: a file, or the URL of a PostgreSQL database; else `SEQCLS_DB`, else `runs.db`.

    Raises:
        StoreError: it cannot be opened, or was made by another version.
    """
    return open_writer(None if db is None else str(db))


def merge(
    store: Store, other: Store | str | Path, on_progress: OnProgress | None = None
) -> writer.Merged:
    """Takes over the sweeps, runs and results of another database; what is here stays.

    Raises:
        StoreError: one cannot be read, or the other not be written; nothing is taken over.
    """
    source = other if isinstance(other, Store) else open_reader(str(other))
    return writer.merge(to_write(store), source, on_progress)


def verify(store: Store, on_progress: OnProgress | None = None) -> Verification:
    """Checks that the database still holds what was written into it; names what is damaged."""
    return verify_all(store, on_progress)


def convert(
    old: str | Path, new: str | Path, on_progress: OnProgress | None = None
) -> tuple[Store, int]:
    """Reads a database of the version before into a new one; how many runs that were.

    Raises:
        StoreVersionError: the old one is not of the version before.
        StoreError: the new one has sweeps already, or either cannot be opened.
    """
    # Imported where it is used: few ever need it.
    from sweeps.store.convert import convert as convert_all

    return convert_all(str(old), str(new), on_progress)


def describe_database(db: str | None = None) -> Iterator[tuple[str, str]]:
    """What kind of database this is, what is in it and whether it can be written, name by name.

    Raises:
        StoreError: it cannot be read; what can be said of any version was said before.
    """
    store = open_reader(db)
    yield "database", store.name
    yield "schema", schema_version(store) or ""
    if store.path is not None:
        yield "size", f"{store.path.stat().st_size:,} bytes"
    counts = sweep_queries.counts_by_state(store)
    states = ", ".join(f"{number:,} {state}" for state, number in sorted(counts.items()))
    yield "runs", states or "none"
    if store.path is not None:
        refused = f"{READ_ONLY_VARIABLE} is set" if is_read_only() else None
        obstacle = refused or why_not_permitted(store.path)
        yield "writable", f"no: {obstacle}" if obstacle else "yes"
