"""Strings of any language, half of them positive, of uniform lengths.

Negative strings are uniform, or positive ones after random edits.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Annotated, ClassVar, Literal

import numpy as np
from jaxtyping import Int64, UInt8

from seqcls.declarations import About
from seqcls.errors import ConfigError
from seqcls.kinds.base import DRAWN, Examples
from seqcls.sampling import border, near
from seqcls.sampling.distinct import DrawnByLength, DrawnFields, Letters, Training
from seqcls.sampling.edits import edit, growth
from seqcls.strings.token_strings import NO_LETTER, Lengths, Rows, TokenStrings, Truths
from seqcls.tasks.base import LanguageTask, Task
from seqcls.tasks.drawing import draw_many

Ways = UInt8[np.ndarray, " string"]
"""The way each string was drawn: its index in `DRAWN`."""

MAX_DRAWS = 100
"""Candidates for each negative string, on average, with `SPARE_DRAWS` more in all; strings not
found by then are drawn by the language itself: of a uniform length among those that have a negative
string, and then uniform."""

SPARE_DRAWS = 2_000

MAX_CANDIDATES = 4_000

BLOCK_TOKENS = 2**22
"""Tokens of the blocks in which strings are drawn, which bounds the memory."""


Negatives = Literal["uniform", "edits", "mixed", "near", "border"]

AS_TRAINED = "as_trained"
"""The value of `test_negatives` for that of `negatives`."""


class BalancedFields(DrawnFields):
    """negatives: How `balanced_strings` draws negative strings; `near`: up to a third of them are
        positive ones with a token or two changed and no pair of neighbors that positive strings
        lack; `border`: each is at edit distance 1 from a positive string.
    negative_lengths: Whether a candidate that is positive is drawn again length and all, or a
        negative string's length is uniform among those that have one, and kept; `nearest`: near
        ones of a length without positive strings have the nearest length with some.
    test_negatives: How negative test strings are drawn; `as_trained`: as `negatives` says.
    test_strings: Which strings `balanced_strings` tests on; `random_and_border`: uniform ones, and
        as many in pairs at edit distance 1, one in the language and one outside.
    """

    negatives: Annotated[Negatives, About("Strings", 3)] = "mixed"
    negative_lengths: Annotated[Literal["redrawn", "uniform", "nearest"], About("Strings", 4)] = (
        "redrawn"
    )
    test_negatives: Annotated[Literal["as_trained", Negatives], About("Strings", 25)] = "as_trained"
    test_strings: Annotated[Literal["random", "random_and_border"], About("Strings", 30)] = "random"


@dataclass(frozen=True)
class BalancedStrings(DrawnByLength):
    """A string's label is a fair coin; its length is uniform; then the string is drawn.

    A positive string's length is uniform among those that have one, and then the string is
    uniform where the language allows it. Negative strings, by `negatives`: `uniform`, of a
    uniform length; `edits`, a positive string with 1 + Geometric(1/2) edits (1, 2, 3, ... of them
    with probabilities 1/2, 1/4, 1/8, ...), of an allowed length; `mixed`, either, by a fair coin;
    `near`, either or a near negative (`seqcls.sampling.near`), a third each, with an edited one in
    place of a near one that is not found, and `mixed` for a language without any; `border`, the
    string outside of a border pair (`seqcls.sampling.border`), of a length that is uniform among
    those that have one.
    Each is drawn again until it is negative, by `negative_lengths`: `redrawn`, length and all, so
    that most have lengths at which most strings are negative; `uniform`, with the same length,
    which is uniform among those that have a negative string; `nearest`, the same, but a near one
    takes the nearest length that has positive strings too, of two by a fair coin.

    With border pairs in `test_strings`, a quarter of the strings are positive and a quarter
    negative, both uniform, and half are border pairs, with equally many of each length. A pair's
    length is that of its positive string.
    """

    task: LanguageTask
    negatives: Negatives
    negative_lengths: Literal["redrawn", "uniform", "nearest"] = "redrawn"
    train_set: Literal["fresh", "fixed"] = "fresh"
    test_strings: Literal["random", "random_and_border"] = "random"
    trained: Training | None = None
    """The training that shares no string with this set, for tests disjoint from training."""

    reads_of_part: ClassVar[Mapping[str, frozenset[str]]] = {
        "train": frozenset({"train_set", "lengths"}),
        "test": frozenset({"disjoint", "test_strings"}),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        for positive, label in ((True, "positive"), (False, "negative")):
            if not len(self._lengths[positive]):
                raise ConfigError(
                    f"max_length={self.max_length}: no string of {self.min_length} to "
                    f"{self.max_length} tokens is {label}; change the language or the lengths "
                    f"({self.task.describe()})"
                )
        if self._has_pairs and self.size < 4:
            raise ConfigError(
                f"size={self.size}: expected at least 4, two random strings and a border pair"
            )
        if self._has_pairs or self.negatives == "border":
            setting = "negatives='border'"
            if self._has_pairs:
                setting = f"test_strings={self.test_strings!r}"
            try:
                # Refused here if it takes too much memory, and not when the first epoch is drawn.
                border.pairs_of(self.task).check_length(self.max_length)
            except ConfigError as error:
                raise ConfigError(f"{setting}: {error}") from None
            if not len(self._paired_lengths(positive=self._has_pairs)):
                raise ConfigError(
                    f"{setting}: no positive string of {self.min_length} to {self.max_length} "
                    "tokens is at edit distance 1 from a negative one of such a length; change the "
                    "lengths"
                )

    @property
    def lengths(self) -> range:
        drawn = np.concatenate(list(self._lengths.values()))
        return range(int(drawn.min()), int(drawn.max()) + 1)

    @property
    def repeats(self) -> bool:
        return self.train_set == "fixed"

    @property
    def _lengths(self) -> dict[bool, Lengths]:
        return _lengths(self.task, self.min_length, self.max_length)

    @property
    def _has_pairs(self) -> bool:
        return self.test_strings != "random"

    @property
    def unpaired_lengths(self) -> Lengths:
        """The allowed lengths without border pairs, for a test with pairs."""
        allowed = np.arange(self.min_length, self.max_length + 1)
        return np.setdiff1d(
            allowed, self._paired_lengths(positive=True) if self._has_pairs else allowed
        )

    def _paired_lengths(self, *, positive: bool) -> Lengths:
        """The lengths of strings of this label that have a partner of an allowed length."""
        own, others = self._lengths[positive], self._lengths[not positive]
        # Replacements lead from any string to any other of its length, and cross the border
        # somewhere. Where all of a length have one label, any string of the other label next to
        # that length has a partner.
        return own[np.isin(own[:, None] + border.GROWTH, others).any(axis=1)]

    def _epoch(self, rng: np.random.Generator) -> Examples:
        if self._has_pairs:
            return self._epoch_with_pairs(rng)
        labels = rng.integers(2, size=self.size).astype(bool)
        drawn = np.full(self.size, _POSITIVE, dtype=np.uint8)

        def draw(rows: Rows) -> Letters:
            letters, drawn[rows] = self._draw(rng, labels[rows])
            return letters

        rows = np.arange(self.size)
        block = max(1, BLOCK_TOKENS // max(1, self.max_length))
        letters = np.concatenate([draw(rows[i : i + block]) for i in rows[::block]])
        if self.trained is not None:
            self.trained.replace_known(
                letters,
                draw,
                lambda row: f"{'positive' if labels[row] else 'negative'} string",
                self,
            )
        return Examples(_strings(self.task, letters), labels, drawn=drawn)

    def _epoch_with_pairs(self, rng: np.random.Generator) -> Examples:
        """Groups of four strings, as many as fit: positive, negative, and a pair."""
        letters = np.full((self.size, self.max_length), NO_LETTER, dtype=np.uint8)
        place, paired = np.arange(self.size), self._paired_lengths(positive=True)
        # A rest of fewer than four is random strings.
        labels, in_pair = place % 2 == 0, (place % 4 > 1) & (place < self.size // 4 * 4)
        for label in (True, False):
            rows = np.flatnonzero((labels == label) & ~in_pair)[:, None]
            lengths = self._lengths[label]
            self._put_each(rng, letters, rows, lengths, partial(self._alone, rng, positive=label))
        rows = np.flatnonzero(in_pair).reshape(-1, 2)
        self._put_each(rng, letters, rows, paired, partial(self._pairs, rng, positive=True))
        drawn = np.where(in_pair, _BORDER, np.where(labels, _POSITIVE, _UNIFORM))
        return Examples(_strings(self.task, letters), labels, drawn=drawn.astype(np.uint8))

    def _put_each(
        self,
        rng: np.random.Generator,
        letters: Letters,
        rows: Int64[np.ndarray, "row several"],
        lengths: Lengths,
        draw: Callable[[Lengths], Letters],
    ) -> None:
        """Fill rows with strings not trained on, spread evenly over the lengths."""
        # Shuffled, so that lengths do not rise from row to row.
        row_lengths = rng.permutation(lengths[np.arange(len(rows)) * len(lengths) // len(rows)])
        block = max(1, BLOCK_TOKENS // max(self.max_length, 4 * len(self.task.alphabet)))
        filled = np.full((*rows.shape, self.max_length), NO_LETTER, dtype=np.uint8)

        def put(rows: slice | Rows, lengths: Lengths) -> Letters:
            several = draw(lengths)[:, :, : self.max_length]
            # A string that is drawn again may be shorter than the one before.
            filled[rows] = NO_LETTER
            filled[rows, :, : several.shape[2]] = several
            return filled[rows]

        for first in range(0, len(rows), block):
            put(slice(first, first + block), row_lengths[first : first + block])
        if self.trained is not None:
            self.trained.replace_known(
                filled,
                lambda rows: put(rows, rng.choice(lengths, size=len(rows))),
                lambda _: "string" if rows.shape[1] == 1 else "border pair",
                self,
            )
        letters[rows] = filled

    def _alone(self, rng: np.random.Generator, lengths: Lengths, *, positive: bool) -> Letters:
        return draw_many(self.task, rng, lengths, positive).letters[:, None]

    def _pairs(self, rng: np.random.Generator, lengths: Lengths, *, positive: bool) -> Letters:
        """Border pairs whose first strings have this label and these lengths."""
        allowed = range(self.min_length, self.max_length + 1)
        return border.pairs_of(self.task, positive).draw(rng, lengths, allowed).swapaxes(0, 1)

    def _draw(self, rng: np.random.Generator, labels: Truths) -> tuple[Letters, Ways]:
        """Strings of these labels, and the way each was drawn, as an index in `DRAWN`."""
        letters = np.full((len(labels), self.max_length), NO_LETTER, dtype=np.uint8)
        drawn = np.full(len(labels), _POSITIVE, dtype=np.uint8)
        positive, negative = np.flatnonzero(labels), np.flatnonzero(~labels)
        _put_rows(letters, positive, self._draw_label(rng, len(positive), positive=True))
        ways = self._ways_of_negatives(rng, len(negative))
        for way in _TRIED:
            rows = negative[ways == way]
            if self.negative_lengths == "redrawn":
                self._put_negative(rng, letters, drawn, rows, way)
            else:
                self._put_of_lengths(rng, letters, drawn, rows, way)
        return letters, drawn

    def _ways_of_negatives(self, rng: np.random.Generator, size: int) -> Ways:
        if self.negatives == "border":
            return np.full(size, _BORDER, dtype=np.uint8)
        if self.negatives == "near" and self.near_obstacle is None:
            return rng.integers(_UNIFORM, _NEAR + 1, size=size, dtype=np.uint8)
        if self.negatives in ("mixed", "near"):
            return np.where(rng.integers(2, size=size) > 0, _EDITED, _UNIFORM).astype(np.uint8)
        return np.full(size, _EDITED if self.negatives == "edits" else _UNIFORM, dtype=np.uint8)

    @property
    def near_obstacle(self) -> str | None:
        """Why there are no near negatives of these lengths; None where there are."""
        return near.obstacle(self.task, tuple(self._lengths[True].tolist()))

    def _put_negative(
        self, rng: np.random.Generator, letters: Letters, drawn: Ways, rows: Rows, preferred: int
    ) -> None:
        """Fill rows with the first candidates that are negative and of an allowed length."""
        for way in _TRIED[preferred]:
            left = MAX_DRAWS * len(rows) + SPARE_DRAWS
            while len(rows) and left > 0:
                size = min(2 * len(rows) + 16, MAX_CANDIDATES)
                candidates = self._draw_candidates(rng, size, way)
                left -= size
                fits = candidates.lengths >= self.min_length
                fits &= candidates.lengths <= self.max_length
                chosen = np.flatnonzero(fits & ~self.task.labels(candidates))[: len(rows)]
                _put_rows(letters, rows[: len(chosen)], candidates.take(chosen))
                drawn[rows[: len(chosen)]] = way
                rows = rows[len(chosen) :]
        _put_rows(letters, rows, self._draw_label(rng, len(rows), positive=False))
        drawn[rows] = _UNIFORM

    def _put_of_lengths(
        self, rng: np.random.Generator, letters: Letters, drawn: Ways, rows: Rows, preferred: int
    ) -> None:
        """Fill rows with negative strings, each of a length that is drawn once."""
        lengths = rng.choice(self._lengths[False], size=len(rows))
        if preferred == _NEAR and self.negative_lengths == "nearest":
            lengths = _nearest(
                rng, lengths, np.intersect1d(self._lengths[False], self._lengths[True])
            )
        for way in _TRIED[preferred]:
            for _ in range(MAX_DRAWS):
                if not len(rows):
                    return
                tried, candidates = _CANDIDATES_OF[way](self, rng, lengths)
                fits = (candidates.lengths == lengths[tried]) & ~self.task.labels(candidates)
                filled = tried[fits]
                _put_rows(letters, rows[filled], candidates.take(np.flatnonzero(fits)))
                drawn[rows[filled]] = way
                rows, lengths = np.delete(rows, filled), np.delete(lengths, filled)
        _put_rows(letters, rows, draw_many(self.task, rng, lengths, positive=False))
        drawn[rows] = _UNIFORM

    def _draw_label(self, rng: np.random.Generator, size: int, *, positive: bool) -> TokenStrings:
        lengths = rng.choice(self._lengths[positive], size=size)
        return draw_many(self.task, rng, lengths, positive)

    def _uniform_of(self, rng: np.random.Generator, lengths: Lengths) -> tuple[Rows, TokenStrings]:
        num_letters = len(self.task.alphabet)
        shape = (len(lengths), int(lengths.max(initial=0)))
        letters = rng.integers(num_letters, size=shape, dtype=np.uint8)
        return np.arange(len(lengths)), TokenStrings.of_letters(num_letters, letters, lengths)

    def _draw_candidates(self, rng: np.random.Generator, size: int, way: int) -> TokenStrings:
        """Up to `size` candidates, of any lengths."""
        if way == _EDITED:
            edits = _numbers_of_edits(rng, size)
            return edit(rng, self._draw_label(rng, size, positive=True), edits)
        # A near one has the length of the positive string that it is made from.
        lengths = self._lengths[way == _NEAR]
        if way == _BORDER:
            lengths = self._paired_lengths(positive=False)
        return _CANDIDATES_OF[way](self, rng, rng.choice(lengths, size=size))[1]

    def _edited_to(self, rng: np.random.Generator, lengths: Lengths) -> tuple[Rows, TokenStrings]:
        """Edited strings of these lengths, where positive strings of the original length exist."""
        edits = _numbers_of_edits(rng, len(lengths))
        kinds = rng.integers(3, size=int(edits.sum()))
        row = np.repeat(np.arange(len(lengths)), edits)
        # The kinds of edits are drawn first: they determine the lengths before the edits.
        before = lengths - np.bincount(row, growth(kinds), len(lengths)).astype(np.int64)
        there = np.isin(before, self._lengths[True])
        positive = draw_many(self.task, rng, before[there], positive=True)
        return np.flatnonzero(there), edit(rng, positive, edits[there], kinds[there[row]])

    def _near_of(self, rng: np.random.Generator, lengths: Lengths) -> tuple[Rows, TokenStrings]:
        there = np.flatnonzero(np.isin(lengths, self._lengths[True]))
        positive = draw_many(self.task, rng, lengths[there], positive=True)
        rows, changed = near.change(rng, self.task, positive)
        return there[rows], changed

    def _border_of(self, rng: np.random.Generator, lengths: Lengths) -> tuple[Rows, TokenStrings]:
        there = np.flatnonzero(np.isin(lengths, self._paired_lengths(positive=False)))
        letters = self._pairs(rng, lengths[there], positive=False)[:, 0]
        return there, TokenStrings.of_letters(len(self.task.alphabet), letters, lengths[there])


_POSITIVE, _UNIFORM, _EDITED, _NEAR, _BORDER = range(len(DRAWN))

_TRIED = {_UNIFORM: (_UNIFORM,), _EDITED: (_EDITED,), _NEAR: (_NEAR, _EDITED), _BORDER: (_BORDER,)}
"""Ways to draw a negative string, tried in order. There may be too few near ones, such as of a
single token."""

_CANDIDATES_OF = {
    _UNIFORM: BalancedStrings._uniform_of,
    _EDITED: BalancedStrings._edited_to,
    _NEAR: BalancedStrings._near_of,
    _BORDER: BalancedStrings._border_of,
}


def _nearest(rng: np.random.Generator, lengths: Lengths, others: Lengths) -> Lengths:
    """The nearest of other lengths to each, of two by a fair coin."""
    place = np.searchsorted(others, lengths)
    above, below = others[np.minimum(place, len(others) - 1)], others[np.maximum(place - 1, 0)]
    farther = np.abs(above - lengths) - np.abs(below - lengths)
    is_above = (farther < 0) | ((farther == 0) & (rng.integers(2, size=len(lengths)) > 0))
    return np.where(is_above, above, below)


def _numbers_of_edits(rng: np.random.Generator, size: int) -> Int64[np.ndarray, " string"]:
    # A uniform number's binary exponent is 0, -1, -2, ... with probabilities 1/2, 1/4, 1/8, ...
    _, exponents = np.frexp(rng.random(size))
    return 1 - exponents.astype(np.int64)


@lru_cache(maxsize=64)
def _lengths(task: LanguageTask, min_length: int, max_length: int) -> dict[bool, Lengths]:
    """The allowed lengths that have a positive, and a negative string."""
    drawable: dict[bool, list[int]] = {False: [], True: []}
    # The longest first: a length that is too large is refused before the others are tried.
    for length in range(max_length, min_length - 1, -1):
        for label, lengths in drawable.items():
            if task.has(length, label):
                lengths.append(length)
    return {label: np.array(lengths[::-1], dtype=np.int64) for label, lengths in drawable.items()}


def _strings(task: Task, letters: Letters) -> TokenStrings:
    lengths = (letters != NO_LETTER).sum(axis=1)
    return TokenStrings(len(task.alphabet), lengths, letters)


def _put_rows(letters: Letters, rows: Rows, strings: TokenStrings) -> None:
    width = min(letters.shape[1], strings.letters.shape[1])
    letters[rows] = NO_LETTER
    letters[rows, :width] = strings.letters[:, :width]
