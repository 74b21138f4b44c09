"""What of a database of the schema 0003 does not fit the digests that were stored with it.

Asked in SQL that is written out: the program's classes know the tables as they are now.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection

from seqcls.results import Verdict
from seqcls.testset import TestSet
from sweeps.results.digest import COLUMNS, RESULT_COLUMNS, Columns, run_digest, verdict_digest
from sweeps.store.schema.packing import NO_ERRORS, unpacked

RUNS_AT_ONCE = 500
"""Results of so many runs are held in memory at a time."""

_VERDICT = "max_length, unit, inputs, false_positives, false_negatives, shortest_error"
_TABLES = {
    "epoch": ", ".join(COLUMNS["epoch"]),
    "length_score": ", ".join(COLUMNS["length_score"]),
    "error_pack": "numbers, logits",
    "checkpoint": "epoch, weights",
    "verdict": f"{_VERDICT}, digest",
}
_RUNS = (
    f"SELECT run.id, model_seed, run.digest, verdict_digest, {', '.join(RESULT_COLUMNS)}, "
    "config.key AS config_key, test_set.digest AS test_set FROM run "
    "LEFT JOIN config ON config.id = config_id LEFT JOIN test_set ON test_set.id = test_set_id "
    "WHERE run.state = 'done' ORDER BY run.id"
)

Rows = Sequence[tuple[Any, ...]]


def misfits(connection: Connection) -> Iterator[str]:
    """Test sets, finished runs and exhaustive checks that do not fit their digests, a line each."""
    yield from _test_sets(connection)
    runs = [dict(row) for row in connection.exec_driver_sql(_RUNS).mappings()]
    for start in range(0, len(runs), RUNS_AT_ONCE):
        some = runs[start : start + RUNS_AT_ONCE]
        rows = {table: _by_run(connection, table, some) for table in _TABLES}
        for run in some:
            results = {table: by_run.get(run["id"], []) for table, by_run in rows.items()}
            what = f"run {run['id']} (model seed {run['model_seed']})"
            if _digest(run, results) != run["digest"]:
                yield what
            if not _is_checked(run, results["verdict"]):
                yield f"{what}: its exhaustive check"


def _test_sets(connection: Connection) -> Iterator[str]:
    known = "SELECT id, digest FROM test_set WHERE digest IS NOT NULL ORDER BY id"
    for test_set_id, digest in connection.exec_driver_sql(known).all():
        strings = (
            "SELECT string, length, label, occurrences FROM test_string "
            f"WHERE test_set_id = {test_set_id} ORDER BY number"
        )
        rows = connection.exec_driver_sql(strings).all()
        texts, *columns = zip(*rows, strict=True) if rows else ((),) * 4
        lengths, labels, occurrences = (np.array(column, dtype=np.int64) for column in columns)
        if TestSet(texts, lengths, labels > 0, occurrences).digest != digest:
            yield f"test set {test_set_id}"


def _by_run(
    connection: Connection, table: str, runs: Sequence[Mapping[str, Any]]
) -> dict[int, Rows]:
    first, last = runs[0]["id"], runs[-1]["id"]
    query = (
        f"SELECT run_id, {_TABLES[table]} FROM {table} "
        f"WHERE run_id BETWEEN {first} AND {last} ORDER BY 1, 2"
    )
    by_run: dict[int, list[tuple[Any, ...]]] = {}
    for run_id, *row in connection.exec_driver_sql(query):
        by_run.setdefault(run_id, []).append(tuple(row))
    return dict(by_run)


def _digest(run: Mapping[str, Any], rows: Mapping[str, Rows]) -> str | None:
    """The digest that these rows have; None if a value cannot be hashed."""
    try:
        tables = {table: _columns(table, rows[table]) for table in ("epoch", "length_score")}
        errors = unpacked(*rows["error_pack"][0]) if rows["error_pack"] else NO_ERRORS
        tables["string_error"] = {"number": errors.numbers, "logit": errors.logits}
        weights: dict[int, bytes] = dict(rows["checkpoint"])
        key, seed, test_set = run["config_key"], run["model_seed"], str(run["test_set"])
        return run_digest(key, seed, run, tables, weights, test_set)
    except (ValueError, TypeError, OverflowError):
        return None


def _columns(table: str, rows: Rows) -> Columns:
    """The columns of rows.

    Raises:
        TypeError: a value is not of its column's type.
    """
    packed = COLUMNS[table]
    values = zip(*rows, strict=True) if rows else ((),) * len(packed)
    columns = {}
    for (name, kind), column in zip(packed.items(), values, strict=True):
        if not set(map(type, column)) <= ({int} if kind == "<i8" else {int, float}):
            raise TypeError(f"{table}: {name} is not a number in every row")
        columns[name] = np.array(column, dtype=kind)
    return columns


def _is_checked(run: Mapping[str, Any], rows: Rows) -> bool:
    """Whether an exhaustive check is the one that was stored, or there is none."""
    if not rows:
        return run["verdict_digest"] is None
    ((*verdict, digest),) = rows
    made = verdict_digest(run["config_key"], run["model_seed"], Verdict(*verdict))
    return bool(made == digest == run["verdict_digest"])
