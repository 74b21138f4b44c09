"""Languages of the strings whose letter counts satisfy a formula."""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Annotated

import numpy as np
from jaxtyping import Bool, Float64, Int64

from seqcls.cache import remembered
from seqcls.declarations import About, Text
from seqcls.errors import ConfigError
from seqcls.strings.alphabets import check_alphabet, tokens_of
from seqcls.strings.token_strings import NO_LETTER, Counts, Lengths, Letters, Truths
from seqcls.strings.tokenizer import Tokenizer
from seqcls.tasks.base import Alphabet, BulkTask, CountTask
from seqcls.tasks.formulas import (
    MAX_VECTORS,
    Formula,
    Vectors,
    draw_orders,
    running_weights,
    vectors,
)

TRIES = 64
"""Uniform strings drawn for each string requested, before counts are listed."""

MANY_TRIES = 20_000
"""The same, where there are too many counts to list."""

PROBES = 64
"""Counts of strings of a length that are drawn before all of them are looked through."""

BLOCK = 64
"""Lengths that are probed at once."""


@dataclass(frozen=True)
class FormulaFields(Alphabet):
    """formula: The formula over letter counts of `counting`."""

    formula: Annotated[Text, About("Task", 6)] = ""


@dataclass(frozen=True)
class Counting(FormulaFields, CountTask, BulkTask):
    """Strings whose letter counts satisfy a formula are positive.

    With the formula `a == b and c <= 3`: `abc`, `ba` and the empty string are positive; `a` and
    `abcccc` are negative.
    """

    def __post_init__(self) -> None:
        check_alphabet(self.alphabet, "counting")
        object.__setattr__(self, "alphabet", tokens_of(self.alphabet))
        if not self.formula.strip():
            letter = self.alphabet[0]
            raise ConfigError(
                "formula='': task 'counting' expects a condition on letter counts, such as "
                f"'{letter} % 2 == 1' (a token that is no letter is written with a #: '#0 > #1')"
            )
        # Read now, so that a formula that cannot be read is refused at once.
        assert self._condition

    @property
    def _condition(self) -> Formula:
        return _read_formula(self.formula, self.alphabet)

    @cached_property
    def _classes(self) -> list[list[int]]:
        """Classes of letters: each that the formula names is one, and all others are one."""
        named = sorted(self._condition.letters)
        others = [letter for letter in range(len(self.alphabet)) if letter not in named]
        return [*([letter] for letter in named), *([others] if others else [])]

    def labels_of_counts(self, counts: Counts) -> Truths:
        return np.array(self._condition.holds(list(counts.T)))

    def has(self, length: int, positive: bool) -> bool:
        """True if any string of that many tokens is in the language (positive), or outside.

        Raises:
            ConfigError: none of many strings has that label, and there are too many letter counts
                to try all.
        """
        if self._probes(length // BLOCK)[length % BLOCK, int(positive)]:
            return True
        # Where all counts can be listed, that is sure, and more probes are not.
        size = MANY_TRIES if self._is_listed(length) else PROBES
        while size < MANY_TRIES:
            size *= 4
            if (self._probe(np.array([length]), size) == positive).any():
                return True
        return len(self._list_vectors(length, positive)) > 0

    @remembered
    def _probes(self, block: int) -> Bool[np.ndarray, "length label"]:
        """True for the labels of a few strings of many lengths, which settle most lengths of most
        formulas.
        """
        holds = self._probe(block * BLOCK + np.arange(BLOCK), PROBES)
        return np.stack([~holds.all(axis=1), holds.any(axis=1)], axis=1)

    def _probe(
        self, lengths: Int64[np.ndarray, " length"], size: int
    ) -> Bool[np.ndarray, "length probe"]:
        """The labels of `size` uniform strings of each length."""
        # Counts of uniform strings are multinomial: no string need be spelled out.
        shares = [len(members) / len(self.alphabet) for members in self._classes]
        # Seeded by the length, so that every process finds the same.
        rng = np.random.default_rng(int(lengths[0]))
        counts = rng.multinomial(lengths[:, None], shares, size=(len(lengths), size))
        return self._holds(counts.reshape(-1, len(shares))).reshape(len(lengths), size)

    def draw_many(self, rng: np.random.Generator, lengths: Lengths, positive: bool) -> Letters:
        letters = np.full((len(lengths), int(lengths.max(initial=0))), NO_LETTER, dtype=np.uint8)
        for length in np.unique(lengths).tolist():
            rows = np.flatnonzero(lengths == length)
            drawn = self._draw_by_chance(rng, length, positive, len(rows))
            if missing := len(rows) - len(drawn):
                matching, sums = self._matching(length, positive)
                # Rounded up to the whole sum, a number would be past the last vector.
                numbers = np.minimum(rng.random(missing) * sums[-1], np.nextafter(sums[-1], 0))
                chosen = matching[np.searchsorted(sums, numbers, "right")]
                drawn = np.concatenate([drawn, draw_orders(rng, chosen, self._classes)])
            letters[rows, :length] = drawn
        return letters

    def _draw_by_chance(
        self, rng: np.random.Generator, length: int, positive: bool, size: int
    ) -> Letters:
        """Up to `size` uniform strings of that label; fewer where it is rare."""
        left = size * (TRIES if self._is_listed(length) else MANY_TRIES)
        drawn = np.zeros((0, length), dtype=np.uint8)
        while left > 0 and len(drawn) < size:
            # The letters of one round of tries take at most about four megabytes.
            tries = min(left, 4 * (size - len(drawn)) + 16, 1 + 2**22 // (length + 1))
            left -= tries
            letters = rng.integers(len(self.alphabet), size=(tries, length), dtype=np.uint8)
            columns = [(letters == letter).sum(axis=1) for letter in range(len(self.alphabet))]
            drawn = np.concatenate([drawn, letters[self._condition.holds(columns) == positive]])
        return drawn[:size]

    @remembered
    def _matching(
        self, length: int, positive: bool
    ) -> tuple[Vectors, Float64[np.ndarray, " vector"]]:
        """The counts of strings of that length and label, and running sums of their weights."""
        counts = self._list_vectors(length, positive)
        sizes = tuple(len(members) for members in self._classes)
        return counts, (running_weights(counts, sizes) if len(counts) else np.zeros(0))

    def _is_listed(self, length: int) -> bool:
        free = len(self._classes) - 1
        return math.comb(length + free, free) <= MAX_VECTORS

    def _list_vectors(self, length: int, positive: bool) -> Vectors:
        if not self._is_listed(length):
            raise ConfigError(
                f"strings of {length:,} tokens have more than {MAX_VECTORS:,} different counts of "
                f"the {len(self._classes)} letters that matter, too many to look for "
                f"{'a positive' if positive else 'a negative'} one; lower max_length or name fewer "
                "letters in the formula"
            )
        counts = vectors(length, len(self._classes))
        matching: Vectors = counts[self._holds(counts) == positive]
        return matching

    def _holds(self, counts: Vectors) -> np.ndarray:
        columns = [np.zeros(len(counts), dtype=np.int64)] * len(self.alphabet)
        for members, column in zip(self._classes, counts.T, strict=True):
            # The formula names no letter of a class of several: any of them gets the count.
            columns[members[0]] = column
        return self._condition.holds(columns)

    def describe(self) -> str:
        formula = " ".join(self.formula.split())
        tokens = Tokenizer(self.alphabet).spell(range(len(self.alphabet)))
        return (
            f"Strings of {tokens} with {formula} are positive, where a letter "
            "stands for how often it occurs."
        )


_read_formula = lru_cache(maxsize=128)(Formula)
