"""A dataset as bytes: its content in one fixed form, which its digest is of, and compressed."""

import json
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from seqcls.canonical import canonical_json
from seqcls.errors import DatasetError
from seqcls.tokens.alphabets import alphabet_obstacle, has_names
from seqcls.tokens.strings import NO_LETTER, TokenStrings

VERSION = 1

MAX_TOKENS = 250
"""Different tokens of a dataset: their ids fit a byte, beside four of the models' own."""

MAX_ROWS = 2_000_000

MAX_PLACES = 400_000_000
"""Rows times the tokens of the longest string, of inputs and of targets."""

MAX_CONTENT = 950_000_000
"""Bytes of a dataset's content: every database holds a value of so many."""


def content_of(
    alphabet: Sequence[str],
    strings: TokenStrings,
    labels: np.ndarray | None,
    targets: np.ndarray | None,
    splits: np.ndarray | None,
    ids: Sequence[str] | None,
) -> bytes:
    """All of a dataset but its name, in one fixed form.

    A line of JSON; lengths of strings, four bytes each, the lowest first; their letters; splits;
    labels, or lengths and letters of targets; ids as JSON.
    """
    parts = [_lengths(strings.letters), _flat(strings.letters)]
    if splits is not None:
        parts.append(splits.astype(np.uint8).tobytes())
    if labels is not None:
        parts.append(labels.astype(np.uint8).tobytes())
    if targets is not None:
        parts += [_lengths(targets), _flat(targets)]
    if ids is not None:
        parts.append(canonical_json(list(ids)).encode())
    head = {
        "version": VERSION,
        "task": "pairs" if labels is None else "file",
        "alphabet": list(alphabet),
        "rows": len(strings),
        "splits": splits is not None,
        "ids": ids is not None,
    }
    return b"\n".join([canonical_json(head).encode(), b"".join(parts)])


def pack(content: bytes) -> bytes:
    """A content, compressed."""
    return zlib.compress(content, 3)


def unpack(packed: bytes) -> dict[str, Any]:
    """The fields of a dataset but its name, from a pack.

    Raises:
        DatasetError: the bytes are no pack of a dataset.
    """
    try:
        reader = zlib.decompressobj()
        content = reader.decompress(packed, MAX_CONTENT)
        if not reader.eof or reader.unused_data:
            raise ValueError("it is cut off, or too long")
        return _fields(content)
    except (ValueError, KeyError, TypeError, zlib.error, struct.error, RecursionError) as error:
        raise DatasetError(f"a dataset's rows cannot be unpacked: {error}") from None


def _fields(content: bytes) -> dict[str, Any]:
    line, _, rest = content.partition(b"\n")
    head = json.loads(line)
    if head["version"] != VERSION:
        raise ValueError(f"version {head['version']!r}, expected {VERSION}")
    number = head["rows"]
    alphabet: Any = tuple(head["alphabet"])
    if not has_names(alphabet):
        alphabet = "".join(alphabet)
    obstacle = alphabet_obstacle(alphabet, notation=True)
    if type(number) is not int or not 0 <= number <= MAX_ROWS or obstacle:
        raise ValueError(obstacle or f"{number!r} rows")
    parts = _Parts(rest, len(alphabet), number)
    letters, lengths = parts.letters()
    splits = parts.bytes_below(3) if head["splits"] else None
    is_file = head["task"] == "file"
    labels = parts.bytes_below(2).astype(bool) if is_file else None
    targets = None if is_file else parts.letters()[0]
    ids = json.loads(parts.rest()) if head["ids"] else None
    if ids is not None and (len(ids) != number or not all(isinstance(x, str) for x in ids)):
        raise ValueError("not one id for each row")
    if parts.rest() and ids is None:
        raise ValueError("bytes after its end")
    return {
        "alphabet": alphabet,
        "strings": TokenStrings(len(alphabet), lengths, letters),
        "labels": labels,
        "targets": targets,
        "splits": splits,
        "ids": ids,
    }


class _Parts:
    """What stands after the first line, one part after another."""

    def __init__(self, content: bytes, num_letters: int, rows: int) -> None:
        self._content = content
        self._num_letters = num_letters
        self._rows = rows
        self._place = 0

    def _take(self, dtype: str, number: int) -> np.ndarray:
        taken = np.frombuffer(self._content, dtype, number, self._place)
        self._place += taken.nbytes
        return taken

    def bytes_below(self, limit: int) -> np.ndarray:
        taken = self._take("u1", self._rows)
        if len(taken) and taken.max() >= limit:
            raise ValueError(f"a value {taken.max()}, expected less than {limit}")
        return taken.copy()

    def letters(self) -> tuple[np.ndarray, np.ndarray]:
        lengths = self._take("<u4", self._rows).astype(np.int64)
        width = int(lengths.max(initial=0))
        if self._rows * width > MAX_PLACES:
            raise ValueError(f"{self._rows:,} strings of up to {width:,} tokens")
        flat = self._take("u1", int(lengths.sum()))
        if len(flat) and flat.max() >= self._num_letters:
            raise ValueError(f"a letter {flat.max()} of {self._num_letters}")
        letters = np.full((self._rows, width), NO_LETTER, dtype=np.uint8)
        letters[np.arange(width) < lengths[:, None]] = flat
        return letters, lengths

    def rest(self) -> bytes:
        return self._content[self._place :]


def _lengths(letters: np.ndarray) -> bytes:
    return bytes((letters != NO_LETTER).sum(axis=1).astype("<u4").tobytes())


def _flat(letters: np.ndarray) -> bytes:
    return bytes(letters[letters != NO_LETTER].tobytes())
