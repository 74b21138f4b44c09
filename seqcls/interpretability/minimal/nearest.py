"""The nearest string that a model answers rightly: one edit away, else two."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from operator import ne
from typing import Any

import numpy as np

from seqcls.cancellation import check
from seqcls.decoding.measures import edits as edit_distance
from seqcls.interpretability.model.trained_model import Answer, Answers, Letters, TrainedModel
from seqcls.tokens.strings import TokenStrings

MAX_TRIED = 20_000
"""Strings that are tried at most: two edits of a long string are more than anyone waits for."""

AT_ONCE = 256

MAX_EDITS = 2


@dataclass(frozen=True)
class Nearest:
    """The nearest string of a kind, or that none was found."""

    answer: Answer | None
    letters: Letters
    """The letters of the string that was found."""
    edits: int
    """How many tokens were replaced, deleted or inserted; of a search in vain, how many at most."""
    tried: int
    complete: bool
    """Whether all strings with fewer edits were tried, and of one found in vain all there are."""


def nearest_right(
    model: TrainedModel,
    letters: Sequence[int],
    *,
    other_answer: bool = False,
    prefer_other_answer: bool = False,
    same_length: bool = False,
    known: bool = True,
    max_edits: int = 2,
    max_tried: int = MAX_TRIED,
) -> Nearest:
    """The nearest string that is answered rightly, its label asked of the language anew.

    Tokens are replaced first, then deleted, then inserted, from left to right. Where what is right
    is known of some strings alone, as of those of a file, only these are tried.

    Args:
        model: the model.
        letters: the string to start from.
        other_answer: only a string that the model answers otherwise than this one. Without it
            the nearest may have the same answer, where the edit changes what is right.
        prefer_other_answer: of strings as many edits away rather one that the model answers
            otherwise: of a failing string one with its own label, which tells what the model goes
            by. The answer to one with another label is the same, only right by now.
        same_length: only replacements.
        known: only strings whose label or target is known. Of a file, any other will do without it:
            nobody knows that it is answered wrongly.
        max_edits: 1 or 2.
        max_tried: after so many strings the search is given up.
    """
    start = tuple(letters)
    was = model.ask_all([start]).predicted[0]
    least = 0 if model.problem.tries_empty else 1
    tried = 0
    among = model.problem.known_strings if known else None
    # Of a file, what is known is among its strings; any other is an input all the same.
    any_input = model.problem.known_strings is not None
    all_rings = _rings(start, model.num_letters, same_length)
    if among is not None:
        all_rings = _rings_among(among, start, same_length)
    rings = islice(all_rings, max_edits)
    for edits, candidates in enumerate(rings, start=1):
        wanted = (x for x in candidates if len(x) >= least and (any_input or model.is_input(x)))
        second: Letters | None = None
        while batch := list(islice(wanted, min(AT_ONCE, max_tried - tried))):
            check()
            tried += len(batch)
            answers = model.ask_all(batch)
            row = _first_right(answers, was if other_answer or prefer_other_answer else None)
            if row is not None:
                return Nearest(model.answer(batch[row]), batch[row], edits, tried, True)
            if second is None and prefer_other_answer and not other_answer:
                row = _first_right(answers, None)
                second = None if row is None else batch[row]
        if second is not None:
            return Nearest(model.answer(second), second, edits, tried, True)
        if tried >= max_tried:
            return Nearest(None, (), edits, tried, False)
    return Nearest(None, (), max_edits, tried, True)


def edited(string: Letters, num_letters: int, same_length: bool = False) -> Iterator[Letters]:
    """Every string one edit away, each once: replacements, deletions, insertions."""
    replaced = (
        (*string[:place], letter, *string[place + 1 :])
        for place, replaced_letter in enumerate(string)
        for letter in range(num_letters)
        if letter != replaced_letter
    )
    if same_length:
        return replaced
    places = range(len(string))
    # Of equal tokens beside one another it is the same to delete any, or to insert one more.
    deleted = (
        (*string[:place], *string[place + 1 :])
        for place in places
        if place == 0 or string[place] != string[place - 1]
    )
    inserted = (
        (*string[:place], letter, *string[place:])
        for place in range(len(string) + 1)
        for letter in range(num_letters)
        if place == 0 or letter != string[place - 1]
    )
    return chain(replaced, deleted, inserted)


def _rings(string: Letters, num_letters: int, same_length: bool) -> Iterator[Iterator[Letters]]:
    """The strings one edit away, then those two edits away, none of them twice."""
    yield edited(string, num_letters, same_length)
    yield _twice(string, num_letters, same_length)


def _rings_among(
    known: TokenStrings, string: Letters, same_length: bool
) -> Iterator[Iterator[Letters]]:
    """The same of some strings alone: each is so many edits away."""
    counts = known.counts
    own = np.bincount(string, minlength=counts.shape[1])
    # An edit changes the counts of two letters at most, each by one.
    near = np.flatnonzero(np.abs(counts - own).sum(axis=1) <= 2 * MAX_EDITS)
    pairs = zip(known.letters[near].tolist(), known.lengths[near].tolist(), strict=True)
    rows = [tuple(row[:length]) for row, length in pairs]
    if same_length:
        rows = [row for row in rows if len(row) == len(string)]
    rows.sort(key=lambda row: (len(row) != len(string), len(row) > len(string)))
    away = {
        row: sum(map(ne, row, string)) if same_length else edit_distance(row, string)
        for row in rows
    }
    for distance in range(1, MAX_EDITS + 1):
        yield iter([row for row, edits in away.items() if edits == distance])


def _twice(string: Letters, num_letters: int, same_length: bool) -> Iterator[Letters]:
    seen = {string, *edited(string, num_letters, same_length)}
    for once in edited(string, num_letters, same_length):
        for twice in edited(once, num_letters, same_length):
            if twice not in seen:
                seen.add(twice)
                yield twice


def _first_right(answers: Answers, other_than: Any) -> int | None:
    fits = answers.right
    if other_than is not None:
        fits = fits & ~answers.said(np.asarray(other_than))
    return int(fits.argmax()) if fits.any() else None
