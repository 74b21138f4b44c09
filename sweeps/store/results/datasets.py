"""Strings of one's own in the database: stored once, by the digest of their content."""

from collections.abc import Iterator

from sqlalchemy import Connection, delete, exists, select

from seqcls.datasets import Dataset
from seqcls.errors import DatasetError, StoreDamagedError
from sweeps.store.databases.statements import insert_new
from sweeps.store.schema import tables
from sweeps.store.schema.tables import now


def store_dataset(connection: Connection, dataset: Dataset) -> int:
    """Stores a dataset, unless it is there; its id. A name that is there stays."""
    row = {
        "digest": dataset.digest,
        "name": dataset.name,
        "task": dataset.task,
        "row_count": len(dataset),
        "rows": dataset.to_bytes(),
        "created_at": now(),
    }
    table = tables.Dataset
    query = select(table.id).where(table.digest == dataset.digest)
    known = connection.scalar(query)
    if known is None:
        insert_new(connection, table, [row])
        known = connection.scalars(query).one()
    return known


def load_dataset(connection: Connection, digest: str) -> Dataset | None:
    """The dataset of a digest; None where the database has none.

    Raises:
        StoreDamagedError: its rows are not those that were stored.
    """
    table = tables.Dataset
    columns = (table.id, table.name, table.rows)
    row = connection.execute(select(*columns).where(table.digest == digest)).first()
    if row is None:
        return None
    try:
        dataset = Dataset.from_bytes(bytes(row.rows), row.name)
        if dataset.digest != digest:
            raise DatasetError("its rows do not fit its digest")
    except DatasetError as error:
        raise StoreDamagedError(
            f"dataset {row.id}: rows: {error}", table="dataset", column="rows"
        ) from None
    return dataset


def stored_datasets(connection: Connection) -> dict[str, str]:
    """The digests of all datasets, newest first, each with its name, task and number of rows."""
    table = tables.Dataset
    columns = (table.digest, table.name, table.task, table.row_count)
    rows = connection.execute(select(*columns).order_by(table.id.desc()))
    return {row.digest: f"{row.name} (task = {row.task}, {row.row_count:,} rows)" for row in rows}


def damaged_datasets(connection: Connection) -> Iterator[tuple[str, str]]:
    """The digests of datasets whose rows or columns do not fit them, each with how."""
    table = tables.Dataset
    for digest in connection.scalars(select(table.digest).order_by(table.id)).all():
        query = select(table.task, table.row_count).where(table.digest == digest)
        row = connection.execute(query).one()
        try:
            dataset = load_dataset(connection, digest)
        except StoreDamagedError as error:
            yield digest, str(error)
            continue
        if dataset is not None and (dataset.task, len(dataset)) != tuple(row):
            yield digest, "its task or row_count is not that of its rows"


def copy_datasets(source: Connection, target: Connection) -> None:
    """Adds the datasets of another database; of damaged ones nothing."""
    table = tables.Dataset
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


def delete_unused(connection: Connection) -> None:
    """Deletes the datasets that no configuration names."""
    table = tables.Dataset
    named = exists().where(tables.Config.json.contains(table.digest))
    connection.execute(delete(table).where(~named))
