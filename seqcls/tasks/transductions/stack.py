"""Which stack do the operations leave?"""

from dataclasses import dataclass

import numpy as np

from seqcls.caching.remembered import remembered
from seqcls.functions.stack import POP, PUSH, stack_after
from seqcls.tasks.drawing import below, choose
from seqcls.tasks.language import LetterRow, random_bits
from seqcls.tasks.transductions.base import OfText


@dataclass(frozen=True)
class WriteStack(OfText):
    """`01-+0` becomes `00`: a stack of bits, pushes and pops; the stack is read from its top."""

    alphabet = "01+-"
    form = "bits, then pushes (+0, +1) and pops (-), none of them of an empty stack"

    def answer(self, text: str) -> str | None:
        return stack_after(text)

    def has_input(self, length: int) -> bool:
        return length >= 1

    def draw_input(self, rng: np.random.Generator, length: int) -> LetterRow:
        """Uniform: operations as they come, drawn again where one pops what is not there."""
        numbers = _ways(length)
        while True:
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

    def describe(self) -> str:
        return (
            "A stack of bits, pushes (+0, +1) and pops (-): the output is the stack that they "
            "leave, read from its top."
        )


@remembered
def _ways(length: int) -> tuple[int, ...]:
    """How many operations fill so many tokens, for each number of them, whatever is popped."""
    numbers = [1, 1]
    while len(numbers) <= length:
        numbers.append(numbers[-1] + 2 * numbers[-2])
    return tuple(numbers)
