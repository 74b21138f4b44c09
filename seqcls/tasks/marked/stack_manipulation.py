"""Is what follows `#` the stack that the operations leave, read from its top?"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from seqcls.caching.remembered import remembered
from seqcls.functions.stack import POP, PUSH, stack_after
from seqcls.tasks.base import FLARE, NotRegular
from seqcls.tasks.drawing import choose
from seqcls.tasks.language import Language, LetterRow, random_bits
from seqcls.tasks.paths import first_passage

_MARK = 4


@dataclass(frozen=True)
class StackManipulation(Language):
    """A stack of bits, bottom first; then pushes (`+0`, `+1`) and pops (`-`); `#`; the final stack.

    The final stack is read from its top. `01#10`, `01-+0#00` and `#` are positive; `01#01`, `-#`
    (nothing there to pop) and the empty string are negative.
    """

    hierarchy: ClassVar[NotRegular] = NotRegular("deterministic context-free", FLARE)
    alphabet = "01+-#"

    def accepts(self, text: str) -> bool:
        before, mark, after = text.partition("#")
        return bool(mark) and stack_after(before) == after

    def has_positive(self, length: int) -> bool:
        # Two tokens for each bit of the first stack, three for each push, whatever is popped.
        return length not in (0, 2)

    def positive(self, rng: np.random.Generator, length: int) -> LetterRow:
        """Uniform: the number of pushes by how many strings have it, then operations and bits."""
        pushes = choose(rng, _ways(length))
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
        return np.array([*letters, _MARK, *reversed(stack)], dtype=np.uint8)

    def describe(self) -> str:
        return (
            "A stack of bits, pushes (+0, +1) and pops (-), a #, and the stack that they leave, "
            "read from its top: such strings are positive."
        )


@remembered
def _ways(length: int) -> tuple[int, ...]:
    """How many positive strings of a length have so many pushes, for each number of them.

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
