"""Each stream of strings is drawn once on a machine, however many processes and groups read it.

Epochs are kept as files in the cache folder: the token ids, with a hash before them that is checked
when they are read. A file is written beside its place and moved there, so no process sees half of
one; where it is missing, damaged or cannot be written, the strings are drawn.
"""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np

from seqcls.cache import cache_folder
from seqcls.sampling.strings import Sampler, Strings

VERSION = 1
"""To be raised with every change of what a sampler draws or how a file is written."""

HASH_BYTES = hashlib.sha256().digest_size


class Stream:
    """The epochs of one sampler, read or drawn when first asked for and kept."""

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler
        self._source: Iterator[Strings] = sampler.epochs()
        self._drawn = 0
        self._epochs: dict[int, Strings] = {}
        key = hashlib.sha256(f"{VERSION} {sampler!r}".encode()).hexdigest()
        self._folder = cache_folder() / "strings" / key[:32]

    def epoch(self, index: int) -> Strings:
        """The strings of an epoch; the first has the index 0."""
        if index not in self._epochs:
            ids = _read(self._file(index))
            strings = None if ids is None else Strings.of_ids(self._sampler.language, ids)
            self._epochs[index] = strings or self._draw(index)
        return self._epochs[index]

    def _draw(self, index: int) -> Strings:
        # A stream runs on from epoch to epoch: those before are drawn on the way, and kept too.
        while True:
            if self._drawn > index:
                self._source, self._drawn = self._sampler.epochs(), 0
            try:
                strings = next(self._source)
            except Exception:
                # A generator that has raised is at its end; the next to ask shall not find it so.
                self._source, self._drawn = self._sampler.epochs(), 0
                raise
            self._drawn += 1
            if not self._file(self._drawn - 1).exists() or self._drawn == index + 1:
                _write(self._file(self._drawn - 1), strings.ids)
            if self._drawn == index + 1:
                return strings

    def _file(self, index: int) -> Path:
        return self._folder / f"{index}.ids"


@lru_cache(maxsize=64)
def stream(sampler: Sampler) -> Stream:
    """The one stream of this sampler in this process."""
    return Stream(sampler)


def _write(path: Path, ids: np.ndarray) -> None:
    content = np.array(ids.shape, dtype="<u8").tobytes() + ids.tobytes()
    # Without a cache everything works, only slower.
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, unfinished = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(hashlib.sha256(content).digest() + content)
            os.replace(unfinished, path)
        except OSError:
            os.unlink(unfinished)


def _read(path: Path) -> np.ndarray | None:
    try:
        data = path.read_bytes()
    except OSError:
        return None
    digest, content = data[:HASH_BYTES], data[HASH_BYTES:]
    if hashlib.sha256(content).digest() != digest:
        return None
    rows, columns = np.frombuffer(content, dtype="<u8", count=2)
    # A copy, since what PyTorch reads must be writable.
    return np.frombuffer(content, np.uint8, offset=16).reshape(int(rows), int(columns)).copy()
