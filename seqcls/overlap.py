"""How many of the strings of a test, of lengths that are trained on, are trained on themselves.

A model may know these by heart, so that being right on them says nothing of the rule. Training
strings are those that a sampler draws, so they are known wherever they can be drawn, or are kept
from a training. Of every test string the first epoch that holds it is remembered, so that a run
that stopped early is answered too; where only the first epochs are looked through, what is said is
a least share.
"""

import hashlib
import io
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int64, UInt64

from seqcls.cache import cache_folder, keep_checked, read_checked
from seqcls.cancellation import check_each
from seqcls.problem import Problem
from seqcls.sampling.distinct import fingerprints
from seqcls.sampling.streams import Sampler, Stream, stream
from seqcls.strings.token_strings import TokenStrings

FOLDER = "overlaps"
"""The folder of the cache."""

NEVER = np.iinfo(np.int64).max
"""The first epoch of a string that none of those looked through holds."""

FREE_STRINGS = 30_000
"""Strings whose drawing keeps nobody waiting: some tenths of a second."""

UNLIMITED = float("inf")

READS_PER_DRAW = 50
"""So many strings are read where one is drawn."""


@dataclass
class Effort:
    """How many more strings may be drawn; with little to spend, no test is drawn for twice."""

    strings: float = FREE_STRINGS

    def spend(self, strings: float) -> bool:
        """Whether there is enough left, which is then used up."""
        if strings > self.strings:
            return False
        self.strings -= strings
        return True


@dataclass(frozen=True, eq=False)
class Overlap:
    """Which strings of a test are trained on."""

    lengths: Int64[np.ndarray, " string"]
    """Tokens of the test strings of trained lengths; one that occurs twice is there twice."""
    is_known: Bool[np.ndarray, " string"]
    """Which of them are trained on."""
    epochs: int
    """Epochs of training; 1 where all are the same."""
    seen: int
    """How many of these were looked through, the first ones; beyond, nothing is known."""

    @property
    def is_exact(self) -> bool:
        """Whether all epochs were looked through, or no more can be found."""
        return self.seen >= self.epochs or bool(self.is_known.all())

    @property
    def share(self) -> float | None:
        """The share of the test strings of trained lengths; the least that it can be where it is
        not exact.

        None where there are none, or where nothing was looked through.
        """
        if not len(self.lengths) or not (self.seen or self.is_exact):
            return None
        return float(self.is_known.mean())

    @cached_property
    def by_length(self) -> dict[int, tuple[int, int]]:
        """For each length how many test strings have it, and how many of these are trained on."""
        tested = np.bincount(self.lengths)
        known = np.bincount(self.lengths[self.is_known], minlength=len(tested))
        pairs = zip(tested.tolist(), known.tolist(), strict=True)
        return {length: pair for length, pair in enumerate(pairs) if pair[0]}


def overlap(problem: Problem, effort: Effort, epochs: int | None = None) -> Overlap | None:
    """Which test strings are trained on; None where too much would have to be drawn to say it.

    Args:
        problem: a configuration, resolved; not one of a model that was trained elsewhere.
        effort: what may be drawn; it is used up.
        epochs: of training; as many as there may be, where none are named.
    """
    train, test = problem.train, problem.test
    test_stream = stream(test)
    if not test_stream.is_cached(0) and not effort.spend(test.epoch_size):
        return None
    num_epochs = 1 if train.repeats else (epochs or problem.config.max_num_epochs)
    strings = test_stream.epoch(0).strings
    rows = np.flatnonzero(np.isin(strings.lengths, train.lengths))
    lengths = strings.lengths[rows]
    if problem.config.disjoint:
        return Overlap(lengths, np.zeros(len(rows), dtype=bool), num_epochs, num_epochs)
    train_stream = stream(train)
    key = hashlib.sha256(f"{test_stream.key} {train_stream.key}".encode()).hexdigest()[:32]
    path = cache_folder() / FOLDER / key
    first, seen = _read_first_epochs(path, len(rows))
    looked = _look(strings.take(rows), train, train_stream, first, range(seen, num_epochs), effort)
    if looked:
        seen += looked
        _write(path, first, seen)
    # A cached answer may be of more epochs than are asked about.
    return Overlap(lengths, first < min(seen, num_epochs), num_epochs, min(seen, num_epochs))


def _look(
    strings: TokenStrings,
    train: Sampler,
    train_stream: Stream,
    first: Int64[np.ndarray, " string"],
    epochs: range,
    effort: Effort,
) -> int:
    """Looks for strings in these epochs, as far as that is little work; through how many it was."""
    left = np.flatnonzero(first == NEVER)
    # What was drawn for before is not drawn for again by each that asks, epoch after epoch.
    draws = not epochs.start or effort.strings == UNLIMITED
    for looked, epoch in enumerate(check_each(epochs)):
        if not len(left):
            # What is found stays found.
            return len(epochs)
        is_cached = train_stream.is_cached(epoch)
        if not (is_cached or draws):
            return looked
        if not effort.spend(train.epoch_size / (READS_PER_DRAW if is_cached else 1)):
            return looked
        drawn = train_stream.epoch(epoch).strings
        by_counts = strings.is_counted and drawn.is_counted
        found = np.isin(_prints(strings.take(left), by_counts), _prints(drawn, by_counts))
        first[left[found]] = epoch
        left = left[~found]
    return len(epochs)


def _prints(strings: TokenStrings, by_counts: bool) -> UInt64[np.ndarray, " string"]:
    if not by_counts:
        return fingerprints(strings.letters)
    # Two bytes of each count: strings have at most 10,000 tokens.
    low_and_high = np.ascontiguousarray(strings.counts, dtype="<u2").view(np.uint8)
    return fingerprints(low_and_high)


def _read_first_epochs(path: Path, strings: int) -> tuple[Int64[np.ndarray, " string"], int]:
    """The first epoch that holds each string, and how many were looked through."""
    content = read_checked(path)
    if content is not None:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            first, seen = arrays["first"], int(arrays["seen"])
        if len(first) == strings:
            return first, seen
    return np.full(strings, NEVER, dtype=np.int64), 0


def _write(path: Path, first: Int64[np.ndarray, " string"], seen: int) -> None:
    file = io.BytesIO()
    np.savez_compressed(file, first=first, seen=seen)
    keep_checked(path, file.getvalue())
