"""How far the groups in training are, added up."""

from collections.abc import Callable

from sweeps.on_progress import OnProgress
from sweeps.work.jobs import Job


class GroupProgress:
    """Adds up what is done of every group."""

    def __init__(self, on_progress: OnProgress | None) -> None:
        self._on_progress = on_progress
        self._ended = 0
        self._total = 0
        self._going: dict[int, float] = {}
        self.watcher: Callable[[], None] | None = None

    def expect(self, runs: int) -> None:
        """So many runs are waiting or in training."""
        self._total = self._ended + runs
        self._tell()

    def group_went_on(self, job: Job, done: float) -> None:
        self._going[job.number] = done
        self._tell()
        if self.watcher is not None:
            self.watcher()

    def group_ended(self, job: Job, recorded: int) -> None:
        self._going.pop(job.number, None)
        self._ended += recorded
        self._tell()

    def share(self, job: Job) -> float | None:
        """How much of a group's training is done, in [0, 1]; None if that is unknown."""
        done = self._going.get(job.number)
        return None if done is None else done / len(job.group)

    def _tell(self) -> None:
        if self._on_progress is not None:
            self._on_progress(self._ended + sum(self._going.values()), self._total)
