"""Automata of files, stored by their content like the rows of other files.

The minimal automaton of the language is stored, in one canonical form, so that one language has one
digest.
"""

import hashlib
import zlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from jaxtyping import Bool, UInt16

from seqcls.text import canonical_json

VERSION = 1
"""The version of contents, of automata and of datasets."""

MAX_STATES = 10_000

MAX_NOTES = 10
"""The most notes on a file."""


class ContentAddressed(ABC):
    """An object identified by a digest of its content: all but the name."""

    name: str

    @property
    @abstractmethod
    def content(self) -> bytes:
        """All of it but its name, in a canonical form."""

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the content, as 64 hexadecimal digits."""
        return hashlib.sha256(self.content).hexdigest()

    @cached_property
    def packed(self) -> bytes:
        """The content, compressed."""
        return zlib.compress(self.content, 3)


@dataclass(frozen=True, eq=False)
class StoredAutomaton(ContentAddressed):
    """The minimal complete automaton of a file's language (`task = "automaton"`).

    States are numbered in breadth-first order from the start, 0. The name and the notes are not
    part of the content; those of the first file are stored beside it.
    """

    name: str
    alphabet: Sequence[str]
    """The tokens, sorted: text where all are of one character, else a tuple."""
    table: UInt16[np.ndarray, "state letter"]
    accepting: Bool[np.ndarray, " state"]
    read_as: Sequence[str] = ()
    """Notes on how the file was read."""

    task = "automaton"
    holds = "it is an automaton"

    def __len__(self) -> int:
        return len(self.table)

    @property
    def content(self) -> bytes:
        """A line of JSON; the table of states by tokens, two bytes each, little-endian; a byte for
        each state, 1 where it accepts.
        """
        return self._write({})

    @cached_property
    def packed(self) -> bytes:
        """The content, compressed, with the notes on the file in its first line."""
        extra = {"read_as": list(self.read_as)} if self.read_as else {}
        return zlib.compress(self._write(extra), 3)

    def _write(self, extra: Mapping[str, Any]) -> bytes:
        head = {
            "version": VERSION,
            "task": self.task,
            "alphabet": list(self.alphabet),
            "states": len(self),
            **extra,
        }
        # The order of bytes is fixed, so that the digest is the same on every machine.
        cells = self.table.astype("<u2").tobytes() + self.accepting.astype(np.uint8).tobytes()
        return canonical_json(head).encode() + b"\n" + cells

    @classmethod
    def of_content(
        cls, name: str, alphabet: Sequence[str], head: Mapping[str, Any], cells: bytes
    ) -> Self:
        """The automaton of a content, given its first line and the bytes after it.

        Raises:
            ValueError, KeyError, TypeError: the content is malformed.
        """
        states, size = head["states"], len(alphabet)
        # `isinstance` would let True through.
        if type(states) is not int or not 1 <= states <= MAX_STATES or not size:
            raise ValueError(f"{states!r} states over {size} tokens")
        if len(cells) != states * (2 * size + 1):
            raise ValueError(f"{len(cells):,} bytes of {states:,} states")
        read_as = tuple(head.get("read_as", ()))
        if len(read_as) > MAX_NOTES or not all(
            isinstance(x, str) and x.isprintable() for x in read_as
        ):
            raise ValueError("what is said of the file is no text")
        table = np.frombuffer(cells, "<u2", states * size).reshape(states, size)
        accepting = np.frombuffer(cells, np.uint8, states, table.nbytes)
        if table.max() >= states or accepting.max() > 1:
            raise ValueError("a state that is none")
        return cls(name, alphabet, table.astype(np.uint16), accepting.astype(bool), read_as)
