"""Signals that end a program: the first asks it to end soon, the second ends it now."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def heeded() -> list[signal.Signals]:
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
            sys.exit(128 + number)
        self.signal = number


@contextmanager
def gentle_interruption() -> Iterator[Interruption]:
    """Within the block, the first signal is only remembered; in the main thread, that is."""
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    before = {number: signal.signal(number, interruption.receive) for number in heeded()}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
