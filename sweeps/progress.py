"""How far the sweeps are, how fast they go on, and how long that will take."""

from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import func, select

from sweeps.store.engine import Store
from sweeps.store.tables import Run, RunState, Sweep, SweepRun, now

WINDOW_SECONDS = 300.0
"""The rate is that of the runs that ended so recently."""


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
    runs_per_second: float | None
    """How fast its runs end at present; None where none is in training or none has ended yet."""

    @property
    def total(self) -> int:
        """How many runs the sweep has."""
        return self.queued + self.running + self.done + self.failed

    @property
    def seconds_left(self) -> float | None:
        """How long it will take at this rate; None where no rate is known."""
        if not self.runs_per_second:
            return None
        return (self.queued + self.running) / self.runs_per_second


def progress(store: Store) -> list[SweepProgress]:
    """Every sweep's progress, in the order of their making."""
    recent = Run.finished_at >= now(WINDOW_SECONDS)
    counts = {state: func.count().filter(Run.state == state) for state in RunState}
    query = (
        select(
            SweepRun.sweep_id,
            *(counted.label(state) for state, counted in counts.items()),
            func.count().filter(recent).label("ended"),
            func.min(Run.started_at).filter(recent).label("since"),
        )
        .join(Run, Run.id == SweepRun.run_id)
        .group_by(SweepRun.sweep_id)
    )
    with store.begin() as connection:
        sweeps = connection.execute(select(Sweep.id, Sweep.name, Sweep.state).order_by(Sweep.id))
        named = sweeps.all()
        counted = {row.sweep_id: row._asdict() for row in connection.execute(query)}
    return [_progress(*sweep, counted.get(sweep.id, {})) for sweep in named]


def _progress(sweep_id: int, name: str, state: str, counted: dict[str, int | str]) -> SweepProgress:
    per_state = {run_state.value: int(counted.get(run_state, 0)) for run_state in RunState}
    rate = None
    if per_state[RunState.RUNNING] and counted["ended"]:
        began = datetime.fromisoformat(str(counted["since"]))
        seconds = min((datetime.now(UTC) - began).total_seconds(), WINDOW_SECONDS)
        # Where the clock was set back since they began, no rate is known.
        rate = int(counted["ended"]) / seconds if seconds > 0 else None
    return SweepProgress(sweep_id, name, state, **per_state, runs_per_second=rate)
