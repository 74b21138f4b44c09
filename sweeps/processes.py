"""Processes of this program: starting them, memory, retries, and signals that end them."""

import ctypes
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

from seqcls.errors import StoreLostError

OnProgress = Callable[[float, int], None]
"""A callback with the number of runs done, including fractions if known, and the total."""


# Garbage collection.
#
# By default Python collects after every 700 new objects, sometimes over all objects. A process that
# loads PyTorch makes a million that stay: collection took a third of its start, and half a second
# of its end (CPython 3.11, PyTorch 2.13).

OBJECTS = 50_000
"""New containers between two collections: a few megabytes."""


def collect_seldom() -> None:
    """Makes garbage collection rare; called before anything large is loaded."""
    gc.set_threshold(OBJECTS)


def end_without_collecting() -> None:
    """Prevents the collection at the interpreter's end; called last."""
    # Frozen objects are left out of it, and freed by the system.
    gc.freeze()


# By default glibc returns the freed memory of large tensors to the system, which clears each page
# of the next ones: a quarter of a step of Mamba (five models, width 16, 128 strings of 20 tokens).

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3


def keep_freed_memory() -> None:
    """Lets a process that trains reuse freed memory; does nothing without glibc."""
    set_option = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if set_option is not None:
        # 32 MiB, glibc's maximum: larger blocks are mapped and returned each time.
        set_option(M_MMAP_THRESHOLD, 1 << 25)
        # Up to 1 GiB of free memory at the end of the heap is not returned.
        set_option(M_TRIM_THRESHOLD, 1 << 30)


# Retries of actions without lasting effects.

lasting = 0
"""The number of prints and of committed transactions of this process."""

AGAIN_SECONDS = (0.2, 1.0)
"""Delays before an action that lost its connection is tried a second time, and a third."""

Answer = TypeVar("Answer")


def note_lasting() -> None:
    """Counts a lasting effect: the action that had it is not repeated."""
    global lasting
    lasting += 1


def retry_lost(act: Callable[[], Answer]) -> Answer:
    """The result of an action, repeated if a server ended its connection before any lasting effect.

    Raises:
        StoreLostError: the connection was lost each time, or after a lasting effect.
    """
    before = lasting
    for seconds in AGAIN_SECONDS:
        try:
            return act()
        except StoreLostError:
            # Another try would print or store something twice.
            if lasting != before:
                raise
        time.sleep(seconds)
    return act()


# Signals that end a program: the first asks it to end soon, the second ends it now.

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def ending_signals() -> list[signal.Signals]:
    """The signals that end this program, without SIGHUP under `nohup`."""
    ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return [number for number in SIGNALS if not (ignored and number == signal.SIGHUP)]


class Interruption:
    """The first signal that asked the program to end; None before."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def receive(self, number: int, _frame: FrameType | None) -> None:
        """Stores the first signal; the second ends the program as by default."""
        if self.signal is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        if self.signal is not None:
            # The shell's convention for an end by signal N.
            sys.exit(128 + number)
        self.signal = number


@contextmanager
def gentle_interruption() -> Iterator[Interruption]:
    """Stores the first signal within the block instead of ending; in the main thread only."""
    interruption = Interruption()
    # Python allows only the main thread to set signal handlers.
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    before = {number: signal.signal(number, interruption.receive) for number in ending_signals()}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# New Python processes, which import nothing from the working directory.


def python(module: str, *arguments: str) -> list[str]:
    """The command that runs an installed module.

    With -P no file such as `array.py` or `sweeps.py` in the working directory is imported in place
    of the module of that name.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


def environment_of(address: str) -> dict[str, str]:
    """The environment of a process that works on a database, with unbuffered output.

    It contains the database's address, whose password a command line would reveal to all users.
    """
    # Imported here, so that other users of this module load less.
    from sweeps.access import DB_VARIABLE

    return {**os.environ, DB_VARIABLE: address, "PYTHONUNBUFFERED": "1"}
