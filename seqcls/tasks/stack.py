"""A stack of bits after operations: recognize it at the end of a string, or write it."""

import math
import re
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from seqcls.cache import remembered
from seqcls.tasks.base import FLARE, Language, LetterRow, NotRegular, random_bits
from seqcls.tasks.drawing import below, choose, first_passage
from seqcls.tasks.transductions import TextTransduction

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
