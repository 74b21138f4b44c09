"""Workers killed without warning lose nothing, repeat nothing and leave nothing half-done.

Each is a fork of this process, which has loaded everything: a kill costs a fraction of a second.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from sweeps.grid.spec import SweepSpec, parse_spec
from sweeps.store import writer
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.verification import verify
from sweeps.work import reports
from sweeps.work.machine import WorkOptions
from sweeps.work.progress import progress
from sweeps.work.worker import work
from tests.chaos.beside import delete_other, disturbed
from tests.chaos.contents import contents
from tests.chaos.moments import AFTER_STATEMENT, BEFORE_STATEMENT, COMMIT, Moments, die
from tests.chaos.sending import training_processes
from tests.conftest import LONG, SHORT

SPEC = parse_spec(
    {
        "name": "chaos",
        "model_seeds": "0..3",
        "verdict": True,
        "checkpoints": "every_epoch",
        "fixed": {**SHORT, "test_max_length": 40},
        "axes": {"train_seed": [1, 2], "hidden_size": [2, 3]},
    }
)
POOL: dict[str, Any] = {
    "name": "pool",
    "model_seeds": "0..15",
    "fixed": {**SHORT, "train_size": 2048},
    "axes": {"train_seed": [1, 2, 3, 4], "hidden_size": [2, 3]},
}
SWEEP = [sys.executable, "-m", "sweeps", "sweep"]


def sweep(path: Path, spec: SweepSpec = SPEC) -> None:
    store = open_writer(str(path))
    sweep_id = writer.submit(store, spec)
    # Whoever works beside may have stopped it.
    writer.resume(store, [sweep_id])
    work(store, [sweep_id], WorkOptions(0))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], int]:
    """What a sweep's database says, and at how many moments its worker may be killed."""
    path = tmp_path_factory.mktemp("undisturbed") / "x.db"
    with pytest.MonkeyPatch.context() as patched:
        # These models are trained in less time than passes before losses are stored for pages.
        patched.setattr(reports, "STORE_SECONDS", 0.0)
        moments = Moments(die, BEFORE_STATEMENT, AFTER_STATEMENT, COMMIT)
        with moments.at(0):
            sweep(path)
    return contents(open_reader(str(path))), moments.seen


def is_complete(path: Path) -> bool:
    if not path.exists():
        return False
    found = {one.name: one.done for one in progress(open_writer(str(path)))}
    return found.get(SPEC.name) == SPEC.num_runs()


def killed(act: Callable[[], None], after: float | None = None) -> bool:
    """Acts in a process that is killed, or kills itself; whether it was before it was over."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            act()
            status = 0
        finally:
            os._exit(status)
    if after is not None:
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "a worker ended with an error"
    return os.WIFSIGNALED(status)


def sweep_with_kills(path: Path, moments: int, generator: random.Random, *, beside: bool) -> int:
    """Sweeps until all is done in processes that are killed at any moment; how many were."""

    def die_at_a_moment(fatal: int) -> None:
        reports.STORE_SECONDS = 0.0
        with Moments(die, BEFORE_STATEMENT, AFTER_STATEMENT, COMMIT).at(fatal):
            sweep(path)

    kills = 0
    while not is_complete(path) and kills < 40:
        # The first few moments come again after each kill, and more come as more is done.
        most = moments if generator.random() < 0.5 else 30
        fatal = generator.randint(1, most)
        with disturbed(path, kills) if beside else nullcontext():
            # Every third is killed from outside, while no statement is on its way, too.
            after = generator.uniform(0, 1) if kills % 3 == 2 else None
            kills += killed(lambda: die_at_a_moment(0 if after else fatal), after)  # noqa: B023
    sweep(path)
    return kills


@pytest.mark.cases(200)
@pytest.mark.parametrize("beside", [False, pytest.param(True, marks=pytest.mark.skipif(
    not LONG, reason="takes longer"))])  # fmt: skip
def test_a_killed_worker_loses_nothing_and_doubles_nothing(
    tmp_path: Path, undisturbed: tuple[dict[str, str], int], seed: int, beside: bool
) -> None:
    wanted, moments = undisturbed
    path = tmp_path / "x.db"
    kills = sweep_with_kills(path, moments, random.Random(seed), beside=beside)
    delete_other(path)
    print(f"{kills} kills at one of {moments} moments")
    store = open_reader(str(path))
    assert verify(store).damages == []
    assert contents(store) == wanted


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A specification for a pool of processes, and what its database should say."""
    folder = tmp_path_factory.mktemp("pool")
    lines = [f"{name} = {value}" for name, value in POOL["fixed"].items()]
    axes = [f"{name} = {values}" for name, values in POOL["axes"].items()]
    text = ['name = "pool"', 'model_seeds = "0..15"', "[fixed]", *lines, "[axes]", *axes]
    (folder / "pool.toml").write_text("\n".join(text))
    sweep(folder / "x.db", parse_spec(POOL))
    return folder / "pool.toml", contents(open_reader(str(folder / "x.db")))


@pytest.mark.cases(30)
@pytest.mark.parametrize("what", ["command", pytest.param("processes", marks=pytest.mark.skipif(
    not LONG, reason="takes longer"))])  # fmt: skip
def test_a_killed_command_or_its_processes_cost_attempts_and_no_result(
    tmp_path: Path, pool: tuple[Path, dict[str, str]], seed: int, what: str
) -> None:
    spec, wanted = pool
    generator, db = random.Random(seed), tmp_path / "x.db"
    process = subprocess.Popen(
        [*SWEEP, str(spec), "--workers", "2", "--db", str(db)], stderr=subprocess.DEVNULL
    )
    if what == "command":
        time.sleep(generator.uniform(0.2, 6))
        process.kill()
        process.wait()
    else:
        kill_some(process, generator)
    store = open_writer(str(db))
    sweep_id = writer.submit(store, parse_spec(POOL))
    # Three lost attempts make a run fail; it may be the fault of the run, for all that is seen.
    writer.retry(store, [sweep_id])
    work(store, [sweep_id], WorkOptions(0))
    assert contents(open_reader(str(db))) == wanted
    assert verify(open_reader(str(db))).damages == []


def kill_some(command: "subprocess.Popen[bytes]", generator: random.Random) -> None:
    """Kills up to five processes that train for a command, until it ends."""
    kills = 0
    while command.poll() is None:
        time.sleep(generator.uniform(0.2, 1))
        with suppress(psutil.NoSuchProcess):
            training = training_processes(psutil.Process(command.pid))
            if training and kills < 5:
                generator.choice(training).kill()
                kills += 1
