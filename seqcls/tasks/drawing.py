"""Exact random draws, the same on every machine: large whole numbers, strings of a language."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from seqcls.strings.token_strings import NO_LETTER, Lengths, TokenStrings
from seqcls.tasks.base import BulkTask, LanguageTask


def below(rng: np.random.Generator, limit: int) -> int:
    """A uniform whole number from 0 to `limit - 1`, however large."""
    bits = (limit - 1).bit_length()
    size = (bits + 7) // 8
    while True:
        # Of numbers with so many bits more than half are below the limit; dropping others keeps it
        # uniform.
        number = int.from_bytes(rng.bytes(size), "little") >> (8 * size - bits)
        if number < limit:
            return number


def choose(rng: np.random.Generator, weights: Sequence[int]) -> int:
    """The index of one of some whole-number weights, with probability proportional to it."""
    sums = list(accumulate(weights))
    return bisect_right(sums, below(rng, sums[-1]))


def draw_many(
    task: LanguageTask,
    rng: np.random.Generator,
    lengths: Lengths,
    positive: bool,
) -> TokenStrings:
    """Strings of these lengths and one label, drawn together where the language can."""
    num_letters = len(task.alphabet)
    if isinstance(task, BulkTask):
        return TokenStrings.of_letters(num_letters, task.draw_many(rng, lengths, positive), lengths)
    letters = np.full((len(lengths), int(lengths.max(initial=0))), NO_LETTER, dtype=np.uint8)
    for row, length in enumerate(lengths.tolist()):
        letters[row, :length] = task.draw(rng, length, positive)
    return TokenStrings.of_letters(num_letters, letters, lengths)
