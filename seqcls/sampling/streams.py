"""Samplers, and the streams of strings that they draw: each once on a machine.

However many processes and groups read a stream, its epochs are kept as files in the cache folder:
counts or letters as they were drawn, and labels, with a hash before them that is checked when they
are read. A file is written beside its place and moved there, so no process sees half of one; where
it is missing, damaged or cannot be written, the strings are drawn.
"""

import hashlib
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, Protocol, runtime_checkable
from uuid import uuid4

import numpy as np

from seqcls.cache import MEMORY, STRINGS, cache_folder, keep_checked, make_room, read_checked, use
from seqcls.kinds import examples_of
from seqcls.kinds.base import Examples
from seqcls.strings.token_strings import TokenStrings, Truths, join_strings
from seqcls.tasks import TASKS
from seqcls.tasks.base import Task
from seqcls.tasks.places import AtEveryPlace


@runtime_checkable
class Sampler(Protocol):
    """All that determines a stream of strings; hashable, so that a stream is drawn once."""

    reads_of_part: ClassVar[Mapping[str, frozenset[str]]]
    """Settings of one part alone, among those that its constructor takes beside the task."""

    def __hash__(self) -> int: ...

    @property
    def task(self) -> Task: ...

    @property
    def batch_size(self) -> int: ...

    @property
    def lengths(self) -> range:
        """From the tokens of the shortest string that it may draw to those of the longest."""
        ...

    @property
    def epoch_size(self) -> int:
        """Strings of one epoch."""
        ...

    @property
    def repeats(self) -> bool:
        """Whether every epoch holds the strings of the first."""
        ...

    @classmethod
    def obstacle(cls, task: Task) -> str | None:
        """Why it cannot draw the strings of a task; None where it can."""
        ...

    def epochs(self) -> Iterator[Examples]:
        """The stream: one epoch after another, without end.

        An epoch's batches are its strings in order, `batch_size` at a time; the last may be short.
        """
        ...


@dataclass(frozen=True)
class _DerivedSampler:
    """What is made of the strings of another sampler."""

    sampler: Sampler
    reads_of_part: ClassVar[Mapping[str, frozenset[str]]] = {}

    @property
    def batch_size(self) -> int:
        return self.sampler.batch_size

    @property
    def repeats(self) -> bool:
        return self.sampler.repeats

    @classmethod
    def obstacle(cls, task: Task) -> str | None:
        """It can draw what the other sampler can."""
        del task
        return None


@dataclass(frozen=True)
class LengthSubset(_DerivedSampler):
    """The strings of each epoch of a sampler that have so many tokens; some of them, or all."""

    lengths: range
    most: int | None = None
    """The most of an epoch, its first ones; None for all."""

    @property
    def task(self) -> Task:
        return self.sampler.task

    @property
    def epoch_size(self) -> int:
        """Those of the first epoch."""
        return len(stream(self).epoch(0))

    def epochs(self) -> Iterator[Examples]:
        """Epochs of as many strings as there are of these lengths; there may be none."""
        for epoch in count():
            drawn = stream(self.sampler).epoch(epoch)
            yield drawn.take(np.flatnonzero(have_lengths(self.lengths, drawn.strings))[: self.most])


@dataclass(frozen=True)
class Staged(_DerivedSampler):
    """Batches drawn by one sampler after another, each for a share of training; the last one's
    strings are the longest.
    """

    earlier: tuple[tuple[Sampler, int], ...]
    """The samplers before it, and after how many batches of all of training each ends."""

    @property
    def task(self) -> Task:
        return self.sampler.task

    @property
    def repeats(self) -> bool:
        return False

    @property
    def lengths(self) -> range:
        starts = [stage.lengths.start for stage, _ in self.earlier]
        return range(min(*starts, self.sampler.lengths.start), self.sampler.lengths.stop)

    @property
    def epoch_size(self) -> int:
        return self.sampler.epoch_size

    def epochs(self) -> Iterator[Examples]:
        batches = -(-self.epoch_size // self.batch_size)
        for first in count(0, batches):
            parts, begun = list[Examples](), 0
            for stage, end in (*self.earlier, (self.sampler, first + batches)):
                within = range(max(first, begun), min(first + batches, end))
                if within:
                    # A stage has epochs of its own, counted from the one in which it begins.
                    drawn = stream(stage).epoch((first - begun // batches * batches) // batches)
                    # What a stage draws for other batches of the epoch is left out.
                    rows = [(x - first) * self.batch_size for x in (within.start, within.stop)]
                    parts.append(drawn.take(slice(*rows)))
                begun = end
            yield self._join(parts)

    def _join(self, parts: list[Examples]) -> Examples:
        if len(parts) == 1:
            return parts[0]
        strings = join_strings([part.strings for part in parts])
        drawn = [part.drawn for part in parts if part.drawn is not None]
        ways = np.concatenate(drawn) if len(drawn) == len(parts) else None
        # Targets of several stages have several widths, so they are worked out anew.
        if parts[0].targets.ndim > 1:
            return Examples(strings, examples_of(self.task, strings).targets, drawn=ways)
        return Examples(strings, np.concatenate([part.targets for part in parts]), drawn=ways)


@dataclass(frozen=True)
class AnsweredAgain(_DerivedSampler):
    """The strings of another sampler, of which something else is asked."""

    task: Task

    @property
    def lengths(self) -> range:
        return self.sampler.lengths

    @property
    def epoch_size(self) -> int:
        return self.sampler.epoch_size

    def epochs(self) -> Iterator[Examples]:
        """The other's epochs; how strings were drawn, labels say, and these are none."""
        for epoch in count():
            yield examples_of(self.task, stream(self.sampler).epoch(epoch).strings)


def have_lengths(lengths: range, strings: TokenStrings) -> Truths:
    """Which strings have so many tokens."""
    return np.asarray((strings.lengths >= lengths.start) & (strings.lengths < lengths.stop))


VERSION = 6
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
        examples: Examples | None = MEMORY.get(key)
        if examples is None:
            with self._lock:
                # Another thread may have drawn it meanwhile.
                examples = MEMORY.get(key) or self._read(index) or self._draw(index)
                MEMORY.keep(key, examples)
        return examples

    def is_cached(self, index: int) -> bool:
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
            # The epoch that was asked for is written even over a file, which could not be read.
            if not self._file(self._drawn - 1).exists() or self._drawn == index + 1:
                _write(self._file(self._drawn - 1), strings)
            if self._drawn == index + 1:
                return strings

    def _file(self, index: int) -> Path:
        return self._folder / f"{index}.strings"

    def _read(self, index: int) -> Examples | None:
        content = read_checked(path := self._file(index))
        if content is None:
            return None
        use(path)
        # The cache is a folder like any other: nothing in it may run.
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = dict(file)
        own = (arrays.get(name) for name in ("letters", "counts"))
        strings = TokenStrings(len(self._sampler.task.alphabet), arrays["lengths"], *own)
        return Examples(strings, arrays["labels"], drawn=arrays.get("drawn"))


@lru_cache(maxsize=64)
def stream(sampler: Sampler) -> Stream:
    """The one stream of this sampler in this process."""
    return Stream(sampler)


def _code(task: Task) -> str:
    """What the repr of a language from outside does not say of it."""
    task = task.language if isinstance(task, AtEveryPlace) else task
    if type(task).__repr__ is object.__repr__:
        # Not even its settings: its address may be that of any other in another process.
        return uuid4().hex
    return TASKS.code_of(type(task))


def _write(path: Path, drawn: Examples) -> None:
    file, strings = io.BytesIO(), drawn.strings
    arrays: dict[str, Any] = {"labels": drawn.labels, "lengths": strings.lengths}
    if drawn.drawn is not None:
        arrays["drawn"] = drawn.drawn
    # What was drawn by counts is kept by counts, and never spelled out on the way.
    own = "counts" if strings.is_counted else "letters"
    np.savez(file, **arrays, **{own: getattr(strings, own)})
    content = file.getvalue()
    keep_checked(path, content)
    make_room(len(content))
