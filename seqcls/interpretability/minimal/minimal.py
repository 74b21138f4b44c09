"""Minimal failing strings: by deleting tokens, and by trying all strings, the shortest first."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from seqcls.errors import InvalidStringError
from seqcls.interpretability.enumeration import CHUNK, MAX_STRINGS, affordable_length, all_strings
from seqcls.interpretability.model.trained_model import Answer, Letters, TrainedModel
from seqcls.tokens.strings import TokenStrings

Fail = Callable[[Sequence[Letters]], Sequence[bool]]
"""Which of some strings fail."""

AT_ONCE = 64
"""Strings that are tried in one step: most steps need only the first few."""

MAX_SHOWN = 20
"""Shortest failing strings that are named; the others are counted."""


@dataclass(frozen=True)
class Minimal:
    """A failing string and what delta debugging leaves of it."""

    given: Answer
    found: Answer
    tried: int
    """How many strings the model was asked on the way."""


@dataclass(frozen=True)
class Shortest:
    """The shortest strings that a model misclassifies."""

    answers: tuple[Answer, ...]
    """At most `MAX_SHOWN`, in the order of the alphabet; none where none fails."""
    count: int
    """How many fail of that length."""
    length: int | None
    """Tokens of the shortest; None where no string up to `max_length` fails."""
    max_length: int
    """All strings up to this length would have been tried; of a file those in it."""
    tried: int


def minimal_failing(model: TrainedModel, letters: Sequence[int]) -> Minimal:
    """What is left of a failing string when no single token can be deleted and it still fails.

    Delta debugging (Zeller & Hildebrandt 2002) over tokens. What is right is asked of the language
    anew for every string that is tried, so the result may be of the other label; where it is not
    known, as of strings that are not in a file, the string is not tried.

    Raises:
        InvalidStringError: the string is answered rightly, or is too long for the model.
    """
    given = model.answer(letters)
    if not given.is_wrong:
        is_right = f"{model.display(letters)[:60]!r} is {model.problem.kind.words.hit}"
        raise InvalidStringError(
            f"{model.why_no_input(letters) or is_right}; expected a string that the model gets "
            "wrong, such as `seqcls errors` lists"
        )
    tried = 0
    least = 0 if model.problem.tries_empty else 1

    def fail(strings: Sequence[Letters]) -> list[bool]:
        nonlocal tried
        inputs = [string for string in strings if model.is_input(string)]
        tried += len(inputs)
        wrong = dict(
            zip(inputs, model.ask_all(inputs).wrong.tolist() if inputs else (), strict=True)
        )
        return [wrong.get(string, False) and len(string) >= least for string in strings]

    part = delta_debugged(tuple(letters), fail)
    return Minimal(given, model.answer(part), tried)


def delta_debugged(string: Letters, fail: Fail) -> Letters:
    """A part of a failing string that fails, while with any single token less it does not."""
    parts = 2
    while string:
        pieces = _pieces(string, min(parts, len(string)))
        part = _first(fail, [piece for piece in pieces if len(piece) < len(string)])
        if part is not None:
            string, parts = part, 2
            continue
        part = _first(fail, _without_each(pieces))
        if part is not None:
            string, parts = part, max(parts - 1, 2)
        elif parts >= len(string):
            return string
        else:
            parts *= 2
    return string


def shortest_failing(model: TrainedModel, limit: int = MAX_STRINGS) -> Shortest:
    """The shortest strings that a model misclassifies, found by trying all, the shortest first.

    Where what is right is known of some strings alone, as of those of a file, these are tried.

    Args:
        model: the model.
        limit: strings that are tried at most; lengths are tried as a whole or not at all.
    """
    known = model.problem.known_strings
    longest = affordable_length(model.num_letters, limit)
    by_length = all_strings(model.num_letters, longest, empty=model.problem.tries_empty)
    if known is not None:
        longest, by_length = int(known.lengths.max(initial=0)), _by_length(known)
    tried = 0
    length: int | None = None
    failing: list[np.ndarray] = []
    for strings in by_length:
        tokens = int(strings.lengths[0])
        if length is not None and tokens > length:
            break
        if model.writes and known is None:
            rows = [row for row, x in enumerate(strings.letters) if model.is_input(x.tolist())]
            strings = strings.take(np.array(rows, dtype=np.int64))
        tried += len(strings)
        wrong = np.flatnonzero(model.ask(strings).wrong) if len(strings) else ()
        if len(wrong):
            length = tokens
            failing.extend(strings.letters[wrong, :tokens])
    shown = tuple(model.answer(tuple(row.tolist())) for row in failing[:MAX_SHOWN])
    return Shortest(shown, len(failing), length, longest, tried)


def _by_length(strings: TokenStrings) -> Iterator[TokenStrings]:
    """Strings in parts of one length, the shortest first."""
    for length in np.unique(strings.lengths):
        rows = np.flatnonzero(strings.lengths == length)
        for start in range(0, len(rows), CHUNK):
            yield strings.take(rows[start : start + CHUNK])


def _pieces(string: Letters, parts: int) -> list[Letters]:
    ends = [len(string) * part // parts for part in range(parts + 1)]
    return [string[start:end] for start, end in pairwise(ends)]


def _without_each(pieces: Sequence[Letters]) -> Iterator[Letters]:
    for left_out in range(len(pieces)):
        kept = (piece for number, piece in enumerate(pieces) if number != left_out)
        yield tuple(letter for piece in kept for letter in piece)


def _first(fail: Fail, strings: Iterator[Letters] | Sequence[Letters]) -> Letters | None:
    """The first of the strings that fails."""
    waiting = list(strings)
    for start in range(0, len(waiting), AT_ONCE):
        batch = waiting[start : start + AT_ONCE]
        for string, fails in zip(batch, fail(batch), strict=True):
            if fails:
                return string
    return None
