"""What a worker reports while it trains: that it is alive, how far groups are, their losses."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from seqcls.errors import StoreError
from seqcls.results import EpochLosses
from sweeps.processes import OnProgress
from sweeps.store import writer
from sweeps.store.databases.engine import Store
from sweeps.work.jobs import Job

BEAT_SECONDS = 10.0


@contextmanager
def heartbeat(store: Store, worker_id: int) -> Iterator[None]:
    """Beats for this worker until the block ends, however long one step of training takes."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(BEAT_SECONDS):
            try:
                writer.beat(store, worker_id)
            except StoreError:
                # A missed beat is no harm; a database that stays away is the worker's to report.
                continue

    thread = threading.Thread(target=beat, daemon=True, name="heartbeat")
    thread.start()
    try:
        yield
    finally:
        over.set()
        # Not joined: a beat that waits for a lock would hold up the end of the program.


# How far the groups in training are, added up.


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

    def _tell(self) -> None:
        if self._on_progress is not None:
            self._on_progress(self._ended + sum(self._going.values()), self._total)


# Losses of groups in training, stored now and then, so that a page can draw them meanwhile.

STORE_SECONDS = 1.0
"""So long a group has to train before its losses are stored, and between two times that any are."""

MOST_SHARE = 0.05
"""The share of a worker's time that storing them may take: where the database is slow, they come
seldom."""


class LiveLosses:
    """Losses that a worker has received from its groups, and not stored yet.

    Args:
        store: the database, open for writing.
    """

    def __init__(self, store: Store) -> None:
        self._store = store.without_waiting()
        self._new: dict[int, list[EpochLosses]] = {}
        self._due = time.monotonic() + STORE_SECONDS

    def add(self, job: Job, epochs: Sequence[EpochLosses]) -> None:
        """Takes losses of a job's members."""
        if epochs:
            self._new.setdefault(job.number, []).extend(epochs)

    def store_some(self, held: Iterable[tuple[writer.Claim, Job, float]]) -> None:
        """Stores new losses when they are due; those that cannot be stored are kept for next time.

        Args:
            held: the groups in training, and when each began.
        """
        began = time.monotonic()
        if began < self._due or not self._new:
            return
        in_training = {job.number: (claim, since) for claim, job, since in held}
        # The losses of a group that has ended are stored with its results.
        self._new = {number: new for number, new in self._new.items() if number in in_training}
        due = [number for number in self._new if began - in_training[number][1] >= STORE_SECONDS]
        if due and self._is_stored([(in_training[number][0], self._new[number]) for number in due]):
            for number in due:
                del self._new[number]
        took = time.monotonic() - began
        self._due = began + max(STORE_SECONDS, took / MOST_SHARE)

    def _is_stored(self, losses: Sequence[writer.ClaimLosses]) -> bool:
        try:
            writer.record_losses(self._store, losses)
        except StoreError:
            # They are only looked at; a database that stays away is the worker's to report.
            return False
        return True
