"""Fitting shortcut readers to the tests of finished runs, once there is nothing to train.

No page and no run waits for them: their answers are stored when known, and until then pages state
that they are missing.
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
from sweeps.store.reads.workers import queued_runs
from sweeps.store.shortcuts import fit_shortcuts, unread_tests

_log = logging.getLogger(__name__)


@dataclass
class FittedReaders:
    """The outcome of fitting shortcut readers to tests that lacked them."""

    tests: int = 0
    """Number of tests whose readers were fitted."""
    skipped: dict[int, str] = field(default_factory=dict)
    """The reasons why test sets have no readers, by id."""
    is_queued: bool = False
    """True if it ended early because runs were queued."""


def are_fitted_after_training() -> bool:
    """True if workers fit readers: unless `SEQCLS_SHORTCUTS` is 0, false, no or off."""
    return not is_off(os.environ.get("SEQCLS_SHORTCUTS") or "on")


def fit_readers(
    store: Store,
    sweep_ids: Sequence[int] | None = None,
    on_progress: OnProgress | None = None,
    *,
    until_queued: bool = False,
    but: Collection[int] = (),
) -> FittedReaders:
    """Fits shortcut readers to every test of finished runs that lacks them.

    The readers of each test are stored as soon as they are fitted, before any interruption.

    Args:
        until_queued: True to end as soon as runs of these sweeps are queued, after the present
            test.
        but: ids of test sets that are left out.

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
        # The readers of other tests could not be stored either.
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
    """Makes the callback of a waiting worker, which fits readers until runs are queued."""
    seen, skipped = -1, set[int]()

    def fit() -> None:
        nonlocal seen
        # New tests appear only with a new revision.
        if (now := revision(store)) != seen:
            fitted = fit_readers(store, sweep_ids, until_queued=True, but=skipped)
            # Skipped tests would be tried again after every write.
            skipped.update(fitted.skipped)
            seen = seen if fitted.is_queued else now

    return fit
