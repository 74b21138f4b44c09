"""Tasks of files: rows, so that targets of other strings are not known, or an automaton, which
labels all strings.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, ClassVar, TypeVar

import numpy as np
from pydantic import Field

from seqcls.cache import remembered
from seqcls.declarations import About, Fields
from seqcls.errors import ConfigError, InvalidStringError
from seqcls.strings.alphabets import has_names, tokens_of
from seqcls.strings.automata import StoredAutomaton
from seqcls.strings.datasets import MAX_TOKENS, Dataset, dataset_of
from seqcls.strings.token_strings import NO_LETTER, Rows, TokenStrings, Truths
from seqcls.strings.tokenizer import Tokenizer
from seqcls.tasks.automaton import Automaton, RegularLanguage, minimize
from seqcls.tasks.base import Alphabet, LanguageTask, LetterRow
from seqcls.tasks.transductions import TargetRow, Transduction
from seqcls.text import count

Stored = TypeVar("Stored", Dataset, StoredAutomaton)


def content_of(digest: str, kind: type[Stored], task: str = "") -> Stored:
    """The dataset, or the automaton, with a digest.

    Raises:
        ConfigError: it is of the other kind, of another task if one is named, or not known.
    """
    content = dataset_of(digest)
    if not isinstance(content, kind) or task not in ("", content.task):
        raise ConfigError(f"dataset={content.name!r}: {content.holds}; use task={content.task!r}")
    return content


@lru_cache(maxsize=256)
def rows_of_length(digest: str, length: int, label: bool | None) -> Rows:
    """The rows of a length, and of a label if one is given, without contradicted ones."""
    dataset = content_of(digest, Dataset)
    # The target of rows that contradict each other is not known.
    there = (dataset.strings.lengths == length) & ~dataset.contradicted
    if label is not None and dataset.labels is not None:
        there = there & (dataset.labels == label)
    return np.flatnonzero(there)


def rows_of(digest: str, strings: TokenStrings) -> Rows:
    """A row of each string, with the target of most of its rows; -1 where there is none."""
    known = _by_letters(digest)
    letters = content_of(digest, Dataset).strings.letters
    rows = np.full(len(strings), -1, dtype=np.int64)
    for number, (row, length) in enumerate(zip(strings.letters, strings.lengths, strict=True)):
        # Hashes and not bytes are the keys, which would double the memory; equality is checked.
        candidate = known.get(hash(row[:length].tobytes()), -1)
        if candidate >= 0 and _is_string(letters[candidate], row[:length]):
            rows[number] = candidate
    return rows


def _is_string(letters: np.ndarray, string: np.ndarray) -> bool:
    end = len(string)
    if end > len(letters) or not np.array_equal(letters[:end], string):
        return False
    return end == len(letters) or bool(letters[end] == NO_LETTER)


@lru_cache(maxsize=4)
def _by_letters(digest: str) -> dict[int, int]:
    dataset = content_of(digest, Dataset)
    letters, lengths = dataset.strings.letters, dataset.strings.lengths.tolist()
    rows = np.flatnonzero(~dataset.contradicted).tolist()
    # Any row of a string will do: where they disagree, only those of the majority are left.
    return {hash(letters[row, : lengths[row]].tobytes()): row for row in rows}


@dataclass(frozen=True)
class FileFields(Fields):
    """dataset: The digest of a file's content; specifications name the file, as `path`."""

    dataset: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$"), About("Task", 2)] = ""


@dataclass(frozen=True)
class RowsTask(FileFields):
    """A task whose targets are known for the strings of a file, and for no others.

    Where rows of a string contradict each other, the target of most of them is right; without a
    majority none is known.
    """

    name: ClassVar[str]
    """The task's name, which the file's content must have."""
    sampler: ClassVar[str] = "dataset_rows"
    """The only sampler of its strings."""

    def __post_init__(self) -> None:
        content_of(self.dataset, Dataset, self.name)

    @property
    def content(self) -> Dataset:
        """The rows."""
        return content_of(self.dataset, Dataset)

    def known_strings(self) -> TokenStrings:
        """The strings of the file, without those of no known target."""
        content = self.content
        if content.contradicted.any():
            return content.strings.take(np.flatnonzero(~content.contradicted))
        return content.strings

    @property
    def alphabet(self) -> Sequence[str]:
        """The tokens of the rows, as `Task.alphabet`."""
        return self.content.alphabet

    def knows(self, strings: TokenStrings) -> Truths:
        """True for the strings whose label or target the file has."""
        return np.asarray(rows_of(self.dataset, strings) >= 0)


@dataclass(frozen=True)
class File(RowsTask, LanguageTask):
    """Strings of a file with their labels; labels of other strings are not known.

    Nor is it known whether the order of tokens matters, so it may.
    """

    name: ClassVar[str] = "file"
    order_sensitive: ClassVar[bool] = True

    def labels(self, strings: TokenStrings) -> Truths:
        """The labels of strings of the file.

        Raises:
            InvalidStringError: one of them is not in it.
        """
        rows = rows_of(self.dataset, strings)
        labels = self.content.labels
        assert labels is not None
        refuse_unknown(self.content, strings, rows, "label")
        return np.asarray(labels[rows], dtype=bool)

    def has(self, length: int, positive: bool) -> bool:
        """True if any string of the file has that length and label."""
        return bool(len(rows_of_length(self.dataset, length, positive)))

    def draw(self, rng: np.random.Generator, length: int, positive: bool) -> LetterRow:
        """A string of the file."""
        row = rng.choice(rows_of_length(self.dataset, length, positive))
        return np.array(self.content.strings.letters[row, :length])

    def describe(self) -> str:
        return f"Strings that the file {self.content.name!r} labels 1 are positive."


def refuse_unknown(content: Dataset, strings: TokenStrings, rows: np.ndarray, answer: str) -> None:
    """Refuse strings without a known label or target.

    Raises:
        InvalidStringError: there is one.
    """
    for number in np.flatnonzero(rows < 0)[:1]:
        row = strings.letters[number, : strings.lengths[number]]
        text = Tokenizer(content.alphabet).spell(row.tolist())
        is_there = any(_is_string(letters, row) for letters in content.strings.letters)
        why = f"has rows in the file with different {answer}s" if is_there else "is not in the file"
        raise InvalidStringError(f"string {text[:60]!r} {why}, so its {answer} is not known")


@dataclass(frozen=True)
class Pairs(RowsTask, Transduction):
    """Inputs of a file with their targets; targets of other inputs are not known."""

    name: ClassVar[str] = "pairs"

    @property
    def _targets(self) -> np.ndarray:
        targets = self.content.targets
        assert targets is not None
        return targets

    def target(self, letters: LetterRow) -> TargetRow:
        target = self.targets(TokenStrings.of_letters(len(self.alphabet), letters[None, :]))[0]
        return np.asarray(target[target != NO_LETTER])

    def targets(self, strings: TokenStrings) -> np.ndarray:
        rows = rows_of(self.dataset, strings)
        refuse_unknown(self.content, strings, rows, "target")
        targets = self._targets[rows]
        # All of these rows may have shorter targets than the file's longest.
        longest = int((targets != NO_LETTER).sum(axis=1).max(initial=0))
        return np.asarray(targets[:, :longest])

    def longest_target(self, length: int) -> int:
        # An input may be shorter than any of the file; its output is at most as long as theirs.
        lengths = self.content.strings.lengths
        rows = lengths <= max(length, int(lengths.min()))
        return int((self._targets[rows] != NO_LETTER).sum(axis=1).max(initial=0))

    def has_input(self, length: int) -> bool:
        return bool(len(rows_of_length(self.dataset, length, None)))

    def draw_input(self, rng: np.random.Generator, length: int) -> LetterRow:
        row = rng.choice(rows_of_length(self.dataset, length, None))
        return np.array(self.content.strings.letters[row, :length])

    def describe(self) -> str:
        return f"The output is what the file {self.content.name!r} pairs with the input."


@dataclass(frozen=True)
class FromAutomaton(Alphabet, FileFields, RegularLanguage):
    """Strings that the automaton of a file accepts are positive.

    `alphabet` adds tokens to those of the file; the attribute has both, sorted.
    """

    optional: ClassVar[frozenset[str]] = frozenset({"alphabet"})
    """The fields that may be empty."""

    def __post_init__(self) -> None:
        content = self.content
        # Sorted, the same tokens are one language, in whatever order they were named.
        tokens = tuple(sorted({*content.alphabet, *tokens_of(self.alphabet)}))
        if len(tokens) > MAX_TOKENS:
            raise ConfigError(
                f"alphabet={self.alphabet!r:.60}: with those of {content.name!r} there are "
                f"{len(tokens)} tokens, expected at most {MAX_TOKENS}"
            )
        object.__setattr__(self, "alphabet", tokens if has_names(tokens) else "".join(tokens))

    @property
    def content(self) -> StoredAutomaton:
        """The automaton of the file."""
        return content_of(self.dataset, StoredAutomaton)

    @property
    @remembered
    def automaton(self) -> Automaton:
        """The minimal automaton, which rejects strings with tokens that are not in the file."""
        content, sink = self.content, len(self.content)
        known = {token: letter for letter, token in enumerate(content.alphabet)}
        # Minimal again, since a database from elsewhere may hold one that is not.
        table = np.full((sink + 1, len(self.alphabet)), sink, dtype=np.int64)
        for letter, token in enumerate(self.alphabet):
            if token in known:
                table[:-1, letter] = content.table[:, known[token]]
        return minimize(table, np.append(content.accepting, False))

    def describe(self) -> str:
        states, tokens = len(self.automaton.table), len(self.alphabet)
        determinized = [note for note in self.content.read_as if "determinized" in note]
        return (
            f"Strings that the automaton of the file {self.content.name!r} accepts are positive; "
            f"its minimal automaton has {count(states, 'state')} over {count(tokens, 'token')}"
            f"{'; that of the file is ' + determinized[0] if determinized else ''}"
            f"{''.join('; ' + note for note in self.content.read_as if 'the start is' in note)}."
        )
