"""Shortcut readers, fitted to the tests of finished runs once there is nothing to train.

No page and no run waits for them: what they reach is stored beside the test set when it is known,
and until then pages say that the readers have not been asked.
"""

import logging
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from seqcls.errors import SeqclsError, StoreUnavailableError
from sweeps.access import is_off
from sweeps.grid.grouping import split_by_packages
from sweeps.processes import OnProgress
from sweeps.store.database import Store
from sweeps.store.reads.queries import revision
from sweeps.store.reads.shortcuts import unread_tests
from sweeps.store.reads.workers import queued_runs
from sweeps.store.writes.shortcuts import fit_shortcuts

_log = logging.getLogger(__name__)


@dataclass
class FittedReaders:
    """What became of the tests that no shortcut readers had been asked about."""

    tests: int = 0
    """Those that they were asked about now."""
    skipped: dict[int, str] = field(default_factory=dict)
    """Why no readers can be asked about a test set, by its id."""
    is_queued: bool = False
    """Whether it ended early since runs were queued."""


def are_fitted_after_training() -> bool:
    """Whether workers fit readers: unless `SEQCLS_SHORTCUTS` is 0, false, no or off."""
    return not is_off(os.environ.get("SEQCLS_SHORTCUTS") or "on")


def fit_readers(
    store: Store,
    sweep_ids: Sequence[int] | None = None,
    on_progress: OnProgress | None = None,
    *,
    until_queued: bool = False,
    but: Collection[int] = (),
) -> FittedReaders:
    """Fits shortcut readers to every test of finished runs that none were asked about.

    Each test's are stored as they are fitted: what was stored before an interruption stays.

    Args:
        until_queued: end once there are runs of these sweeps to train, after the test at hand.
        but: test sets that are left out, by their ids.

    Raises:
        StoreUnavailableError: the database cannot be read or written any longer.
    """
    fitted = FittedReaders()
    unread = [test for test in unread_tests(store, sweep_ids) if test.test_set_id not in but]
    # Workers that end at the same time begin at different tests.
    first = os.getpid() % max(1, len(unread))
    for number, test in enumerate(unread[first:] + unread[:first]):
        if until_queued and split_by_packages(queued_runs(store, sweep_ids))[0]:
            fitted.is_queued = True
            break
        if on_progress is not None:
            on_progress(number, len(unread))
        try:
            reason = fit_shortcuts(store, test)
        # Of other tests nothing could be stored either.
        except StoreUnavailableError:
            raise
        except SeqclsError as error:
            reason = str(error)
        fitted.tests += reason is None
        if reason is not None:
            fitted.skipped[test.test_set_id] = reason
            _log.warning("no shortcut readers for test set %d: %s", test.test_set_id, reason)
    return fitted


def fit_when_idle(store: Store, sweep_ids: Sequence[int] | None = None) -> Callable[[], None]:
    """What a worker that waits for runs calls again and again: it fits readers until there are
    some.
    """
    seen, skipped = -1, set[int]()

    def fit() -> None:
        nonlocal seen
        # Only where something was written are there tests that were not there before.
        if (now := revision(store)) != seen:
            fitted = fit_readers(store, sweep_ids, until_queued=True, but=skipped)
            # What has no readers now would be tried again after every write.
            skipped.update(fitted.skipped)
            seen = seen if fitted.is_queued else now

    return fit
