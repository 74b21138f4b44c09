"""Taking over what another database's people wrote: titles, notes, tags and saved views."""

from collections.abc import Mapping
from urllib.parse import parse_qsl, urlencode

from sqlalchemy import Connection, delete, insert, select

from sweeps.store.databases.statements import insert_new
from sweeps.store.schema.tables import SavedView, SweepNote, SweepTag

Numbers = Mapping[int, int]
"""What is known there by a number, by its number here."""


def merge_notes(source: Connection, target: Connection, sweep_ids: Numbers) -> None:
    """Adds their titles, notes and tags; what is written about a sweep here stays.

    Args:
        source: where from.
        target: where to.
        sweep_ids: the ids here of the sweeps there.
    """
    ours = {row.sweep_id: row for row in target.execute(select(SweepNote.__table__))}
    for row in source.execute(select(SweepNote.__table__)):
        if row.sweep_id not in sweep_ids:
            continue
        own = sweep_ids[row.sweep_id]
        if own in ours and (ours[own].title or ours[own].note or ours[own].archived_at):
            continue
        target.execute(delete(SweepNote).where(SweepNote.sweep_id == own))
        values = {"title": row.title, "note": row.note, "archived_at": row.archived_at}
        target.execute(insert(SweepNote).values(sweep_id=own, **values))
    tags = source.execute(select(SweepTag.sweep_id, SweepTag.tag)).all()
    insert_new(
        target,
        SweepTag,
        [{"sweep_id": sweep_ids[own], "tag": tag} for own, tag in tags if own in sweep_ids],
    )


def merge_views(
    source: Connection,
    target: Connection,
    numbers: Mapping[str, Numbers],
    renamed: Mapping[str, str],
    label: str,
) -> None:
    """Adds their saved views, about the same sweeps and models as there.

    A view of a name that another view has here is called after its database besides.

    Args:
        source: where from.
        target: where to.
        numbers: for each parameter of an address that names something by a number, the numbers
            here of those there.
        renamed: the names here of sweeps that are called otherwise there.
        label: what the other database is called.
    """
    ours = {row.name: (row.page, row.query) for row in target.execute(select(SavedView.__table__))}
    for row in source.execute(select(SavedView.__table__).order_by(SavedView.name)):
        own = (row.page, _about_the_same(row.query, numbers, renamed))
        name, number = row.name, 1
        while name in ours and ours[name] != own:
            number += 1
            name = f"{row.name} ({label if number == 2 else f'{label} {number - 1}'})"
        if name in ours:
            continue
        ours[name] = own
        page, query = own
        values = {"page": page, "query": query, "created_at": row.created_at}
        target.execute(insert(SavedView).values(name=name, **values))


def _about_the_same(query: str, numbers: Mapping[str, Numbers], renamed: Mapping[str, str]) -> str:
    found = []
    for name, value in parse_qsl(query, keep_blank_values=True):
        own = value
        if name == "sweep":
            own = renamed.get(value, value)
        elif name in numbers and value.isdecimal():
            known = numbers[name].get(int(value))
            if known is None:
                continue
            own = str(known)
        found.append((name, own))
    return urlencode(found)
