"""Samplers, and the streams of strings that they draw, each once on a machine.

Epochs are files in the cache folder, shared by all processes and groups: counts or letters, as
drawn, and labels, after a hash that is checked on reading. A file is written under another name and
then moved, so no process reads half of one; where it is missing, damaged or cannot be written, the
strings are drawn.
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
    """The settings that determine a stream of strings; hashable, so that a stream is drawn once."""

    reads_of_part: ClassVar[Mapping[str, frozenset[str]]]
    """Settings of one part alone, among those that its constructor takes beside the task."""

    def __hash__(self) -> int: ...

    @property
    def task(self) -> Task: ...

    @property
    def batch_size(self) -> int: ...

    @property
    def lengths(self) -> range:
        """The range from the shortest to the longest string that it may draw."""
        ...

    @property
    def epoch_size(self) -> int:
        """Strings of one epoch."""
        ...

    @property
    def repeats(self) -> bool:
        """True if every epoch has the strings of the first."""
        ...

    def epochs(self) -> Iterator[Examples]:
        """The stream: one epoch after another, without end.

        An epoch's batches are its strings in order, `batch_size` at a time; the last may be short.
        """
        ...


@dataclass(frozen=True)
class _DerivedSampler:
    """A sampler of another sampler's strings."""

    sampler: Sampler
    reads_of_part: ClassVar[Mapping[str, frozenset[str]]] = {}

    @property
    def batch_size(self) -> int:
        return self.sampler.batch_size

    @property
    def repeats(self) -> bool:
        return self.sampler.repeats


@dataclass(frozen=True)
class LengthSubset(_DerivedSampler):
    """The strings of each epoch of a sampler whose lengths are in a range."""

    lengths: range
    most: int | None = None
    """The most strings of an epoch, the first ones; None for all."""

    @property
    def task(self) -> Task:
        return self.sampler.task

    @property
    def epoch_size(self) -> int:
        """Strings of the first epoch."""
        return len(stream(self).epoch(0))

    def epochs(self) -> Iterator[Examples]:
        """Epochs of the strings of these lengths; an epoch may be empty."""
        for epoch in count():
            drawn = stream(self.sampler).epoch(epoch)
            yield drawn.take(np.flatnonzero(have_lengths(self.lengths, drawn.strings))[: self.most])


@dataclass(frozen=True)
class Staged(_DerivedSampler):
    """Batches drawn by one sampler after another, each for a share of training; the last one
    draws the longest strings.
    """

    earlier: tuple[tuple[Sampler, int], ...]
    """The samplers before it, with the number of batches of all training after which each ends."""

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
                    # Epochs of a stage are counted from the one in which it begins.
                    drawn = stream(stage).epoch((first - begun // batches * batches) // batches)
                    # Strings for batches of other stages are left out.
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
        # Targets of different stages have different widths, so they are computed again.
        if parts[0].targets.ndim > 1:
            return Examples(strings, examples_of(self.task, strings).targets, drawn=ways)
        return Examples(strings, np.concatenate([part.targets for part in parts]), drawn=ways)


@dataclass(frozen=True)
class AnsweredAgain(_DerivedSampler):
    """The strings of another sampler with the targets of another task."""

    task: Task

    @property
    def lengths(self) -> range:
        return self.sampler.lengths

    @property
    def epoch_size(self) -> int:
        return self.sampler.epoch_size

    def epochs(self) -> Iterator[Examples]:
        """The other sampler's epochs, without `drawn`, which describes labels."""
        for epoch in count():
            yield examples_of(self.task, stream(self.sampler).epoch(epoch).strings)


def have_lengths(lengths: range, strings: TokenStrings) -> Truths:
    """True for strings whose lengths are in a range."""
    return np.asarray((strings.lengths >= lengths.start) & (strings.lengths < lengths.stop))


VERSION = 6
"""Version of the strings that samplers draw and of their files; raise it with every change."""


class Stream:
    """The epochs of one sampler, read or drawn on demand and remembered.

    Threads of a server or of a Dask worker share it: one reads or draws at a time.
    """

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler
        self._source: Iterator[Examples] = sampler.epochs()
        self._drawn = 0
        self._lock = Lock()
        key = hashlib.sha256(f"{VERSION} {sampler!r}{_code(sampler.task)}".encode()).hexdigest()
        self.key = key[:32]
        """The key of its strings in the cache, a hash of all that they depend on."""
        self._folder = cache_folder() / STRINGS / self.key

    def epoch(self, index: int) -> Examples:
        """The strings of an epoch; the first has index 0."""
        key = (self, index)
        examples: Examples | None = MEMORY.get(key)
        if examples is None:
            with self._lock:
                # Another thread may have drawn it in the meantime.
                examples = MEMORY.get(key) or self._read(index) or self._draw(index)
                MEMORY.keep(key, examples)
        return examples

    def is_cached(self, index: int) -> bool:
        """True if this machine has drawn an epoch before."""
        return self._file(index).exists()

    def _draw(self, index: int) -> Examples:
        # A stream runs from epoch to epoch: earlier ones are drawn on the way, and cached too.
        while True:
            if self._drawn > index:
                self._source, self._drawn = self._sampler.epochs(), 0
            try:
                strings = next(self._source)
            except Exception:
                # A generator that has raised is exhausted: the next call needs a new one.
                self._source, self._drawn = self._sampler.epochs(), 0
                raise
            self._drawn += 1
            # The requested epoch replaces an existing file, which could not be read.
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
        # Files in the cache are not trusted: nothing in them may run.
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
    """The part of a plug-in task's key that its repr lacks: a hash of its code."""
    task = task.language if isinstance(task, AtEveryPlace) else task
    if type(task).__repr__ is object.__repr__:
        # The default repr has no settings, and its address may be another task's elsewhere.
        return uuid4().hex
    return TASKS.code_of(type(task))


def _write(path: Path, drawn: Examples) -> None:
    file, strings = io.BytesIO(), drawn.strings
    arrays: dict[str, Any] = {"labels": drawn.labels, "lengths": strings.lengths}
    if drawn.drawn is not None:
        arrays["drawn"] = drawn.drawn
    # Strings drawn by counts are stored by counts, and never spelled out.
    own = "counts" if strings.is_counted else "letters"
    np.savez(file, **arrays, **{own: getattr(strings, own)})
    content = file.getvalue()
    keep_checked(path, content)
    make_room(len(content))
