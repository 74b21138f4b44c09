"""Which letters of a string its answer rests on: deletions, counted exactly.

A deletion never makes a negative string positive. Where a required letter would go altogether, a
false negative would become a true one; it is an error no longer, however the model answers.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from jaxtyping import Int64

from seqcls.cancellation import check
from seqcls.interpretability.bounds import LARGEST, Bounds, head_outputs, logit_bounds, sign_changes
from seqcls.interpretability.network import Network

Counts = tuple[int, ...]

DENSE = 2_000
"""Up to so many copies of a letter, every number of them is tried."""
MOST_ADDED = 1_000_000
"""Letters that are added at most to see whether the answer changes."""
MOST_CELLS = 4_000
"""Regions looked at before it is left open whether letters have a part."""


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
    """What is left of a misclassified string when no letter can go without its being right."""

    string: str
    counts: tuple[int, ...]
    logit: float


def minimal_string(network: Network, counts: Counts) -> MinimalString:
    """What is left of a misclassified string when fewer of any one letter would be right.

    Delta debugging (Zeller and Hildebrandt, 2002) on counts: letter by letter, as few as still
    fail, until nothing changes. The result is minimal in a strong sense (no smaller number of any
    one letter fails, all else unchanged), but there may be shorter strings that fail.
    """
    wrong = network.logit_of(counts) > 0
    required = network.problem.required_letters
    # Letters that the language does not ask about go first: they are the least to be expected.
    order = sorted(range(len(counts)), key=lambda x: (x in required, -counts[x]))
    left = list(counts)
    # Letters whose number may still fall; another's fall makes all of them so again.
    undecided = list(order)
    while undecided:
        check()
        letter = undecided.pop(0)
        least = int(not wrong and letter in required)
        if left[letter] > least:
            # The least number of the letter with which the answer is still this one.
            span = least, left[letter] + 1
            fewest = int(_others(network, tuple(left), letter, *span, wrong)[0])
            if fewest < left[letter]:
                left[letter] = fewest
                undecided = [x for x in order if x != letter]
    smallest = tuple(left)
    return MinimalString(
        network.tokenizer.text_of_counts(smallest), smallest, network.logit_of(smallest)
    )


def removals(network: Network, counts: Counts) -> tuple[Removal, ...]:
    """For each letter, the fewest copies to delete for another answer, where any number does."""
    spans = [(0, count) for count in counts]
    return tuple(_changes(network, counts, spans, nearest=-1))


def additions(network: Network, counts: Counts) -> tuple[Removal, ...]:
    """For each letter that occurs, the fewest copies to add for another answer, up to a million."""
    spans = [(count, MOST_ADDED if count else 0) for count in counts]
    return tuple(_changes(network, counts, spans, nearest=0))


def _changes(
    network: Network, counts: Counts, spans: Sequence[tuple[int, int]], nearest: int
) -> Iterator[Removal]:
    """For each letter, the nearest of some numbers of it that are answered otherwise, if any is."""
    answer = network.logit_of(counts) > 0
    for letter, (first, last) in enumerate(spans):
        if first < last and len(
            others := _others(network, counts, letter, first, last, not answer)
        ):
            yield _change(network, counts, letter, int(others[nearest]))


def without_part(network: Network, counts: Counts) -> tuple[int, ...]:
    """Letters of which any number may go, in any combination, with the answer unchanged."""
    positive = network.label_of(counts)
    indifferent: list[int] = []
    for letter, count in enumerate(counts):
        deletable = not (positive and letter in network.problem.required_letters)
        if count and deletable and _indifferent(network, counts, [*indifferent, letter]):
            indifferent.append(letter)
    return tuple(indifferent)


def _others(
    network: Network, counts: Counts, letter: int, first: int, last: int, answer: bool
) -> Int64[np.ndarray, " n"]:
    """Numbers of a letter in [first, last) that are answered like this, all else unchanged.

    Ascending; where there are many, the first and the last of each unbroken row of them.
    """
    start = np.array(counts, dtype=np.int64)
    step = np.zeros_like(start)
    start[letter], step[letter] = 0, 1
    n = np.arange(first, last) if last - first <= DENSE else None
    if n is None:
        changes = sign_changes(network, start, step, first, last - 1)
        n = np.unique(np.concatenate([[first, last - 1], changes, changes - 1]))
    return np.asarray(n[(network.logits(start + n[:, None] * step) > 0) == answer])


def _change(network: Network, counts: Counts, letter: int, left: int) -> Removal:
    changed = (*counts[:letter], left, *counts[letter + 1 :])
    return Removal(
        letter=network.tokenizer.alphabet[letter],
        count=counts[letter],
        left=left,
        string=network.tokenizer.text_of_counts(changed),
        logit=network.logit_of(changed),
    )


def _indifferent(network: Network, counts: Counts, letters: list[int]) -> bool:
    """Whether the answer is proved to be the same for every number of these letters up to all."""
    answer = network.logit_of(counts) > 0
    if len(letters) == 1:
        (letter,) = letters
        return not len(_others(network, counts, letter, 0, counts[letter], not answer))
    high = np.array([counts], dtype=np.int64)
    low = high.copy()
    low[:, letters] = 0
    seen = 0
    while len(low) and seen < MOST_CELLS:
        check()
        seen += len(low)
        bounds = _box_bounds(network, low, high, letters)
        same = bounds.low > 0 if answer else bounds.high <= 0
        other = bounds.high <= 0 if answer else bounds.low > 0
        if (other | ((low == high).all(axis=1) & ~same)).any():
            return False
        low, high = _halve(low[~same], high[~same])
    return not len(low)


def _box_bounds(
    network: Network,
    low: Int64[np.ndarray, "box letter"],
    high: Int64[np.ndarray, "box letter"],
    letters: list[int],
) -> Bounds:
    """Bounds of the logit over boxes of counts, which are cells with a box's corners."""
    corners = []
    for ends in product((False, True), repeat=len(letters)):
        corner = low.copy()
        upper = [letter for letter, end in zip(letters, ends, strict=True) if end]
        corner[:, upper] = high[:, upper]
        corners.append(corner)
    outputs = head_outputs(network, np.concatenate(corners))
    return logit_bounds(network, np.stack(np.split(outputs, len(corners)), axis=1))


def _halve(
    low: Int64[np.ndarray, "box letter"], high: Int64[np.ndarray, "box letter"]
) -> tuple[Int64[np.ndarray, "half letter"], Int64[np.ndarray, "half letter"]]:
    """Each box in two, across its longest side on a logarithmic scale."""
    rows = np.arange(len(low))
    side = np.log((high + 1.0) / (low + 1.0)).argmax(axis=1)
    bottom, top = low[rows, side], high[rows, side]
    root = np.minimum(np.sqrt((bottom + 1.0) * (top + 1.0)), LARGEST)
    middle = np.clip(root.astype(np.int64) - 1, bottom, top - 1)
    below, above = high.copy(), low.copy()
    below[rows, side], above[rows, side] = middle, middle + 1
    return np.concatenate([low, above]), np.concatenate([below, high])
