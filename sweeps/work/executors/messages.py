"""Messages over a stream: the length in eight bytes, then what is said, pickled.

A message is there once all of it is; half of one, of a process that died while it spoke, is never
taken for one.
"""

import os
import pickle
import select
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from typing import Any

from seqcls.results import EpochLosses

_LENGTH = struct.Struct("<Q")


CHUNK_BYTES = 1 << 20
"""What is read of a pipe at a time; a longer message comes in pieces."""

READY = "ready"
"""What a process says first: it has imported all that it needs."""


class ClosedError(Exception):
    """Nobody is at the other end any longer, and what was not said to its end is lost."""


class Channel:
    """One end of a socket over which two processes send each other messages."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._outgoing = memoryview(b"")
        self._received = bytearray()

    def fileno(self) -> int:
        return self._end.fileno()

    def close(self) -> None:
        self._end.close()

    @property
    def is_sending(self) -> bool:
        """Whether some of a message has yet to go through."""
        return bool(self._outgoing)

    def put(self, message: object) -> None:
        """Makes a message ready to be sent, once the one before is."""
        content = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        self._outgoing = memoryview(_LENGTH.pack(len(content)) + content)

    def send(self) -> None:
        """Sends the message that was put; where the socket does not block, what goes at once.

        Raises:
            ClosedError: nobody is there to take it.
        """
        try:
            while self._outgoing:
                self._outgoing = self._outgoing[self._end.send(self._outgoing) :]
        except BlockingIOError:
            return
        except OSError as error:
            raise ClosedError from error

    def receive(self) -> None:
        """Takes all that has come, over a socket that does not block.

        Raises:
            ClosedError: nothing more will come.
        """
        try:
            while self._take():
                pass
        except BlockingIOError:
            return
        except OSError as error:
            raise ClosedError from error
        raise ClosedError

    def messages(self) -> Iterator[Any]:
        """The messages that come, over a socket that blocks, until nothing more will."""
        while self._take():
            while (message := self.next()) is not None:
                yield message

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

    def _take(self) -> bool:
        """Takes a piece of what came, and says whether there was one."""
        piece = self._end.recv(CHUNK_BYTES)
        self._received += piece
        return bool(piece)


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


def read_report(piece: bytes) -> tuple[float, list[EpochLosses]]:
    """What a piece that came through the pipe says: the share at its end, and its losses."""
    records = list(_RECORD.iter_unpack(piece))
    return records[-1][0], [EpochLosses(*fields) for _, *fields in records if fields[0] != _NOBODY]
