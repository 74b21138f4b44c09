"""What a training process tells of a group through a pipe: how far it is, and epochs' losses.

A pipe takes short pieces whole or not at all, and nobody waits for it here: how far a group is, is
told anew with every epoch; losses that do not go through go with the next.
"""

import os
import select
import struct
import time
from collections.abc import Sequence

from seqcls.results import EpochLosses

QUIET_SECONDS = 2.0
"""So long a group has to train before losses are told: most are done sooner."""

TELL_SECONDS = 1.0
"""Between two times that losses are told; an epoch may take a thousandth of it."""

_TOLD = struct.Struct("=dqqdd")
"""How many members' worth is done; a member, its epoch, its losses. All of one size, so that what
comes through is never cut where a piece ends."""

_NOBODY = -1
"""The member where only the share is told."""

_AT_ONCE = select.PIPE_BUF // _TOLD.size


class Told:
    """What a process tells of one group; called by the engine after every epoch."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._due = time.monotonic() + QUIET_SECONDS
        self._untold: list[EpochLosses] = []

    def __call__(self, done: float, epochs: Sequence[EpochLosses]) -> None:
        self._untold += epochs
        self._write(_TOLD.pack(done, _NOBODY, 0, 0.0, 0.0))
        if time.monotonic() >= self._due:
            self._tell(done)
            self._due = time.monotonic() + TELL_SECONDS

    def _tell(self, done: float) -> None:
        while self._untold:
            some = self._untold[:_AT_ONCE]
            if not self._write(b"".join(_TOLD.pack(done, *fields) for fields in some)):
                return
            del self._untold[:_AT_ONCE]

    def _write(self, piece: bytes) -> bool:
        try:
            os.write(self._pipe, piece)
        except OSError:
            # Nobody reads it at the moment. That can wait; training does not.
            return False
        return True


def heard(piece: bytes) -> tuple[float, list[EpochLosses]]:
    """What a piece that came through the pipe says: the share at its end, and its losses."""
    records = list(_TOLD.iter_unpack(piece))
    return records[-1][0], [EpochLosses(*fields) for _, *fields in records if fields[0] != _NOBODY]
