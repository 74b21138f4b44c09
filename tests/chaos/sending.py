"""Training processes that are killed or suspended while they send results."""

import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

import psutil

from tests.commands import SEQCLS

TRAINING = "sweeps.work.executors.pool"
"""In the command line of a training process, and of no other."""

SWEEP = [*SEQCLS, "sweep"]
MAX_LOST = 2
"""A run that is lost once more counts as failed."""


def training_process(process: psutil.Process) -> psutil.Process | None:
    """The one that has computed most; None where none computes yet."""
    return max(training_processes(process), key=computed, default=None)


def training_processes(process: psutil.Process) -> list[psutil.Process]:
    """Those that train for a process that hands out groups, in the order of their starts.

    A process that runs tests has other children too, such as a dashboard and a browser.
    """
    try:
        below = process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    return sorted(filter(_trains, below), key=lambda own: (own.create_time(), own.pid))


def _trains(process: psutil.Process) -> bool:
    try:
        return TRAINING in process.cmdline()
    except psutil.NoSuchProcess:
        return False


def computed(process: psutil.Process) -> float:
    """Seconds of computing, 0 where the process is dead."""
    try:
        dead = process.status() == psutil.STATUS_ZOMBIE
        return 0.0 if dead else sum(process.cpu_times()[:2])
    except psutil.NoSuchProcess:
        return 0.0


def wait_until_it_sends(sweep: psutil.Process, db: Path) -> psutil.Process | None:
    """Stops the sweep while a group is trained, and waits until the child waits for it.

    Returns:
        The child; None where the sweep ended before that. The sweep stays stopped.
    """
    while sweep.is_running() and sweep.status() != psutil.STATUS_ZOMBIE:
        if not in_training(db):
            time.sleep(0.01)
            continue
        child = training_process(sweep)
        if child is not None and computed(child) > 0.3:
            stop(sweep)
            if in_training(db):
                wait_until_still(child)
                return child
            sweep.resume()
        time.sleep(0.01)
    return None


def in_training(db: Path) -> bool:
    """Return True if there are runs in training that may be lost without being given up.

    Not those of the first group: a process computes before it comes, for its imports.
    """
    try:
        with closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True, timeout=5)) as connection:
            ((done, failures),) = connection.execute(
                "SELECT (SELECT count(*) FROM run WHERE state = 'done'), max(failures) FROM run "
                "WHERE state = 'running'"
            )
    except sqlite3.Error:
        return False
    return done > 0 and failures is not None and failures < MAX_LOST


def wait_until_still(child: psutil.Process) -> None:
    """Until a process computes nothing any longer: it waits for somebody to read.

    One that could compute, but has no processor on a busy machine, does not wait.
    """
    before = -1.0
    while (now := computed(child)) != before or child.status() == psutil.STATUS_RUNNING:
        before = now
        time.sleep(0.3)


def stop(process: psutil.Process) -> None:
    """Suspends a process, unless it ends; on a busy machine it may run on for a moment."""
    process.suspend()
    while process.status() not in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE):
        time.sleep(0.01)


def last_words(process: "subprocess.Popen[str]") -> str:
    """The standard error of a process until its end; it is killed where the test times out."""
    try:
        return process.communicate()[1]
    finally:
        process.kill()
