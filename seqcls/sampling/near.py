"""Near negatives: negative strings that pairs of neighboring tokens do not distinguish.

A near negative is a positive string with one or two tokens replaced, or two exchanged, that is
negative, and in which every pair of neighbors, the ends of the string included, occurs in some
positive string of the language, of any length. A reader of such pairs labels it positive, so a
model that labels it negative has learned more.
"""

from functools import lru_cache

import numpy as np
from jaxtyping import Bool

from seqcls.strings.token_strings import NO_LETTER, Lengths, Rows, TokenStrings
from seqcls.tasks.automaton import language_automaton
from seqcls.tasks.base import LanguageTask
from seqcls.tasks.drawing import draw_many

TRIES = 16
"""Changes of a positive string that are tried before another one is drawn."""

MAX_SAMPLED_LENGTH = 64
"""Longest positive strings that are drawn to find neighbors where there is no automaton."""

SAMPLED = 100
"""Number of these of each length."""

LOOKED_AT = 2_000
"""Positive strings that are changed before a language counts as one without near negatives."""


def change(
    rng: np.random.Generator, task: LanguageTask, positive: TokenStrings
) -> tuple[Rows, TokenStrings]:
    """Near negatives made from positive strings, of the same lengths, at most one of each.

    Returns:
        The rows of the positive strings, and their near negatives.
    """
    letters, lengths = positive.letters, positive.lengths
    filled = np.flatnonzero(lengths > 0)
    if not len(filled) or positive.num_letters < 2:
        return np.zeros(0, dtype=np.int64), positive.take(slice(0, 0))
    there = letters[filled]
    places, others = _proposals(rng, there, lengths[filled], positive.num_letters)
    fits = _fits(neighbors(task), there, places, others)
    rows, first = np.flatnonzero(fits.any(axis=1)), fits.argmax(axis=1)
    changed = there[rows]
    for which in range(2):
        place, letter = places[which][rows, first[rows]], others[which][rows, first[rows]]
        changed[np.arange(len(rows)), place] = letter
    candidates = TokenStrings(positive.num_letters, lengths[filled[rows]], changed)
    negative = np.flatnonzero(~task.labels(candidates))
    return filled[rows[negative]], candidates.take(negative)


def _proposals(
    rng: np.random.Generator, letters: np.ndarray, lengths: Lengths, num_letters: int
) -> tuple[np.ndarray, np.ndarray]:
    """Two places, equal where one token is replaced, and their new letters: (2, string, try)."""
    shape = (2, len(letters), TRIES)
    places = (rng.random(shape) * lengths[:, None]).astype(np.int64)
    row = np.arange(len(letters))[:, None]
    before = letters[row, places]
    shifts = rng.integers(1, num_letters, size=shape)
    replaced = (before + shifts) % num_letters
    way = rng.integers(3, size=shape[1:])
    # One token replaced; two; two exchanged.
    places[1] = np.where(way == 0, places[0], places[1])
    # Two changes at one place need the same letter.
    replaced[1] = np.where(places[1] == places[0], replaced[0], replaced[1])
    others = np.where(way == 2, before[::-1], replaced)
    return places, others


def _fits(
    occur: Bool[np.ndarray, "before after"],
    letters: np.ndarray,
    places: np.ndarray,
    others: np.ndarray,
) -> Bool[np.ndarray, "string try"]:
    """True for changes that have an effect and make only pairs of neighbors that occur."""
    padded, row = _pad(letters, len(occur) - 1), np.arange(len(letters))[:, None]

    def standing(at: np.ndarray) -> np.ndarray:
        # Letters after both changes.
        own = np.where(at == places[1], others[1], padded[row, at + 1])
        return np.asarray(np.where(at == places[0], others[0], own))

    # Two equal tokens that are exchanged change nothing.
    fits = (others != padded[row, places + 1]).any(axis=0)
    for place in places:
        here = standing(place)
        fits &= occur[standing(place - 1), here] & occur[here, standing(place + 1)]
    return np.asarray(fits)


def _pad(letters: np.ndarray, end: int) -> np.ndarray:
    """Letters with a mark before and after them, and in place of what follows a string's end."""
    padded = np.pad(letters.astype(np.int64), ((0, 0), (1, 1)), constant_values=end)
    padded[padded == NO_LETTER] = end
    return padded


@lru_cache(maxsize=64)
def neighbors(task: LanguageTask) -> Bool[np.ndarray, "before after"]:
    """Pairs of letters that are neighbors in some positive string.

    Found by the language's automaton, or without one in 100 positive strings, always the same, of
    each length up to 64. The last row is the beginning, the last column the end.
    """
    automaton = language_automaton(task)
    if automaton is not None:
        return automaton.neighbors()
    end = len(task.alphabet)
    occur = np.zeros((end + 1, end + 1), dtype=bool)
    lengths = np.array([x for x in range(MAX_SAMPLED_LENGTH + 1) if task.has(x, True)], np.int64)
    drawn = draw_many(task, np.random.default_rng(0), np.repeat(lengths, SAMPLED), positive=True)
    padded = _pad(drawn.letters, end)
    # Pairs after a string's end are padding.
    inside = np.arange(padded.shape[1] - 1) <= drawn.lengths[:, None]
    occur[padded[:, :-1][inside], padded[:, 1:][inside]] = True
    return occur


@lru_cache(maxsize=256)
def obstacle(task: LanguageTask, lengths: tuple[int, ...]) -> str | None:
    """Why no near negatives of these lengths are drawn; None if one is found."""
    # A fixed seed, so that every configuration gets the same answer.
    rng = np.random.default_rng(0)
    for _ in range(0, LOOKED_AT, 250):
        positive = draw_many(task, rng, rng.choice(lengths, size=250), positive=True)
        if len(change(rng, task, positive)[0]):
            return None
    return (
        f"no near negative was found among {LOOKED_AT:,} positive strings of {lengths[0]} to "
        f"{lengths[-1]} tokens, each changed in {TRIES} ways, as where pairs of "
        "neighboring tokens decide the language; negatives are drawn as mixed"
    )
