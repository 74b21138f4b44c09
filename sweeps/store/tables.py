"""The tables. Column names are part of the product: people write SQL against them.

Times are UTC in ISO 8601, as text, so that they read and sort alike in every database.
"""

from datetime import UTC, datetime, timedelta
from enum import StrEnum

from sqlalchemy import BigInteger, ForeignKey, Index, LargeBinary, Text, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


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


class Sweep(Base):
    """A named grid."""

    __tablename__ = "sweep"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(Text, unique=True)
    description: Mapped[str] = mapped_column(Text)
    spec: Mapped[str] = mapped_column(Text)
    created_at: Mapped[str] = mapped_column(Text)
    state: Mapped[str] = mapped_column(Text)
    launch_token: Mapped[str] = mapped_column(Text, unique=True)


class Config(Base):
    """All that determines a model but its seed."""

    __tablename__ = "config"
    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(Text, unique=True)
    json: Mapped[str] = mapped_column(Text)


class Run(Base):
    """One trained model, or one to be trained."""

    __tablename__ = "run"
    __table_args__ = (UniqueConstraint("config_id", "model_seed"), Index("run_state", "state"))
    id: Mapped[int] = mapped_column(primary_key=True)
    config_id: Mapped[int] = mapped_column(ForeignKey("config.id"))
    model_seed: Mapped[int] = mapped_column(BigInteger)
    state: Mapped[str] = mapped_column(Text)
    attempt: Mapped[int] = mapped_column(default=0)
    failures: Mapped[int] = mapped_column(default=0)
    worker_id: Mapped[int | None] = mapped_column(ForeignKey("worker.id"))
    started_at: Mapped[str | None] = mapped_column(Text)
    finished_at: Mapped[str | None] = mapped_column(Text)
    error: Mapped[str | None] = mapped_column(Text)
    epochs: Mapped[int | None]
    best_epoch: Mapped[int | None]
    best_validation_loss: Mapped[float | None]
    tn: Mapped[int | None]
    fp: Mapped[int | None]
    fn: Mapped[int | None]
    tp: Mapped[int | None]
    solved_length: Mapped[int | None]
    engine: Mapped[str | None] = mapped_column(Text)
    train_seconds: Mapped[float | None]
    digest: Mapped[str | None] = mapped_column(Text)


class SweepRun(Base):
    """A run belongs to a sweep."""

    __tablename__ = "sweep_run"
    __table_args__ = (Index("sweep_run_run_id", "run_id"), {"sqlite_with_rowid": False})
    sweep_id: Mapped[int] = mapped_column(ForeignKey("sweep.id"), primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("run.id"), primary_key=True)


class Epoch(Base):
    """One epoch of one run; losses are sums over its strings, in nats."""

    __tablename__ = "epoch"
    __table_args__ = ({"sqlite_with_rowid": False},)
    run_id: Mapped[int] = mapped_column(ForeignKey("run.id"), primary_key=True)
    epoch: Mapped[int] = mapped_column(primary_key=True)
    train_loss: Mapped[float]
    validation_loss: Mapped[float]


class LengthScore(Base):
    """One length of one run's test."""

    __tablename__ = "length_score"
    __table_args__ = ({"sqlite_with_rowid": False},)
    run_id: Mapped[int] = mapped_column(ForeignKey("run.id"), primary_key=True)
    length: Mapped[int] = mapped_column(primary_key=True)
    tn: Mapped[int]
    fp: Mapped[int]
    fn: Mapped[int]
    tp: Mapped[int]


class StringError(Base):
    """One misclassified test string of one run."""

    __tablename__ = "string_error"
    __table_args__ = ({"sqlite_with_rowid": False},)
    run_id: Mapped[int] = mapped_column(ForeignKey("run.id"), primary_key=True)
    string: Mapped[str] = mapped_column(Text, primary_key=True)
    length: Mapped[int]
    label: Mapped[int]
    logit: Mapped[float]
    occurrences: Mapped[int]


class Checkpoint(Base):
    """Weights after an epoch, as safetensors bytes."""

    __tablename__ = "checkpoint"
    run_id: Mapped[int] = mapped_column(ForeignKey("run.id"), primary_key=True)
    epoch: Mapped[int] = mapped_column(primary_key=True)
    weights: Mapped[bytes] = mapped_column(LargeBinary)


class Verdict(Base):
    """An exhaustive check of one run."""

    __tablename__ = "verdict"
    run_id: Mapped[int] = mapped_column(ForeignKey("run.id"), primary_key=True)
    max_length: Mapped[int]
    multisets: Mapped[int]
    false_positives: Mapped[int]
    false_negatives: Mapped[int]
    shortest_error: Mapped[str | None] = mapped_column(Text)
    digest: Mapped[str] = mapped_column(Text)


class Failure(Base):
    """One attempt that failed."""

    __tablename__ = "failure"
    run_id: Mapped[int] = mapped_column(ForeignKey("run.id"), primary_key=True)
    attempt: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[str] = mapped_column(Text)
    reason: Mapped[str] = mapped_column(Text)


class Worker(Base):
    """A process that claims runs."""

    __tablename__ = "worker"
    id: Mapped[int] = mapped_column(primary_key=True)
    host: Mapped[str] = mapped_column(Text)
    pid: Mapped[int]
    started_at: Mapped[str] = mapped_column(Text)
    heartbeat_at: Mapped[str] = mapped_column(Text)
    ended_at: Mapped[str | None] = mapped_column(Text)
