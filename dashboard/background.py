"""Causes are found after training, in the background: first those of models that are looked at.

A server does it, in one process at a time; commands, tests and servers that only read do not.
"""

import threading
from collections.abc import Sequence

from seqcls.errors import SeqclsError
from sweeps.access import is_read_only
from sweeps.api import Store, open_reader
from sweeps.api.cause_search import start_cause_search
from sweeps.api.failing import failing_models, waiting
from sweeps.api.reading import Selection, revision
from sweeps.work.progress import progress

SECONDS = 1.0
"""After so long it looks again; ten times as long where the database cannot be read."""

AT_ONCE = 64
"""Models of a process, which takes a second or two to begin."""

MAX_REQUESTED = 1_000


class CauseFinder:
    """Finds the causes of the failing models of the server's database."""

    def __init__(self) -> None:
        # Pages request models in their sessions' threads, and the finder takes them in its own.
        self._lock = threading.Lock()
        self._requested: list[int] = []
        self._tried: set[int] = set()
        """Models that were looked into: those without causes by now get none."""
        self._seen: object = None
        """The state of the database in which nothing was left to be done."""
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="causes", daemon=True)

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def stop(self) -> None:
        """Ends, with the process that is at work."""
        self._ends.set()
        self._thread.join()

    def request(self, run_ids: Sequence[int]) -> None:
        """Has these models looked into before all others."""
        with self._lock:
            new = [run_id for run_id in run_ids if run_id not in self._tried]
            # The newest request goes first: somebody is looking at that page now.
            self._requested = list(dict.fromkeys([*new, *self._requested]))[:MAX_REQUESTED]

    def _run(self) -> None:
        while not self._ends.wait(SECONDS):
            try:
                self._find(open_reader())
            except (SeqclsError, OSError):
                # It may be busy, or not there yet: a sweep can be launched from a page.
                self._ends.wait(10 * SECONDS)

    def _find(self, store: Store) -> None:
        """Finds causes of some models; of unrequested ones only until one is requested."""
        with self._lock:
            requested, self._requested = self._requested[:AT_ONCE], self._requested[AT_ONCE:]
            # At once: a page that is drawn meanwhile does not request them again.
            self._tried.update(requested)
        run_ids = requested or self._others(store)[:AT_ONCE]
        if not run_ids:
            return
        with self._lock:
            self._tried.update(run_ids)
        process = start_cause_search(store, run_ids)
        while process.poll() is None:
            if self._ends.wait(SECONDS / 4) or (self._requested and not requested):
                process.terminate()
                # One process at a time: the next begins only once this one is gone.
                process.wait()
                with self._lock:
                    # What was cut short may be tried again.
                    self._tried.difference_update(run_ids)

    def _others(self, store: Store) -> list[int]:
        """Failing models that nobody requested; none while a sweep is in training."""
        state = (store.location, revision(store))
        # Training has the processors first; a sweep whose worker died takes none of them.
        if state == self._seen or any(sweep.running > sweep.orphaned for sweep in progress(store)):
            return []
        run_ids, _ = waiting(store, failing_models(store, Selection()))
        found = [run_id for run_id in run_ids if run_id not in self._tried]
        self._seen = None if found else state
        return found


_finder: CauseFinder | None = None


def start() -> None:
    """Begins to find causes, where this process may write."""
    global _finder
    if not is_read_only():
        _finder = CauseFinder()
        _finder.start()


def stop() -> None:
    """Ends what `start` began."""
    global _finder
    if _finder is not None:
        _finder.stop()
        _finder = None


def request(run_ids: Sequence[int]) -> bool:
    """Has these models looked into before all others; whether anybody looks into any."""
    if _finder is not None:
        _finder.request(run_ids)
    return _finder is not None
