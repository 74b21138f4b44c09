"""How far the sweeps are, how fast they go on, and how long that will take."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from sweeps.store.database import Store
from sweeps.store.reads import sweep_queries

WINDOW_SECONDS = 300.0
"""The rate is that of the runs that ended so recently, and of those in training."""


@dataclass(frozen=True)
class SweepProgress:
    """A sweep's state and the number of its runs in each state."""

    id: int
    name: str
    state: str
    queued: int
    running: int
    done: int
    failed: int
    runs_per_second: float | None = None
    """How fast they are trained at present, parts included; None where none is in training or no
    epoch has ended yet."""
    orphaned: int = 0
    """Runs in training whose worker is dead, as far as can be seen from here; the next worker
    trains them."""
    epochs: tuple[tuple[int, int], ...] = ()
    """For each run in training its epochs so far, and the most that it may train for."""

    @property
    def share(self) -> float:
        """How much is done, in [0, 1], epochs of runs in training included."""
        return min(1.0, (self.done + self.failed + self.begun) / max(1, self.total))

    @property
    def begun(self) -> float:
        """How many runs' worth of epochs is done of those in training."""
        return sum(epoch / most for epoch, most in self.epochs)

    @property
    def total(self) -> int:
        """How many runs the sweep has."""
        return self.queued + self.running + self.done + self.failed

    @property
    def seconds_left(self) -> float | None:
        """How long it will take at this rate; None where no rate is known."""
        if not self.runs_per_second:
            return None
        return (self.queued + self.running - self.begun) / self.runs_per_second


def progress(store: Store, counted: Sequence[SweepProgress] | None = None) -> list[SweepProgress]:
    """Every sweep's progress, in the order of their making.

    Args:
        counted: what `counts` gives of it at its present revision, where that is known already.
    """
    sweeps = list(counts(store) if counted is None else counted)
    if not any(sweep.running for sweep in sweeps):
        # Idle sweeps have no rate and no worker, so no row of perhaps 100,000 runs is read.
        return sweeps
    recent = sweep_queries.recent(store, WINDOW_SECONDS)
    orphaned, epochs = sweep_queries.in_training(store)
    for place, sweep in enumerate(sweeps):
        if sweep.running:
            lost, (finished, spans) = orphaned[sweep.id], recent.get(sweep.id, (0, []))
            now = replace(sweep, epochs=tuple(sorted(epochs[sweep.id])), orphaned=lost)
            # Nobody trains the runs of a dead worker, so that no rate can be told.
            busy = 0.0 if lost else busy_seconds(spans)
            # Where the clock was set back since they began, no rate is known.
            ended = now.begun + finished
            rate = ended / busy if ended and busy > 0 else None
            sweeps[place] = replace(now, runs_per_second=rate)
    return sweeps


def counts(store: Store, sweep_ids: Sequence[int] | None = None) -> list[SweepProgress]:
    """Runs in each state of these sweeps, or of all: what changes with the revision alone."""
    return [
        SweepProgress(
            sweep_id, name, state, runs["queued"], runs["running"], runs["done"], runs["failed"]
        )
        for sweep_id, name, state, runs in sweep_queries.states(store, sweep_ids)
    ]


def busy_seconds(trained: Iterable[tuple[str, str | None]], ended: datetime | None = None) -> float:
    """Seconds in which any of these was trained, however many of them at once.

    Args:
        trained: when each run began and ended (None: it goes on), in ISO 8601.
        ended: until when those that go on are counted; now by default.
    """
    last = ended or datetime.now(UTC)
    busy, until = 0.0, datetime.min.replace(tzinfo=UTC)
    # By their beginnings: each adds only what reaches beyond those before it.
    for began, end in sorted(trained, key=lambda span: span[0]):
        end_here = last if end is None else min(datetime.fromisoformat(end), last)
        busy += max(0.0, (end_here - max(datetime.fromisoformat(began), until)).total_seconds())
        until = max(until, end_here)
    return busy
