"""Messages over a stream: the length in eight bytes, then what is said, pickled.

A message is there once all of it is; half of one, of a process that died while it spoke, is never
taken for one.
"""

import pickle
import struct
from typing import Any

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
