"""Brings a database of the version before into a new one; the old one is only read."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, insert, text

from seqcls.errors import StoreError, StoreVersionError
from seqcls.text import canonical_json
from sweeps.processes import OnProgress
from sweeps.records import LENGTH_FIELDS, rows_text, texts_of_floats
from sweeps.results import RANGE_COLUMNS, run_digest
from sweeps.store.databases.engine import Store
from sweeps.store.databases.statements import chunks, insert_rows
from sweeps.store.opening import CONVERTED, locate, open_as_it_is, open_writer
from sweeps.store.tables import Base, Run, Sweep, now

SAME = ("worker", "dataset", "test_set", "test_string", "shortcut", "config")
"""Tables whose rows are as they were, and which runs refer to or nothing does."""

OF_RUNS = ("sweep_run", "checkpoint", "verdict", "proof", "cause", "perturbation", "failure")
"""The same of tables that refer to runs."""

DIGESTED = ("verdict", "proof")
"""Their digests began with a version."""

RUN_COLUMNS = Run.__table__.columns.keys()

_NEW = ("lengths", "losses", "errors")

Rows = list[tuple[Any, ...]]


def convert(old: str, new: str, on_progress: OnProgress | None = None) -> tuple[Store, int]:
    """Copies everything into a new database, with its ids; how many runs that were.

    Results that did not fit their digest do not fit it afterwards either: `verify` names them.

    Raises:
        StoreVersionError: the old one is not of the version before.
        StoreError: the new one is there already, or either cannot be opened.
    """
    source = open_as_it_is(locate(old))
    with source.begin() as theirs:
        _check_version(source.name, theirs)
        target = open_writer(new)
        with target.change("configs", "members") as ours:
            if ours.scalar(text("SELECT count(*) FROM sweep")):
                raise StoreError(f"{target.name!r} has sweeps already; name a new database")
            for name in SAME:
                _copy(theirs, ours, name)
            _copy_sweeps(theirs, ours)
            number = _copy_runs(theirs, ours, on_progress)
            for name in OF_RUNS:
                _copy(theirs, ours, name)
            _count_on(ours)
    return target, number


def _check_version(name: str, theirs: Connection) -> None:
    try:
        version = theirs.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    except Exception as error:
        raise StoreVersionError(f"{name!r} is no database of seqcls; name another") from error
    if version != CONVERTED:
        raise StoreVersionError(
            f"{name!r} is of schema {str(version)[:40]!r}, expected {CONVERTED!r}: only a database "
            "of the version before is converted"
        )


def _copy(theirs: Connection, ours: Connection, name: str) -> None:
    table = Base.metadata.tables[name]
    columns = ", ".join(table.columns.keys())
    rows = theirs.exec_driver_sql(f"SELECT {columns} FROM {name}")
    place = table.columns.keys().index("digest") if name in DIGESTED else None
    mapped = {mapper.class_.__tablename__: mapper.class_ for mapper in Base.registry.mappers}
    for some in rows.partitions(10_000):
        values = [list(row) for row in some]
        if place is not None:
            for row in values:
                row[place] = row[place].removeprefix("v2:")
        insert_rows(ours, mapped[name], values)


def _copy_sweeps(theirs: Connection, ours: Connection) -> None:
    tags: dict[int, list[str]] = {}
    for sweep_id, tag in theirs.exec_driver_sql("SELECT sweep_id, tag FROM sweep_tag ORDER BY tag"):
        tags.setdefault(sweep_id, []).append(tag)
    query = (
        "SELECT id, name, description, spec, created_at, launch_token, state, title, note, "
        "archived_at FROM sweep LEFT JOIN sweep_note ON sweep_id = id ORDER BY id"
    )
    for row in theirs.exec_driver_sql(query).mappings():
        values = {**row, "title": row["title"] or "", "note": row["note"] or ""}
        stopped = now() if values.pop("state") == "stopped" else None
        written = canonical_json(tags.get(row["id"], []))
        ours.execute(insert(Sweep).values(**values, stopped_at=stopped, tags=written))


def _copy_runs(theirs: Connection, ours: Connection, on_progress: OnProgress | None) -> int:
    names = [name for name in RUN_COLUMNS if name not in _NEW]
    ids = [row[0] for row in theirs.exec_driver_sql("SELECT id FROM run ORDER BY id")]
    done = 0
    for some in chunks(ids):
        listed = ", ".join(map(str, some))
        mine = f"SELECT {', '.join(f'run.{name}' for name in names)}, config.key, test_set.digest "
        mine += "FROM run JOIN config ON config.id = config_id LEFT JOIN test_set "
        mine += f"ON test_set.id = test_set_id WHERE run.id IN ({listed}) ORDER BY run.id"
        records = _records(theirs, listed)
        rows = []
        for row in theirs.exec_driver_sql(mine):
            values = dict(zip(names, row, strict=False))
            rows.append(_convert_run(values, str(row[-2]), str(row[-1]), records[values["id"]]))
        insert_rows(ours, Run, [[row.get(name) for name in RUN_COLUMNS] for row in rows])
        done += len(rows)
        if on_progress is not None:
            on_progress(done, len(ids))
    return done


class _Records:
    """What the old tables have of one run."""

    def __init__(self) -> None:
        self.lengths: Rows = []
        self.losses: Rows = []
        self.numbers = self.logits = b""
        self.outputs: str | None = None
        self.weights: dict[int, bytes] = {}


def _records(theirs: Connection, listed: str) -> dict[int, _Records]:
    found = {int(run_id): _Records() for run_id in listed.split(", ")}

    def rows(columns: str, table: str, order: str) -> Iterator[Any]:
        query = f"SELECT run_id, {columns} FROM {table} WHERE run_id IN ({listed})"
        return iter(theirs.exec_driver_sql(f"{query} ORDER BY run_id, {order}"))

    for run_id, *row in rows(", ".join(LENGTH_FIELDS), "length_score", "length"):
        found[run_id].lengths.append(tuple(row))
    for run_id, *row in rows("epoch, train_loss, validation_loss", "epoch", "epoch"):
        found[run_id].losses.append(tuple(row))
    for run_id, numbers, logits in rows("numbers, logits", "error_pack", "run_id"):
        found[run_id].numbers, found[run_id].logits = bytes(numbers), bytes(logits)
    for run_id, outputs in rows("outputs", "output_pack", "run_id"):
        found[run_id].outputs = outputs
    for run_id, epoch, weights in rows("epoch, weights", "checkpoint", "epoch"):
        found[run_id].weights[epoch] = bytes(weights)
    return found


def _convert_run(values: dict[str, Any], key: str, test_set: str, old: _Records) -> dict[str, Any]:
    """A run's new row."""
    if values["verdict_digest"] is not None:
        values["verdict_digest"] = values["verdict_digest"].removeprefix("v2:")
    if old.losses:
        values["losses"] = rows_text(old.losses)
    if values["state"] != "done":
        return values
    fits = values["digest"] == _old_digest(values, key, test_set, old)
    width = len(LENGTH_FIELDS) if any(row[-1] is not None for row in old.lengths) else 7
    values["lengths"] = rows_text(row[:width] for row in old.lengths)
    values["losses"] = rows_text(old.losses)
    values["errors"] = _errors_text(old)
    seed = values["model_seed"]
    values["digest"] = run_digest(key, seed, values, old.weights, test_set) if fits else ""
    return values


def _unpack(old: _Records) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of misclassified strings, and their logits in the precision of the model."""
    parts = np.frombuffer(old.numbers, dtype=np.uint8).reshape(-1, 3).astype(np.int64)
    numbers = (parts[:, 0] << 16) | (parts[:, 1] << 8) | parts[:, 2]
    single = len(old.logits) == 4 * len(numbers)
    logits = np.frombuffer(old.logits, dtype=">f4" if single else ">f8")
    return numbers, logits.astype(np.float32 if single else np.float64)


def _errors_text(old: _Records) -> str:

    numbers, logits = _unpack(old)
    outputs = json.loads(old.outputs or "[]") or [[]] * len(numbers)
    rows = zip(numbers.tolist(), texts_of_floats(logits), outputs, strict=True)
    arrays = (
        f"[{','.join([str(number), logit, *(json.dumps(x, ensure_ascii=False) for x in output)])}]"
        for number, logit, output in rows
    )
    return f"[{','.join(arrays)}]"


# The digest of the version before, by which results that were damaged then are known.

_CELLS = ("tn", "fp", "fn", "tp")
_OUTPUT_COUNTS = ("right_length_given", "edits", "target_tokens")


def _old_digest(values: Mapping[str, Any], key: str, test_set: str, old: _Records) -> str:
    has_cells = all(values[name] is not None for name in _CELLS)
    covered = ["epochs", "best_epoch", "best_validation_loss"]
    covered += [*_CELLS, "solved_length"] if has_cells else ["solved_length", "tested", "wrong"]
    version = "v2" if has_cells else "v3"
    if values["within_from"] == "validation":
        covered += RANGE_COLUMNS
        version = {"v2": "v4", "v3": "v5"}[version]
    weights = sorted((x, hashlib.sha256(blob).hexdigest()) for x, blob in old.weights.items())
    head = {
        "config": key,
        "model_seed": values["model_seed"],
        "run": {name: values[name] for name in covered},
        "checkpoints": weights,
        "test_set": test_set,
    }
    hasher = hashlib.sha256(canonical_json(head).encode())

    def add(table: str, name: str, column: Sequence[Any] | np.ndarray, kind: str) -> None:
        hasher.update(f"{table}.{name} {len(column)}\n".encode())
        hasher.update((np.array(column).astype(kind) + 0).tobytes())

    for place, name in enumerate(("epoch", "train_loss", "validation_loss")):
        add("epoch", name, [row[place] for row in old.losses], "<f8" if place else "<i8")
    by_name = {name: [row[x] for row in old.lengths] for x, name in enumerate(LENGTH_FIELDS)}
    for name in ("length", *(_CELLS if has_cells else ("tested", "wrong"))):
        add("length_score", name, by_name[name], "<i8")
    numbers, logits = _unpack(old)
    add("string_error", "number", numbers, "<i8")
    add("string_error", "logit", logits.astype(np.float64), "<f8")
    if old.lengths and old.lengths[0][-1] is not None:
        for name in _OUTPUT_COUNTS:
            add("length_score", name, by_name[name], "<i8")
        hasher.update(f"output_pack {canonical_json(json.loads(old.outputs or '[]'))}\n".encode())
    return f"{version}:{hasher.hexdigest()}"


def _count_on(ours: Connection) -> None:
    """Has a server give ids beyond those that were copied; SQLite does by itself."""
    if ours.dialect.name != "postgresql":
        return
    for table in Base.metadata.sorted_tables:
        if "id" in table.columns and table.name != "revision":
            following = f"(SELECT coalesce(max(id), 0) + 1 FROM {table.name})"
            ours.exec_driver_sql(
                f"SELECT setval(pg_get_serial_sequence('{table.name}', 'id'), {following}, false)"
            )
