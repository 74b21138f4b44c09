"""Conversion of a database of an earlier version into a new one; the old one is only read."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import Connection, insert, text

from seqcls.config import RunConfig
from seqcls.errors import StoreDamagedError, StoreError, StoreVersionError
from seqcls.interpretability.mechanisms import (
    BEYOND,
    CAUSES,
    DILUTION,
    NOT_LEARNED,
    ONE_LETTER,
    ROUNDING,
)
from seqcls.results import Confusion
from seqcls.text import canonical_json
from seqcls.weights import num_parameters
from sweeps.naming import name_apart, name_configurations, name_with_change
from sweeps.processes import OnProgress
from sweeps.records import LENGTH_FIELDS, OUTPUT_COUNTS, rows_text, texts_of_floats
from sweeps.results import (
    FINDINGS,
    LEARNED_AT,
    RANGE_COLUMNS,
    RECORDS,
    finding_digest,
    run_digest,
    shortcut_digest,
)
from sweeps.store.database import Store
from sweeps.store.opening import OLDER, locate, open_as_it_is, open_writer
from sweeps.store.reads.stored import config_of
from sweeps.store.statements import chunks, insert_rows
from sweeps.store.tables import (
    Base,
    Checkpoint,
    Config,
    DatasetRow,
    Finding,
    Run,
    ShortcutRow,
    Sweep,
    SweepRun,
    TestSetRow,
    TestString,
    Worker,
    now,
)
from sweeps.store.test_sets import names_of_datasets

SCATTERED = "0005"
"""The schema in which a run is spread over many tables; since then it is one row."""

NAMELESS = "0007"
"""The schema that lacks the names of configurations alone."""

RUN_COLUMNS = Run.__table__.columns.keys()

Rows = list[tuple[Any, ...]]


def convert(
    old: str | Path, new: str | Path, on_progress: OnProgress | None = None
) -> tuple[Store, int]:
    """Copies a database of an earlier version into a new one; returns it and its number of runs.

    Results that did not fit their digest do not fit it afterwards either: `verify` names them.


    Raises:
        StoreVersionError: the old one is of a version that cannot be converted.
        StoreError: the new one exists already, or either cannot be opened.
    """
    source = open_as_it_is(locate(str(old)))
    with source.read() as theirs:
        version = _read_version(source.name, theirs)
        target = open_writer(new)
        with target.write("configs", "members") as ours:
            if ours.scalar(text("SELECT count(*) FROM sweep")):
                raise StoreError(f"{target.name!r} has sweeps already; name a new database")
            for table in (Worker, DatasetRow, TestSetRow, TestString):
                _copy(theirs, ours, table)
            _copy_configs(theirs, ours)
            if version == SCATTERED:
                _copy_sweeps(theirs, ours)
                _copy_runs(theirs, ours, on_progress)
            else:
                _copy(theirs, ours, Sweep)
                _copy(theirs, ours, Run)
            _copy(theirs, ours, SweepRun)
            _copy(theirs, ours, Checkpoint)
            if version == NAMELESS:
                _copy(theirs, ours, ShortcutRow)
                _copy(theirs, ours, Finding)
            else:
                _copy_shortcuts(theirs, ours)
                _copy_findings(theirs, ours)
            _count_on(ours)
            number = int(ours.scalar(text("SELECT count(*) FROM run")) or 0)
    return target, number


def _read_version(name: str, theirs: Connection) -> str:
    try:
        version = theirs.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    except Exception as error:
        raise StoreVersionError(f"{name!r} is not a seqcls database; name another") from error
    if version not in OLDER:
        known = " or ".join(map(repr, OLDER))
        raise StoreVersionError(
            f"{name!r} is of schema {str(version)[:40]!r}, expected {known}: only a database of "
            "the version before is converted"
        )
    return str(version)


def _copy(theirs: Connection, ours: Connection, table: type[Base]) -> None:
    columns = ", ".join(table.__table__.columns.keys())
    rows = theirs.exec_driver_sql(f"SELECT {columns} FROM {table.__tablename__}")
    for some in rows.partitions(10_000):
        insert_rows(ours, table, some)


# Names of configurations, which earlier versions computed from their differences.

_TRIAL = re.compile(r".+=.* for ([0-9a-f]{8})")
"""The name of a sweep that tries a remedy, with the first digits of the configuration's key."""


def _copy_configs(theirs: Connection, ours: Connection) -> None:
    query = "SELECT id, key, json, test_set_id FROM config ORDER BY id"
    rows = theirs.exec_driver_sql(query).all()
    names, numbers = _names(theirs, rows), _numbers_of_parameters(theirs)
    for config_id, key, written, test_set_id in rows:
        row = config_id, key, names[config_id], numbers.get(config_id), written, test_set_id
        insert_rows(ours, Config, [row])


def _names(theirs: Connection, rows: Sequence[Any]) -> dict[int, str]:
    """Names by id: computed from differences, and for remedies from the change, where known."""
    configs = {}
    for row in rows:
        # Configurations that cannot be read are named by number.
        with suppress(StoreDamagedError):
            configs[row.id] = config_of(row.id, row.json)
    sweeps = theirs.exec_driver_sql("SELECT name FROM sweep WHERE description LIKE 'Against %'")
    begun = {match[1] for (name,) in sweeps if (match := _TRIAL.fullmatch(name))}
    # The name of a trial's sweep has eight digits of its configuration's key.
    tried = {row.id for row in rows if row.key[:8] in begun and row.id in configs}
    others = {x: config for x, config in configs.items() if x not in tried}
    parents = {x: parent for x in tried if (parent := _parent(configs[x], others))}
    left = {x: config for x, config in configs.items() if x not in parents}
    names = name_configurations(left, names_of_datasets(theirs))
    for config_id, parent in parents.items():
        name = name_with_change(names[parent], configs[parent], configs[config_id])
        names[config_id] = name_apart(name, "remedy", names.values())
    return {row.id: names.get(row.id, f"configuration {row.id}") for row in rows}


def _parent(config: RunConfig, others: Mapping[int, RunConfig]) -> int | None:
    """The id of the only configuration that differs in fewest fields; None if there are several."""
    own = config.model_dump()
    apart: dict[int, list[int]] = {}
    for config_id, other in others.items():
        differing = sum(own[name] != value for name, value in other.model_dump().items())
        apart.setdefault(differing, []).append(config_id)
    nearest = apart[min(apart)] if apart else []
    # With several, it is unknown which of them the remedy was for.
    return nearest[0] if len(nearest) == 1 else None


def _numbers_of_parameters(theirs: Connection) -> dict[int, int | None]:
    query = (
        "SELECT config_id, max(run_id) FROM checkpoint JOIN run ON run.id = run_id "
        "GROUP BY config_id"
    )
    numbers = {}
    for config_id, run_id in theirs.exec_driver_sql(query).all():
        weights = f"SELECT weights FROM checkpoint WHERE run_id = {run_id} ORDER BY epoch LIMIT 1"
        numbers[config_id] = num_parameters(bytes(theirs.exec_driver_sql(weights).scalar_one()))
    return numbers


def _copy_shortcuts(theirs: Connection, ours: Connection) -> None:
    names = ("test_set_id", "training", "reader", "lengths", "correct", "reason")
    query = f"SELECT {', '.join(names)}, digest FROM shortcut JOIN test_set ON id = test_set_id"
    rows = []
    for *values, strings in theirs.exec_driver_sql(query):
        rows.append((*values, shortcut_digest(strings, dict(zip(names, values, strict=True)))))
    insert_rows(ours, ShortcutRow, rows)


# Findings about runs, which had a table for each kind.

_NUMBERS = {"verdict": "0", "proof": "of_language", "failure": "own.attempt"}

_SHORT_TRIED = " (short strings tried)"
"""A suffix of the names of causes that were not shown by an exact account."""

_SHOWN = (DILUTION, ONE_LETTER, ROUNDING)


def _copy_findings(theirs: Connection, ours: Connection) -> None:
    outdated = _outdated_causes(theirs)
    for kind, names in FINDINGS.items():
        digest = "own.digest" if kind in ("verdict", "proof") else "NULL"
        certificate = "certificate" if kind == "proof" else "NULL"
        query = (
            f"SELECT run_id, key, model_seed, {_NUMBERS.get(kind, 'number')}, {digest}, "
            f"{certificate}, {', '.join(f'own.{name}' for name in names)} FROM {kind} AS own "
            "JOIN run ON run.id = run_id JOIN config ON config.id = config_id ORDER BY run_id, 4"
        )
        rows = []
        for run_id, key, seed, number, old, made, *values in theirs.exec_driver_sql(query):
            fields = dict(zip(names, values, strict=True))
            if kind == "cause":
                if run_id in outdated:
                    continue
                fields["mechanism"] = fields["mechanism"].removesuffix(_SHORT_TRIED)
            written, blob = canonical_json(fields), None if made is None else bytes(made)
            digest = finding_digest(key, seed, kind, number, written, blob)
            if kind == "proof":
                sha = None if blob is None else hashlib.sha256(blob).hexdigest()
                fields |= {"of_language": number, "certificate": sha}
            content = canonical_json({"config": key, "model_seed": seed, kind: fields})
            # Digests of that version begin with its name.
            fits = hashlib.sha256(content.encode()).hexdigest() == (old or "").removeprefix("v2:")
            # An empty digest never fits, so that damage stays visible.
            digest = digest if fits or old is None else ""
            rows.append((run_id, kind, number, written, digest, blob))
        insert_rows(ours, Finding, rows)


def _outdated_causes(theirs: Connection) -> set[int]:
    """The ids of runs whose causes an older version found: on test strings alone, without checking
    whether the run had learned, or under names no longer used. They are found again when needed.
    """
    outdated: set[int] = set()
    stored_unlearned: set[int] = set()
    unlearned: set[int] = set()
    query = (
        "SELECT run_id, mechanism, tested_within, wrong_within "
        "FROM cause JOIN run ON run.id = run_id"
    )
    for run_id, mechanism, tested, wrong in theirs.exec_driver_sql(query):
        name = mechanism.removesuffix(_SHORT_TRIED)
        # `BEYOND` now names another cause than in that version.
        known = name in CAUSES and name != BEYOND
        if not known or (name == mechanism and name not in _SHOWN):
            outdated.add(run_id)
        if name == NOT_LEARNED:
            stored_unlearned.add(run_id)
        if tested and (tested - wrong) / tested < LEARNED_AT:
            unlearned.add(run_id)
    return outdated | (unlearned - stored_unlearned)


# Runs that were spread over many tables.


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


def _copy_runs(theirs: Connection, ours: Connection, on_progress: OnProgress | None) -> None:
    names = [name for name in RUN_COLUMNS if name not in RECORDS]
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


class _Records:
    """The contents of the old tables about one run."""

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
    if old.losses:
        values["losses"] = rows_text(old.losses)
    if values["state"] != "done":
        return values
    fits = values["digest"] == _old_digest(values, key, test_set, old)
    # Without outputs there are seven fields: length, tested, wrong and four cells.
    width = len(LENGTH_FIELDS) if any(row[-1] is not None for row in old.lengths) else 7
    values["lengths"] = rows_text(row[:width] for row in old.lengths)
    values["losses"] = rows_text(old.losses)
    values["errors"] = _errors_text(old)
    seed = values["model_seed"]
    values["digest"] = run_digest(key, seed, values, old.weights, test_set) if fits else ""
    return values


def _unpack(old: _Records) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of misclassified strings, and their logits in the model's precision."""
    # Three bytes a number, the highest first.
    parts = np.frombuffer(old.numbers, dtype=np.uint8).reshape(-1, 3).astype(np.int64)
    numbers = (parts[:, 0] << 16) | (parts[:, 1] << 8) | parts[:, 2]
    # Four bytes a logit in single precision, eight in double.
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


# The digest of the earlier version, which identifies results that were damaged already.

_CELLS = Confusion._fields


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
        # Adding 0 turns -0.0 into 0.0, as in that version.
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
        for name in OUTPUT_COUNTS:
            add("length_score", name, by_name[name], "<i8")
        hasher.update(f"output_pack {canonical_json(json.loads(old.outputs or '[]'))}\n".encode())
    return f"{version}:{hasher.hexdigest()}"


def _count_on(ours: Connection) -> None:
    """Sets a server's sequences of ids beyond the copied ones; SQLite needs no such step."""
    if ours.dialect.name != "postgresql":
        return
    for table in Base.metadata.sorted_tables:
        if "id" in table.columns and table.name != "revision":
            following = f"(SELECT coalesce(max(id), 0) + 1 FROM {table.name})"
            ours.exec_driver_sql(
                f"SELECT setval(pg_get_serial_sequence('{table.name}', 'id'), {following}, false)"
            )
