"""Batches of strings, by their tokens or, where order does not matter, by letter counts.

A string's *letters* are the numbers of its tokens in the alphabet, counted from 0. Their token ids
are `FIRST_LETTER` higher; models add special tokens (`CLS`, or an end token) themselves.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from html import escape
from itertools import chain
from typing import Any, Self

import numpy as np
from jaxtyping import Bool, Int64, Integer, UInt8

from seqcls.errors import InvalidStringError
from seqcls.notebook import MOST_PLACES, MOST_ROWS, letter_rows
from seqcls.strings.tokenizer import FIRST_LETTER, PAD

NO_LETTER = 255
"""The value in `letters` after a string's end."""

Letters = UInt8[np.ndarray, "string position"]
Counts = Int64[np.ndarray, "string letter"]
Lengths = Int64[np.ndarray, " string"]
Truths = Bool[np.ndarray, " string"]
"""A bool for each string, such as its label in a language."""
Rows = Int64[np.ndarray, " row"]


class TokenStrings:
    """Strings over one alphabet, given by letters or by counts; the other is derived on access.

    Letters of strings given by counts are in order, and spelled out only on access:
    `a{1000000000}` takes no more memory than `a`.
    """

    def __init__(
        self,
        num_letters: int,
        lengths: Lengths,
        letters: Letters | None = None,
        counts: Counts | None = None,
    ) -> None:
        self.num_letters = num_letters
        self.lengths = lengths
        self._letters = letters
        self._counts = counts

    @classmethod
    def of_counts(cls, num_letters: int, counts: Counts) -> Self:
        """The strings with these counts, letters in order."""
        return cls(num_letters, counts.sum(axis=1), counts=counts)

    @classmethod
    def of_letters(
        cls,
        num_letters: int,
        letters: Integer[np.ndarray, "string position"],
        lengths: Lengths | None = None,
    ) -> Self:
        """Strings by their letters; values at or beyond a string's length are ignored.

        Without lengths all are as long as the array is wide.

        Raises:
            InvalidStringError: a number is not that of a letter.
        """
        if lengths is None:
            lengths = np.full(len(letters), letters.shape[1], dtype=np.int64)
        beyond = np.arange(letters.shape[1]) >= lengths[:, None]
        inside = letters[~beyond]
        # Floats and bools would become letters silently.
        is_whole = letters.dtype.kind in "iu"
        if inside.size and not (is_whole and inside.min() >= 0 and inside.max() < num_letters):
            _refuse_numbers(
                num_letters,
                (row[:length] for row, length in zip(letters, lengths.tolist(), strict=True)),
            )
        return cls(num_letters, lengths, np.where(beyond, NO_LETTER, letters).astype(np.uint8))

    @classmethod
    def of_lists(cls, num_letters: int, strings: Sequence[Sequence[int]]) -> Self:
        """Strings by the numbers of their letters.

        Raises:
            InvalidStringError: a number is not that of a letter.
        """
        flat = list(chain.from_iterable(strings))
        # Types are few and letters many: each type is checked once.
        are_whole = all(map(_is_whole, set(map(type, flat))))
        if flat and not (are_whole and min(flat) >= 0 and max(flat) < num_letters):
            _refuse_numbers(num_letters, strings)
        lengths = np.array([len(string) for string in strings], dtype=np.int64)
        letters = np.full((len(strings), int(lengths.max(initial=0))), NO_LETTER, dtype=np.uint8)
        letters[np.arange(letters.shape[1]) < lengths[:, None]] = flat
        return cls(num_letters, lengths, letters)

    def __len__(self) -> int:
        return len(self.lengths)

    def __repr__(self) -> str:
        return f"<TokenStrings: {len(self):,} over {self.num_letters} letters>"

    def _repr_html_(self) -> str:
        """The first strings in colors by letter; text where counts are too large to spell out."""
        shown = self.take(slice(MOST_ROWS))
        if self.is_counted and shown.lengths.max(initial=0) > 10 * MOST_PLACES:
            return escape(repr(self))
        pairs = zip(shown.letters, shown.lengths.tolist(), strict=True)
        rows = [letters[:length].tolist() for letters, length in pairs]
        return letter_rows(rows, self.num_letters, len(self))

    @property
    def is_counted(self) -> bool:
        """True if the strings were given by counts."""
        return self._letters is None

    @cached_property
    def letters(self) -> Letters:
        """The numbers of the letters, `NO_LETTER` after each string's end."""
        if self._letters is not None:
            return self._letters
        ends = self.counts.cumsum(axis=1)
        places = np.arange(self.lengths.max(initial=0))
        # A place's letter is the number of letters whose last occurrence lies before it.
        letters = (places >= ends[:, :, None]).sum(axis=1)
        return np.where(letters < self.num_letters, letters, NO_LETTER).astype(np.uint8)

    @cached_property
    def counts(self) -> Counts:
        """The number of each letter of the alphabet in each string."""
        if self._counts is not None:
            return self._counts
        # A pass for each letter takes less memory than one comparison with all.
        columns = [(self.letters == letter).sum(axis=1) for letter in range(self.num_letters)]
        return np.stack(columns, axis=1).astype(np.int64)

    @cached_property
    def ids(self) -> Letters:
        """The token ids of the letters, `PAD` after each string's end."""
        letters = self.letters
        # `NO_LETTER` would wrap around, but is replaced by `PAD`.
        return np.where(letters == NO_LETTER, PAD, letters + np.uint8(FIRST_LETTER))

    def with_a_place(self) -> Self:
        """The same strings; if all are empty, with letters one place wide.

        So a task may read a string's first letter, which is `NO_LETTER` for the empty one.
        """
        if self.lengths.any():
            return self
        letters = np.full((len(self), 1), NO_LETTER, dtype=np.uint8)
        return type(self)(self.num_letters, self.lengths, letters)

    def take(self, rows: slice | Rows) -> Self:
        """Some of the strings."""
        letters = None if self._letters is None else self._letters[rows]
        counts = None if self._counts is None else self._counts[rows]
        return type(self)(self.num_letters, self.lengths[rows], letters, counts)


def _is_whole(kind: type) -> bool:
    return issubclass(kind, int | np.integer) and not issubclass(kind, bool)


def _refuse_numbers(num_letters: int, strings: Iterable[Iterable[Any]]) -> None:
    """Refuse the first number that is not that of a letter, by its place.

    Raises:
        InvalidStringError: there is one.
    """
    for row, string in enumerate(strings):
        for place, number in enumerate(string):
            if not _is_whole(type(number)) or not 0 <= number < num_letters:
                shown = number.item() if isinstance(number, np.generic) else number
                raise InvalidStringError(
                    f"string {row + 1}, token {place + 1}: there is no letter number "
                    f"{shown!r:.60}; expected whole numbers from 0 to {num_letters - 1}, those of "
                    "the alphabet's tokens, or the string as text"
                )


def join_strings(parts: Sequence[TokenStrings]) -> TokenStrings:
    """Concatenate batches of strings over one alphabet."""
    lengths = np.concatenate([part.lengths for part in parts])
    if all(part.is_counted for part in parts):
        counts = np.concatenate([part.counts for part in parts])
        return TokenStrings(parts[0].num_letters, lengths, counts=counts)
    letters = np.full((len(lengths), int(lengths.max(initial=0))), NO_LETTER, dtype=np.uint8)
    start = 0
    for part in parts:
        # An array may be wider than its longest string.
        own = part.letters[:, : letters.shape[1]]
        letters[start : start + len(own), : own.shape[1]] = own
        start += len(own)
    return TokenStrings(parts[0].num_letters, lengths, letters)
