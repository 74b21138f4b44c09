"""Processes of this program: how they begin, what they do beside their work, how they end."""

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

# How long work says how far it is.

OnProgress = Callable[[float, int], None]
"""Told how many runs are done, parts of runs included where they are known, and of how many."""


# How seldom this program's processes look for garbage that refers to itself.
#
# Python looks after every 700 new objects, now and then through all there are. A process that loads
# PyTorch makes a million that stay: the search took a third of its start, and half a second of its
# end (CPython 3.11, PyTorch 2.13).

OBJECTS = 50_000
"""Containers made and not freed until Python looks again: a few megabytes."""


def collect_seldom() -> None:
    """To be called before anything large is loaded."""
    gc.set_threshold(OBJECTS)


def end_without_collecting() -> None:
    """To be called last: all that is in memory is left to the system."""
    # What is frozen is left out of the collection at the interpreter's end.
    gc.freeze()


# By default glibc returns what large tensors leave free to the system, which clears each page of
# the next ones: a quarter of a step of Mamba (five models, width 16, 128 strings of 20 tokens).

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3


def keep_freed_memory() -> None:
    """For processes that train: what is freed is used again. Elsewhere than with glibc it does
    nothing.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if set_option is not None:
        # 32 MiB, the most that glibc takes: larger blocks are mapped and given back each time.
        set_option(M_MMAP_THRESHOLD, 1 << 25)
        # Up to 1 GiB that is free at the end of the heap stays with the process.
        set_option(M_TRIM_THRESHOLD, 1 << 30)


# What is tried again, since nothing of it lasts.

lasting = 0
"""How often this process has printed something, or ended a transaction that writes."""

AGAIN_SECONDS = (0.2, 1.0)
"""How long it is waited before what lost its connection is tried a second time, and a third."""

Answer = TypeVar("Answer")


def note_lasting() -> None:
    """Has it known that something may last: what did that is not done twice."""
    global lasting
    lasting += 1


def retry_lost(act: Callable[[], Answer]) -> Answer:
    """What an action gives, tried again where a server ended its connection before any of it lasts.

    Raises:
        StoreLostError: the connection was lost each time, or after something was kept.
    """
    before = lasting
    for seconds in AGAIN_SECONDS:
        try:
            return act()
        except StoreLostError:
            # A second try would print or store something twice.
            if lasting != before:
                raise
        time.sleep(seconds)
    return act()


# Signals that end a program: the first asks it to end soon, the second ends it now.

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def ending_signals() -> list[signal.Signals]:
    """The signals that end this program: `nohup` has it ignore that its terminal is closed."""
    ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return [number for number in SIGNALS if not (ignored and number == signal.SIGHUP)]


class Interruption:
    """Whether the program was asked to end, and by which signal."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def receive(self, number: int, _frame: FrameType | None) -> None:
        """Remembers the first signal; the second ends the program as it would have without this."""
        if self.signal is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        if self.signal is not None:
            # The shell's convention for an end by signal N.
            sys.exit(128 + number)
        self.signal = number


@contextmanager
def gentle_interruption() -> Iterator[Interruption]:
    """Within the block, the first signal is only remembered; in the main thread, that is."""
    interruption = Interruption()
    # Python lets only the main thread set handlers of signals.
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    before = {number: signal.signal(number, interruption.receive) for number in ending_signals()}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# How this program starts Python anew: the working directory's files are no part of it.


def python(module: str, *arguments: str) -> list[str]:
    """The command that runs an installed module.

    With -P no file such as `array.py` or `sweeps.py` that happens to lie in the working directory
    is taken for the module of that name.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


def environment_of(address: str) -> dict[str, str]:
    """The environment of a process that works on a database, and says at once what it has to say.

    The database's address goes by it: a command line, which all may read, shows no password.
    """
    # Imported here: what only counts its signals loads no more for it.
    from sweeps.access import DB_VARIABLE

    return {**os.environ, DB_VARIABLE: address, "PYTHONUNBUFFERED": "1"}
