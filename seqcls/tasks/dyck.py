"""Dyck languages: balanced brackets of one or two types, of limited depth or any."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from jaxtyping import Int64
from pydantic import Field

from seqcls.cache import remembered
from seqcls.declarations import About, Fields
from seqcls.strings.token_strings import NO_LETTER, Lengths, TokenStrings, Truths
from seqcls.tasks.automaton import Automaton, explore
from seqcls.tasks.base import DEFECT, Language, LetterRow, NotRegular
from seqcls.tasks.drawing import excursion

BRACKETS = ("()", "()[]")


@dataclass(frozen=True)
class Brackets(Fields):
    """bracket_types: Bracket types of `dyck`: one, or two.
    max_depth: Brackets open at once in `dyck`; 0 means no limit.
    """

    bracket_types: Annotated[int, Field(ge=1, le=2), About("Task", 8)] = 1
    max_depth: Annotated[int, Field(ge=0, le=10_000), About("Task", 9)] = 0


@dataclass(frozen=True)
class Dyck(Brackets, Language):
    """Balanced brackets of one or two types, at most `max_depth` open at once (0: no limit).

    `(())()` and the empty string are positive; `)(`, `(()` and, with two types, `([)]` are
    negative.
    """

    @property
    def alphabet(self) -> str:
        return BRACKETS[self.bracket_types - 1]

    @property
    @remembered
    def automaton(self) -> Automaton | None:
        """The minimal automaton, whose states are the open brackets; None without a limit.

        Raises:
            ConfigError: it has too many states.
        """
        if not self.max_depth:
            return None
        # No stack holds -1: it is the state after a defect.
        broken: tuple[int, ...] = (-1,)
        start: tuple[int, ...] = ()

        def step(opened: tuple[int, ...], bracket: int) -> tuple[int, ...]:
            if opened != broken and bracket % 2 == 0 and len(opened) < self.max_depth:
                return (*opened, bracket)
            return opened[:-1] if opened and opened[-1] == bracket - 1 and bracket % 2 else broken

        return explore(2 * self.bracket_types, start, step, lambda opened: not opened)

    @property
    def hierarchy(self) -> NotRegular | None:
        """Its class where it is not regular."""
        if self.max_depth:
            return None
        source = "Chomsky & Schützenberger 1963, The Algebraic Theory of Context-Free Languages"
        return NotRegular("deterministic context-free", source, counts=self.bracket_types == 1)

    def accepts(self, text: str) -> bool:
        pending: list[str] = []
        for bracket in text:
            place = self.alphabet.index(bracket)
            if place % 2 == 0:
                pending.append(self.alphabet[place + 1])
                if 0 < self.max_depth < len(pending):
                    return False
            elif not pending or pending.pop() != bracket:
                return False
        return not pending

    def labels(self, strings: TokenStrings) -> Truths:
        depths = _depths(strings)
        balanced = depths[:, -1:].sum(axis=1) == 0
        balanced &= depths.min(axis=1, initial=0) >= 0
        if self.max_depth:
            balanced &= depths.max(axis=1, initial=0) <= self.max_depth
        if self.bracket_types > 1:
            # The types of the few strings that are left are checked one by one.
            rows = np.flatnonzero(balanced)
            balanced[rows] = super().labels(strings.take(rows))
        return np.asarray(balanced)

    def has_positive(self, length: int) -> bool:
        return length % 2 == 0

    def positive(self, rng: np.random.Generator, length: int) -> LetterRow:
        """Uniform: a uniform path of depths, with uniform types of the brackets that open."""
        pairs = length // 2
        opening = excursion(rng, pairs, self.max_depth or pairs)
        letters = np.where(opening, 0, 1).astype(np.uint8)
        if self.bracket_types > 1:
            types = iter(rng.integers(self.bracket_types, size=pairs).tolist())
            pending: list[int] = []
            for place, opens in enumerate(opening.tolist()):
                if opens:
                    pending.append(next(types))
                letters[place] += 2 * (pending[-1] if opens else pending.pop())
        return letters

    def features(self, strings: TokenStrings) -> Mapping[str, np.ndarray]:
        """The number of each bracket, the greatest depth, the length before the first defect."""
        deepest = _depths(strings).max(axis=1, initial=0)
        sound = self._sound_lengths(strings)
        return {**super().features(strings), "nesting depth": deepest, DEFECT: sound}

    def _sound_lengths(self, strings: TokenStrings) -> Lengths:
        """Tokens up to a bracket that closes none of its type or opens one too many."""
        rows, (number, width) = np.arange(len(strings)), strings.letters.shape
        pending = np.full((number, width + 1), NO_LETTER, dtype=np.uint8)
        depths, sound = np.zeros((2, number), dtype=np.int64)
        fine = np.ones(number, dtype=bool)
        for letters in strings.letters.T:
            opens = letters % 2 == 0
            deeper = (depths < self.max_depth) | (self.max_depth == 0)
            # A bracket that opens has an even number, and its partner the next one.
            closes = (depths > 0) & (letters == pending[rows, depths - 1] + 1)
            fine &= (letters != NO_LETTER) & np.where(opens, deeper, closes)
            pending[rows, depths] = letters
            # After a defect depths mean nothing, but they still index `pending`.
            depths = np.maximum(depths + np.where(opens, 1, -1), 0)
            sound += fine
        return sound

    def describe(self) -> str:
        limit = f", at most {self.max_depth} open at once," if self.max_depth else ""
        return f"Strings of balanced brackets {self.alphabet}{limit} are positive."


def _depths(strings: TokenStrings) -> Int64[np.ndarray, "string position"]:
    """Brackets opened less brackets closed, up to each token."""
    letters = strings.letters
    steps = np.where(letters == NO_LETTER, 0, 1 - 2 * (letters % 2).astype(np.int64))
    return np.cumsum(steps, axis=1, dtype=np.int64)
