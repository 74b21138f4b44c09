"""Kills workers with SIGKILL at named points and at random moments, until sweeps are complete.

Run as `python -m tests.chaos.kills KILLS FOLDER [beside]`; prints what it saw as JSON. Workers are
forks of this process, which has loaded everything: so a kill costs a fraction of a second. With
`beside`, another process stops, resumes, retries, submits, deletes and reads meanwhile, and is
killed too.
"""

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

from sweeps.grid.spec import parse_spec
from sweeps.store import writer
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.verification import verify
from sweeps.work import reports
from sweeps.work.machine import WorkOptions
from sweeps.work.progress import progress
from sweeps.work.worker import work
from tests.chaos.beside import delete_other, disturbed
from tests.chaos.contents import contents
from tests.conftest import SHORT

SPEC = parse_spec(
    {
        "name": "chaos",
        "model_seeds": "0..3",
        "verdict": True,
        "checkpoints": "every_epoch",
        "fixed": {**SHORT, "test_max_length": 40},
        "axes": {"train_seed": [1, 2, 3, 4], "hidden_size": [2, 3]},
    }
)

POINTS = {
    "runs are added, nothing committed": (
        "sweeps.store.writes.sweep_actions",
        "add_members",
        "after",
    ),
    "the sweep is submitted": ("sweeps.store.writer", "submit", "after"),
    "the worker is known": ("sweeps.store.writer", "register_worker", "after"),
    "before a claim": ("sweeps.store.writer", "claim", "before"),
    "claimed, nothing committed": ("sweeps.store.writes.claiming", "update_states", "after"),
    "claimed": ("sweeps.store.writer", "claim", "after"),
    "initial values are drawn": ("sweeps.work.worker", "make_job", "after"),
    "losses are stored, nothing committed": (
        "sweeps.store.writes.recording",
        "insert_new",
        "after",
    ),
    "losses of models in training are stored": ("sweeps.store.writer", "record_losses", "after"),
    "trained and tested": ("sweeps.work.executors", "run_job", "after"),
    "before results are stored": ("sweeps.store.writer", "record", "before"),
    "some tables' rows are stored": ("sweeps.store.writes.recording", "insert_rows", "after"),
    "a group's results are stored": ("sweeps.store.writes.recording", "insert_results", "after"),
    "the sums are raised": ("sweeps.store.writes.recording", "sweeps_of", "before"),
    "states are changed, nothing committed": (
        "sweeps.store.writes.recording",
        "update_states",
        "after",
    ),
    "committed": ("sweeps.store.writer", "record", "after"),
    "before the worker ends": ("sweeps.store.writer", "end_worker", "before"),
}
"""Between the submission and the end: a function of a module, before or after its call."""

PASSED_ONCE = {
    "runs are added, nothing committed",
    "the sweep is submitted",
    "the worker is known",
    "before the worker ends",
}


def main(kills: int, folder: Path, beside: bool = False) -> dict[str, Any]:
    """Kills so many processes; the databases of all sweeps that became complete are compared."""
    # These models are trained in less time than passes before losses are stored for pages.
    reports.STORE_SECONDS = 0.0
    undisturbed = open_writer(str(folder / "undisturbed.db"))
    # The first may have to compile the engine, which none of the others has.
    _sweep(folder / "undisturbed.db")
    started = time.monotonic()
    _sweep(folder / "timed.db")
    seconds = time.monotonic() - started
    wanted = contents(undisturbed)
    generator = random.Random(0)
    seen: dict[str, Any] = {"kills": 0, "points": {}, "sweeps": 0, "differing": [], "damages": []}
    while seen["kills"] < kills:
        path = folder / f"sweep{seen['sweeps']}.db"
        while not _is_complete(path):
            point, nth = _moment(seen["kills"], generator)
            after = None if point else generator.uniform(0, seconds)
            with disturbed(path, seen["kills"]) if beside else nullcontext() as disturbing:
                killed = _killed(path, point, nth, after)
            if disturbing is not None and disturbing.was_killed:
                seen["kills"] += 1
                seen["points"]["beside"] = seen["points"].get("beside", 0) + 1
            if killed:
                seen["kills"] += 1
                name = point or "at a random moment"
                seen["points"][name] = seen["points"].get(name, 0) + 1
            if seen["kills"] >= kills:
                _sweep(path)
        delete_other(path)
        store = open_reader(str(path))
        seen["damages"] += [str(damage) for damage in verify(store).damages]
        if contents(store) != wanted:
            seen["differing"].append(str(path))
        seen["sweeps"] += 1
    return seen


def _moment(kills: int, generator: random.Random) -> tuple[str | None, int]:
    """Every point in turn, at its first or a later passing; every third kill at any moment."""
    if kills % 3 == 2:
        return None, 0
    points = list(POINTS)
    point = points[(kills - kills // 3) % len(points)]
    return point, 1 if point in PASSED_ONCE else generator.randint(1, 3)


def _is_complete(path: Path) -> bool:
    if not path.exists():
        return False
    found = {one.name: one.done for one in progress(open_writer(str(path)))}
    return found.get(SPEC.name) == SPEC.num_runs()


def _sweep(path: Path) -> None:
    store = open_writer(str(path))
    sweep_id = writer.submit(store, SPEC)
    # Whoever works beside may have stopped it.
    writer.resume(store, [sweep_id])
    work(store, [sweep_id], WorkOptions(0))


def _killed(path: Path, point: str | None, nth: int, after: float | None) -> bool:
    """Sweeps in a process that is killed; whether that happened before the sweep was over."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if point is not None:
                _arm(*POINTS[point], nth)
            _sweep(path)
            status = 0
        finally:
            os._exit(status)
    if after is not None:
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0:
        raise AssertionError("a worker ended with an error")
    return os.WIFSIGNALED(status)


def _arm(module: str, name: str, when: str, nth: int) -> None:
    """Makes the n-th call of a function the last thing that this process does."""
    home = import_module(module)
    original: Callable[..., Any] = getattr(home, name)
    calls = 0

    def fatal(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == nth and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = original(*args, **kwargs)
        if calls == nth:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(home, name, fatal)


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:] == ["beside"])))
