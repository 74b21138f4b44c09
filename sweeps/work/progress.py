"""Progress of sweeps: share done, rate, and remaining time."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from sweeps.store.database import Store
from sweeps.store.reads import sweep_queries
from sweeps.store.reads.sweep_queries import SweepProgress as SweepProgress
from sweeps.store.reads.sweep_queries import counts as counts

WINDOW_SECONDS = 300.0
"""The time window of the rate: of runs that ended within it, and of those in training."""


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


def busy_seconds(trained: Iterable[tuple[str, str | None]]) -> float:
    """The length of the union of time spans in which runs were trained, in seconds.

    Args:
        trained: the beginning and end (None: still in training) of each run, in ISO 8601.
    """
    last = datetime.now(UTC)
    busy, until = 0.0, datetime.min.replace(tzinfo=UTC)
    # Sorted by their beginnings: each adds only the part beyond those before it.
    for began, end in sorted(trained, key=lambda span: span[0]):
        end_here = last if end is None else min(datetime.fromisoformat(end), last)
        busy += max(0.0, (end_here - max(datetime.fromisoformat(began), until)).total_seconds())
        until = max(until, end_here)
    return busy
