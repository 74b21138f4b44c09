"""What exports read: results as Arrow tables, and a run's answer for every string of its test."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Int64
from sqlalchemy import Connection, Row, select

from seqcls.errors import StoreDamagedError
from seqcls.fields import TestSet
from seqcls.results import StringErrors
from sweeps.results import Output
from sweeps.store import tables
from sweeps.store.databases.engine import Store
from sweeps.store.databases.statements import fetched, plain_rows
from sweeps.store.reads.errors import (
    OUTPUT_COLUMNS,
    STRING_COLUMNS,
    errors_in,
    one_each,
    outputs_of,
    packs_of,
)
from sweeps.store.reads.queries import run_config
from sweeps.store.tables import Config, LengthScore, Run, TestString
from sweeps.store.writes.stored import StoredRun, read_runs
from sweeps.store.writes.test_sets import are_tested, stored_test_set


def answers_of(store: Store, run_id: int) -> Iterator[dict[str, Any]]:
    """A row for each distinct test string: doc_id, input, target, prediction, correct.

    `doc_id` is the string's number in its test set. Strings that a model has no places for were
    not tested, and are left out. A prediction is None where the model computed NaN.
    """
    of_config = tables.TestSetRow.id == Config.test_set_id
    query = (
        select(tables.TestSetRow.id).join(Config, of_config).join(Run, Run.config_id == Config.id)
    )
    with store.begin() as connection:
        test = stored_test_set(connection, connection.scalars(query.where(Run.id == run_id)).one())
        (run,) = read_runs(connection, [run_id])
    errors, outputs = run.errors(), run.outputs()
    wrong = {number: place for place, number in enumerate(errors.numbers.tolist())}
    # Those who import answers need not know how sure of them the model was.
    unanswered = np.isnan(errors.logits) & (not run_config(store, run_id).imported)
    tested = set(_tested(store, run_id, test, run).tolist()) | set(wrong)
    for number, text in enumerate(test.texts):
        if number not in tested:
            continue
        target: Any = test.targets[number] if test.targets is not None else None
        if test.bits is not None:
            target = int(test.bits[number])
        prediction = target
        if number in wrong:
            # Of kinds whose answers are not stored nothing is said.
            prediction = None if test.bits is None else 1 - target
            if outputs:
                prediction = outputs[wrong[number]][0]
            if unanswered[wrong[number]]:
                prediction = None
        yield {
            "doc_id": number,
            "input": text,
            "target": target,
            "prediction": prediction,
            "correct": number not in wrong,
        }


def _tested(store: Store, run_id: int, test: TestSet, run: StoredRun) -> Int64[np.ndarray, " row"]:
    """The numbers of the strings that a run was tested on."""
    scores = run.columns["length_score"]
    count = dict(zip(scores["length"].tolist(), scores["tested"].tolist(), strict=True))
    rows = np.flatnonzero(are_tested(run_config(store, run_id), test))
    times = np.bincount(test.lengths[rows], test.occurrences[rows])
    # Of a length of which fewer were tested, as its task is not known here, nobody knows which.
    known = [count.get(length, 0) == times[length] for length in test.lengths[rows].tolist()]
    return np.asarray(rows[np.array(known, dtype=bool)])


# Results as Arrow tables, for files of millions of rows.

# Named types, since a part without rows says nothing of them.
LENGTHS = pa.schema([(column.name, pa.int64()) for column in LengthScore.__table__.columns])
ERRORS = pa.schema(
    [
        ("run_id", pa.int64()),
        ("string", pa.string()),
        ("length", pa.int64()),
        ("label", pa.int64()),
        ("logit", pa.float64()),
        ("occurrences", pa.int64()),
        ("target", pa.string()),
        ("output", pa.string()),
        ("first_wrong", pa.int64()),
        ("log_probability", pa.float64()),
        ("error_kind", pa.string()),
    ]
)
_STRINGS, _OUTPUTS = (
    pa.schema([ERRORS.field(name) for name in names]) for names in (STRING_COLUMNS, OUTPUT_COLUMNS)
)


def lengths_of(connection: Connection, run_ids: Sequence[int]) -> pa.Table:
    """These runs' results at every length, in the columns of `LENGTHS`."""
    rows = plain_rows(connection, LengthScore, LENGTHS.names, run_ids)
    columns: Sequence[Sequence[int | None]] = [[]] * len(LENGTHS.names)
    if rows:
        columns = list(zip(*rows, strict=True))
    return pa.table([pa.array(column, type=pa.int64()) for column in columns], schema=LENGTHS)


class TestStrings:
    """The strings of test sets, each read once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Int64[np.ndarray, " number"], pa.Table]] = {}

    def of(
        self, connection: Connection, test_set_id: int, numbers: Int64[np.ndarray, " row"]
    ) -> pa.Table:
        """The strings of these numbers, in the columns of `_STRINGS`.

        Raises:
            StoreDamagedError: the test set has no such string.
        """
        if test_set_id not in self._known:
            self._known[test_set_id] = _read(connection, test_set_id)
        known, table = self._known[test_set_id]
        places = np.searchsorted(known, numbers)
        if len(numbers) and (places.max() >= len(known) or (known[places] != numbers).any()):
            raise StoreDamagedError(
                f"test set {test_set_id} lacks strings that runs misclassified: the database is "
                "damaged; `seqcls verify` says what is"
            )
        return table.take(pa.array(places))


def errors_of(connection: Connection, run_ids: Sequence[int], strings: TestStrings) -> pa.Table:
    """Misclassified strings of these runs, by run and string, in the columns of `ERRORS`.

    Raises:
        StoreDamagedError: a pack is torn, or a test set lacks strings.
    """
    rows = packs_of(connection, run_ids)
    parts = []
    start = 0
    for end in range(1, len(rows) + 1):
        # Runs that follow each other mostly have one test set, and are looked up at once.
        if end == len(rows) or rows[end].test_set_id != rows[start].test_set_id:
            parts.append(_of_one_set(connection, rows[start:end], strings))
            start = end
    return pa.concat_tables([ERRORS.empty_table(), *parts])


def _of_one_set(
    connection: Connection, rows: Sequence[Row[int, int | None, bytes, bytes]], strings: TestStrings
) -> pa.Table:
    errors = {
        run_id: errors_in(run_id, bytes(numbers), bytes(logits))
        for run_id, _, numbers, logits in rows
    }
    numbers = np.concatenate([run_errors.numbers for run_errors in errors.values()])
    texts = strings.of(connection, int(rows[0][1] or 0), numbers)
    outputs = _outputs(outputs_of(connection, list(errors)), errors)
    columns = {
        **{name: texts[name] for name in _STRINGS.names},
        **{name: outputs[name] for name in OUTPUT_COLUMNS},
        "run_id": np.repeat(list(errors), list(map(len, errors.values()))),
        "logit": np.concatenate([run_errors.logits for run_errors in errors.values()]),
    }
    return pa.table([columns[name] for name in ERRORS.names], schema=ERRORS)


def _outputs(given: Mapping[int, list[Output]], errors: Mapping[int, StringErrors]) -> pa.Table:
    """What runs gave for their errors, in `OUTPUT_COLUMNS`; nothing of those of other kinds.

    Raises:
        StoreDamagedError: a run has not one output for each error.
    """
    if not given:
        number = sum(map(len, errors.values()))
        return pa.table([pa.nulls(number, kind) for kind in _OUTPUTS.types], schema=_OUTPUTS)
    rows: list[tuple[Any, ...]] = []
    for run_id, run_errors in errors.items():
        if run_id not in given:
            rows += [(None,) * len(OUTPUT_COLUMNS)] * len(run_errors)
            continue
        outputs = one_each(run_id, given[run_id], len(run_errors))
        for (text, place, error_kind), logit in zip(outputs, run_errors.logits, strict=True):
            rows.append((text, place, float(logit), error_kind))
    columns = zip(*rows, strict=True)
    arrays = [pa.array(x, type=kind) for x, kind in zip(columns, _OUTPUTS.types, strict=True)]
    return pa.table(arrays, schema=_OUTPUTS)


def _read(
    connection: Connection, test_set_id: int
) -> tuple[Int64[np.ndarray, " number"], pa.Table]:
    columns = [getattr(TestString, name) for name in _STRINGS.names]
    query = select(TestString.number, *columns).where(TestString.test_set_id == test_set_id)
    _, rows = fetched(connection, query.order_by(TestString.number))
    numbers, *values = zip(*rows, strict=True) if rows else ((),) * (1 + len(columns))
    arrays = [
        pa.array(column, type=kind) for column, kind in zip(values, _STRINGS.types, strict=True)
    ]
    return np.array(numbers, dtype=np.int64), pa.table(arrays, schema=_STRINGS)
