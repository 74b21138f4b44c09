"""Each stream of strings is drawn once on a machine, however many processes and groups read it.

Epochs are kept as files in the cache folder: counts or letters as they were drawn, and labels, with
a hash before them that is checked when they are read. A file is written beside its place and moved
there, so no process sees half of one; where it is missing, damaged or cannot be written, the
strings are drawn.
"""

import hashlib
import io
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from threading import Lock
from uuid import uuid4

import numpy as np

from seqcls.caching.cache import STRINGS, cache_folder, keep_checked, make_room, read_checked, use
from seqcls.caching.remembered import MEMORY
from seqcls.kinds.base import Examples
from seqcls.sampling.base import Sampler
from seqcls.tasks import TASKS
from seqcls.tasks.base import Task
from seqcls.tokens.strings import TokenStrings

VERSION = 4
"""To be raised with every change of what a sampler draws or how a file is written."""


class Stream:
    """The epochs of one sampler, read or drawn when asked for and remembered.

    Threads share it, of a server or of a Dask worker: one reads or draws at a time.
    """

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler
        self._source: Iterator[Examples] = sampler.epochs()
        self._drawn = 0
        self._lock = Lock()
        key = hashlib.sha256(f"{VERSION} {sampler!r}{_code(sampler.task)}".encode()).hexdigest()
        self.key = key[:32]
        """By what its strings are found in the cache: it says all that they depend on."""
        self._folder = cache_folder() / STRINGS / self.key

    def epoch(self, index: int) -> Examples:
        """The strings of an epoch; the first has the index 0."""
        key = (self, index)
        kept: Examples | None = MEMORY.get(key)
        if kept is None:
            with self._lock:
                # Another thread may have drawn it meanwhile.
                kept = MEMORY.get(key) or self._read(index) or self._draw(index)
                MEMORY.keep(key, kept)
        return kept

    def is_kept(self, index: int) -> bool:
        """Whether this machine has drawn an epoch before."""
        return self._file(index).exists()

    def _draw(self, index: int) -> Examples:
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
                _write(self._file(self._drawn - 1), strings)
            if self._drawn == index + 1:
                return strings

    def _file(self, index: int) -> Path:
        return self._folder / f"{index}.strings"

    def _read(self, index: int) -> Examples | None:
        arrays = _read(self._file(index))
        if arrays is None:
            return None
        # What was drawn by counts is kept by counts, and never spelled out on the way.
        strings = TokenStrings(
            len(self._sampler.task.alphabet),
            arrays["lengths"],
            arrays.get("letters"),
            arrays.get("counts"),
        )
        return Examples(strings, arrays["labels"])


@lru_cache(maxsize=64)
def stream(sampler: Sampler) -> Stream:
    """The one stream of this sampler in this process."""
    return Stream(sampler)


def _code(task: Task) -> str:
    """What the repr of a language from outside does not say of it."""
    if type(task).__repr__ is object.__repr__:
        # Not even its settings: its address may be that of any other in another process.
        return uuid4().hex
    return TASKS.code_of(type(task))


def _write(path: Path, drawn: Examples) -> None:
    file = io.BytesIO()
    strings, labels = drawn.strings, drawn.labels
    if strings.is_counted:
        np.savez(file, lengths=strings.lengths, labels=labels, counts=strings.counts)
    else:
        np.savez(file, lengths=strings.lengths, labels=labels, letters=strings.letters)
    content = file.getvalue()
    keep_checked(path, content)
    make_room(len(content))


def _read(path: Path) -> dict[str, np.ndarray] | None:
    content = read_checked(path)
    if content is None:
        return None
    use(path)
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return dict(arrays)
