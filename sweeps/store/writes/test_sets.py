"""Stores strings once: datasets of one's own, and the strings of test sets."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, bindparam, delete, exists, select, update

from seqcls.config import RunConfig
from seqcls.errors import StoreDamagedError
from seqcls.fields import TestSet, test_set_key
from seqcls.problem import resolve
from seqcls.strings.datasets import Content
from sweeps.store import tables
from sweeps.store.database import Store
from sweeps.store.reads.test_sets import load_dataset
from sweeps.store.statements import insert_new, insert_rows
from sweeps.store.tables import now


def store_dataset(connection: Connection, dataset: Content) -> int:
    """Stores a dataset, unless it is there; its id. A name that is there stays."""
    row = {
        "digest": dataset.digest,
        "name": dataset.name,
        "task": dataset.task,
        "row_count": len(dataset),
        "rows": dataset.to_bytes(),
        "created_at": now(),
    }
    table = tables.DatasetRow
    query = select(table.id).where(table.digest == dataset.digest)
    known = connection.scalar(query)
    if known is None:
        insert_new(connection, table, [row])
        known = connection.scalars(query).one()
    return known


def copy_datasets(source: Connection, target: Connection) -> None:
    """Adds the datasets of another database; of damaged ones nothing."""
    table = tables.DatasetRow
    known = set(target.scalars(select(table.digest)))
    for digest in source.scalars(select(table.digest).order_by(table.id)).all():
        if digest in known:
            continue
        try:
            dataset = load_dataset(source, digest)
        except StoreDamagedError:
            continue
        if dataset is not None:
            store_dataset(target, dataset)


def datasets_of(connection: Connection, configs: ColumnElement[bool]) -> Sequence[int]:
    """The ids of the datasets that some of these configurations name."""
    table, config = tables.DatasetRow, tables.Config
    named = exists().where(config.json.contains(table.digest), configs)
    return connection.scalars(select(table.id).where(named)).all()


def delete_unused(connection: Connection, ids: Sequence[int]) -> None:
    """Deletes those of these datasets that no configuration names any longer."""
    table = tables.DatasetRow
    named = exists().where(tables.Config.json.contains(table.digest))
    connection.execute(delete(table).where(table.id.in_(ids), ~named))


# The strings of test sets: each stored once, however many runs are tested on it.


def missing_test_set(store: Store, config: RunConfig) -> TestSet | None:
    """The strings of a configuration's test set; None where they are stored already.

    To be asked for before a transaction, which would hold up others while they are drawn.
    """
    with store.read() as connection:
        if _digest(connection, config) is not None:
            return None
    # Imported where it is used: a process that only hands out groups tests nothing.
    from seqcls.evaluation import drawn_test_set

    return drawn_test_set(resolve(config))


def store_test_set(connection: Connection, config: RunConfig, drawn: TestSet | None) -> str | None:
    """Stores a test set's strings, unless another process has meanwhile.

    Returns:
        The digest of the stored strings.
    """
    stored = _digest(connection, config)
    if stored is not None or drawn is None:
        return stored
    key = test_set_key(config)
    # First, so that of two processes that would store them one waits here, then sees them stored.
    same_key = tables.TestSetRow.key == key
    missing = update(tables.TestSetRow).where(same_key, tables.TestSetRow.digest.is_(None))
    returned = missing.values(digest=drawn.digest).returning(tables.TestSetRow.id)
    test_set_id = connection.scalars(returned).one_or_none()
    if test_set_id is None:
        return _digest(connection, config)
    insert_test_strings(connection, test_set_id, drawn)
    return drawn.digest


def insert_test_strings(connection: Connection, test_set_id: int, drawn: TestSet) -> None:
    """Stores the strings of a test set that has none."""
    none = [None] * len(drawn.texts)
    rows = zip(
        drawn.texts,
        drawn.lengths.tolist(),
        none if drawn.bits is None else drawn.bits.astype(int).tolist(),
        drawn.occurrences.tolist(),
        none if drawn.targets is None else drawn.targets,
        none if drawn.drawn is None else drawn.drawn,
        strict=True,
    )
    numbered = [(test_set_id, number, *row) for number, row in enumerate(rows)]
    insert_rows(connection, tables.TestString, numbered)


def fill_drawn(connection: Connection, test_set_id: int, drawn: Sequence[str | None]) -> None:
    """Stores how test strings were drawn where that is missing, as it was before migration 0005."""
    table = tables.TestString
    known = select(table.number).where(table.test_set_id == test_set_id, table.drawn.is_not(None))
    rows = [{"of": number, "way": way} for number, way in enumerate(drawn) if way is not None]
    if not rows or connection.execute(known.limit(1)).first() is not None:
        return
    this = (table.test_set_id == test_set_id, table.number == bindparam("of"))
    connection.execute(update(table).where(*this).values(drawn=bindparam("way")), rows)


def _digest(connection: Connection, config: RunConfig) -> str | None:
    query = select(tables.TestSetRow.digest).where(tables.TestSetRow.key == test_set_key(config))
    return connection.scalars(query).one_or_none()
