"""The letters of a string on which its answer depends: other numbers of them, by letter counts.

Every number of a letter up to `DENSE` away is tried, and beyond that numbers evenly on a
logarithmic scale, down to the neighbor where the answer changes; what is between others that agree
is not excluded. A deletion never makes a negative string positive. Where a required letter would go
altogether, a false negative would become a true one; it is an error no longer, however the model
answers.
"""

from itertools import product
from typing import NamedTuple

import numpy as np
from jaxtyping import Int64

from seqcls.cancellation import check
from seqcls.interpretability.readable_model import logits
from seqcls.interpretability.trained_model import TrainedModel

Counts = tuple[int, ...]
"""The number of each letter of the alphabet."""

DENSE = 2_000
"""So far from a string's own number of a letter every number is tried."""

SPARSE = 241
"""Numbers that are tried further away."""

MAX_ADDED = 1_000_000
"""Letters that are added at most to see whether the answer changes."""

MAX_TRIED = 4_000
"""Strings that are tried at most to see whether some letters have a part."""


class Removal(NamedTuple):
    """The least change of one letter's number that changes the answer, all else unchanged."""

    letter: str
    count: int  # type: ignore[assignment]
    left: int
    """Less than `count` for a deletion, more for an addition."""
    string: str
    logit: float
    """The logit of the string so changed."""


class MinimalString(NamedTuple):
    """A misclassified string that would be right with fewer of any one letter."""

    string: str
    counts: Counts
    logit: float


def minimal_string(model: TrainedModel, counts: Counts) -> MinimalString:
    """Reduces a misclassified string until fewer of any one letter would be right.

    Delta debugging (Zeller and Hildebrandt, 2002) on counts: letter by letter, as few as still
    fail, until nothing changes. There may be shorter strings that fail.
    """
    wrong = _logit(model, counts) > 0
    required = model.problem.required_letters
    # Letters that the language does not ask about go first: they are the least to be expected.
    order = sorted(range(len(counts)), key=lambda x: (x in required, -counts[x]))
    left, undecided = counts, list(order)
    while undecided:
        check()
        letter = undecided.pop(0)
        # Without a required letter a false negative would be a true one.
        least = int(not wrong and letter in required)
        fewest = _first(model, left, letter, least, left[letter], wrong)
        if fewest is not None and fewest < left[letter]:
            # One letter's fall may let another's number fall again.
            left = (*left[:letter], fewest, *left[letter + 1 :])
            undecided = [x for x in order if x != letter]
    return MinimalString(model.tokenizer.text_of_counts(left), left, _logit(model, left))


def without_part(model: TrainedModel, counts: Counts) -> tuple[int, ...]:
    """Letters of which any number, in any combination that was tried, may go without a change."""
    (positive,) = model.problem.count_task.labels_of_counts(np.array([counts]))
    indifferent: tuple[int, ...] = ()
    for letter, count in enumerate(counts):
        deletable = not (positive and letter in model.problem.required_letters)
        if count and deletable and _are_indifferent(model, counts, (*indifferent, letter)):
            indifferent = (*indifferent, letter)
    return indifferent


def changes(model: TrainedModel, counts: Counts, ends: Counts) -> tuple[Removal, ...]:
    """For each letter, the nearest number on the way to its end with another answer, if any is."""
    other, found = not _logit(model, counts) > 0, list[Removal]()
    for letter, (count, end) in enumerate(zip(counts, ends, strict=True)):
        left = _first(model, counts, letter, count, end, other)
        if left is not None:
            changed = (*counts[:letter], left, *counts[letter + 1 :])
            name, text = model.tokenizer.alphabet[letter], model.tokenizer.text_of_counts(changed)
            found.append(Removal(name, count, left, text, _logit(model, changed)))
    return tuple(found)


def _first(
    model: TrainedModel, counts: Counts, letter: int, start: int, end: int, answer: bool
) -> int | None:
    """The first number of a letter on the way from one to another that is answered so, if any."""
    span = abs(end - start)
    # A count may be a million away, and not every number on the way can be tried.
    far = np.geomspace(1, max(span, 1), SPARSE).round()
    away = np.unique(np.append(np.arange(min(span, DENSE) + 1), far[far <= span]).astype(np.int64))
    numbers = start + away * (1 if end > start else -1)
    strings = np.tile(np.array(counts, dtype=np.int64), (len(numbers), 1))
    strings[:, letter] = numbers
    (found,) = np.nonzero((logits(model, strings) > 0) == answer)
    if not len(found):
        return None
    before, place = numbers[max(found[0] - 1, 0)], numbers[found[0]]
    # Numbers between the two were skipped, and may be answered so as well.
    if abs(place - before) > 1:
        return _first(model, counts, letter, int(before), int(place), answer)
    return int(place)


def _are_indifferent(model: TrainedModel, counts: Counts, letters: tuple[int, ...]) -> bool:
    """True if all numbers of these letters that are tried, up to all, have the same answer."""
    # All combinations are tried, so the more letters the fewer numbers of each.
    points = int(MAX_TRIED ** (1 / len(letters)))
    axes: list[Int64[np.ndarray, " number"]] = []
    for count in (counts[letter] for letter in letters):
        few = np.append(0, np.geomspace(1, count, points - 1).round().astype(np.int64))
        axes.append(np.arange(count + 1) if count < points else np.unique(few))
    rows = np.array(list(product(*axes)), dtype=np.int64)
    strings = np.tile(np.array(counts, dtype=np.int64), (len(rows), 1))
    strings[:, letters] = rows
    return bool(((logits(model, strings) > 0) == (_logit(model, counts) > 0)).all())


def _logit(model: TrainedModel, counts: Counts) -> float:
    return float(logits(model, np.array([counts]))[0])
