"""Strings that are stored once: datasets, and the strings of test sets."""

from contextlib import suppress

import numpy as np
from jaxtyping import Bool
from sqlalchemy import Connection, inspect, select, update

from seqcls.config import RunConfig
from seqcls.errors import DatasetError, StoreDamagedError
from seqcls.fields import TestSet, test_set_key
from seqcls.models.positions import longest_readable
from seqcls.problem import resolve, tokenizer_of
from seqcls.strings.automata import StoredAutomaton
from seqcls.strings.datasets import Content, unpack
from sweeps.naming import call_datasets
from sweeps.store import tables
from sweeps.store.database import Store
from sweeps.store.statements import fetch, insert_new, insert_rows
from sweeps.store.tables import now


def load_dataset(connection: Connection, digest: str) -> Content | None:
    """The dataset of a digest; None if the database has none.

    Raises:
        StoreDamagedError: its rows do not fit the digest.
    """
    table = tables.DatasetRow
    columns = (table.id, table.name, table.rows)
    row = connection.execute(select(*columns).where(table.digest == digest)).first()
    if row is None:
        return None
    try:
        dataset = unpack(bytes(row.rows), row.name)
        if dataset.digest != digest:
            raise DatasetError("its rows do not fit its digest")
    except DatasetError as error:
        raise StoreDamagedError(f"dataset {row.id}: rows: {error}") from None
    return dataset


def stored_datasets(store: Store) -> dict[str, str]:
    """Descriptions of all datasets with name, task and size, by digest, newest first."""
    table = tables.DatasetRow
    columns = (table.digest, table.name, table.task, table.row_count)
    rows = store.rows(select(*columns).order_by(table.id.desc()))
    what = {row.task: "states" if row.task == StoredAutomaton.task else "rows" for row in rows}
    return {
        row.digest: f"{row.name} (task = {row.task}, {row.row_count:,} {what[row.task]})"
        for row in rows
    }


def names_of_datasets(connection: Connection) -> dict[str, str]:
    """Unique names of datasets, by digest."""
    query = select(tables.DatasetRow.digest, tables.DatasetRow.name)
    return call_datasets(dict(connection.execute(query).all()))


def store_dataset(connection: Connection, dataset: Content) -> int:
    """Stores a dataset unless it exists, and returns its id. A stored name is not changed."""
    table = tables.DatasetRow
    query = select(table.id).where(table.digest == dataset.digest)
    known = connection.scalar(query)
    if known is None:
        row = {x: getattr(dataset, x) for x in ("digest", "name", "task")}
        row |= {"row_count": len(dataset), "rows": dataset.packed, "created_at": now()}
        insert_new(connection, table, [row])
        known = connection.scalars(query).one()
    return known


def copy_datasets(source: Connection, target: Connection) -> None:
    """Adds the datasets of another database, except damaged ones."""
    table = tables.DatasetRow
    for row in source.execute(select(inspect(table).local_table).order_by(table.id)).mappings():
        with suppress(StoreDamagedError):
            load_dataset(source, row["digest"])
            insert_new(target, table, [{x: y for x, y in row.items() if x != "id"}])


# The strings of test sets: each stored once, however many runs are tested on it.


def stored_test_set(connection: Connection, test_set_id: int) -> TestSet:
    """The stored strings of a test set; empty before they are stored."""
    names = ("string", "length", "label", "occurrences", "target", "drawn")
    table = tables.TestString
    query = select(*(getattr(table, name) for name in names))
    ordered = query.where(table.test_set_id == test_set_id).order_by(table.number)
    rows = fetch(connection, ordered)[1]
    texts, lengths, labels, times, targets, drawn = (
        zip(*rows, strict=True) if rows else [()] * len(names)
    )
    length, occurrences = (np.array(x, dtype=np.int64) for x in (lengths, times))
    if None in labels or any(target is not None for target in targets):
        outputs = [str(x) for x in targets]
        return TestSet(texts, length, None, occurrences, outputs, drawn)
    bits = np.array(labels, dtype=np.int64) > 0
    return TestSet(texts, length, bits, occurrences, None, drawn)


def are_tested(config: RunConfig, test: TestSet) -> Bool[np.ndarray, " string"]:
    """The mask of the strings of a test set that a configuration's models are tested on.

    The others, in transductions with their targets, are longer than the models can read. All are
    tested where the task is not known here.
    """
    every = np.ones(len(test.texts), dtype=bool)
    tokenizer = tokenizer_of(config)
    if tokenizer is None or (end := longest_readable(resolve(config).network)) is None:
        return every
    read = test.lengths
    # `SEP` separates input and target, where the target is read.
    separators = resolve(config).kind.prompt_length(0)
    if separators and test.targets is not None:
        counts = [sum(n for _, n in tokenizer.pieces(target)) for target in test.targets]
        read = read + separators + np.array(counts, dtype=np.int64)
    return np.asarray(read <= end)


def missing_test_set(store: Store, config: RunConfig) -> TestSet | None:
    """Draws the strings of a configuration's test set; None if they are stored already.

    Called before a transaction, which would block others while they are drawn.
    """
    with store.read() as connection:
        if _digest(connection, config) is not None:
            return None
    # Imported where it is used: a process that only hands out groups tests nothing.
    from seqcls.evaluation import drawn_test_set

    return drawn_test_set(resolve(config))


def store_test_set(connection: Connection, config: RunConfig, drawn: TestSet | None) -> str | None:
    """Stores a test set's strings, unless another process has stored them meanwhile.

    Returns:
        The digest of the stored strings.
    """
    stored = _digest(connection, config)
    if stored is not None or drawn is None:
        return stored
    put_test_strings(connection, test_set_key(config), drawn)
    return _digest(connection, config)


def put_test_strings(connection: Connection, key: str, drawn: TestSet) -> None:
    """Stores the strings of the test set of this key, unless it has some."""
    table = tables.TestSetRow
    # First, so that of two processes that store them one waits here, then finds them stored.
    missing = update(table).where(table.key == key, table.digest.is_(None))
    returned = missing.values(digest=drawn.digest).returning(table.id)
    test_set_id = connection.scalars(returned).one_or_none()
    if test_set_id is None:
        return
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
    # Numbers, by which errors name strings, sort them as text.
    numbered = [(test_set_id, number, *row) for number, row in enumerate(rows)]
    insert_rows(connection, tables.TestString, numbered)


def _digest(connection: Connection, config: RunConfig) -> str | None:
    query = select(tables.TestSetRow.digest).where(tables.TestSetRow.key == test_set_key(config))
    return connection.scalars(query).one_or_none()
