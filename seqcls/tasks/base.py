"""Protocols of tasks, and base classes of languages.

A `LanguageTask` labels strings: in the language or not; an `InputTask` draws inputs and gives the
target of each. A `Language` is built from three methods about a single text.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import UInt8
from pydantic import AfterValidator, Field

from seqcls.declarations import About, Fields, Text
from seqcls.strings.alphabets import alphabet_obstacle, composing_obstacle
from seqcls.strings.token_strings import Counts, Lengths, Letters, TokenStrings, Truths
from seqcls.strings.tokenizer import MAX_LETTERS, Tokenizer

MAX_DRAWS = 100_000
"""Random strings of which one is expected to be negative."""


class NotRegular(NamedTuple):
    """The class of a language that no finite automaton recognizes: its attribute `hierarchy`."""

    words: str
    """The smallest class of Chomsky's hierarchy that is known to hold it."""
    source: str
    counts: bool = False
    """True if a program of C-RASP and a single counter each recognize it."""
    share: bool = False
    """True if its strings are those with a weighted sum of letter counts above 0."""


FLARE = "Butoi et al. 2025, Training Neural Networks as Recognizers of Formal Languages"
"""The source of most of these languages and their classes."""


LetterRow = UInt8[np.ndarray, " position"]


@runtime_checkable
class Task(Protocol):
    """A task over strings of an alphabet; hashable.

    The constructor takes the fields of a configuration that `reads` names, by name, and raises
    ConfigError for values that make no task. The attribute `kind` names the kind of answer; a
    language needs none.
    """

    order_sensitive: ClassVar[bool]
    """True if two strings with the same letter counts may have different targets."""
    reads: ClassVar[frozenset[str]]
    """The fields of a configuration that determine the task."""

    def __hash__(self) -> int:
        return object.__hash__(self)

    @property
    @abstractmethod
    def alphabet(self) -> Sequence[str]:
        """The tokens: text, one character each, or a tuple; a letter's number is its place here."""
        ...

    def features(self, strings: TokenStrings) -> Mapping[str, np.ndarray]:
        """Numbers by which strings differ, for charts: arrays by name. By default the number of
        each token, with names such as `a's`.
        """
        letters = enumerate(self.alphabet)
        return {f"{letter}'s": strings.counts[:, number] for number, letter in letters}

    @abstractmethod
    def describe(self) -> str:
        """The task in one sentence, such as: Strings with an odd number of 1s are positive."""
        ...


@runtime_checkable
class LanguageTask(Task, Protocol):
    """A language: each string has a label of one bit."""

    def labels(self, strings: TokenStrings) -> Truths:
        """True for the strings in the language."""
        ...

    def has(self, length: int, positive: bool) -> bool:
        """True if any string of that many tokens is in the language (positive), or outside."""
        ...

    def draw(self, rng: np.random.Generator, length: int, positive: bool) -> LetterRow:
        """The letters of a string of that length and label, uniform where the language allows it.

        Such a string must exist (`has`).
        """
        ...


@runtime_checkable
class PartlyKnown(Task, Protocol):
    """A task with targets of some strings only; asking for others' targets is an error.

    A model can read any string.
    """

    def known_strings(self) -> TokenStrings:
        """All strings whose label or target is known."""
        ...

    def knows(self, strings: TokenStrings) -> Truths:
        """True for the strings whose label or target is known."""
        ...


@runtime_checkable
class InputTask(Task, Protocol):
    """A task of another kind: inputs with a target each."""

    kind: ClassVar[str]

    def targets(self, strings: TokenStrings) -> np.ndarray:
        """The target of each string, in the form of the task's kind: (string, ...)."""
        ...

    def has_input(self, length: int) -> bool:
        """True if any input has that many tokens."""
        ...

    def draw_input(self, rng: np.random.Generator, length: int) -> LetterRow:
        """The letters of a uniform input of that length, which must exist (`has_input`)."""
        ...


@runtime_checkable
class CountTask(LanguageTask, Protocol):
    """A language in which only letter counts decide."""

    order_sensitive: ClassVar[bool] = False

    @abstractmethod
    def labels_of_counts(self, counts: Counts) -> Truths:
        """True for the strings with these letter counts that are in the language."""
        ...

    def labels(self, strings: TokenStrings) -> Truths:
        """True for the strings in the language."""
        return self.labels_of_counts(strings.counts)


@runtime_checkable
class BulkTask(LanguageTask, Protocol):
    """A language that draws many strings faster than one by one."""

    @abstractmethod
    def draw_many(self, rng: np.random.Generator, lengths: Lengths, positive: bool) -> Letters:
        """Draw, like `draw`, a string for each length; letters after its end are ignored."""
        ...

    def draw(self, rng: np.random.Generator, length: int, positive: bool) -> LetterRow:
        """A uniform string of that length and label."""
        return np.asarray(self.draw_many(rng, np.array([length]), positive)[0])


@runtime_checkable
class BulkInputs(InputTask, Protocol):
    """A task of another kind that draws many inputs faster than one by one."""

    @abstractmethod
    def draw_inputs(self, rng: np.random.Generator, lengths: Lengths) -> Letters:
        """Draw, like `draw_input`, an input of each length; letters after its end are ignored."""
        ...

    def draw_input(self, rng: np.random.Generator, length: int) -> LetterRow:
        """The letters of an input of that length, which must exist (`has_input`)."""
        return np.asarray(self.draw_inputs(rng, np.array([length]))[0, :length])


DEFECT = "length before the first defect"
"""Name of a feature, of languages in which no continuation mends a defect: tokens of the longest
prefix of any positive string."""


class Worded:
    """A task described by one sentence, the same for all values of its fields."""

    words: ClassVar[str]

    def describe(self) -> str:
        return self.words


def _check_tokens(alphabet: str) -> str:
    names = alphabet.split(" ")
    if "" in names and alphabet:
        raise ValueError("expected visible tokens with one space between, such as 'push pop'")
    if len(names) > 1 and max(map(len, names)) == 1:
        # One language has one key.
        raise ValueError("expected no spaces between tokens of one character, such as 'ab'")
    tokens = names if len(names) > 1 else alphabet
    obstacle = alphabet_obstacle(tokens) or composing_obstacle(tokens)
    if obstacle is not None:
        raise ValueError(obstacle)
    return alphabet


@dataclass(frozen=True)
class Alphabet(Fields):
    """alphabet: The tokens of `regular`, `counting` and `rewrite`, one character each; of the last
    two also names with a space between, such as `push pop a`.
    """

    alphabet: Annotated[
        str, Field(max_length=MAX_LETTERS), AfterValidator(_check_tokens), About("Task", 3)
    ] = ""


@dataclass(frozen=True)
class PatternFields(Alphabet):
    """pattern: The regular expression of `regular`, or what `rewrite` replaces."""

    pattern: Annotated[Text, About("Task", 4, "regex expression")] = ""


class Language(Fields, Worded, LanguageTask):
    """A language given by three methods: `accepts` a text, `has_positive` length, draw `positive`.

    Negative strings are drawn by rejection from uniform ones, so every length but 0 should have
    enough of them; a language where a length has none overrides `has`.
    """

    order_sensitive: ClassVar[bool] = True

    @abstractmethod
    def accepts(self, text: str) -> bool:
        """True if a text is in the language: tokens spelled out, a space between names."""

    def has_positive(self, length: int) -> bool:
        """True if any string of that length, at least 1, is in the language."""
        return True

    @abstractmethod
    def positive(self, rng: np.random.Generator, length: int) -> LetterRow:
        """The letters of a string of that length in the language, which must exist (`has`)."""

    def labels(self, strings: TokenStrings) -> Truths:
        """True for the strings in the language."""
        rows = texts(self.alphabet, strings)
        return np.fromiter(map(self.accepts, rows), dtype=bool, count=len(rows))

    def has(self, length: int, positive: bool) -> bool:
        """True if any string of that many tokens is in the language (positive), or outside."""
        if length == 0:
            # There is one empty string, and it has one of the two labels.
            return self.accepts("") == positive
        return self.has_positive(length) if positive else True

    def draw(self, rng: np.random.Generator, length: int, positive: bool) -> LetterRow:
        """The letters of a string of that length and label.

        A negative one is uniform: strings are drawn until one is negative.

        Raises:
            ValueError: none of `MAX_DRAWS` strings is negative, although `has` is True.
        """
        if positive:
            return self.positive(rng, length)
        tokenizer = Tokenizer(self.alphabet)
        for _ in range(MAX_DRAWS):
            letters = rng.integers(len(self.alphabet), size=length, dtype=np.uint8)
            if not self.accepts(tokenizer.spell(letters.tolist())):
                return letters
        raise ValueError(
            f"no negative string of length {length} among {MAX_DRAWS:,} random ones; "
            "say in `has` which lengths have none"
        )


def texts(alphabet: Sequence[str], strings: TokenStrings) -> list[str]:
    """Strings spelled out; between tokens with names is one space."""
    tokenizer = Tokenizer(alphabet)
    if tokenizer.separator:
        rows = zip(strings.letters.tolist(), strings.lengths.tolist(), strict=True)
        return [tokenizer.spell(row[:end]) for row, end in rows]
    # In UTF-32 every character has four bytes: an array of letters is decoded in one call.
    characters = np.frombuffer("".join(alphabet).encode("utf-32-le"), dtype="<u4")
    # `NO_LETTER` is a byte, too: all 256 need an entry, which is cut off below.
    padded = np.append(characters, np.zeros(256 - len(characters), dtype="<u4"))
    spelled = padded[strings.letters].tobytes().decode("utf-32-le")
    width = strings.letters.shape[1]
    ends = strings.lengths.tolist()
    return [spelled[row * width : row * width + end] for row, end in enumerate(ends)]


def random_bits(rng: np.random.Generator, length: int) -> LetterRow:
    """Fair bits."""
    return rng.integers(2, size=length, dtype=np.uint8)
