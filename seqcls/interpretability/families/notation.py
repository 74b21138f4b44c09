"""How families of strings with free counts are written: `ab{n}`, `a{m}b{n}`, `<ab>{n}`."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

from seqcls.errors import InvalidStringError
from seqcls.interpretability.model.trained_model import Letters
from seqcls.tokens.tokenizer import FIRST_LETTER, Tokenizer

MAX_FIXED = 10**12
"""The largest count that is not free: sums of them stay far within the integers of an array."""

_PIECE = r"(?:<((?:[^<>{{}}]|\{{[<>{{}}]\}})+)>|({token}))(?:\{{([a-z]|[1-9][0-9]*)\}})?"
_FREE = re.compile(r"\{([a-z])\}")

Count = int | str
"""How often a group stands in a string: a number, or the name of a free count."""


@dataclass(frozen=True)
class Family:
    """Strings that differ in one or two counts, each from 1 on, which several groups may share."""

    text: str
    num_letters: int
    names: tuple[str, ...]
    """The free counts, sorted, such as `("n",)` or `("m", "n")`."""
    pieces: tuple[tuple[Letters, Count], ...]
    """Groups of letters and how often each stands there."""

    @property
    def fixed(self) -> tuple[int, ...]:
        """How often each letter of the alphabet occurs besides."""
        return self._letters_of(None)

    @property
    def free(self) -> tuple[tuple[int, ...], ...]:
        """For each free count, how many of each letter one more brings: `a{n}b{n}` has (1, 1)."""
        return tuple(self._letters_of(name) for name in self.names)

    def counts(
        self, values: Int64[np.ndarray, "string free"]
    ) -> Int64[np.ndarray, "string letter"]:
        """The letter counts of the strings whose free counts have these values."""
        return np.asarray(np.array(self.fixed) + values @ np.array(self.free, dtype=np.int64))

    def member(self, values: Sequence[int]) -> str:
        """One string of the family, in the usual notation."""
        numbers = dict(zip(self.names, values, strict=True))
        return _FREE.sub(lambda match: f"{{{numbers[match[1]]}}}", self.text)

    def letters(self, *values: int) -> Letters:
        """The string whose free counts have these values, in the order of `names`."""
        free = dict(zip(self.names, values, strict=True))
        times = (count if isinstance(count, int) else free[count] for _, count in self.pieces)
        return tuple(x for (group, _), n in zip(self.pieces, times, strict=True) for x in group * n)

    def length(self, *values: int) -> int:
        """Tokens of that string."""
        return int(self.counts(np.array([values])).sum())

    def _letters_of(self, name: str | None) -> tuple[int, ...]:
        """How often each letter occurs for one of a free count, or in all that is fixed."""
        counts = [0] * self.num_letters
        for group, count in self.pieces:
            fixed = isinstance(count, int)
            if fixed == (name is None) and (fixed or count == name):
                for letter in group:
                    counts[letter] += count if isinstance(count, int) else 1
        return tuple(counts)


def parse_family(tokenizer: Tokenizer, text: str) -> Family:
    """The family that a text such as `ab{n}`, `0{m}1{n}`, `<ab>{n}` or `({n}){n}` stands for.

    A free count is one lowercase letter in braces; the same name twice is the same count.

    Raises:
        InvalidStringError: not of this alphabet or notation, or not one or two free counts.
    """
    names = tuple(sorted(set(_FREE.findall(text))))
    if "<" not in text:
        # Without groups, what cannot be read is most likely a free count that is not closed.
        _check_names(text, names)
    family = Family(text, tokenizer.num_letters, names, tuple(_pieces(tokenizer, text)))
    _check_names(text, names)
    if max(family.fixed) > MAX_FIXED:
        raise InvalidStringError(
            f"{text[:60]!r} fixes a count above {MAX_FIXED:,}; lower it, or make it free"
        )
    return family


def _check_names(text: str, names: tuple[str, ...]) -> None:
    if not 1 <= len(names) <= 2:
        raise InvalidStringError(
            f"{text[:60]!r} has {len(names) or 'no'} free counts; expected one or two, each a "
            "lowercase letter in braces, as in ab{n}, <ab>{n} or a{m}b{n}"
        )


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
        count = match[3] or "1"
        letters = tuple(x - FIRST_LETTER for x in tokenizer.encode(match[1] or match[2])[1:])
        yield letters, int(count) if count.isdigit() else count
        place = match.end()
