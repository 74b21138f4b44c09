"""The overlap of a test with training: test strings of trained lengths that are trained on.

A model may have memorized these, so that accuracy on them is no evidence of the rule. Training
strings are known wherever the sampler can draw them, or a training has cached them. The first epoch
of every test string is stored, which also gives the overlap of a run that stopped early; where only
the first epochs have been searched, the share is a lower bound.
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
"""The first epoch of a string that is in none of those searched."""

FREE_STRINGS = 30_000
"""Strings that are drawn in some tenths of a second."""

UNLIMITED = float("inf")

READS_PER_DRAW = 50
"""Number of strings read in the time of drawing one."""


@dataclass
class Effort:
    """A budget of strings to draw; with a limited one, training is drawn once for each test."""

    strings: float = FREE_STRINGS

    def spend(self, strings: float) -> bool:
        """Take from the budget; True if there was enough left."""
        if strings > self.strings:
            return False
        self.strings -= strings
        return True


@dataclass(frozen=True, eq=False)
class Overlap:
    """The test strings that are trained on."""

    lengths: Int64[np.ndarray, " string"]
    """Tokens of the test strings of trained lengths, repeated strings included."""
    is_known: Bool[np.ndarray, " string"]
    """True for those that are trained on."""
    epochs: int
    """Epochs of training; 1 where all are the same."""
    seen: int
    """Number of epochs, the first ones, that were searched."""

    @property
    def is_exact(self) -> bool:
        """True if all epochs were searched, or all strings were found."""
        return self.seen >= self.epochs or bool(self.is_known.all())

    @property
    def share(self) -> float | None:
        """The share of test strings of trained lengths; a lower bound where it is not exact.

        None where there are no such strings, or no epoch was searched.
        """
        if not len(self.lengths) or not (self.seen or self.is_exact):
            return None
        return float(self.is_known.mean())

    @cached_property
    def by_length(self) -> dict[int, tuple[int, int]]:
        """By length, the number of test strings, and of those among them that are trained on."""
        tested = np.bincount(self.lengths)
        known = np.bincount(self.lengths[self.is_known], minlength=len(tested))
        pairs = zip(tested.tolist(), known.tolist(), strict=True)
        return {length: pair for length, pair in enumerate(pairs) if pair[0]}


def overlap(problem: Problem, effort: Effort, epochs: int | None = None) -> Overlap | None:
    """The test strings that are trained on; None where drawing the test exceeds the budget.

    Args:
        problem: a resolved configuration; not one of a model that was trained elsewhere.
        effort: the budget, which is used up.
        epochs: epochs of training; by default the most that the configuration allows.
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
        file = io.BytesIO()
        np.savez_compressed(file, first=first, seen=seen)
        keep_checked(path, file.getvalue())
    # A cached result may be of more epochs than are requested.
    return Overlap(lengths, first < min(seen, num_epochs), num_epochs, min(seen, num_epochs))


def _look(
    strings: TokenStrings,
    train: Sampler,
    train_stream: Stream,
    first: Int64[np.ndarray, " string"],
    epochs: range,
    effort: Effort,
) -> int:
    """Look for strings in these epochs, within the budget; return the number of epochs searched."""
    left = np.flatnonzero(first == NEVER)
    # With a limited budget, later calls do not draw further epochs, one after another.
    draws = not epochs.start or effort.strings == UNLIMITED
    for looked, epoch in enumerate(check_each(epochs)):
        if not len(left):
            # All strings are found, whatever later epochs have.
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
    """The first epoch of each string, and the number of epochs searched."""
    content = read_checked(path)
    if content is not None:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            first, seen = arrays["first"], int(arrays["seen"])
        if len(first) == strings:
            return first, seen
    return np.full(strings, NEVER, dtype=np.int64), 0
