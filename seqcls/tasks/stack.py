"""Brackets and stacks: balanced brackets, and a stack of bits after operations, judged or written.

Depths of brackets and heights of a stack are paths of single steps up and down, drawn uniformly,
the same on every machine.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from jaxtyping import Bool, Float64, Int64
from pydantic import Field

from seqcls.cache import remembered
from seqcls.declarations import About, Fields
from seqcls.strings.token_strings import NO_LETTER, Lengths, TokenStrings, Truths
from seqcls.tasks.automaton import Automaton, explore
from seqcls.tasks.base import DEFECT, FLARE, Language, LetterRow, NotRegular, random_bits
from seqcls.tasks.drawing import below, choose
from seqcls.tasks.transductions import TextTransduction


def first_passage(rng: np.random.Generator, ups: int, start: int) -> Bool[np.ndarray, " step"]:
    """A uniform path of single steps that first is below 0 after its last step.

    It begins at the height `start` and has so many steps up and `ups + start + 1` steps down. Of
    the rotations of a sequence of these steps, `start + 1` are such paths, whatever the sequence
    (the cycle lemma: Dvoretzky & Motzkin 1947): those that begin after one of its last new lows.

    Returns:
        Which steps go up.
    """
    up = np.zeros(2 * ups + start + 1, dtype=bool)
    up[:ups] = True
    up = rng.permutation(up)
    heights = np.cumsum(np.where(up, 1, -1))
    lowest = np.minimum.accumulate(np.minimum(heights, 0))
    lows = np.flatnonzero(np.diff(lowest, prepend=0))
    first = lows[-1 - int(rng.integers(start + 1))] + 1
    return np.roll(up, -first)


def excursion(rng: np.random.Generator, ups: int, highest: int) -> Bool[np.ndarray, " step"]:
    """A uniform path of single steps from 0 to 0, at heights from 0 to `highest` all the way.

    Returns:
        Which of its `2 * ups` steps go up.
    """
    # A path without limit rises to 1.25 times the root of its length.
    if highest**2 < 4 * ups and highest < ups:
        return _low_excursion(rng, 2 * ups, highest)
    while True:
        # The last step is the one that goes below 0.
        up = first_passage(rng, ups, 0)[:-1]
        if np.cumsum(np.where(up, 1, -1)).max(initial=0) <= highest:
            return up


def _low_excursion(
    rng: np.random.Generator, length: int, highest: int
) -> Bool[np.ndarray, " step"]:
    # Tables are made for powers of two, so that many lengths share one.
    rising = _rising(highest, 1 << (length - 1).bit_length())
    up = np.zeros(length, dtype=bool)
    height = 0
    for step, number in enumerate(rng.random(length).tolist()):
        up[step] = number < rising[length - step - 1, height]
        height += 1 if up[step] else -1
    return up


@remembered
def _rising(highest: int, length: int) -> Float64[np.ndarray, "remaining height"]:
    """The share of paths to 0 that rise, with so many steps remaining after this one.

    Numbers of paths are scaled separately for each number of steps; only IEEE arithmetic, the same
    on every machine.
    """
    rising = np.zeros((length, highest + 1))
    paths = np.zeros(highest + 3)  # of the heights -1 to highest + 1
    paths[1] = 1.0
    for remaining in range(length):
        up, down = paths[2:], paths[:-2]
        total = up + down
        np.divide(up, total, out=rising[remaining], where=total > 0)
        # Only ratios count, and numbers of paths would soon overflow.
        paths[1:-1] = total / total.max()
    return rising


# Brackets.

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


# A stack of bits.

PUSH, POP = 2, 3
"""The letters `+` and `-`, after those of the two bits."""

_SHAPE = re.compile(r"([01]*)((?:-|\+[01])*)")


def stack_after(text: str) -> str | None:
    """The final stack, from its top; None where the text is of another form.

    Args:
        text: a stack of bits, bottom first; then pushes (`+0`, `+1`) and pops (`-`), none of which
            finds it empty.
    """
    shape = _SHAPE.fullmatch(text)
    if shape is None:
        return None
    stack = list(shape[1])
    # Without their +, pushes are bits, and only pops remain as signs.
    for operation in shape[2].replace("+", ""):
        if operation != "-":
            stack.append(operation)
        elif stack:
            stack.pop()
        else:
            return None
    return "".join(reversed(stack))


_HASH = 4
"""The letter between the operations and the final stack."""


@dataclass(frozen=True)
class StackManipulation(Language):
    """A stack of bits, bottom first; then pushes (`+0`, `+1`) and pops (`-`); `#`; the final stack.

    The final stack is read from its top. `01#10`, `01-+0#00` and `#` are positive; `01#01`, `-#`
    (nothing there to pop) and the empty string are negative.
    """

    hierarchy: ClassVar[NotRegular] = NotRegular("deterministic context-free", FLARE)
    alphabet = "01+-#"
    words = (
        "A stack of bits, pushes (+0, +1) and pops (-), a #, and the stack that they leave, "
        "read from its top: such strings are positive."
    )

    def accepts(self, text: str) -> bool:
        before, mark, after = text.partition("#")
        return bool(mark) and stack_after(before) == after

    def has_positive(self, length: int) -> bool:
        # Two tokens for each bit of the first stack, three for each push, whatever is popped.
        return length not in (0, 2)

    def positive(self, rng: np.random.Generator, length: int) -> LetterRow:
        """Uniform: a number of pushes, by its share of strings, then operations and bits."""
        pushes = choose(rng, _strings_by_pushes(length))
        size = (length - 1 - 3 * pushes) // 2
        # With one step up more, each way to end the pops is one path: what follows that step is
        # the only way down.
        path = first_passage(rng, pushes + 1, size)
        operations = path[: int(np.flatnonzero(path)[-1])]
        stack = random_bits(rng, size).tolist()
        letters = list(stack)
        bits = iter(random_bits(rng, pushes).tolist())
        for pushed in operations.tolist():
            if pushed:
                stack.append(next(bits))
                letters += [PUSH, stack[-1]]
            else:
                stack.pop()
                letters.append(POP)
        return np.array([*letters, _HASH, *reversed(stack)], dtype=np.uint8)


@remembered
def _strings_by_pushes(length: int) -> tuple[int, ...]:
    """Numbers of positive strings of a length, by their number of pushes.

    From n bits, k pushes and any pops are (n+1)/(2k+n+3) * C(2k+n+3, k+1) sequences: the paths
    that `first_passage` draws from, counted.
    """
    strings = []
    for pushes in range((length - 1) // 3 + 1):
        size, odd = divmod(length - 1 - 3 * pushes, 2)
        steps = 2 * pushes + size + 3
        paths = (size + 1) * math.comb(steps, pushes + 1) // steps
        strings.append(0 if odd else paths << (size + pushes))
    return tuple(strings)


@dataclass(frozen=True)
class WriteStack(TextTransduction):
    """`01-+0` becomes `00`: a stack of bits, pushes and pops; the stack is read from its top."""

    alphabet = "01+-"
    form = "bits, then pushes (+0, +1) and pops (-), none of them of an empty stack"
    words = (
        "A stack of bits, pushes (+0, +1) and pops (-): the output is the stack that they "
        "leave, read from its top."
    )

    def write(self, text: str) -> str | None:
        return stack_after(text)

    def draw_input(self, rng: np.random.Generator, length: int) -> LetterRow:
        """Uniform: random operations, drawn again where one pops from an empty stack."""
        numbers = _operation_counts(length)
        while True:
            # The number of bits at the start, weighted by the texts that begin so.
            size = choose(rng, [numbers[length - bits] << bits for bits in range(length + 1)])
            letters = random_bits(rng, size).tolist()
            while size >= 0 and len(letters) < length:
                left = length - len(letters)
                if below(rng, numbers[left]) < numbers[left - 1]:
                    letters.append(POP)
                    size -= 1
                else:
                    letters += [PUSH, int(rng.integers(2))]
                    size += 1
            if size >= 0:
                return np.array(letters, dtype=np.uint8)


@remembered
def _operation_counts(length: int) -> tuple[int, ...]:
    """Numbers of sequences of operations, pops from an empty stack included, by their tokens."""
    numbers = [1, 1]
    while len(numbers) <= length:
        # A pop takes one token; a push takes two, and has two bits to choose from.
        numbers.append(numbers[-1] + 2 * numbers[-2])
    return tuple(numbers)
