"""What others do with a database while its sweep is trained, in a process that is killed too."""

import os
import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from seqcls.errors import StoreMissingError
from sweeps.api import by_length, failing
from sweeps.api import overview as pages
from sweeps.grid.spec import parse_spec
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_writer
from sweeps.store.reads import sweep_queries
from sweeps.store.reads.selection import Selection
from sweeps.work.progress import progress
from tests.conftest import SHORT

OTHER = parse_spec(
    {
        "name": "other",
        "model_seeds": "2..5",
        "fixed": {**SHORT, "test_max_length": 40},
        "axes": {"train_seed": [1, 2], "hidden_size": [2, 3]},
    }
)
"""Half of its runs are those of the sweep that is trained."""


@dataclass
class Disturbing:
    """A process that works beside others."""

    was_killed: bool = False


@contextmanager
def disturbed(path: Path, seed: int) -> Iterator[Disturbing]:
    """A block beside which another process does what users do, until it is killed.

    Raises:
        AssertionError: that process ended by itself, with an error.
    """
    disturbing = Disturbing()
    child = os.fork()
    if child == 0:
        try:
            _disturb(path, random.Random(seed))
        finally:
            os._exit(1)
    try:
        yield disturbing
    finally:
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    disturbing.was_killed = os.WIFSIGNALED(status)
    assert disturbing.was_killed, "what works beside ended with an error"


def delete_other(store: Store) -> None:
    """Deletes the other sweep, if it is there, with the runs that are its alone."""
    for sweep_id in _ids(store, OTHER.name):
        writer.delete(store, sweep_id)


def _disturb(path: Path, generator: random.Random) -> None:
    while True:
        # Where nothing is there yet: the worker that makes it may be killed before it has.
        with suppress(StoreMissingError):
            if path.exists():
                generator.choice(ACTIONS)(open_writer(str(path)))


def _read_pages(store: Store) -> None:
    found = pages.configurations(store, Selection())
    failing.breaking_strings(store, failing.failing_models(store, Selection()), 10)
    sweep_queries.sweep_outcomes(store)
    by_length.curves(store, Selection(), tuple(found["config_id"]))


def _ids(store: Store, name: str | None = None) -> list[int]:
    return [one.id for one in progress(store) if name in (None, one.name)]


ACTIONS: list[Callable[[Store], object]] = [
    lambda store: writer.stop(store, _ids(store)),
    *[lambda store: writer.resume(store, _ids(store))] * 2,
    lambda store: writer.retry(store, _ids(store)),
    lambda store: writer.submit(store, OTHER),
    *(delete_other, _read_pages),
]
