"""What people write about sweeps: titles, notes, tags, what is archived, and saved views."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, insert, select, update
from sqlalchemy import delete as delete_rows

from seqcls.errors import StoreError
from sweeps.store.databases.engine import Store
from sweeps.store.schema.tables import SavedView, Sweep, SweepNote, SweepTag, now

LONGEST_NAME = 200
LONGEST_NOTE = 20_000


@dataclass(frozen=True)
class Note:
    """What is written about a sweep."""

    title: str = ""
    note: str = ""
    tags: tuple[str, ...] = ()
    archived_at: str | None = None
    """When it was archived, UTC in ISO 8601; None where it is not."""


@dataclass(frozen=True)
class NamedView:
    """A page with its filters, by the name that somebody gave it."""

    name: str
    page: str
    """Its path, such as `map`; empty for the first page."""
    query: str
    """The part of its address after the question mark."""


def notes(store: Store) -> dict[int, Note]:
    """The note of each sweep that has one, by its id."""
    with store.begin() as connection:
        written = connection.execute(
            select(SweepNote.sweep_id, SweepNote.title, SweepNote.note, SweepNote.archived_at)
        ).all()
        tagged = connection.execute(
            select(SweepTag.sweep_id, SweepTag.tag).order_by(SweepTag.tag)
        ).all()
    tags: dict[int, list[str]] = {}
    for sweep_id, tag in tagged:
        tags.setdefault(sweep_id, []).append(tag)
    fields = {row.sweep_id: (row.title, row.note, row.archived_at) for row in written}
    return {
        sweep_id: Note(title, note, tuple(tags.get(sweep_id, ())), archived)
        for sweep_id in {*fields, *tags}
        for title, note, archived in [fields.get(sweep_id, ("", "", None))]
    }


def sweep_names(store: Store) -> dict[int, str]:
    """What each sweep is called, by its id."""
    with store.begin() as connection:
        return dict(connection.execute(select(Sweep.id, Sweep.name)).all())


def write_note(store: Store, sweep_id: int, title: str, note: str, tags: Sequence[str]) -> None:
    """Replaces a sweep's title, note and tags.

    Raises:
        StoreError: one of them is too long.
    """
    kept = sorted({tag.strip() for tag in tags} - {""})
    for what, text, most in (
        ("title", title, LONGEST_NAME),
        ("note", note, LONGEST_NOTE),
        *(("tag", tag, LONGEST_NAME) for tag in kept),
    ):
        if len(text) > most:
            raise StoreError(f"a {what} of {len(text):,} characters: expected {most:,} at most")
    with store.change("members") as connection:
        _replace(connection, sweep_id, title=title.strip(), note=note.strip())
        connection.execute(delete_rows(SweepTag).where(SweepTag.sweep_id == sweep_id))
        if kept:
            rows = [{"sweep_id": sweep_id, "tag": tag} for tag in kept]
            connection.execute(insert(SweepTag), rows)


def archive(store: Store, sweep_id: int, archived: bool) -> None:
    """Hides a sweep from lists, or takes that back; its runs stay as they are."""
    with store.change("members") as connection:
        _replace(connection, sweep_id, archived_at=now() if archived else None)


def forget(connection: Connection, sweep_id: int) -> None:
    """Deletes all that is written about a sweep, before the sweep itself is."""
    for table in (SweepNote, SweepTag):
        connection.execute(delete_rows(table).where(table.sweep_id == sweep_id))


def views(store: Store) -> list[NamedView]:
    """All saved views, by name."""
    with store.begin() as connection:
        noted = connection.execute(
            select(SavedView.name, SavedView.page, SavedView.query).order_by(SavedView.name)
        )
        return [NamedView(*row) for row in noted]


def save_view(store: Store, view: NamedView) -> None:
    """Saves a view; one of the same name is replaced.

    Raises:
        StoreError: it has no name, or too long a one.
    """
    name = view.name.strip()
    if not 0 < len(name) <= LONGEST_NAME:
        raise StoreError(f"name={name[:40]!r}: expected 1 to {LONGEST_NAME} characters")
    with store.change() as connection:
        connection.execute(delete_rows(SavedView).where(SavedView.name == name))
        connection.execute(
            insert(SavedView).values(name=name, page=view.page, query=view.query, created_at=now())
        )


def delete_view(store: Store, name: str) -> None:
    """Deletes a saved view."""
    with store.change() as connection:
        connection.execute(delete_rows(SavedView).where(SavedView.name == name))


def _replace(connection: Connection, sweep_id: int, **values: str | None) -> None:
    """Changes some columns of a sweep's note, which is made where it is missing."""
    known = connection.execute(select(SweepNote.sweep_id).where(SweepNote.sweep_id == sweep_id))
    if known.first() is None:
        connection.execute(insert(SweepNote).values(sweep_id=sweep_id, title="", note=""))
    connection.execute(update(SweepNote).where(SweepNote.sweep_id == sweep_id).values(**values))
