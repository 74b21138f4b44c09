"""The smallest strings that fail, and the nearest that do not."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice, pairwise
from typing import Any, NamedTuple

import numpy as np

from seqcls.cancellation import check
from seqcls.errors import InvalidStringError
from seqcls.interpretability.domains import MAX_STRINGS, affordable_length, inputs_by_length
from seqcls.interpretability.trained_model import Answer, Letters, TrainedModel
from seqcls.kinds.output_errors import edits as edit_distance
from seqcls.problem import Problem
from seqcls.strings.token_strings import TokenStrings

# Minimal failing strings: by deleting tokens, and by trying all strings, the shortest first.

Fail = Callable[[Sequence[Letters]], Sequence[bool]]
"""Decides which of some strings fail."""

AT_ONCE = 64
"""Strings that are tried in one step: most steps need only the first few."""

MAX_SHOWN = 20
"""Shortest failing strings that are named; the others are counted."""


class Shortest(NamedTuple):
    """The shortest strings that a model misclassifies."""

    answers: tuple[Answer, ...]
    """At most `MAX_SHOWN`, in the order of the alphabet; none where none fails."""
    count: int  # type: ignore[assignment]
    """The number of failing strings of that length."""
    length: int | None
    """Tokens of the shortest; None where no string up to `max_length` fails."""
    max_length: int
    """All strings up to this length would have been tried; of a file those in it."""
    tried: int

    def describe(self, model: TrainedModel) -> list[str]:
        """The result of trying all strings, or all those whose target is known."""
        words, whose = model.problem.kind.words, whose_known(model.problem)
        strings = words.plural("")
        if self.length is None:
            return [
                f"all {self.tried:,} {strings}{whose} of up to {self.max_length} tokens are "
                f"{words.hit}"
            ]
        left = self.count - len(self.answers)
        return [
            f"the shortest failing {strings} have {self.length} tokens: {self.count:,} of them "
            f"({self.tried:,} {strings} tried, all{whose} up to that length)",
            *(f"  {answer.text}" for answer in self.answers),
            *([f"  and {left:,} more"] if left else []),
        ]


def whose_known(problem: Problem) -> str:
    """The restriction of "all" to strings whose target is known; empty where all are."""
    return "" if problem.known_strings is None else f" whose {problem.kind.words.right} is known"


def delta_debug(string: Letters, fail: Fail) -> Letters:
    """A part of a failing string that fails, while with any single token less it does not."""
    parts = 2
    while string:
        number = min(parts, len(string))
        ends = [len(string) * part // number for part in range(number + 1)]
        pieces = [string[start:end] for start, end in pairwise(ends)]
        # Of a single token the only piece is the string itself.
        part = _first(fail, [piece for piece in pieces if len(piece) < len(string)])
        if part is not None:
            string, parts = part, 2
            continue
        part = _first(fail, _without_one(pieces))
        if part is not None:
            # One piece fewer, so that the others keep their size (Zeller & Hildebrandt 2002).
            string, parts = part, max(parts - 1, 2)
        elif parts >= len(string):
            return string
        else:
            parts *= 2
    return string


def shortest_failing(model: TrainedModel) -> Shortest:
    """The shortest strings that a model misclassifies, found by trying all, the shortest first.

    At most `MAX_STRINGS`, those of a length all or not at all. Where targets are known of some
    strings alone, as of those of a file, these are tried.
    """
    problem, tried = model.problem, 0
    longest = affordable_length(model.num_letters, MAX_STRINGS)
    if problem.known_strings is not None:
        longest = int(problem.known_strings.lengths.max(initial=0))
    for length, strings in inputs_by_length(problem, longest):
        tried += len(strings)
        wrong = np.flatnonzero(model.ask(strings).wrong) if len(strings) else ()
        if len(wrong):
            rows = strings.letters[wrong[:MAX_SHOWN], :length].tolist()
            shown = tuple(model.answer(tuple(row)) for row in rows)
            return Shortest(shown, len(wrong), length, longest, tried)
    return Shortest((), 0, None, longest, tried)


def _without_one(pieces: Sequence[Letters]) -> Iterator[Letters]:
    for left_out in range(len(pieces)):
        remaining = (piece for number, piece in enumerate(pieces) if number != left_out)
        yield tuple(letter for piece in remaining for letter in piece)


def _first(fail: Fail, strings: Iterator[Letters] | Sequence[Letters]) -> Letters | None:
    """The first of the strings that fails."""
    # The model answers a batch at once; most searches end within the first.
    waiting = list(strings)
    for start in range(0, len(waiting), AT_ONCE):
        batch = waiting[start : start + AT_ONCE]
        for string, fails in zip(batch, fail(batch), strict=True):
            if fails:
                return string
    return None


# The nearest string that a model answers rightly: one edit away, else two.

MAX_TRIED = 20_000
"""Strings that are tried at most: two edits of a long string are more than anyone waits for."""

NEIGHBORS_AT_ONCE = 256

MAX_EDITS = 2


class Nearest(NamedTuple):
    """The nearest string of a kind, or that none was found."""

    answer: Answer | None
    letters: Letters
    """The letters of the string that was found."""
    edits: int
    """The number of edits (replaced, deleted or inserted tokens); the most tried, if in vain."""
    tried: int
    complete: bool
    """True if all strings with fewer edits were tried, and of a search in vain all there are."""

    def record(self) -> dict[str, Any] | None:
        """The string as programs read it; None where nothing was found."""
        if self.answer is None:
            return None
        return {**self.answer.record(), "edits": self.edits, "tried": self.tried}

    def describe(self, model: TrainedModel, given: Answer) -> str:
        """Describes the result of the search around a given string."""
        words, whose = model.problem.kind.words, whose_known(model.problem)
        tried = f"{self.tried:,} {words.plural('')} tried"
        if self.answer is not None:
            return (
                f"nearest {words.hit} {words.string}{whose}: {self.answer.name}, "
                f"{how_near(self.edits, self.answer, given)}: {self.answer.verdict}"
            )
        if not self.tried:
            return f"of no {words.string} within {self.edits} edits is it known what is right"
        not_all = "" if self.complete else ", not all of them"
        return (
            f"no {words.string}{whose} within {self.edits} edits is {words.hit} ({tried}{not_all})"
        )


def how_near(edits: int, found: Answer, given: Answer) -> str:
    """The number of edits to a string that was found, and what it shares with the given one."""
    away = "1 edit away" if edits == 1 else f"{edits} edits away"
    if given.label is None:
        same = "same" if found.predicted == given.predicted else "different"
        return f"{away}, {same} prediction"
    if found.predicted == given.predicted:
        return f"{away}, same prediction, different label"
    return f"{away}, same label, different prediction" if found.label == given.label else away


def nearest_right(
    model: TrainedModel,
    letters: Sequence[int],
    *,
    same_length: bool = False,
) -> Nearest:
    """The nearest string that is answered rightly, where its target is computed anew.

    Tokens are replaced first, then deleted, then inserted, from left to right. Where targets are
    known of some strings alone, as of those of a file, only these are tried. Of strings as many
    edits away one that the model answers otherwise is preferred: of a failing string one with its
    label, which shows what the model goes by. The answer to one with another label is the same,
    and right since the label has changed.

    Args:
        same_length: only replacements, and only a string that the model answers otherwise. Of a
            file any other string will do then, although nothing is known of it.
    """
    start = tuple(letters)
    was = model.ask_all([start]).predicted[0]
    least = 0 if model.problem.tries_empty else 1
    tried = 0
    among = None if same_length else model.problem.known_strings
    # Of a file, strings with a target are among its own; any other is an input all the same.
    any_input = model.problem.known_strings is not None
    given = (start, model.num_letters, same_length)
    # Those one edit away, then those two edits away, none of them twice.
    near = (ring(*given) for ring in (edits_of, _twice))
    rings = near if among is None else _rings_among(among, start)
    for edits, candidates in enumerate(rings, start=1):
        inputs = (x for x in candidates if len(x) >= least and (any_input or model.is_input(x)))
        best, found = 0, start
        while batch := list(islice(inputs, min(NEIGHBORS_AT_ONCE, MAX_TRIED - tried))):
            check()
            tried += len(batch)
            answers = model.ask_all(batch)
            # A label may change with the edit, so right alone does not mean another answer.
            turned = ~answers.are_predicted(np.asarray(was))
            right = answers.right & (turned | (not same_length))
            # Rank 1 is a right answer, 2 a right one that is the other answer as well.
            rank = right.astype(int) + (right & turned)
            row = int(rank.argmax())
            if rank[row] > best:
                best, found = int(rank[row]), batch[row]
            if best == 2:
                break
        if best:
            return Nearest(model.answer(found), found, edits, tried, True)
        if tried >= MAX_TRIED:
            return Nearest(None, (), edits, tried, False)
    return Nearest(None, (), MAX_EDITS, tried, True)


def edits_of(string: Letters, num_letters: int, same_length: bool = False) -> Iterator[Letters]:
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


def _rings_among(known: TokenStrings, string: Letters) -> Iterator[Iterator[Letters]]:
    """The known strings in rings around a string, by the number of edits."""
    counts = known.counts
    own = np.bincount(string, minlength=counts.shape[1])
    # An edit changes the counts of two letters at most, each by one.
    near = np.flatnonzero(np.abs(counts - own).sum(axis=1) <= 2 * MAX_EDITS)
    pairs = zip(known.letters[near].tolist(), known.lengths[near].tolist(), strict=True)
    rows = [tuple(row[:length]) for row, length in pairs]
    # In the order of `edits_of`: replacements, then deletions, then insertions.
    rows.sort(key=lambda row: (len(row) != len(string), len(row) > len(string)))
    away = {row: edit_distance(row, string) for row in rows}
    for distance in range(1, MAX_EDITS + 1):
        yield iter([row for row, edits in away.items() if edits == distance])


def _twice(string: Letters, num_letters: int, same_length: bool) -> Iterator[Letters]:
    # Two edits may undo each other, or come to one.
    seen = {string, *edits_of(string, num_letters, same_length)}
    for once in edits_of(string, num_letters, same_length):
        for twice in edits_of(once, num_letters, same_length):
            if twice not in seen:
                seen.add(twice)
                yield twice


class Reduced(NamedTuple):
    """A misclassified string, made as short as it can be, and the nearest right one."""

    given: Answer
    minimal: Answer
    """The part that delta debugging leaves."""
    tried: int
    """The number of strings on which the model was evaluated for that."""
    nearest: Nearest

    def record(self) -> dict[str, Any]:
        """The strings as programs read them."""
        found = {**self.minimal.record(), "tried": self.tried}
        near = self.nearest.record()
        return {"given": self.given.record(), "minimal": found, "nearest_right": near}

    def describe(self, model: TrainedModel) -> list[str]:
        """The string, its shortest failing part and the nearest right string."""
        words = model.problem.kind.words
        return [
            self.given.text,
            f"minimal failing {words.string}: {self.minimal.text} (no single deletion"
            f"{whose_known(model.problem)} fails; {self.tried:,} {words.plural('')} tried)",
            self.nearest.describe(model, self.given),
        ]


def minimal_failing(model: TrainedModel, letters: Sequence[int]) -> Reduced:
    """Reduces a failing string until no single token can be deleted and it still fails, and finds
    the nearest right one.

    Delta debugging (Zeller & Hildebrandt 2002) over tokens. The target is computed
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
        # A string of which nothing is known counts as one that does not fail.
        inputs = [string for string in strings if model.is_input(string)]
        tried += len(inputs)
        wrong = dict(
            zip(inputs, model.ask_all(inputs).wrong.tolist() if inputs else (), strict=True)
        )
        return [wrong.get(string, False) and len(string) >= least for string in strings]

    part = delta_debug(tuple(letters), fail)
    return Reduced(given, model.answer(part), tried, nearest_right(model, letters))
