"""All multisets of letters, each of which stands for all strings with its letter counts."""

import math
from functools import lru_cache

import numpy as np
from jaxtyping import Int64

from seqcls.counts.invariance import counts_suffice
from seqcls.problem import Problem
from seqcls.tasks import CountTask


def multisets_differ(problem: Problem) -> str | None:
    """Why multisets do not stand for all strings of a problem's language; None where they do.

    They do where letter counts decide both what is right and what the model answers; dropout, which
    is off when it answers, has no part in it.
    """
    if not isinstance(problem.task, CountTask):
        return (
            problem.unknown_labels or f"task={problem.config.task!r}: the order of tokens decides"
        )
    return counts_suffice(problem.network, training=False)


def num_multisets(num_letters: int, max_length: int) -> int:
    """How many multisets of 1 to `max_length` letters there are."""
    return math.comb(num_letters + max_length, num_letters) - 1


def all_multisets(
    num_letters: int, max_length: int, *, empty: bool = False
) -> Int64[np.ndarray, "multiset letter"]:
    """The letter counts of every multiset of 1 to `max_length` letters, and of none if `empty`."""
    return _counted(num_letters, max_length)[0 if empty else 1 :]


@lru_cache(maxsize=2)
def _counted(num_letters: int, max_length: int) -> Int64[np.ndarray, "multiset letter"]:
    counts = np.zeros((1, 0), dtype=np.int64)
    left = np.array([max_length])
    for _ in range(num_letters):
        # Each multiset so far goes on with every number of the next letter that still fits.
        choices = left + 1
        starts = np.repeat(np.cumsum(choices) - choices, choices)
        number = np.arange(len(starts)) - starts
        counts = np.column_stack([np.repeat(counts, choices, axis=0), number])
        left = np.repeat(left, choices) - number
    return counts


def multisets_of(
    problem: Problem, max_length: int | None = None
) -> Int64[np.ndarray, "multiset letter"]:
    """The multisets that stand for all strings of a problem's language, up to a length.

    Args:
        problem: of a language in which letter counts decide.
        max_length: the longest test string's if not given.
    """
    length = problem.test.lengths[-1] if max_length is None else max_length
    return all_multisets(len(problem.task.alphabet), length, empty=problem.tries_empty)
