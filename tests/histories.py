"""Runs of the shipped database with all their epochs, for tests of figures."""

from functools import lru_cache

from dashboard.figures.history import History
from sweeps.store.opening import open_reader
from sweeps.store.reads import queries
from sweeps.store.reads.checkpoints import stored_model
from tests.conftest import ROOT


@lru_cache
def shipped(reference: str) -> History:
    """A run such as `all_initializations/2`, from before its training on."""
    store = open_reader(str(ROOT / "runs.db"))
    return History.of(stored_model(store, queries.find_run(store, reference)), with_initial=True)
