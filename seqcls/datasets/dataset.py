"""A set of strings, each with its label or its target, as one frozen value."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int64, UInt8

from seqcls.datasets.content import content_of, pack, unpack
from seqcls.tokens.strings import NO_LETTER, TokenStrings

SPLITS = ("train", "validation", "test")

MAX_NAME = 200
"""Characters of a dataset's name at most."""


class Row(NamedTuple):
    """One string; letters are numbers of the alphabet's tokens, from 0."""

    letters: tuple[int, ...]
    label: bool | None
    target: tuple[int, ...] | None
    split: str | None
    id: str | None


@dataclass(frozen=True, eq=False)
class Dataset:
    """Strings with labels (`task = "file"`) or targets (`task = "pairs"`).

    Rows stand in the order of (split, tokens, label or target, id), whatever their order in a
    file, so that one content has one digest. The name is no part of it.
    """

    name: str
    alphabet: Sequence[str]
    """The tokens, sorted: text where all are of one character, else a tuple."""
    strings: TokenStrings
    labels: Bool[np.ndarray, " row"] | None
    """None where the rows have targets."""
    targets: UInt8[np.ndarray, "row target_position"] | None
    """Letters, `NO_LETTER` after each end; None where the rows have labels."""
    splits: UInt8[np.ndarray, " row"] | None
    """Places in `SPLITS`; None where the file has none."""
    ids: Sequence[str] | None

    @classmethod
    def of(
        cls,
        name: str,
        alphabet: Sequence[str],
        strings: TokenStrings,
        *,
        labels: Bool[np.ndarray, " row"] | None = None,
        targets: UInt8[np.ndarray, "row target_position"] | None = None,
        splits: UInt8[np.ndarray, " row"] | None = None,
        ids: Sequence[str] | None = None,
    ) -> "Dataset":
        """The dataset of these rows, in its order."""
        order = _order(strings, labels, targets, splits, ids)
        return cls(
            name[:MAX_NAME],
            alphabet,
            strings.take(order),
            None if labels is None else labels[order],
            None if targets is None else targets[order],
            None if splits is None else splits[order],
            None if ids is None else [ids[row] for row in order.tolist()],
        )

    def __len__(self) -> int:
        return len(self.strings)

    @property
    def task(self) -> str:
        """The task that asks for these answers: `file` or `pairs`."""
        return "file" if self.labels is not None else "pairs"

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the content, as 64 hexadecimal digits: of all but the name."""
        return hashlib.sha256(self._content).hexdigest()

    @property
    def _content(self) -> bytes:
        return content_of(
            self.alphabet, self.strings, self.labels, self.targets, self.splits, self.ids
        )

    def to_bytes(self) -> bytes:
        """The content, packed."""
        return self._packed

    @cached_property
    def _packed(self) -> bytes:
        return pack(self._content)

    @classmethod
    def from_bytes(cls, packed: bytes, name: str = "") -> "Dataset":
        """The dataset of a pack.

        Raises:
            DatasetError: the bytes are no such pack.
        """
        return cls(name, **unpack(packed))

    def rows(self) -> Iterator[Row]:
        """The rows, one after another."""
        lengths = self.strings.lengths.tolist()
        for number, length in enumerate(lengths):
            target = None
            if self.targets is not None:
                row = self.targets[number]
                target = tuple(row[row != NO_LETTER].tolist())
            yield Row(
                tuple(self.strings.letters[number, :length].tolist()),
                None if self.labels is None else bool(self.labels[number]),
                target,
                None if self.splits is None else SPLITS[self.splits[number]],
                None if self.ids is None else self.ids[number],
            )


def _order(
    strings: TokenStrings,
    labels: np.ndarray | None,
    targets: np.ndarray | None,
    splits: np.ndarray | None,
    ids: Sequence[str] | None,
) -> Int64[np.ndarray, " row"]:
    keys = []
    # No letter is 255, so that adding one leaves room for the zero that ends a string.
    letters = strings.letters + np.uint8(1)
    answers = None if targets is None else targets + np.uint8(1)
    for row, length in enumerate(strings.lengths.tolist()):
        key = letters[row, :length].tobytes() + b"\0"
        if splits is not None:
            key = bytes([splits[row]]) + key
        if labels is not None:
            key += b"1" if labels[row] else b"0"
        if answers is not None:
            key += answers[row].tobytes().rstrip(b"\0") + b"\0"
        if ids is not None:
            key += ids[row].encode()
        keys.append(key)
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)
