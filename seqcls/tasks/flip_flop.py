"""Flip-flops: the bit written last, judged or written.

Liu et al. 2023, Exposing Attention Glitches with Flip-Flop Language Modeling.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from seqcls.declarations import About, Fields
from seqcls.strings.token_strings import Lengths, Letters
from seqcls.tasks.automaton import Automaton, RegularLanguage
from seqcls.tasks.memory import MemoryTransduction
from seqcls.tasks.regular import minimal_automaton

WRITE, READ, IGNORE = range(3)
BITS = 3
"""The letter of bit 0, after those of the instructions."""

AS_OTHERS = 1.0
"""The value of `test_ignore_share` for the share of other strings."""


@dataclass(frozen=True)
class Ignored(Fields):
    """ignore_share: The share of instructions between the first and the last of `flip_flop` and
    `write_flip_flop` that are `i`: 0.98 is sparse, 0.1 dense.
    """

    ignore_share: Annotated[float, Field(ge=0, lt=1), About("Task", 30)] = 0.8


@dataclass(frozen=True)
class IgnoredInTests(Ignored):
    """test_ignore_share: That share in test strings; 1: the same as in others."""

    test_ignore_share: Annotated[float, Field(ge=0, le=1), About("Task", 34)] = AS_OTHERS


@dataclass(frozen=True)
class FlipFlop(Ignored, RegularLanguage):
    """Instructions to write (`w`), read (`r`) or ignore (`i`), a bit after each: the first writes,
    and every bit that is read is the one that was written last.

    Strings are drawn with a read at their end, `ignore_share` of the instructions before it `i`,
    and as many of the others `w` as `r`.

    `w1i0r1`, `w0` and the empty string are positive; `w1r0`, `r1` and `w` are negative.
    """

    alphabet = "wri01"
    words = (
        "Instructions to write (w), read (r) or ignore (i), a bit after each: those that begin "
        "with w, and in which every bit that is read is the one that was written last, are "
        "positive."
    )

    @property
    def automaton(self) -> Automaton:
        """The minimal automaton: the bit written last, and the instruction that waits for one."""
        return minimal_automaton("(w0(r0|i[01])*|w1(r1|i[01])*)*", self.alphabet)

    def draw_many(self, rng: np.random.Generator, lengths: Lengths, positive: bool) -> Letters:
        """Positive strings have random instructions; negative ones are uniform."""
        if not positive:
            return super().draw_many(rng, lengths, positive)
        numbers = lengths // 2
        shape = len(lengths), int(numbers.max(initial=0))
        chance = rng.random(shape)
        # One number for each: below the share it is ignored, and what is above is halved.
        instructions = np.where(chance < (1 + self.ignore_share) / 2, WRITE, READ)
        instructions[chance < self.ignore_share] = IGNORE
        instructions[np.arange(shape[1]) == numbers[:, None] - 1] = READ
        # Set last, so that a string of a single instruction writes.
        instructions[:, :1] = WRITE
        bits = rng.integers(2, size=shape)
        # The running maximum of the places of writes is that of the latest one.
        written = np.where(instructions == WRITE, np.arange(shape[1]), 0)
        latest = np.take_along_axis(bits, np.maximum.accumulate(written, axis=1), axis=1)
        bits = np.where(instructions == READ, latest, bits)
        letters = np.stack([instructions, BITS + bits], axis=2).astype(np.uint8)
        return letters.reshape(shape[0], 2 * shape[1])


@dataclass(frozen=True)
class WriteFlipFlop(Ignored, MemoryTransduction):
    """`w1i0r` becomes `1`: the last instruction reads, and the bit is missing."""

    alphabet = FlipFlop.alphabet
    form = (
        "instructions w, r and i with a bit each, every bit read the one written last, and an r at "
        "the end"
    )
    words = (
        "Instructions to write (w), read (r) or ignore (i), a bit after each but the r at the "
        "end: the output is the bit that was written last, as w1i0r becomes 1."
    )

    def answer(self, letters: list[int]) -> list[int] | None:
        if letters[-1] != READ:
            return None
        automaton, bits = FlipFlop().automaton, (BITS, BITS + 1)
        after = automaton.table[automaton.path(letters)[-1]]
        # After a read one bit is right, and none where the instructions are wrong.
        return [bit for bit in bits if automaton.accepting[after[bit]]] or None

    def has_input(self, length: int) -> bool:
        return length >= 3 and length % 2 == 1

    def draw_inputs(self, rng: np.random.Generator, lengths: Lengths) -> Letters:
        """Instructions are drawn as those of strings in `flip_flop`."""
        # The bit after the last instruction is the answer; what follows an input's end means
        # nothing.
        return FlipFlop(self.ignore_share).draw_many(rng, lengths + 1, True)
