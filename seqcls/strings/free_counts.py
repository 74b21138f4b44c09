"""The notation of strings with free counts: `ab{n}`, `a{m}b{n}` or `<ab>{n}`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

from seqcls.errors import InvalidStringError
from seqcls.strings.tokenizer import FIRST_LETTER, Tokenizer

MAX_FIXED = 10**12
"""The largest fixed count: sums of them fit the integers of an array."""

# A group in brackets or a token, then its count; doubled braces are for `str.format`.
_PIECE = r"(?:<((?:[^<>{{}}]|\{{[<>{{}}]\}})+)>|({token}))(?:\{{([a-z]|[1-9][0-9]*)\}})?"
_FREE = re.compile(r"\{([a-z])\}")

Letters = tuple[int, ...]
"""Tokens by their places in the alphabet."""

Count = int | str
"""Number of repetitions of a group, or the name of a free count."""

Values = tuple[int, ...]
"""Values of the free counts, in the order of their names."""


@dataclass(frozen=True)
class Family:
    """Strings that differ in one or two counts of at least 1, which several groups may share."""

    text: str
    num_letters: int
    names: tuple[str, ...]
    """The free counts, sorted, such as `("n",)` or `("m", "n")`."""
    pieces: tuple[tuple[Letters, Count], ...]
    """Groups of letters and their counts, in order."""

    @property
    def fixed(self) -> Int64[np.ndarray, " letter"]:
        """Occurrences of each letter of the alphabet that do not depend on free counts."""
        return self.counts(np.zeros(len(self.names), dtype=np.int64))

    @property
    def free(self) -> Int64[np.ndarray, "free letter"]:
        """Occurrences of each letter for each unit of a free count: `a{n}b{n}` has (1, 1)."""
        return np.asarray(self.counts(np.eye(len(self.names), dtype=np.int64)) - self.fixed)

    def counts(
        self, values: Int64[np.ndarray, "*string free"]
    ) -> Int64[np.ndarray, "*string letter"]:
        """The letter counts of the strings whose free counts have these values."""
        total = np.zeros((*values.shape[:-1], self.num_letters), dtype=np.int64)
        for group, n in self.pieces:
            times = np.array(n) if isinstance(n, int) else values[..., [self.names.index(n)]]
            total = total + times * np.bincount(group, minlength=self.num_letters)
        return total

    def member(self, values: Values) -> str:
        """One string of the family, in the usual notation."""
        numbers = dict(zip(self.names, values, strict=True))
        return _FREE.sub(lambda match: f"{{{numbers[match[1]]}}}", self.text)

    def letters(self, *values: int) -> Letters:
        """The string whose free counts have these values, in the order of `names`."""
        numbers = dict(zip(self.names, values, strict=True))
        groups = (group * (n if isinstance(n, int) else numbers[n]) for group, n in self.pieces)
        return tuple(letter for group in groups for letter in group)


def parse_family(tokenizer: Tokenizer, text: str) -> Family:
    """Parse a family such as `ab{n}`, `0{m}1{n}`, `<ab>{n}` or `({n}){n}`.

    A free count is one lowercase letter in braces; the same name twice is the same count.

    Raises:
        InvalidStringError: not of this alphabet or notation, or not one or two free counts.
    """
    names = tuple(sorted(set(_FREE.findall(text))))
    # The most likely mistake is a free count without its closing brace.
    if not 1 <= len(names) <= 2:
        raise InvalidStringError(
            f"{text[:60]!r} has {len(names) or 'no'} free counts; expected one or two, each a "
            "lowercase letter in braces, as in ab{n}, <ab>{n} or a{m}b{n}"
        )
    family = Family(text, tokenizer.num_letters, names, tuple(_pieces(tokenizer, text)))
    if family.fixed.max() > MAX_FIXED:
        raise InvalidStringError(
            f"{text[:60]!r} fixes a count above {MAX_FIXED:,}; lower it, or make it free"
        )
    return family


def _pieces(tokenizer: Tokenizer, text: str) -> Iterator[tuple[Letters, Count]]:
    piece = re.compile(_PIECE.format(token=tokenizer.pattern), re.DOTALL)
    place = 0
    while place < len(text):
        if tokenizer.separator and text[place].isspace():
            place += 1
            continue
        match = piece.match(text, place)
        if match is None or (match[1] and match[3] is None and tokenizer.has_notation):
            raise InvalidStringError(
                f"cannot read {text[:60]!r} at character {place + 1}: expected tokens, or groups "
                "such as <ab>{n} or 0{3}"
            )
        times = match[3] or "1"
        letters = tuple(x - FIRST_LETTER for x in tokenizer.encode(match[1] or match[2])[1:])
        yield letters, int(times) if times.isdigit() else times
        place = match.end()
