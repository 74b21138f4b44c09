"""All strings over an alphabet, the shortest first."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import UInt8

from seqcls.cancellation import checked
from seqcls.interpretability.model.trained_model import TrainedModel
from seqcls.tokens.strings import TokenStrings

MAX_STRINGS = 200_000
"""How many strings are tried where all are: seconds of a small model's time."""

CHUNK = 2**15


def num_strings(num_letters: int, max_length: int) -> int:
    """How many strings of 1 to `max_length` letters there are."""
    return sum(num_letters**length for length in range(1, max_length + 1))


def affordable_length(num_letters: int, limit: int = MAX_STRINGS, longest: int = 64) -> int:
    """The greatest length, up to `longest`, such that no more than `limit` strings are as short."""
    length = 0
    while length < longest and num_strings(num_letters, length + 1) <= limit:
        length += 1
    return length


def strings_of_length(num_letters: int, length: int) -> Iterator[TokenStrings]:
    """All strings of one length in the order of the alphabet, some thousands at a time."""
    total = num_letters**length
    powers = num_letters ** np.arange(length - 1, -1, -1, dtype=np.int64)
    for start in checked(range(0, total, CHUNK)):
        numbers = np.arange(start, min(start + CHUNK, total))
        letters: UInt8[np.ndarray, "string position"]
        letters = (numbers[:, None] // powers % num_letters).astype(np.uint8)
        yield TokenStrings.of_letters(num_letters, letters)


def all_strings(num_letters: int, max_length: int, *, empty: bool) -> Iterator[TokenStrings]:
    """All strings up to a length, the shortest first, those of one length at a time.

    Args:
        num_letters: the size of the alphabet.
        max_length: tokens of the longest.
        empty: whether the empty string is one of them.
    """
    for length in range(0 if empty else 1, max_length + 1):
        yield from strings_of_length(num_letters, length)


def inputs_of_length(model: TrainedModel, length: int) -> TokenStrings:
    """All inputs of a task of so many tokens, in the order of the alphabet."""
    strings = strings_of_length(model.num_letters, length)
    inputs = [each.letters[model.inputs_among(each)[0]] for each in strings]
    return TokenStrings.of_letters(model.num_letters, np.concatenate(inputs))
