"""Finished runs as the database holds them: read back to be checked or copied."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np
from sqlalchemy import Connection, inspect, select

from seqcls import results
from seqcls.config import RunConfig
from seqcls.errors import SeqclsError, StoreDamagedError
from seqcls.evaluation import range_counts
from seqcls.problem import Problem, resolve
from seqcls.results import Confusion, StringErrors
from sweeps.results import (
    COLUMNS,
    OUTPUT_COUNTS,
    Columns,
    Output,
    range_values,
    run_digest,
    verdict_digest,
)
from sweeps.store.checks import (
    key_misfit,
    read_config,
)
from sweeps.store.columns import NO_ERRORS, unpack_errors, unpacked_outputs
from sweeps.store.databases.statements import one_of, plain_rows, rows_of_run
from sweeps.store.tables import (
    Base,
    Checkpoint,
    Config,
    Epoch,
    ErrorPack,
    JudgedBy,
    LengthScore,
    OutputPack,
    Run,
    TestSetRow,
    VerdictRow,
)

RESULT_TABLES = (Epoch, LengthScore, ErrorPack, OutputPack, Checkpoint)
"""The tables that a run's digest covers."""

Row = dict[str, Any]
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class StoredRun:
    """A run's row, the key of its configuration, and its rows in the tables of results."""

    key: str
    config: str | None
    """Its configuration, as JSON."""
    test_set: str | None
    """The digest of its test set."""
    run: Row
    columns: dict[str, Columns]
    """Columns of the tables `epoch` and `length_score`, rows in the order of their keys."""
    pack: tuple[bytes, bytes] | None
    """The misclassified strings; None where there are none."""
    output_pack: str | None
    """What a transduction gave for them; None of other kinds."""
    checkpoints: dict[int, bytes]
    verdict: Row | None

    @property
    def has_losses(self) -> bool:
        """Whether there are losses of any epoch."""
        return self._has(Epoch)

    @property
    def is_tested(self) -> bool:
        """Whether there is any other row of results."""
        packs = (self.pack, self.output_pack)
        return self._has(LengthScore) or packs != (None, None) or bool(self.checkpoints)

    def _has(self, table: type[Base]) -> bool:
        return any(len(column) for column in self.columns[table.__tablename__].values())

    def rows(self, table: type[Base], run_id: int) -> Rows:
        """The rows of a table of results, as those of a run with this id."""
        if table is Checkpoint:
            return [(run_id, *checkpoint) for checkpoint in self.checkpoints.items()]
        if table is ErrorPack:
            return [(run_id, *self.pack)] if self.pack else []
        if table is OutputPack:
            return [(run_id, self.output_pack)] if self.output_pack else []
        return rows_of_run(table, run_id, self.columns[table.__tablename__])

    def errors(self) -> StringErrors:
        """The misclassified strings."""
        return unpack_errors(*self.pack) if self.pack else NO_ERRORS

    def outputs(self) -> list[Output] | None:
        """What a transduction gave for the misclassified strings; None of other kinds."""
        scores = self.columns[LengthScore.__tablename__]
        # Numbers at every length; see `_ByRun`.
        if any(scores[name].dtype == object for name in OUTPUT_COUNTS):
            return None
        return unpacked_outputs(self.output_pack) if self.output_pack else []

    def digest(self) -> str:
        """The digest that these rows have, which need not be the one that is stored."""
        errors = self.errors()
        tables = {
            **self.columns,
            "string_error": {"number": errors.numbers, "logit": errors.logits},
        }
        seed = self.run["model_seed"]
        return run_digest(
            self.key,
            seed,
            self.run,
            tables,
            self.checkpoints,
            str(self.test_set),
            self.outputs(),
        )

    def misfit(self) -> str | None:
        """How a finished run's results do not fit their digest; None where they do."""
        if self.config is None:
            return "its configuration is missing"
        try:
            digest = self.digest()
        except (ValueError, TypeError) as error:
            return f"its results cannot be read ({error})"
        if digest != self.run["digest"]:
            return "its results do not fit its digest"
        return None

    def inconsistency(self) -> str | None:
        """How a finished run is not as it was written; None where it is."""
        if (misfit := self.misfit()) is not None:
            return misfit
        # The digest does not cover these, but what they follow from.
        scores = self.columns[LengthScore.__tablename__]
        if any(self.run[name] != scores[name].sum() for name in ("tested", "wrong")):
            return "its tested and wrong are not the sums of those of its lengths"
        return self._inconsistency_of_ranges(scores)

    def _inconsistency_of_ranges(self, scores: Columns) -> str | None:
        """What its counts on trained and longer lengths contradict, where there are any."""
        if self.run["within_from"] is None or (problem := problem_of(str(self.config))) is None:
            return None
        by_length = (scores[name] for name in ("length", "tested", "wrong"))
        validated = self.run["tested_within"], self.run["wrong_within"]
        is_validated = self.run["within_from"] == JudgedBy.VALIDATION
        counted = range_counts(problem, *by_length, validated=validated if is_validated else None)
        if any(self.run[name] != value for name, value in range_values(counted).items()):
            return "its counts on trained and longer lengths are not those of its lengths"
        return None

    def verdict_digest(self) -> str | None:
        """The digest that the stored check has; None where there is no check."""
        if self.verdict is None:
            return None
        names = [field.name for field in fields(results.Verdict)]
        verdict = results.Verdict(**{name: self.verdict[name] for name in names})
        return verdict_digest(self.key, self.run["model_seed"], verdict)


def problem_of(text: str) -> Problem | None:
    """The problem of a stored configuration; None where it cannot be resolved here."""
    try:
        return _resolve_text(text)
    except (SeqclsError, ValueError):
        return None


@lru_cache(maxsize=4096)
def _resolve_text(text: str) -> Problem:
    return resolve(read_config(text))


def config_of(row_id: int, text: str) -> RunConfig:
    """A row of `config` as what it says.

    Raises:
        StoreDamagedError: it says nothing that is a configuration.
    """
    try:
        return read_config(text)
    except ValueError as error:
        raise StoreDamagedError(f"config {row_id}: {error}") from None


def config_with_key(row_id: int, key: str | None, text: str) -> RunConfig:
    """Reads a configuration like `config_of`, for training: its results are stored under its key,
    which must fit.

    Raises:
        StoreDamagedError: it is no configuration, or has another key.
    """
    config = config_of(row_id, text)
    if (misfit := key_misfit(config, key)) is not None:
        raise StoreDamagedError(f"config {row_id}: {misfit}")
    return config


def read_runs(connection: Connection, run_ids: Sequence[int]) -> Iterator[StoredRun]:
    """Everything stored about those of these runs that exist, in ascending order.

    Raises:
        StoreDamagedError: a column does not allow one of its values.
    """
    query = (
        select(
            Run.__table__,
            Config.key.label("config_key"),
            Config.json.label("config_json"),
            TestSetRow.digest.label("test_set"),
        )
        .outerjoin(Config, Config.id == Run.config_id)
        .outerjoin(TestSetRow, TestSetRow.id == Config.test_set_id)
        .where(one_of(Run.id, run_ids))
        .order_by(Run.id)
    )
    counted = {
        table.__tablename__: _columns_by_run(connection, table, run_ids)
        for table in (Epoch, LengthScore)
    }
    packs, output_packs, checkpoints, verdicts = (
        _rows_by_run(connection, table, run_ids)
        for table in (ErrorPack, OutputPack, Checkpoint, VerdictRow)
    )
    names = inspect(VerdictRow).local_table.columns.keys()
    for run in connection.execute(query).mappings().all():
        run_id = run["id"]
        yield StoredRun(
            key=str(run["config_key"]),
            config=run["config_json"],
            test_set=run["test_set"],
            run=dict(run),
            columns={name: by_run.of(run_id) for name, by_run in counted.items()},
            pack=next(((bytes(n), bytes(x)) for _, n, x in packs.get(run_id, [])), None),
            output_pack=next((outputs for _, outputs in output_packs.get(run_id, [])), None),
            checkpoints={epoch: bytes(x) for _, epoch, x in checkpoints.get(run_id, [])},
            verdict=next(
                (dict(zip(names, x, strict=True)) for x in verdicts.get(run_id, [])), None
            ),
        )


@dataclass(frozen=True)
class _ByRun:
    """Columns of a table's rows, sorted by run."""

    run_ids: np.ndarray
    columns: Columns

    def of(self, run_id: int) -> Columns:
        start, end = np.searchsorted(self.run_ids, [run_id, run_id + 1])
        columns = {name: column[start:end] for name, column in self.columns.items()}
        # The confusion has a number at every length of a language, and none of other tasks; what
        # is counted of outputs, of a transduction.
        return {
            name: column.astype(np.int64)
            if column.dtype == object and not (column == None).any()  # noqa: E711
            else column
            for name, column in columns.items()
        }


def _columns_by_run(connection: Connection, table: type[Base], run_ids: Sequence[int]) -> _ByRun:
    covered = COLUMNS[table.__tablename__]
    packed = {column.name: covered.get(column.name, "<i8") for column in table.__table__.columns}
    rows = plain_rows(connection, table, list(packed), run_ids)
    values = zip(*rows, strict=True) if rows else [()] * len(packed)
    columns = {
        name: _column(table.__tablename__, name, value, kind)
        for value, (name, kind) in zip(values, packed.items(), strict=True)
    }
    return _ByRun(columns.pop("run_id"), columns)


def _column(table: str, name: str, values: Sequence[Any], kind: str) -> np.ndarray:
    if name in (*Confusion._fields, *OUTPUT_COUNTS) and None in values:
        known = [value for value in values if value is not None]
        _column(table, name, known, kind)
        return np.array(values, dtype=object)
    try:
        column = np.array(values) if len(values) else np.empty(0, kind)
    except ValueError:
        column = np.empty(0, object)
    if column.dtype.kind not in ("i" if kind == "<i8" else "if"):
        raise StoreDamagedError(f"{table}: {name} is not a number in every row")
    return column.astype(kind)


def _rows_by_run(
    connection: Connection, table: type[Base], run_ids: Sequence[int]
) -> dict[int, Rows]:
    described = inspect(table).local_table
    query = select(described).where(one_of(described.c.run_id, run_ids))
    rows: dict[int, Rows] = {}
    for row in connection.execute(query.order_by(*described.primary_key)):
        rows.setdefault(row[0], []).append(tuple(row))
    return rows
