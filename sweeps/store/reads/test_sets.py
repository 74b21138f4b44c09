"""Reads of stored strings: datasets, and the strings of test sets."""

import numpy as np
from jaxtyping import Bool
from sqlalchemy import Connection, select

from seqcls.config import RunConfig
from seqcls.errors import DatasetError, StoreDamagedError
from seqcls.fields import TestSet
from seqcls.models.positions import longest_readable
from seqcls.problem import resolve, tokenizer_of
from seqcls.strings.automata import StoredAutomaton
from seqcls.strings.datasets import Content, unpack
from sweeps.naming import call_datasets
from sweeps.store import tables
from sweeps.store.database import Store
from sweeps.store.statements import fetch


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
