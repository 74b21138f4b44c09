"""Strings that are stored once: datasets of one's own, and the strings of test sets."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool
from sqlalchemy import Connection, delete, exists, select, update

from seqcls.config import RunConfig
from seqcls.errors import DatasetError, StoreDamagedError
from seqcls.fields import TestSet, test_set_key
from seqcls.models.positions import longest_readable
from seqcls.problem import resolve, tokenizer_of
from seqcls.strings.datasets import Dataset
from sweeps.store import tables
from sweeps.store.databases.engine import Store
from sweeps.store.databases.statements import fetched, insert_new, insert_rows
from sweeps.store.tables import now


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
    table = tables.DatasetRow
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
    table = tables.DatasetRow
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
    table = tables.DatasetRow
    columns = (table.digest, table.name, table.task, table.row_count)
    rows = connection.execute(select(*columns).order_by(table.id.desc()))
    return {row.digest: f"{row.name} (task = {row.task}, {row.row_count:,} rows)" for row in rows}


def damaged_datasets(connection: Connection) -> Iterator[tuple[str, str]]:
    """The digests of datasets whose rows or columns do not fit them, each with how."""
    table = tables.DatasetRow
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


def delete_unused(connection: Connection) -> None:
    """Deletes the datasets that no configuration names."""
    table = tables.DatasetRow
    named = exists().where(tables.Config.json.contains(table.digest))
    connection.execute(delete(table).where(~named))


# The strings of test sets: each stored once, however many runs are tested on it.


def missing_test_set(store: Store, config: RunConfig) -> TestSet | None:
    """The strings of a configuration's test set; None where they are stored already.

    To be asked for before a transaction, which would hold up others while they are drawn.
    """
    with store.begin() as connection:
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
        strict=True,
    )
    numbered = [(test_set_id, number, *row) for number, row in enumerate(rows)]
    insert_rows(connection, tables.TestString, numbered)


def stored_test_set(connection: Connection, test_set_id: int) -> TestSet:
    """The strings of a test set as they are stored; none where none are."""
    test_string = tables.TestString
    query = select(
        test_string.string,
        test_string.length,
        test_string.label,
        test_string.occurrences,
        test_string.target,
    )
    ordered = query.where(test_string.test_set_id == test_set_id).order_by(test_string.number)
    _, rows = fetched(connection, ordered)
    texts, lengths, labels, occurrences, targets = (
        zip(*rows, strict=True) if rows else ((), (), (), (), ())
    )
    counts = (np.array(column, dtype=np.int64) for column in (lengths, occurrences))
    of_language = all(target is None for target in targets) and None not in labels
    bits = np.array(labels, dtype=np.int64) > 0 if of_language else None
    target_texts = None if of_language else [str(target) for target in targets]
    length, times = counts
    return TestSet(texts, length, bits, times, target_texts)


def are_tested(config: RunConfig, test: TestSet) -> Bool[np.ndarray, " string"]:
    """Which strings of its test set a configuration's models are tested on.

    The others are longer than the models have places for, of transductions with their targets. All
    count where the task is not known here.
    """
    every = np.ones(len(test.texts), dtype=bool)
    tokenizer = tokenizer_of(config)
    if tokenizer is None or (end := longest_readable(resolve(config).network)) is None:
        return every
    read = test.lengths
    # `SEP` stands between input and target, where the target is read.
    separators = resolve(config).kind.prompt_length(0)
    if separators and test.targets is not None:
        counts = [sum(n for _, n in tokenizer.pieces(target)) for target in test.targets]
        read = read + separators + np.array(counts, dtype=np.int64)
    return np.asarray(read <= end)


def _digest(connection: Connection, config: RunConfig) -> str | None:
    query = select(tables.TestSetRow.digest).where(tables.TestSetRow.key == test_set_key(config))
    return connection.scalars(query).one_or_none()
