"""Strings that a function of letter counts cannot tell apart, though the language does."""

from collections.abc import Sequence

import numpy as np

from seqcls.caching.remembered import remembered
from seqcls.counts.invariance import counts_suffice
from seqcls.interpretability.causes.tried_strings import Tried
from seqcls.interpretability.model.trained_model import Letters
from seqcls.problem import Problem
from seqcls.tokens.strings import TokenStrings

DRAWN = 32
"""Strings of the other label, and as many orders of the same letters, that are tried."""


def sees_counts_alone(problem: Problem) -> bool:
    """Whether the order of tokens decides in the language, and not in the model's answer."""
    order_matters = problem.task.order_sensitive and problem.no_language is None
    return order_matters and counts_suffice(problem.network, training=False) is None


def first_not_seen(problem: Problem, tried: Tried) -> Letters | None:
    """The first misclassified of some strings of which another has its letters and its other label.

    None where the model does not see counts alone.
    """
    if not sees_counts_alone(problem):
        return None
    _, rows = np.unique(tried.strings.counts, axis=0, return_inverse=True)
    positive = np.bincount(rows, tried.labels)[rows]
    unseen = np.flatnonzero(tried.wrong & (positive > 0) & (positive < np.bincount(rows)[rows]))
    if not len(unseen):
        return None
    letters = tried.strings.letters[unseen[0], : tried.strings.lengths[unseen[0]]]
    return tuple(letters.tolist())


def same_letters_other_label(problem: Problem, letters: Sequence[int]) -> Letters | None:
    """A string with the same letters and the other label, where one is found.

    A model that sees counts alone answers both alike, so it is wrong on one of them, whatever it
    has learned. None says only that none was found among `DRAWN` strings of the other label, as
    many orders of these letters, and these in the order of the alphabet.
    """
    task, alphabet = problem.language, len(problem.task.alphabet)
    given = TokenStrings.of_lists(alphabet, [letters])
    label = bool(task.labels(given)[0])
    generator = np.random.default_rng(0)
    shuffled = [tuple(generator.permutation(letters).tolist()) for _ in range(DRAWN)]
    others = [tuple(sorted(letters)), *_of_label(problem, len(letters), not label), *shuffled]
    ordered = TokenStrings.of_lists(alphabet, others)
    # What has no known label is no such string.
    labels = problem.targets_or(ordered, np.full(len(ordered), label))
    fits = (ordered.counts == given.counts).all(axis=1) & (labels != label)
    return others[int(fits.argmax())] if fits.any() else None


@remembered
def _of_label(problem: Problem, length: int, positive: bool) -> tuple[Letters, ...]:
    task = problem.language
    if not task.has(length, positive):
        return ()
    generator = np.random.default_rng(1)
    drawn = (task.draw(generator, length, positive) for _ in range(DRAWN))
    return tuple({tuple(string.tolist()): None for string in drawn})
