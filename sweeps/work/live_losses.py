"""Losses of groups in training, stored now and then, so that a page can draw them meanwhile."""

import time
from collections.abc import Iterable, Sequence

from seqcls.errors import StoreError
from seqcls.results import EpochLosses
from sweeps.store import writer
from sweeps.store.databases.engine import Store
from sweeps.work.jobs import Job

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
        self._store = store.hurried()
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
