"""The tables. Column names are part of the product: people write SQL against them.

Times are UTC in ISO 8601, as text, so that they read and sort alike in every database. What values
a column takes is checked by the database; the migrations say how, and make two views besides:
`string_error` and `misclassified`.
"""

from datetime import UTC, datetime, timedelta
from enum import StrEnum

from sqlalchemy import (
    REAL,
    BigInteger,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeEngine


class Base(DeclarativeBase):
    """All tables of the database."""


class SweepState(StrEnum):
    """What became of a sweep as a whole.

    Done is where no run is left to train; of a stopped sweep no run is begun until it is resumed.
    """

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    STOPPED = "stopped"


class RunState(StrEnum):
    """What became of one run."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


def now(seconds_ago: float = 0.0) -> str:
    """The time, or an earlier one, as the tables hold it."""
    time = datetime.now(UTC) - timedelta(seconds=seconds_ago)
    return time.isoformat(timespec="milliseconds")


# What a strict table of SQLite calls them.
_BIG = BigInteger().with_variant(Integer, "sqlite")
_REAL: TypeEngine[float] = Double().with_variant(REAL, "sqlite")

_STRICT = {"sqlite_strict": True}
_NUMBERED = {**_STRICT, "sqlite_autoincrement": True}
"""An id is never given twice: whoever remembers one cannot mistake another row for it."""
_BY_KEY = {**_STRICT, "sqlite_with_rowid": False}


class Revision(Base):
    """One row of numbers that writes raise, so that whoever remembers something knows it is old."""

    __tablename__ = "revision"
    __table_args__ = (_STRICT,)
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    configs: Mapped[int] = mapped_column(_BIG)
    """Raised when configurations are added or deleted."""
    members: Mapped[int] = mapped_column(_BIG)
    """Raised when sweeps, or what runs they have, change."""
    runs: Mapped[int] = mapped_column(_BIG)
    """Raised by every write, heartbeats apart."""


class Sweep(Base):
    """A named grid."""

    __tablename__ = "sweep"
    __table_args__ = (_NUMBERED,)
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(Text, unique=True)
    description: Mapped[str] = mapped_column(Text)
    spec: Mapped[str] = mapped_column(Text)
    created_at: Mapped[str] = mapped_column(Text)
    state: Mapped[str] = mapped_column(Text)
    launch_token: Mapped[str] = mapped_column(Text, unique=True)


class TestSet(Base):
    """The strings that configurations are tested on."""

    __test__ = False
    __tablename__ = "test_set"
    __table_args__ = (_NUMBERED,)
    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(Text, unique=True)
    json: Mapped[str] = mapped_column(Text)
    digest: Mapped[str | None] = mapped_column(Text)
    """Of its strings; none before the first results come in, and the strings with them."""


class TestString(Base):
    """One distinct string of a test set."""

    __test__ = False
    __tablename__ = "test_string"
    __table_args__ = (_BY_KEY,)
    test_set_id: Mapped[int] = mapped_column(ForeignKey("test_set.id"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    string: Mapped[str] = mapped_column(Text)
    length: Mapped[int]
    label: Mapped[int]
    occurrences: Mapped[int]


class Config(Base):
    """All that determines a model but its seed."""

    __tablename__ = "config"
    __table_args__ = (_NUMBERED,)
    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(Text, unique=True)
    json: Mapped[str] = mapped_column(Text)
    test_set_id: Mapped[int | None] = mapped_column(ForeignKey("test_set.id"))
    """None only where an upgrade could not read the configuration."""


class Run(Base):
    """One trained model, or one to be trained."""

    __tablename__ = "run"
    __table_args__ = (
        UniqueConstraint("config_id", "model_seed"),
        Index("run_state", "state"),
        _NUMBERED,
    )
    id: Mapped[int] = mapped_column(primary_key=True)
    config_id: Mapped[int] = mapped_column(ForeignKey("config.id"))
    model_seed: Mapped[int] = mapped_column(_BIG)
    state: Mapped[str] = mapped_column(Text)
    attempt: Mapped[int] = mapped_column(default=0)
    failures: Mapped[int] = mapped_column(default=0)
    worker_id: Mapped[int | None] = mapped_column(ForeignKey("worker.id"))
    started_at: Mapped[str | None] = mapped_column(Text)
    finished_at: Mapped[str | None] = mapped_column(Text)
    error: Mapped[str | None] = mapped_column(Text)
    epochs: Mapped[int | None]
    best_epoch: Mapped[int | None]
    best_validation_loss: Mapped[float | None] = mapped_column(_REAL)
    tn: Mapped[int | None]
    fp: Mapped[int | None]
    fn: Mapped[int | None]
    tp: Mapped[int | None]
    solved_length: Mapped[int | None]
    engine: Mapped[str | None] = mapped_column(Text)
    engine_reason: Mapped[str | None] = mapped_column(Text)
    train_seconds: Mapped[float | None] = mapped_column(_REAL)
    digest: Mapped[str | None] = mapped_column(Text)
    verdict_digest: Mapped[str | None] = mapped_column(Text)
    """That of the exhaustive check, so that one that was deleted is missed."""


class SweepRun(Base):
    """A run belongs to a sweep."""

    __tablename__ = "sweep_run"
    __table_args__ = (Index("sweep_run_run_id", "run_id"), _BY_KEY)
    sweep_id: Mapped[int] = mapped_column(ForeignKey("sweep.id"), primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("run.id"), primary_key=True)


class SweepNote(Base):
    """What people write about a sweep; it decides nothing that is trained or tested."""

    __tablename__ = "sweep_note"
    __table_args__ = (_STRICT,)
    sweep_id: Mapped[int] = mapped_column(
        ForeignKey("sweep.id"), primary_key=True, autoincrement=False
    )
    title: Mapped[str] = mapped_column(Text)
    note: Mapped[str] = mapped_column(Text)
    archived_at: Mapped[str | None] = mapped_column(Text)
    """None where the sweep is not archived."""


class SweepTag(Base):
    """A word by which sweeps are found."""

    __tablename__ = "sweep_tag"
    __table_args__ = (_BY_KEY,)
    sweep_id: Mapped[int] = mapped_column(ForeignKey("sweep.id"), primary_key=True)
    tag: Mapped[str] = mapped_column(Text, primary_key=True)


class SavedView(Base):
    """A page of the dashboard with its filters, by name."""

    __tablename__ = "saved_view"
    __table_args__ = (_NUMBERED,)
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(Text, unique=True)
    page: Mapped[str] = mapped_column(Text)
    query: Mapped[str] = mapped_column(Text)
    created_at: Mapped[str] = mapped_column(Text)


class Epoch(Base):
    """One epoch of one run; losses are sums over its strings, in nats."""

    __tablename__ = "epoch"
    __table_args__ = (_BY_KEY,)
    run_id: Mapped[int] = mapped_column(ForeignKey("run.id"), primary_key=True)
    epoch: Mapped[int] = mapped_column(primary_key=True)
    train_loss: Mapped[float] = mapped_column(_REAL)
    validation_loss: Mapped[float] = mapped_column(_REAL)


class LengthScore(Base):
    """One length of one run's test."""

    __tablename__ = "length_score"
    __table_args__ = (_BY_KEY,)
    run_id: Mapped[int] = mapped_column(ForeignKey("run.id"), primary_key=True)
    length: Mapped[int] = mapped_column(primary_key=True)
    tn: Mapped[int]
    fp: Mapped[int]
    fn: Mapped[int]
    tp: Mapped[int]


class ErrorPack(Base):
    """The misclassified test strings of one run, packed: a row for each would be most of the file.

    The view `string_error` has a row for each, `misclassified` with its string.
    """

    __tablename__ = "error_pack"
    __table_args__ = (_STRICT,)
    run_id: Mapped[int] = mapped_column(ForeignKey("run.id"), primary_key=True, autoincrement=False)
    numbers: Mapped[bytes] = mapped_column(LargeBinary)
    """Of the test set's strings, ascending, three bytes each, the highest first."""
    logits: Mapped[bytes] = mapped_column(LargeBinary)
    """Of the same strings, IEEE 754 of four or eight bytes, the highest first."""


class Checkpoint(Base):
    """Weights after an epoch, as safetensors bytes."""

    __tablename__ = "checkpoint"
    __table_args__ = (_STRICT,)
    run_id: Mapped[int] = mapped_column(ForeignKey("run.id"), primary_key=True)
    epoch: Mapped[int] = mapped_column(primary_key=True)
    weights: Mapped[bytes] = mapped_column(LargeBinary)


class Verdict(Base):
    """An exhaustive check of one run."""

    __tablename__ = "verdict"
    __table_args__ = (_STRICT,)
    run_id: Mapped[int] = mapped_column(ForeignKey("run.id"), primary_key=True, autoincrement=False)
    max_length: Mapped[int]
    unit: Mapped[str] = mapped_column(Text)
    inputs: Mapped[int] = mapped_column(_BIG)
    false_positives: Mapped[int] = mapped_column(_BIG)
    false_negatives: Mapped[int] = mapped_column(_BIG)
    shortest_error: Mapped[str | None] = mapped_column(Text)
    digest: Mapped[str] = mapped_column(Text)


class Failure(Base):
    """One attempt that failed."""

    __tablename__ = "failure"
    __table_args__ = (_STRICT,)
    run_id: Mapped[int] = mapped_column(ForeignKey("run.id"), primary_key=True)
    attempt: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[str] = mapped_column(Text)
    reason: Mapped[str] = mapped_column(Text)


class Worker(Base):
    """A process that claims runs."""

    __tablename__ = "worker"
    __table_args__ = (_NUMBERED,)
    id: Mapped[int] = mapped_column(primary_key=True)
    host: Mapped[str] = mapped_column(Text)
    pid: Mapped[int]
    started_at: Mapped[str] = mapped_column(Text)
    heartbeat_at: Mapped[str] = mapped_column(Text)
    ended_at: Mapped[str | None] = mapped_column(Text)
