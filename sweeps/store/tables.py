"""The tables. Column names are part of the product: people write SQL against them.

Times are UTC in ISO 8601, as text, so that they read and sort alike in every database. The database
checks the values of each column. A run is one row: its results are stored there as JSON, covered by
a digest; the views of `views.py` spread them out.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, ClassVar, get_args

from sqlalchemy import (
    REAL,
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, MappedColumn, mapped_column

from seqcls.results import DRAWN, Confusion, RangeSource

# Strict tables of SQLite know INTEGER alone.
Big = BigInteger().with_variant(Integer, "sqlite")


class Base(DeclarativeBase):
    """All tables of the database."""

    type_annotation_map: ClassVar[dict[Any, Any]] = {
        int: Integer,
        str: Text,
        float: Double().with_variant(REAL, "sqlite"),
        bytes: LargeBinary,
    }


class SweepState(StrEnum):
    """The state of a sweep as a whole.

    A sweep is done when no run is left to train; a stopped one begins no run until it is resumed.
    """

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    STOPPED = "stopped"


class RunState(StrEnum):
    """The state of one run."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class FindingKind(StrEnum):
    """The kind of a finding: see the views of these names."""

    VERDICT = "verdict"
    PROOF = "proof"
    CAUSE = "cause"
    PERTURBATION = "perturbation"
    FAILURE = "failure"


def now(seconds_ago: float = 0.0) -> str:
    """The present time, or an earlier one, in the form of the tables."""
    time = datetime.now(UTC) - timedelta(seconds=seconds_ago)
    return time.isoformat(timespec="milliseconds")


_STRICT = {"sqlite_strict": True}
_NUMBERED = {**_STRICT, "sqlite_autoincrement": True}
"""Options of tables whose ids are never reused, so that a remembered id names no other row."""
# Rows are stored in the order of the key itself, without a second index for it.
_BY_KEY = {**_STRICT, "sqlite_with_rowid": False}


def _key_part(table: str) -> MappedColumn[int]:
    """The id of a row of another table, as part of the primary key."""
    return mapped_column(ForeignKey(f"{table}.id"), primary_key=True)


def _word(words: Iterable[str], **others: Any) -> MappedColumn[Any]:
    return mapped_column(info={"words": words}, **others)


def _json(kind: str, **others: Any) -> MappedColumn[Any]:
    return mapped_column(info={"json": kind}, **others)


class Revision(Base):
    """One row of numbers that writes raise, by which readers know that cached results are old."""

    __tablename__ = "revision"
    __table_args__ = (CheckConstraint("id = 1"), _STRICT)
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    configs: Mapped[int] = mapped_column(Big)
    """Raised when configurations are added or deleted."""
    members: Mapped[int] = mapped_column(Big)
    """Raised when sweeps or their members change."""
    runs: Mapped[int] = mapped_column(Big)
    """Raised by every write except heartbeats and losses of runs in training."""


class Sweep(Base):
    """A named grid, with the notes that people write about it.

    Its state follows from those of its runs: `sweeps.store.reads.sweep_queries.counts`.
    """

    __tablename__ = "sweep"
    __table_args__ = (_NUMBERED,)
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    description: Mapped[str]
    spec: Mapped[str] = _json("object")
    created_at: Mapped[str]
    launch_token: Mapped[str] = mapped_column(unique=True)
    stopped_at: Mapped[str | None]
    """None where the sweep is not stopped."""
    title: Mapped[str] = mapped_column(server_default="")
    note: Mapped[str] = mapped_column(server_default="")
    tags: Mapped[str] = _json("array", server_default="[]")
    """A sorted JSON array of the words by which the sweep can be found."""
    archived_at: Mapped[str | None]
    """None where the sweep is not archived."""


class DatasetRow(Base):
    """A user's strings, which configurations name by their digest."""

    __tablename__ = "dataset"
    __table_args__ = (
        CheckConstraint("length(digest) = 64"),
        CheckConstraint("row_count >= 1"),
        _NUMBERED,
    )
    id: Mapped[int] = mapped_column(primary_key=True)
    digest: Mapped[str] = mapped_column(unique=True)
    """The digest of the content, without the name."""
    name: Mapped[str]
    """The name of the first file that had this content."""
    task: Mapped[str] = _word(("file", "pairs", "automaton"))
    row_count: Mapped[int]
    rows: Mapped[bytes]
    """All rows, compressed; `seqcls.strings.datasets` packs them."""
    created_at: Mapped[str]


class TestSetRow(Base):
    """The strings that configurations are tested on."""

    __test__ = False
    __tablename__ = "test_set"
    __table_args__ = (_NUMBERED,)
    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(unique=True)
    json: Mapped[str] = _json("object")
    digest: Mapped[str | None]
    """The digest of its strings; None until the first results, with which they are stored."""


class TestString(Base):
    """One distinct string of a test set."""

    __test__ = False
    __tablename__ = "test_string"
    __table_args__ = (
        CheckConstraint("label IN (0, 1)"),
        CheckConstraint("occurrences >= 1"),
        # Three bytes, in which earlier versions packed these numbers.
        CheckConstraint("number < 16777216"),
        _BY_KEY,
    )
    test_set_id: Mapped[int] = _key_part("test_set")
    number: Mapped[int] = mapped_column(primary_key=True)
    string: Mapped[str]
    length: Mapped[int]
    label: Mapped[int | None]
    """None where the task is no language; the correct answer is then the target."""
    occurrences: Mapped[int]
    target: Mapped[str | None]
    """None for languages."""
    drawn: Mapped[str | None] = _word(DRAWN)
    """The way in which it was drawn; None where unknown, and where the task is no language."""


class ShortcutRow(Base):
    """The answers to a test set of a reader that does not know the task.

    It was fitted on the first training strings: a test has one set of readers for each training.
    """

    __tablename__ = "shortcut"
    __table_args__ = (
        CheckConstraint("length(training) = 64"),
        CheckConstraint(
            "(lengths IS NULL) = (correct IS NULL) AND (lengths IS NULL) <> (reason IS NULL)"
        ),
        _STRICT,
    )
    test_set_id: Mapped[int] = _key_part("test_set")
    training: Mapped[str] = mapped_column(primary_key=True)
    """A hash of the fields that determine the training strings."""
    reader: Mapped[str] = mapped_column(primary_key=True)
    """One of `seqcls.shortcuts.READERS`."""
    lengths: Mapped[str | None] = _json("array")
    """A JSON array of [length, test strings, correct ones], strings counted as often as they
    occur."""
    correct: Mapped[bytes | None]
    """One bit for each string by number, the highest bit first: 1 where it is read correctly."""
    reason: Mapped[str | None]
    """The reason why the reader could not be fitted; then it has no answers."""
    digest: Mapped[str]


class Config(Base):
    """A configuration: everything that determines a model except its seed."""

    __tablename__ = "config"
    __table_args__ = (_NUMBERED,)
    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(unique=True)
    name: Mapped[str] = mapped_column(unique=True)
    """Given when its sweep is submitted, by `sweeps.naming`, and never changed."""
    num_parameters: Mapped[int | None]
    """Known with the first weights; None also where no weights are stored."""
    json: Mapped[str] = _json("object")
    test_set_id: Mapped[int | None] = mapped_column(ForeignKey("test_set.id"))
    """None only where an upgrade could not read the configuration."""


class Run(Base):
    """One trained model, or one to be trained."""

    __tablename__ = "run"
    __table_args__ = (
        UniqueConstraint("config_id", "model_seed"),
        Index("run_state", "state", "id"),
        CheckConstraint("train_seconds >= 0"),
        _NUMBERED,
    )
    id: Mapped[int] = mapped_column(primary_key=True)
    config_id: Mapped[int] = mapped_column(ForeignKey("config.id"))
    model_seed: Mapped[int] = mapped_column(Big)
    state: Mapped[str] = _word(RunState)
    attempt: Mapped[int] = mapped_column(default=0)
    failures: Mapped[int] = mapped_column(default=0)
    worker_id: Mapped[int | None] = mapped_column(ForeignKey("worker.id"))
    started_at: Mapped[str | None]
    finished_at: Mapped[str | None]
    error: Mapped[str | None]
    epochs: Mapped[int | None]
    best_epoch: Mapped[int | None]
    best_validation_loss: Mapped[float | None]
    tn: Mapped[int | None]
    fp: Mapped[int | None]
    fn: Mapped[int | None]
    tp: Mapped[int | None]
    solved_length: Mapped[int | None] = mapped_column(info={"least": -1})
    engine: Mapped[str | None]
    engine_reason: Mapped[str | None]
    train_seconds: Mapped[float | None]
    digest: Mapped[str | None]
    tested: Mapped[int | None]
    """Number of test strings, each counted as often as it occurs."""
    wrong: Mapped[int | None]
    """Number of misclassified ones."""
    tested_within: Mapped[int | None]
    """Number of strings of trained lengths by which it is judged; None, like the next four, where
    that is not known."""
    wrong_within: Mapped[int | None]
    within_from: Mapped[str | None] = _word(get_args(RangeSource))
    """The source of these strings: validation where the test holds fewer than 100."""
    tested_beyond: Mapped[int | None]
    """Number of test strings longer than any that training draws."""
    wrong_beyond: Mapped[int | None]
    # Last, so that no other column is read through them.
    lengths: Mapped[str | None] = _json("array")
    """Its counts at each length: arrays of `sweeps.records.LENGTH_FIELDS`."""
    losses: Mapped[str | None] = _json("array")
    """Losses of each epoch so far: arrays of `LOSS_FIELDS`."""
    errors: Mapped[str | None] = _json("array")
    """The misclassified strings: arrays of `ERROR_FIELDS`."""


class SweepRun(Base):
    """The membership of a run in a sweep."""

    __tablename__ = "sweep_run"
    __table_args__ = (Index("sweep_run_run_id", "run_id"), _BY_KEY)
    sweep_id: Mapped[int] = _key_part("sweep")
    run_id: Mapped[int] = _key_part("run")


class Checkpoint(Base):
    """Weights after an epoch, as safetensors bytes."""

    __tablename__ = "checkpoint"
    __table_args__ = (_STRICT,)
    run_id: Mapped[int] = _key_part("run")
    epoch: Mapped[int] = mapped_column(primary_key=True)
    weights: Mapped[bytes]


class Finding(Base):
    """A result about a run beyond its test, or a failed attempt to train it."""

    __tablename__ = "finding"
    __table_args__ = (Index("finding_kind", "kind"), _STRICT)
    run_id: Mapped[int] = _key_part("run")
    kind: Mapped[str] = _word(FindingKind, primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    """The attempt of a failure; 1 for a proof by the language's own automaton, 0 by a learned one;
    the rank of a cause, 0 for that of most errors."""
    json: Mapped[str] = _json("object")
    """The fields of `sweeps.results.FINDINGS`."""
    digest: Mapped[str]
    certificate: Mapped[bytes | None]
    """The certificate of a proof: JSON, compressed by zlib; last, so that no other column is read
    through it."""


class Worker(Base):
    """A process that claims runs."""

    __tablename__ = "worker"
    __table_args__ = (_NUMBERED,)
    id: Mapped[int] = mapped_column(primary_key=True)
    host: Mapped[str]
    pid: Mapped[int]
    started_at: Mapped[str]
    heartbeat_at: Mapped[str]
    ended_at: Mapped[str | None]


COUNTS = (*Confusion._fields, "tested", "wrong")
"""Columns of a run with its counts of test strings."""


def _checks(column: Column[Any]) -> Iterator[CheckConstraint]:
    """Yields the constraints of a column: whole numbers from zero, some words, or JSON."""
    name = column.name
    if isinstance(column.type, Integer):
        yield CheckConstraint(f"{name} >= {column.info.get('least', 0)}")
    if words := column.info.get("words"):
        yield CheckConstraint(f"{name} IN ({', '.join(map(repr, map(str, words)))})")
    if kind := column.info.get("json"):
        # Before 3.45 SQLite's json_valid(NULL) is false.
        sqlite = f"{name} IS NULL OR json_valid({name}) AND json_type({name}) = '{kind}'"
        server = f"{name} IS NULL OR json_typeof(CAST({name} AS json)) = '{kind}'"
        for dialect, check in (("sqlite", sqlite), ("postgresql", server)):
            yield CheckConstraint(check).ddl_if(dialect=dialect)


# Made from the columns, so that none is forgotten.
for _table in Base.metadata.tables.values():
    for _check in [check for column in _table.columns for check in _checks(column)]:
        _table.append_constraint(_check)
