"""Workers killed without warning lose nothing, repeat nothing and leave nothing half-done.

Each is a fork of this process, which has loaded everything: a kill costs a fraction of a second.
"""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import psutil
import pytest

from seqcls.errors import StoreMissingError
from sweeps.api import by_length, failing
from sweeps.api import reading as pages
from sweeps.grid.spec import parse_spec
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_writer
from sweeps.store.reads import sweep_queries
from sweeps.store.reads.selection import Selection
from sweeps.work import worker as working
from sweeps.work.progress import progress
from tests.chaos.moments import AFTER_STATEMENT, BEFORE_STATEMENT, COMMIT, Moments, die, forked
from tests.chaos.sending import SWEEP
from tests.chaos.swept import assert_whole, spec, sweep, written
from tests.conftest import LONG, SHORT

OTHER = parse_spec(
    {
        "name": "other",
        "model_seeds": "2..5",
        "fixed": {**SHORT, "test_max_length": 40},
        "axes": {"train_seed": [1, 2], "hidden_size": [2, 3]},
    }
)
"""Half of its runs are those of the sweep that is trained."""


@contextmanager
def disturbed(path: Path, seed: int) -> Iterator[None]:
    """A block beside which another process does what users do, until it is killed.

    Raises:
        AssertionError: that process ended by itself, with an error.
    """
    child = forked(lambda: _disturb(path, random.Random(seed)))
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the process beside ended with an error"


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


KINDS = (BEFORE_STATEMENT, AFTER_STATEMENT, COMMIT)


@pytest.fixture(scope="module")
def moments(tmp_path_factory: pytest.TempPathFactory) -> int:
    """The number of moments at which a worker may be killed."""
    found = Moments(die, *KINDS)
    with pytest.MonkeyPatch.context() as patched, found.at(0):
        # These models are trained in less time than passes before losses are stored for pages.
        patched.setattr(working, "LOSSES_SECONDS", 0.0)
        sweep(tmp_path_factory.mktemp("counted") / "x.db", "small")
    return found.seen


def is_complete(path: Path) -> bool:
    if not path.exists():
        return False
    found = {one.name: one.done for one in progress(open_writer(str(path)))}
    return found.get("small") == spec("small").num_runs()


def killed(act: Callable[[], None], after: float | None = None) -> bool:
    """Acts in a process that is killed, or kills itself; whether it was before it was over."""
    child = forked(act)
    if after is not None:
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "a worker ended with an error"
    return os.WIFSIGNALED(status)


def sweep_with_kills(path: Path, moments: int, generator: random.Random, *, beside: bool) -> int:
    """Sweeps until all is done in processes that are killed at any moment; how many were."""

    def die_at_a_moment(fatal: int) -> None:
        working.LOSSES_SECONDS = 0.0
        with Moments(die, *KINDS).at(fatal):
            sweep(path, "small")

    kills = 0
    while not is_complete(path) and kills < 40:
        # The first few moments come again after each kill, and more come as more is done.
        last_moment = moments if generator.random() < 0.5 else 30
        fatal = generator.randint(1, last_moment)
        with disturbed(path, kills) if beside else nullcontext():
            # Every third is killed from outside, while no statement is on its way, too.
            after = generator.uniform(0, 1) if kills % 3 == 2 else None
            kills += killed(lambda: die_at_a_moment(0 if after else fatal), after)  # noqa: B023
    sweep(path, "small")
    return kills


@pytest.mark.cases(200)
@pytest.mark.parametrize("beside", [False, pytest.param(True, marks=pytest.mark.skipif(
    not LONG, reason="takes longer"))])  # fmt: skip
def test_a_killed_worker_loses_and_duplicates_no_result(
    tmp_path: Path, moments: int, seed: int, beside: bool
) -> None:
    path = tmp_path / "x.db"
    kills = sweep_with_kills(path, moments, random.Random(seed), beside=beside)
    delete_other(open_writer(str(path)))
    print(f"{kills} kills at one of {moments} moments")
    assert_whole(path, "small")


@pytest.mark.cases(30)
def test_a_killed_command_loses_no_result(tmp_path: Path, seed: int) -> None:
    db = tmp_path / "x.db"
    command = [*SWEEP, str(written("many", tmp_path)), "--workers", "2", "--db", str(db)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    time.sleep(random.Random(seed).uniform(0.2, 6))
    children = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait()
    # Those that train end with it.
    while any(map(lives, children)):
        time.sleep(0.1)
    sweep(db, "many")
    assert_whole(db, "many")


def lives(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False
