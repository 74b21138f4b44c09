"""Taking over what another database's people wrote: titles, notes, tags and saved views."""

from collections.abc import Iterator, Mapping
from itertools import count
from urllib.parse import parse_qsl, urlencode

from sqlalchemy import Connection, delete, insert, select

from sweeps.store.databases.statements import insert_new
from sweeps.store.schema.tables import SavedView, SweepNote, SweepTag

Numbers = Mapping[int, int]
"""What is known there by a number, by its number here."""


def merge_notes(source: Connection, target: Connection, sweep_ids: Numbers) -> None:
    """Adds the source's titles, notes and tags of sweeps; a note in the target stays.

    Args:
        source: the database that is read.
        target: the database that is written.
        sweep_ids: sweep ids in the target by those in the source.
    """
    ours = {row.sweep_id: row for row in target.execute(select(SweepNote.__table__))}
    for row in source.execute(select(SweepNote.__table__)):
        if row.sweep_id not in sweep_ids:
            continue
        sweep_id = sweep_ids[row.sweep_id]
        if sweep_id in ours and (
            ours[sweep_id].title or ours[sweep_id].note or ours[sweep_id].archived_at
        ):
            continue
        target.execute(delete(SweepNote).where(SweepNote.sweep_id == sweep_id))
        values = {"title": row.title, "note": row.note, "archived_at": row.archived_at}
        target.execute(insert(SweepNote).values(sweep_id=sweep_id, **values))
    tags = source.execute(select(SweepTag.sweep_id, SweepTag.tag)).all()
    insert_new(
        target,
        SweepTag,
        [
            {"sweep_id": sweep_ids[their_id], "tag": tag}
            for their_id, tag in tags
            if their_id in sweep_ids
        ],
    )


def merge_views(
    source: Connection,
    target: Connection,
    numbers: Mapping[str, Numbers],
    renamed: Mapping[str, str],
    label: str,
) -> None:
    """Adds the source's saved views, about the same sweeps and models as there.

    A view whose name is taken gets the name of its database appended.

    Args:
        source: the database that is read.
        target: the database that is written.
        numbers: for each parameter of an address that is a number, the numbers in the target by
            those in the source.
        renamed: new names of sweeps by those in the source.
        label: what the source is called.
    """
    ours = {row.name: (row.page, row.query) for row in target.execute(select(SavedView.__table__))}
    for row in source.execute(select(SavedView.__table__).order_by(SavedView.name)):
        view = (row.page, _about_the_same(row.query, numbers, renamed))
        name = next(x for x in candidate_names(row.name, label) if ours.get(x, view) == view)
        if name in ours:
            continue
        ours[name] = view
        page, query = view
        values = {"page": page, "query": query, "created_at": row.created_at}
        target.execute(insert(SavedView).values(name=name, **values))


def candidate_names(name: str, label: str) -> Iterator[str]:
    """What something may be called here: as there, else with the name of its database."""
    yield name
    yield f"{name} ({label})"
    yield from (f"{name} ({label} {number})" for number in count(2))


def _about_the_same(query: str, numbers: Mapping[str, Numbers], renamed: Mapping[str, str]) -> str:
    pairs = []
    for name, value in parse_qsl(query, keep_blank_values=True):
        new_value = value
        if name == "sweep":
            new_value = renamed.get(value, value)
        elif name in numbers and value.isdecimal():
            known = numbers[name].get(int(value))
            if known is None:
                continue
            new_value = str(known)
        pairs.append((name, new_value))
    return urlencode(pairs)
