"""Messages over a stream: the length in eight bytes, then what is said, pickled.

A message is there once all of it is; half of one, of a process that died while it spoke, is never
taken for one.
"""

import os
import pickle
import select
import struct
import time
from collections.abc import Sequence
from typing import Any

from seqcls.results import EpochLosses

_LENGTH = struct.Struct("<Q")


def packed(message: object) -> bytes:
    """A message as it goes over the stream."""
    content = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(content)) + content


class Inbox:
    """What has come of messages, in whatever pieces it came."""

    def __init__(self) -> None:
        self._received = bytearray()

    def add(self, piece: bytes) -> None:
        """Takes what came next."""
        self._received += piece

    def next(self) -> Any:
        """The next complete message; None if there is none yet."""
        start = _LENGTH.size
        if len(self._received) < start:
            return None
        (length,) = _LENGTH.unpack_from(self._received)
        if len(self._received) < start + length:
            return None
        content = bytes(self._received[start : start + length])
        del self._received[: start + length]
        return pickle.loads(content)


# A training process reports a group's progress and its epochs' losses through a pipe.
#
# A pipe takes short pieces whole or not at all, and the process never waits for it: progress is
# reported anew with every epoch, and losses that do not go through go with the next.

QUIET_SECONDS = 2.0
"""How long a group trains before losses are reported: most groups are done sooner."""

LOSSES_SECONDS = 1.0
"""Between two reports of losses; an epoch may take a thousandth of it."""

_RECORD = struct.Struct("=dqqdd")
"""How many members' worth is done; a member, its epoch, its losses. All records have one size, so
a piece never ends inside one."""

_NOBODY = -1
"""The member of a record that reports only the share."""

_AT_ONCE = select.PIPE_BUF // _RECORD.size


class ProgressReporter:
    """Reports the progress of one group; the engine calls it after every epoch."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._due = time.monotonic() + QUIET_SECONDS
        self._unreported: list[EpochLosses] = []

    def __call__(self, done: float, epochs: Sequence[EpochLosses]) -> None:
        self._unreported += epochs
        self._write(_RECORD.pack(done, _NOBODY, 0, 0.0, 0.0))
        if time.monotonic() >= self._due:
            self._report_losses(done)
            self._due = time.monotonic() + LOSSES_SECONDS

    def _report_losses(self, done: float) -> None:
        while self._unreported:
            some = self._unreported[:_AT_ONCE]
            if not self._write(b"".join(_RECORD.pack(done, *fields) for fields in some)):
                return
            del self._unreported[:_AT_ONCE]

    def _write(self, piece: bytes) -> bool:
        try:
            os.write(self._pipe, piece)
        except OSError:
            # The pipe is full. Reports can wait; training does not.
            return False
        return True


def reported(piece: bytes) -> tuple[float, list[EpochLosses]]:
    """What a piece that came through the pipe says: the share at its end, and its losses."""
    records = list(_RECORD.iter_unpack(piece))
    return records[-1][0], [EpochLosses(*fields) for _, *fields in records if fields[0] != _NOBODY]
