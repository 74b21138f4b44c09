"""What the tables before the schema 0003 held, in the tables of 0003.

Each run's digest is verified before it gets a new one. A run whose digest does not hold keeps it,
and with it the mark of being damaged: what of its results a strict table can hold is kept too.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from typing import Any

import numpy as np
from sqlalchemy import Connection, text

from seqcls.canonical import canonical_json
from seqcls.config import RunConfig, default_fields
from seqcls.evaluation import drawn_test_set
from seqcls.problem import resolve
from seqcls.results import StringErrors, Verdict
from seqcls.testset import TestSet, test_set_json, test_set_key
from sweeps.results.digest import COLUMNS, run_digest, verdict_digest
from sweeps.store.migrations import first_digest
from sweeps.store.schema.packing import packed

_STATES = ("queued", "running", "done", "failed")


def carry_over(connection: Connection) -> list[str]:
    """Copies all rows; returns what is damaged, a line each."""
    _copy(connection, "sweep", "id, name, description, spec, created_at, state, launch_token")
    _copy(connection, "worker", "id, host, pid, started_at, heartbeat_at, ended_at")
    configs = _configs(connection)
    damaged = _Runs(connection, configs).carry_over()
    _copy(connection, "sweep_run", "sweep_id, run_id")
    _copy(connection, "failure", "run_id, attempt, at, reason")
    if connection.dialect.name == "postgresql":
        for table in ("sweep", "worker", "config", "run", "test_set"):
            last = f"(SELECT coalesce(max(id), 0) + 1 FROM {table})"
            connection.exec_driver_sql(
                f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), {last}, false)"
            )
    return damaged


def _copy(connection: Connection, table: str, columns: str) -> None:
    connection.exec_driver_sql(
        f"INSERT INTO {table} ({columns}) SELECT {columns} FROM old_{table} ORDER BY 1"
    )


def _insert(connection: Connection, table: str, columns: str, rows: Iterable[Any]) -> None:
    names = columns.split(", ")
    values = [dict(zip(names, row, strict=True)) for row in rows]
    if values:
        marks = ", ".join(f":{name}" for name in names)
        connection.execute(text(f"INSERT INTO {table} ({columns}) VALUES ({marks})"), values)


def _configs(connection: Connection) -> dict[int, tuple[str, RunConfig | None]]:
    """Copies configurations with every field, and makes their test sets: by id, key and value."""
    configs: dict[int, tuple[str, RunConfig | None]] = {}
    test_sets: dict[str, int] = {}
    rows = connection.exec_driver_sql("SELECT id, key, json FROM old_config ORDER BY id").all()
    for config_id, key, stored in rows:
        config = _config(key, stored)
        configs[config_id] = (key, config)
        if config is None:
            kept = stored if isinstance(_parsed(stored), dict) else "{}"
            row: tuple[Any, ...] = (config_id, key, kept, None)
        else:
            set_key = test_set_key(config)
            if set_key not in test_sets:
                test_sets[set_key] = len(test_sets) + 1
                fields = canonical_json(test_set_json(config))
                _insert(
                    connection, "test_set", "id, key, json", [(test_sets[set_key], set_key, fields)]
                )
            every = canonical_json({**default_fields(), **json.loads(stored)})
            row = (config_id, key, every, test_sets[set_key])
        _insert(connection, "config", "id, key, json, test_set_id", [row])
    return configs


def _config(key: str, stored: str) -> RunConfig | None:
    """The configuration; None where what is stored is none, or does not fit its key."""
    try:
        config = RunConfig.from_mapping(json.loads(stored))
    except Exception:
        return None
    return config if config.key == key else None


def _parsed(stored: Any) -> Any:
    try:
        return json.loads(stored)
    except (TypeError, ValueError, RecursionError):
        return None


class _Runs:
    """Carries over runs with their results."""

    def __init__(
        self, connection: Connection, configs: dict[int, tuple[str, RunConfig | None]]
    ) -> None:
        self._connection = connection
        self._configs = configs
        self._sets: dict[str, TestSet] = {}

    def carry_over(self) -> list[str]:
        ids = self._connection.exec_driver_sql("SELECT id FROM old_run ORDER BY id").scalars().all()
        return [said for run_id in ids for said in self._run(run_id)]

    def _run(self, run_id: int) -> list[str]:
        """Carries one run over; what is damaged of it."""
        ((_, *values),) = self._rows("run", ("id", *_RUN), run_id)
        run = dict(zip(_RUN, values, strict=True))
        rows = {table: self._rows(table, columns, run_id) for table, columns in _OLD.items()}
        key, config = self._configs.get(run["config_id"], ("", None))
        test_set = self._test_set(config) if run["state"] == "done" and config else None
        errors = _numbered(rows["string_error"], test_set)
        whole = run["state"] in _STATES
        if run["state"] == "done":
            whole = first_digest.of_run(key, run, rows) == run["digest"]
            whole = whole and test_set is not None and len(errors) == len(rows["string_error"])
            if whole and test_set is not None:
                run["digest"] = _new_digest(key, run, rows, errors, test_set)
        self._insert_run(run_id, run)
        self._insert_results(run_id, rows, errors)
        checked = self._verdict(run_id, key, run["model_seed"], rows["verdict"])
        what = f"run {run_id} (model seed {run['model_seed']})"
        return [what] * (not whole) + [f"{what}: its exhaustive check"] * (not checked)

    def _rows(self, table: str, columns: Sequence[str], run_id: int) -> list[tuple[Any, ...]]:
        key = "id" if table == "run" else "run_id"
        query = f"SELECT {', '.join(columns)} FROM old_{table} WHERE {key} = :run_id ORDER BY 1"
        rows = self._connection.execute(text(query), {"run_id": run_id})
        return [tuple(bytes(x) if isinstance(x, memoryview) else x for x in row) for row in rows]

    def _test_set(self, config: RunConfig) -> TestSet:
        """The strings of a configuration's test set, which are stored when first asked for."""
        key = test_set_key(config)
        if key not in self._sets:
            drawn = self._sets[key] = drawn_test_set(resolve(config))
            query = text("UPDATE test_set SET digest = :digest WHERE key = :key RETURNING id")
            values = {"digest": drawn.digest, "key": key}
            test_set_id = self._connection.execute(query, values).scalar_one()
            columns = "test_set_id, number, string, length, label, occurrences"
            rows = (
                (test_set_id, number, string, int(length), int(label), int(occurrences))
                for number, (string, length, label, occurrences) in enumerate(
                    zip(drawn.texts, drawn.lengths, drawn.labels, drawn.occurrences, strict=True)
                )
            )
            _insert(self._connection, "test_string", columns, rows)
        return self._sets[key]

    def _insert_run(self, run_id: int, run: dict[str, Any]) -> None:
        new = dict(run)
        name, _, reason = (run["engine"] or "").partition(": ")
        new |= {"engine": name or None, "engine_reason": reason or None}
        for column in _COUNTS:
            new[column] = run[column] if _is_count(run[column]) else None
        for column in ("best_validation_loss", "train_seconds"):
            new[column] = run[column] if isinstance(run[column], float | int) else None
        if run["state"] not in _STATES:
            new |= {"state": "failed", "error": f"its state was {run['state']!r}"}
        _insert(self._connection, "run", ", ".join(["id", *new]), [(run_id, *new.values())])

    def _insert_results(
        self, run_id: int, rows: dict[str, list[tuple[Any, ...]]], errors: StringErrors
    ) -> None:
        for table in ("epoch", "length_score", "checkpoint"):
            kept = [(run_id, *row) for row in rows[table] if _fits(table, row)]
            _insert(self._connection, table, ", ".join(["run_id", *_OLD[table]]), kept)
        if len(errors):
            row = (run_id, *packed(errors))
            _insert(self._connection, "error_pack", "run_id, numbers, logits", [row])

    def _verdict(self, run_id: int, key: str, model_seed: int, rows: Sequence[Any]) -> bool:
        """Carries a check over; whether it was whole, or there was none."""
        for max_length, multisets, positives, negatives, shortest, digest in rows:
            if not all(map(_is_count, (max_length, multisets, positives, negatives))):
                return False
            verdict = Verdict(max_length, "multiset", multisets, positives, negatives, shortest)
            old = first_digest.of_verdict(key, model_seed, verdict)
            new = verdict_digest(key, model_seed, verdict) if old == digest else digest
            row = (run_id, *asdict(verdict).values(), new)
            _insert(self._connection, "verdict", ", ".join(["run_id", *_VERDICT]), [row])
            known = text("UPDATE run SET verdict_digest = :digest WHERE id = :run_id")
            self._connection.execute(known, {"digest": new, "run_id": run_id})
            return bool(old == digest)
        return True


_RUN = (
    *("config_id", "model_seed", "state", "attempt", "failures", "worker_id", "started_at"),
    *("finished_at", "error", "epochs", "best_epoch", "best_validation_loss", "tn", "fp", "fn"),
    *("tp", "solved_length", "engine", "train_seconds", "digest"),
)
_COUNTS = ("epochs", "best_epoch", "tn", "fp", "fn", "tp", "solved_length")
_OLD = {
    "epoch": ("epoch", "train_loss", "validation_loss"),
    "length_score": ("length", "tn", "fp", "fn", "tp"),
    "string_error": ("string", "length", "label", "logit", "occurrences"),
    "checkpoint": ("epoch", "weights"),
    "verdict": (
        *("max_length", "multisets", "false_positives", "false_negatives", "shortest_error"),
        "digest",
    ),
}
_VERDICT = (*(field.name for field in fields(Verdict)), "digest")


def _numbered(rows: Sequence[tuple[Any, ...]], test_set: TestSet | None) -> StringErrors:
    """The errors that are strings of the test set, by their numbers in it."""
    if test_set is None:
        return StringErrors(np.empty(0, dtype=np.int64), np.empty(0))
    numbers = {text: number for number, text in enumerate(test_set.texts)}
    by_number = {}
    for string, length, label, logit, occurrences in rows:
        number = numbers.get(string)
        if number is not None and isinstance(logit, float):
            of_set = (test_set.lengths, test_set.labels, test_set.occurrences)
            if (length, label, occurrences) == tuple(int(column[number]) for column in of_set):
                by_number[number] = logit
    ordered = sorted(by_number)
    logits = np.array([by_number[number] for number in ordered], dtype=np.float64)
    return StringErrors(np.array(ordered, dtype=np.int64), logits)


def _new_digest(
    key: str,
    run: dict[str, Any],
    rows: dict[str, list[tuple[Any, ...]]],
    errors: StringErrors,
    test_set: TestSet,
) -> str:
    tables: dict[str, dict[str, np.ndarray]] = {
        table: dict(zip(COLUMNS[table], np.array(sorted(rows[table]), dtype=float).T, strict=True))
        for table in ("epoch", "length_score")
    }
    tables["string_error"] = {"number": errors.numbers, "logit": errors.logits}
    weights: dict[int, bytes] = dict(rows["checkpoint"])
    return run_digest(key, run["model_seed"], run, tables, weights, test_set.digest)


def _fits(table: str, row: Sequence[Any]) -> bool:
    """Whether a strict table can hold a row."""
    if table == "length_score":
        return all(map(_is_count, row))
    of_type = bytes if table == "checkpoint" else float
    return _is_count(row[0]) and all(isinstance(value, of_type) for value in row[1:])


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and value >= 0
