"""Exact random draws, the same on every machine: large whole numbers, paths, strings of a
language.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from jaxtyping import Bool, Float64

from seqcls.cache import remembered
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


# Paths of steps up and down, for languages of brackets or stacks.


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
