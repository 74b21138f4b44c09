"""Near negatives: strings that a reader of neighboring tokens cannot tell from positive ones.

A near negative is a positive string with one or two of its tokens replaced, or two exchanged, that
is negative, and in which every pair of neighbors, the ends of the string included, occurs in some
positive string of the language, of any length. What looks at pairs of neighbors alone takes it for
positive, so whoever refuses it knows more of the language than that.
"""

from functools import lru_cache

import numpy as np
from jaxtyping import Bool

from seqcls.strings.token_strings import NO_LETTER, Lengths, Rows, TokenStrings
from seqcls.tasks.automaton import language_automaton
from seqcls.tasks.base import LanguageTask
from seqcls.tasks.drawing import draw_many

TRIES = 16
"""Changes that are tried with a positive string before another one is drawn."""

MAX_SAMPLED_LENGTH = 64
"""Where no automaton says which neighbors occur: positive strings of up to so many tokens do."""

SAMPLED = 100
"""So many of each length."""

LOOKED_AT = 2_000
"""Positive strings of the allowed lengths that are changed before a language has none."""


def change(
    rng: np.random.Generator, task: LanguageTask, positive: TokenStrings
) -> tuple[Rows, TokenStrings]:
    """Near negatives made of positive strings, of the same lengths, one at most of each.

    Returns:
        The rows of the strings that they were made of, and the near negatives.
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
    """Two places each, the same one twice where one token is replaced, and what shall stand there.

    Of shape (2, string, try).
    """
    shape = (2, len(letters), TRIES)
    places = (rng.random(shape) * lengths[:, None]).astype(np.int64)
    row = np.arange(len(letters))[:, None]
    before = letters[row, places]
    shifts = rng.integers(1, num_letters, size=shape)
    replaced = (before + shifts) % num_letters
    way = rng.integers(3, size=shape[1:])
    # One token replaced; two; two exchanged.
    places[1] = np.where(way == 0, places[0], places[1])
    # Two changes at one place have to agree on what shall stand there.
    replaced[1] = np.where(places[1] == places[0], replaced[0], replaced[1])
    others = np.where(way == 2, before[::-1], replaced)
    return places, others


def _fits(
    occur: Bool[np.ndarray, "before after"],
    letters: np.ndarray,
    places: np.ndarray,
    others: np.ndarray,
) -> Bool[np.ndarray, "string try"]:
    """Which changes change anything, and make no pair of neighbors that no positive string has."""
    end = len(occur) - 1
    edge = np.full((len(letters), 1), NO_LETTER, dtype=np.uint8)
    padded = np.concatenate([edge, letters, edge], axis=1)
    padded[padded == NO_LETTER] = end
    row = np.arange(len(letters))[:, None]

    def standing(at: np.ndarray) -> np.ndarray:
        # The letter at a place after both changes.
        own = padded[row, at + 1].astype(np.int64)
        own = np.where(at == places[1], others[1], own)
        return np.asarray(np.where(at == places[0], others[0], own))

    # Two equal tokens that are exchanged change nothing.
    fits = (others != padded[row, places + 1]).any(axis=0)
    for place in places:
        here = standing(place)
        fits &= occur[standing(place - 1), here] & occur[here, standing(place + 1)]
    return np.asarray(fits)


@lru_cache(maxsize=64)
def neighbors(task: LanguageTask) -> Bool[np.ndarray, "before after"]:
    """Which letters stand next to each other in some positive string.

    The language's automaton says it; where there is none, 100 positive strings of each length of up
    to 64 tokens do, the same ones always. The last row is the beginning, the last column the end.
    """
    automaton = language_automaton(task)
    if automaton is not None:
        return automaton.neighbors()
    end = len(task.alphabet)
    occur = np.zeros((end + 1, end + 1), dtype=bool)
    lengths = np.array([x for x in range(MAX_SAMPLED_LENGTH + 1) if task.has(x, True)], np.int64)
    drawn = draw_many(task, np.random.default_rng(0), np.repeat(lengths, SAMPLED), positive=True)
    edge = np.full((len(drawn), 1), end, dtype=np.int64)
    padded = np.where(drawn.letters == NO_LETTER, end, drawn.letters.astype(np.int64))
    padded = np.concatenate([edge, padded, edge], axis=1)
    # What follows the end of a string is padding, and no pair of its own.
    inside = np.arange(padded.shape[1] - 1) <= drawn.lengths[:, None]
    occur[padded[:, :-1][inside], padded[:, 1:][inside]] = True
    return occur


@lru_cache(maxsize=256)
def has_near(task: LanguageTask, lengths: tuple[int, ...]) -> bool:
    """Whether near negatives were found of 2,000 positive strings of these lengths."""
    # A seed of its own, so that every configuration gets the same answer.
    rng = np.random.default_rng(0)
    for _ in range(0, LOOKED_AT, 250):
        positive = draw_many(task, rng, rng.choice(lengths, size=250), positive=True)
        if len(change(rng, task, positive)[0]):
            return True
    return False


def obstacle(task: LanguageTask, lengths: tuple[int, ...]) -> str | None:
    """Why a language has no near negatives of these lengths; None where it has."""
    if has_near(task, lengths):
        return None
    return (
        f"no near negative was found among {LOOKED_AT:,} positive strings of {lengths[0]} to "
        f"{lengths[-1]} tokens, each changed in {TRIES} ways, as where pairs of "
        "neighboring tokens decide the language; negatives are drawn as mixed"
    )
