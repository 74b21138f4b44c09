r"""Strings of letters: `ab{100}c{55}` as text, as token ids and as letter counts.

The vocabulary is `CLS`=0, `PAD`=1 and then the first `num_letters` lowercase letters. In text,
`x{k}` stands for the letter `x` k times, k >= 1; a count of 1 is left out.
"""

import re
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from jaxtyping import UInt8

from seqcls.errors import StringError

CLS = 0
PAD = 1
FIRST_LETTER = 2
"""Token ids; the letter number i of the alphabet has the id FIRST_LETTER + i."""

LETTERS = string.ascii_lowercase
MAX_LETTERS = len(LETTERS)
NOTATION = "<>{}"
"""What no token may be: it writes repetitions."""

MAX_COUNT = 2**63 - 1
"""The largest count that fits the integers of every database and array."""

MAX_SPELLED_LENGTH = 1_000_000
"""Letters that are spelled out at most; longer strings exist only as counts."""

_PIECE = re.compile(r"(?P<letter>[^{}])(?:\{(?P<count>[^{}]*)\})?", re.DOTALL)
_COUNT = re.compile(r"[1-9][0-9]*")


@dataclass(frozen=True)
class Tokenizer:
    """Letters <-> ids <-> counts for an alphabet of one-character tokens."""

    alphabet: str

    @property
    def num_letters(self) -> int:
        return len(self.alphabet)

    def pieces(self, text: str) -> list[tuple[int, int]]:
        """The (letter number, count) pairs of a text, in order.

        Raises:
            StringError: the text is not written in this notation, or not in this alphabet.
        """
        pieces = []
        position = 0
        while position < len(text):
            match = _PIECE.match(text, position)
            if match is None:
                raise StringError(self._bad_brace(text, position))
            pieces.append((self._letter(text, match["letter"]), _count(text, match["count"])))
            position = match.end()
        return pieces

    def counts(self, text: str) -> tuple[int, ...]:
        """How often each letter of the alphabet occurs; the length does not matter.

        Raises:
            StringError: as `pieces`, and where one letter's count exceeds `MAX_COUNT`.
        """
        counts = [0] * self.num_letters
        for letter, count in self.pieces(text):
            counts[letter] += count
        if max(counts) > MAX_COUNT:
            raise StringError(f"{_shown(text)} repeats a letter more than {MAX_COUNT:,} times")
        return tuple(counts)

    def encode(self, text: str) -> list[int]:
        """`CLS` and the ids of the letters, spelled out.

        Raises:
            StringError: as `pieces`, and where the string is too long to be spelled out.
        """
        pieces = self.pieces(text)
        length = sum(count for _, count in pieces)
        if length > MAX_SPELLED_LENGTH:
            raise StringError(
                f"{_shown(text)} has {length:,} letters, more than the {MAX_SPELLED_LENGTH:,} "
                "that can be spelled out; shorten it, or work with its counts"
            )
        ids = [CLS]
        for letter, count in pieces:
            ids.extend([FIRST_LETTER + letter] * count)
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """The text of token ids; `CLS` and `PAD` have none.

        Raises:
            StringError: an id outside the vocabulary.
        """
        letters = [int(token) - FIRST_LETTER for token in ids if token not in (CLS, PAD)]
        for letter in letters:
            if not 0 <= letter < self.num_letters:
                raise StringError(
                    f"token id {letter + FIRST_LETTER} is outside the vocabulary of "
                    f"{FIRST_LETTER + self.num_letters} tokens"
                )
        return "".join(self._piece(letter, len(list(run))) for letter, run in groupby(letters))

    def text_of_counts(self, counts: Sequence[int]) -> str:
        """The text of the string that has these counts and its letters in order."""
        return "".join(
            self._piece(letter, int(count)) for letter, count in enumerate(counts) if count
        )

    def _piece(self, letter: int, count: int) -> str:
        return self.alphabet[letter] + (f"{{{count}}}" if count > 1 else "")

    def _letter(self, text: str, letter: str) -> int:
        number = self.alphabet.find(letter)
        if number < 0:
            raise StringError(
                f"unknown letter {letter!r} in {_shown(text)}: the alphabet is {self.alphabet!r}"
            )
        return number

    def _bad_brace(self, text: str, position: int) -> str:
        following = "a count must follow a letter, as in a{3}"
        if text[position] == "{" and position and text[position - 1] != "}":
            following = "'{' is not closed: write a count as in a{3}"
        return f"cannot read {_shown(text)} at character {position + 1}: {following}"


def pad(sequences: Sequence[Sequence[int]]) -> UInt8[np.ndarray, "string position"]:
    """Token ids of unequal lengths as one array, filled up with `PAD`."""
    padded = np.full((len(sequences), max(map(len, sequences), default=1)), PAD, dtype=np.uint8)
    for row, ids in zip(padded, sequences, strict=True):
        row[: len(ids)] = ids
    return padded


def _count(text: str, count: str | None) -> int:
    if count is None:
        return 1
    # A count longer than MAX_COUNT is refused before int() would have to read it.
    if _COUNT.fullmatch(count) is None:
        raise StringError(
            f"cannot read the count {_shown(count)} in {_shown(text)}: expected a whole number "
            "of at least 1 in plain digits, as in a{3}"
        )
    if len(count) > len(str(MAX_COUNT)) or int(count) > MAX_COUNT:
        raise StringError(
            f"the count {_shown(count)} in {_shown(text)} is larger than {MAX_COUNT:,}"
        )
    return int(count)


def _shown(text: str, limit: int = 60) -> str:
    return repr(text if len(text) <= limit else text[:limit] + "…")
