r"""Strings of letters: `ab{100}c{55}` as text, as token ids and as letter counts.

The vocabulary is `CLS`=0, `PAD`=1 and then the letters of the alphabet. In text, `x{k}` is the
letter `x` k times, k >= 1; a count of 1 is left out, and `x{2}` is shown as `xx`. `<xy>{k}` is the
group's content k times; groups may be nested. A token `<`, `>`, `{` or `}`, which files may have,
is written in braces, `{<}`: no count is one of these, so that texts are unambiguous.

Letters are tokens of one character each, or tokens with names, of which at least one has several.
Those are written with one space between, `<push pop>{50} a`, and read with any white space.
"""

import re
import string
import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
from jaxtyping import Int64, UInt8

from seqcls.errors import InvalidStringError
from seqcls.strings.alphabets import MAX_TOKEN, NOTATION, compose, has_names, listed_tokens
from seqcls.strings.notation import (
    FIRST_RUN,
    IN_BRACES,
    MAX_COUNT,
    MAX_NESTING,
    MAX_SPELLED_LENGTH,
    SIGNS,
    Piece,
    add_counts,
    bad_brace,
    bad_group,
    count_at,
    group_runs,
    may_repeat,
    shorten,
    write_out,
)

CLS = 0
PAD = 1
FIRST_LETTER = 2
"""Token ids; the letter number i of the alphabet has the id FIRST_LETTER + i."""

LETTERS = string.ascii_lowercase
MAX_LETTERS = len(LETTERS)

MIN_REPEATED = 8
"""The fewest pieces with a repetition that is shorter as a group."""

_COUNTED = re.compile(r"\{[1-9][0-9]*\}")

PLACES_AT_ONCE = 2**19
"""Places of strings written in one block, which takes tens of megabytes."""


def unpack_array(value: Any) -> Any:
    """An array's or a tensor's content as a number or nested lists; other values unchanged."""
    return value.tolist() if callable(getattr(value, "tolist", None)) else value


@dataclass(frozen=True)
class Tokenizer:
    """Converts letters, ids and counts of an alphabet, which becomes a tuple of tokens."""

    alphabet: Sequence[str]

    def __post_init__(self) -> None:
        # A tuple can be hashed, and is equal whatever sequence was given.
        object.__setattr__(self, "alphabet", tuple(self.alphabet))

    @property
    def num_letters(self) -> int:
        return len(self.alphabet)

    @cached_property
    def separator(self) -> str:
        """The separator of tokens in a text: a space, unless all are of one character."""
        return " " if has_names(self.alphabet) else ""

    @property
    def unit(self) -> str:
        """The word for elements of strings: `token` where they have names, else `letter`."""
        return "token" if self.separator else "letter"

    @property
    def pattern(self) -> str:
        """A regular expression of what may be one token in a text, without groups."""
        return r"(?:[^<>{}\s]|\{[<>{}]\})+" if self.separator else r"(?:[^<>{}]|\{[<>{}]\})"

    @cached_property
    def has_notation(self) -> bool:
        """True if tokens have characters of the notation; a group then needs its count."""
        return any(character in NOTATION for token in self.alphabet for character in token)

    @cached_property
    def _token_texts(self) -> Sequence[str]:
        """Each token as written in a text."""
        return [re.sub("([<>{}])", r"{\1}", token) for token in self.alphabet]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {token: number for number, token in enumerate(self.alphabet)}

    def spell(self, letters: Iterable[int]) -> str:
        """The text of letters by their numbers, with every repetition spelled out."""
        return self.separator.join([self._token_texts[letter] for letter in letters])

    def display(self, text: str) -> str:
        """A text as it is shown, two of a token and repeated signs written out: `aa((((`.

        A count in braces is easy to read after a letter, but not among brackets. The result can be
        parsed, but stored strings have the original text: look up no string by it.
        """
        if not self.separator:
            if " " in text:
                # Names that are not of this alphabet: targets at places.
                return text
            text = SIGNS.sub(
                lambda run: run[1] * int(run[2]) if run[2] else f"<{run[1]}>{run[3]}", text
            )
        return self._two.sub(lambda run: f"{run[1]}{self.separator}{run[1]}", text)

    @cached_property
    def _two(self) -> re.Pattern[str]:
        return re.compile(rf"({self.pattern})\{{2\}}", re.DOTALL)

    def line_of(self, strings: Iterable[str]) -> str:
        """Texts of several strings in one line: a space between, two where texts have one."""
        return f"{self.separator} ".join(strings)

    def strings_of(self, line: str) -> list[str]:
        """The texts of a line by `line_of`, or typed."""
        between = r"\s{2,}" if self.separator else r"\s+"
        return [text for text in re.split(between, line.strip()) if text]

    def pieces(self, text: str) -> list[tuple[int, int]]:
        """The (letter number, count) pairs of a text, in order, with groups written out.

        Raises:
            InvalidStringError: the text is not in this notation, or not in this alphabet, or has
                too many pieces to write out.
        """
        return write_out(self._parse(text), text)

    def notation(self, string: object) -> str:
        """A string in the notation: text is stripped, and composed where the alphabet has those
        letters; a sequence of tokens is spelled out.

        Raises:
            InvalidStringError: it is neither, or a token is not in the alphabet.
        """
        if isinstance(string, str):
            text = compose(string := string.strip())
            try:
                return text if text == string or self.pieces(text) else string
            except InvalidStringError:
                return string
        string = unpack_array(string)
        tokens = list(string) if isinstance(string, Iterable) else [string]
        if not isinstance(string, Iterable) or isinstance(string, set | frozenset | dict | bytes):
            raise InvalidStringError(
                f"{string!r:.60} is not a string: expected text such as 'ab{{100}}', or a list of "
                "tokens"
            )
        names = [token if token in self._numbers else compose(token) for token in map(str, tokens)]
        for place, name in enumerate(names):
            if name not in self._numbers:
                raise InvalidStringError(
                    f"{string!r:.60} has the token {tokens[place]!r:.60} at place {place + 1}; the "
                    f"tokens are {' '.join(self.alphabet[:20])}"
                )
        return self.decode([FIRST_LETTER + self._numbers[name] for name in names])

    def counts(self, text: str) -> tuple[int, ...]:
        """The number of each letter of the alphabet; the length does not matter.

        Raises:
            InvalidStringError: as `pieces`, and where one letter's count exceeds `MAX_COUNT`.
        """
        counts = add_counts([0] * self.num_letters, self._parse(text))
        if max(counts) > MAX_COUNT:
            raise InvalidStringError(
                f"{shorten(text)} repeats a letter more than {MAX_COUNT:,} times"
            )
        return tuple(counts)

    def encode(self, text: str) -> list[int]:
        """`CLS` and the ids of the letters, spelled out.

        Raises:
            InvalidStringError: as `pieces`, and where the string is too long to be spelled out.
        """
        parsed = self._parse(text)
        length = sum(add_counts([0] * self.num_letters, parsed))
        if length > MAX_SPELLED_LENGTH:
            raise InvalidStringError(
                f"{shorten(text)} has {length:,} {self.unit}s, more than the "
                f"{MAX_SPELLED_LENGTH:,} that can be spelled out; shorten it, or work with counts"
            )
        ids = [CLS]
        for letter, count in write_out(parsed, text):
            ids.extend([FIRST_LETTER + letter] * count)
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """The text of token ids; `CLS` and `PAD` have none.

        Equal letters in a row are one piece, `a{3}`. Two to sixteen pieces that are repeated are a
        group, `<ab>{50}`, if that is shorter even for pieces of one character; of several possible
        groups, from left to right, the shortest.

        Raises:
            InvalidStringError: an id outside the vocabulary.
        """
        letters = [int(token) - FIRST_LETTER for token in ids if token not in (CLS, PAD)]
        known = range(self.num_letters)
        # Checked together, since a test set has a million letters.
        if unknown := sorted(set(letters).difference(known)):
            raise InvalidStringError(
                f"token id {unknown[0] + FIRST_LETTER} is outside the vocabulary of "
                f"{FIRST_LETTER + len(known)} tokens"
            )
        runs = [(letter, len(list(run))) for letter, run in groupby(letters)]
        texts = [self._piece(letter, count) for letter, count in runs]
        if len(runs) < MIN_REPEATED:
            return self.separator.join(texts)
        numbers: dict[tuple[int, int], int] = {}
        # With a character for each run, repetitions are found by a regular expression.
        row = "".join([chr(FIRST_RUN + numbers.setdefault(run, len(numbers))) for run in runs])
        return group_runs(row, texts, self.separator)

    def decode_all(
        self, letters: UInt8[np.ndarray, "string position"], lengths: Int64[np.ndarray, " string"]
    ) -> list[str]:
        """The texts of many strings by their letters, equal to those of `decode`."""
        size = max(PLACES_AT_ONCE // max(letters.shape[1], 1), 1)
        slices = [slice(start, start + size) for start in range(0, len(lengths), size)]
        return [text for own in slices for text in self._decode_some(letters[own], lengths[own])]

    def _decode_some(
        self, letters: UInt8[np.ndarray, "string position"], lengths: Int64[np.ndarray, " string"]
    ) -> list[str]:
        width = letters.shape[1]
        begins = np.arange(width) < lengths[:, None]
        begins[:, 1:] &= letters[:, 1:] != letters[:, :-1]
        rows, places = np.nonzero(begins)
        is_last = np.diff(rows, append=-1) != 0
        ends = np.where(is_last, lengths[rows], np.append(places[1:], 0)[: len(rows)])
        # A run's letter and its count are one number, since no count exceeds the width.
        kinds, run = np.unique(
            letters[rows, places] * np.int64(width + 1) + ends - places, return_inverse=True
        )
        numbers = begins.sum(axis=1)
        by_string = np.full((len(lengths), int(numbers.max(initial=0))), -1)
        by_string[rows, begins.cumsum(axis=1)[rows, places] - 1] = run
        names = [self._piece(*divmod(kind, width + 1)) for kind in kinds.tolist()]
        texts = [names[number] for number in run.tolist()]
        characters = (run + FIRST_RUN).astype("<u4").tobytes().decode("utf-32-le")
        found, stop = [], 0
        for number, repeats in zip(numbers.tolist(), may_repeat(by_string).tolist(), strict=True):
            start, stop = stop, stop + number
            own = texts[start:stop]
            found.append(
                group_runs(characters[start:stop], own, self.separator)
                if repeats
                else self.separator.join(own)
            )
        return found

    def text_of_counts(self, counts: Sequence[int]) -> str:
        """The text of the string with these counts, letters in order."""
        return self.separator.join(
            self._piece(letter, int(count)) for letter, count in enumerate(counts) if count
        )

    def _piece(self, letter: int, count: int) -> str:
        return self._token_texts[letter] + (f"{{{count}}}" if count > 1 else "")

    def _parse(self, text: str) -> list[Piece]:
        """The pieces of a text, groups included.

        A letter in another Unicode form than in the alphabet, é as e and a mark, is that letter.
        """
        try:
            return self._read(text)
        except InvalidStringError as error:
            # ASCII has only one form.
            for form in ("NFC", "NFD") * (not text.isascii()):
                with suppress(InvalidStringError):
                    return self._read(unicodedata.normalize(form, text))
            if not self.has_notation:
                raise
            hint = "these characters of tokens are written in braces: {<}, {>}, {{} and {}}"
            raise InvalidStringError(f"{error}; {hint}") from None

    def _read(self, text: str) -> list[Piece]:
        word = re.compile(self.pattern, re.DOTALL)
        open_groups: list[tuple[int, list[Piece]]] = [(0, [])]
        place = 0
        while place < len(text):
            character = text[place]
            token = word.match(text, place)
            if character in "{}" and token is None:
                raise InvalidStringError(bad_brace(text, place))
            place = token.end() if token else place + 1
            if self.separator and character.isspace():
                continue
            if character == "<":
                if len(open_groups) > MAX_NESTING:
                    raise InvalidStringError(
                        f"cannot read {shorten(text)} at character {place}: groups inside groups "
                        f"are more than {MAX_NESTING} deep"
                    )
                open_groups.append((place, []))
                continue
            what: int | list[Piece]
            if character == ">":
                start, what = open_groups.pop()
                # Tokens written without braces would form a group by mistake.
                is_one = self.has_notation and text[place : place + 1] != "{"
                if not open_groups or not what or is_one:
                    raise InvalidStringError(bad_group(text, place))
            else:
                what = self._letter(text, IN_BRACES.sub(r"\1", token[0] if token else character))
            count, place = count_at(text, place)
            open_groups[-1][1].append((what, count))
        start, pieces = open_groups.pop()
        if open_groups:
            raise InvalidStringError(bad_group(text, start))
        return pieces

    def with_tokens_of(self, text: str) -> "Tokenizer":
        """A tokenizer with the unknown tokens of a text added after the alphabet's."""
        words = dict.fromkeys(re.findall(self.pattern, _COUNTED.sub("", text)))
        others = [word for word in words if word not in self._numbers and not word.isspace()]
        return Tokenizer((*self.alphabet, *others))

    def _letter(self, text: str, letter: str) -> int:
        if letter not in self._numbers:
            shown, listed = shorten(letter, MAX_TOKEN), listed_tokens(self.alphabet, letter)
            raise InvalidStringError(f"unknown {self.unit} {shown} in {shorten(text)}: {listed}")
        return self._numbers[letter]
