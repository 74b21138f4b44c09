"""Groups are timed in a process of their own, which shows too how long one takes to start.

A command starts it first, and imports what it needs itself while that process does the same: little
is imported here.
"""

import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import Self

from sweeps.processes.python import python
from sweeps.work.timing.times import GroupTime, GroupToTime, Times

CHUNK_BYTES = 1 << 16


class Stopwatch:
    """Times groups, in one process for as long as it is open; one that has ended is started anew.

    What this machine has timed before it looks up.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __call__(self, groups: Sequence[GroupToTime]) -> Times:
        """Times groups, one after another while there is time; those named first come first."""
        from sweeps.work.timing.remembered import Remembered

        known = Remembered()
        new = [each for each in groups if known.of(each) is None]
        if new:
            known.add(new, self._answered(new))
        return known.times(groups)

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.kill()
            with suppress(OSError), self._process:
                pass
            self._process = None

    def start(self) -> "subprocess.Popen[bytes] | None":
        """Has the process import what it needs before it is asked; None where there can be none."""
        if self._process is not None and self._process.poll() is not None:
            self.close()
        if self._process is None:
            with suppress(OSError):
                self._process = subprocess.Popen(
                    python("sweeps.work.timing.answering"),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
        return self._process

    def _answered(self, groups: Sequence[GroupToTime]) -> Times:
        from seqcls.datasets.known import dataset_of
        from sweeps.work.executors.messages import Inbox, packed

        if (process := self.start()) is None:
            return Times()
        assert process.stdin is not None
        assert process.stdout is not None
        digests = sorted({each.config.dataset for each in groups} - {""})
        contents = [dataset_of(digest).to_bytes() for digest in digests]
        with suppress(OSError):
            process.stdin.write(packed((list(groups), contents)))
            process.stdin.flush()
        inbox = Inbox()
        times: dict[str, GroupTime] = {}
        while piece := os.read(process.stdout.fileno(), CHUNK_BYTES):
            inbox.add(piece)
            while (said := inbox.next()) is not None:
                if isinstance(said, float):
                    return Times(said, times)
                times |= {key: time for key, time in said.items() if time is not None}
        # It died of the last group.
        self.close()
        return Times(0.0, times)


def time_groups(groups: Sequence[GroupToTime]) -> Times:
    """Times groups, in a process for this question alone."""
    watch = Stopwatch()
    try:
        return watch(groups)
    finally:
        watch.close()
