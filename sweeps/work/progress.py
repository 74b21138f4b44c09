"""Progress of sweeps: share done, rate, and remaining time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from sweeps.store.database import Store
from sweeps.store.reads import sweep_queries

WINDOW_SECONDS = 300.0
"""The time window of the rate: of runs that ended within it, and of those in training."""


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
    """The present rate, with fractions of runs; None if none is in training or no epoch has ended
    yet."""
    orphaned: int = 0
    """Number of runs in training whose worker seems dead from here; the next worker trains them."""
    epochs: tuple[tuple[int, int], ...] = ()
    """The epochs so far and the maximum of each run in training."""

    @property
    def share(self) -> float:
        """The share that is done, in [0, 1], including epochs of runs in training."""
        return min(1.0, (self.done + self.failed + self.begun) / max(1, self.total))

    @property
    def begun(self) -> float:
        """The summed shares of epochs done by runs in training."""
        return sum(epoch / most for epoch, most in self.epochs)

    @property
    def total(self) -> int:
        """Number of runs of the sweep."""
        return self.queued + self.running + self.done + self.failed

    @property
    def seconds_left(self) -> float | None:
        """The remaining time at this rate; None without a rate."""
        if not self.runs_per_second:
            return None
        return (self.queued + self.running - self.begun) / self.runs_per_second


def progress(store: Store, counted: Sequence[SweepProgress] | None = None) -> list[SweepProgress]:
    """Every sweep's progress, oldest first.

    Args:
        counted: the result of `counts` at the present revision, if known already.
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
            # The runs of a dead worker are not trained, so that no rate is known.
            busy = 0.0 if lost else busy_seconds(spans)
            # No rate is known if the clock was set back since they began.
            ended = now.begun + finished
            rate = ended / busy if ended and busy > 0 else None
            sweeps[place] = replace(now, runs_per_second=rate)
    return sweeps


def counts(store: Store, sweep_ids: Sequence[int] | None = None) -> list[SweepProgress]:
    """The runs in each state of these sweeps, or of all, which change with the revision alone."""
    return [
        SweepProgress(
            sweep_id, name, state, runs["queued"], runs["running"], runs["done"], runs["failed"]
        )
        for sweep_id, name, state, runs in sweep_queries.states(store, sweep_ids)
    ]


def busy_seconds(trained: Iterable[tuple[str, str | None]], ended: datetime | None = None) -> float:
    """The length of the union of time spans in which runs were trained, in seconds.

    Args:
        trained: the beginning and end (None: still in training) of each run, in ISO 8601.
        ended: the end of spans that are still open; now by default.
    """
    last = ended or datetime.now(UTC)
    busy, until = 0.0, datetime.min.replace(tzinfo=UTC)
    # Sorted by their beginnings: each adds only the part beyond those before it.
    for began, end in sorted(trained, key=lambda span: span[0]):
        end_here = last if end is None else min(datetime.fromisoformat(end), last)
        busy += max(0.0, (end_here - max(datetime.fromisoformat(began), until)).total_seconds())
        until = max(until, end_here)
    return busy
