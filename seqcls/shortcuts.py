"""Shortcut readers: the accuracy on a test set that is reached without knowing the language.

Each reader sees little of a string (its length, its letters without their order, its pairs of
neighboring tokens, its ends), is fitted on the first training strings and evaluated on the test
strings. A model that is right as often as one of them need not have learned more. It takes no
shortcut where that little decides the language: pairs of neighbors decide `(ab)*`, and letter
counts decide which letter is in the majority.

Readers are models of scikit-learn (Pedregosa et al. 2011), on one thread; the same strings give the
same readers.
"""

import hashlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import import_module
from threading import Lock
from typing import Any

import numpy as np
from jaxtyping import Bool, Int64

from seqcls.cancellation import check
from seqcls.evaluation import distinct_test_strings
from seqcls.fields import strings_read
from seqcls.kinds import Examples
from seqcls.kinds.base import pad_to_one_width
from seqcls.problem import Problem
from seqcls.sampling import Sampler
from seqcls.sampling.streams import stream
from seqcls.strings.token_strings import NO_LETTER, TokenStrings
from seqcls.text import canonical_json

FITTED_ON = 20_000
"""Number of training strings that readers are fitted on, the first that are drawn."""

MAX_FITTED_PLACES = 20_000
"""The most places of targets that the reader of aligned tokens is fitted on."""

BLOCK_TOKENS = 2**22
"""Tokens of the blocks in which runs are looked for, which bounds the memory."""

READERS: Mapping[str, str] = {
    "length": "the majority label of each length",
    "ends": "the first and last letters",
    "counts": "letter counts, linear",
    "counts_trees": "letter counts, decision trees",
    "bigrams": "the bigrams that occur, linear",
    "trigrams": "the trigrams that occur, linear",
    "identity": "the input itself",
    "most_frequent": "the most frequent output",
    "aligned": "the token at the same place and its neighbors",
}
"""The input or the prediction of each reader, in words."""


@dataclass(frozen=True, eq=False)
class Shortcut:
    """One reader's result on a test set."""

    reader: str
    """One of `READERS`."""
    right: Bool[np.ndarray, " string"] | None
    """True for test strings, by number, that it is right on; None where it cannot be fitted."""
    obstacle: str | None = None
    """Why it cannot be fitted."""


def read_test(problem: Problem) -> Sequence[Shortcut]:
    """The results of all shortcut readers of a problem's kind of answer.

    It takes seconds, once in a process: call it only where nobody waits.

    Raises:
        ConfigError: the strings cannot be drawn.
    """
    if problem.config.imported:
        reason = "nothing is known of the strings that these models were trained on"
        return [Shortcut(name, None, reason) for name in problem.kind.shortcut_readers]
    with _READING:
        epochs, readers = problem.config.max_num_epochs, problem.kind.shortcut_readers
        return _read(problem.longest_train, problem.test, epochs, readers)


def training_key(problem: Problem) -> str:
    """A hash of what determines the strings that readers are fitted on."""
    config = problem.config
    fields = {name: getattr(config, name) for name in strings_read(config, "train")}
    epochs = _epochs(problem.train, config.max_num_epochs)
    # Results stored when trigrams had two marks before a string must not be found; strings drawn
    # by letter counts have no trigrams.
    counted = "variable_length" in (config.train_sampler, config.test_sampler)
    marks = {} if counted or "trigrams" not in problem.kind.shortcut_readers else {"marks": 1}
    text = canonical_json({**fields, **marks, "fitted_on": FITTED_ON, "epochs": epochs})
    return hashlib.sha256(text.encode()).hexdigest()


_READING = Lock()
"""Held while readers are fitted: one thread does it, others use its results."""


@lru_cache(maxsize=64)
def _read(
    train: Sampler, test: Sampler, epochs: int, readers: tuple[str, ...]
) -> Sequence[Shortcut]:
    # Imported here, since they take a second; before the limit, which holds for loaded libraries.
    import_module("sklearn.ensemble")
    import_module("sklearn.linear_model")
    from threadpoolctl import threadpool_limits

    drawn = distinct_test_strings(test)
    order = np.argsort(drawn.numbers)
    tested = Examples(drawn.strings.take(order), drawn.targets[order])
    reading = _Reading(_first(train, epochs), tested)
    shortcuts = []
    with threadpool_limits(1):
        for name in readers:
            check()
            obstacle = reading.obstacle(name)
            right = None if obstacle else _READ[name](reading)
            shortcuts.append(Shortcut(name, right, obstacle))
    return tuple(shortcuts)


@dataclass(frozen=True)
class Agreement:
    """The agreement of a model's labels with a reader's, on strings of one kind."""

    share: float
    """The share of strings that both label equally."""
    kappa: float
    """The agreement beyond that explained by both being right, as a share of the possible: 1 where
    the labels are always equal, 0 where the errors are independent (Cohen 1960, of errors, among
    strings of each label)."""
    low: float
    high: float
    """The 95% interval of kappa over strings: percentiles of 2,000 resamples."""


def agreement_of(
    labels: Bool[np.ndarray, " string"],
    model_wrong: Bool[np.ndarray, " string"],
    reader_wrong: Bool[np.ndarray, " string"],
    times: Int64[np.ndarray, " string"],
) -> Agreement:
    """The agreement of a model and a reader on strings that occur `times` times each."""
    cell = 4 * labels.astype(np.int64) + 2 * model_wrong + reader_wrong
    counts = np.bincount(cell, times, 8)
    number = int(counts.sum())
    # Resampling strings is drawing the eight counts anew, which is cheap.
    drawn = np.random.default_rng(0).multinomial(number, counts / number, size=2_000)
    low, high = np.percentile(_kappas(drawn), [2.5, 97.5])
    (kappa,) = _kappas(counts[None])
    right = counts.reshape(2, 2, 2)
    share = (right[:, 0, 0] + right[:, 1, 1]).sum() / number
    return Agreement(float(share), float(kappa), float(low), float(high))


def _kappas(counts: np.ndarray) -> np.ndarray:
    """Kappas of tables of counts by label, model and reader, one a row."""
    tables = counts.reshape(-1, 2, 2, 2).astype(np.float64)
    label_totals = tables.sum(axis=(2, 3))
    # A label may have no strings, and then no expected agreement.
    totals = np.maximum(label_totals, 1)
    model, reader = tables.sum(axis=3)[:, :, 1] / totals, tables.sum(axis=2)[:, :, 1] / totals
    expected = (label_totals * (model * reader + (1 - model) * (1 - reader))).sum(axis=1)
    same = (tables[:, :, 0, 0] + tables[:, :, 1, 1]).sum(axis=1)
    possible = tables.sum(axis=(1, 2, 3)) - expected
    kappas = (same - expected) / np.maximum(possible, 1e-9)
    return np.asarray(np.where(possible > 1e-9, kappas, 0.0))


# The readers.


def _epochs(sampler: Sampler, most: int) -> int:
    """Number of epochs, up to `most`, that the first training strings come from."""
    return 1 if sampler.repeats else min(most, -(-FITTED_ON // sampler.epoch_size))


def _first(sampler: Sampler, most_epochs: int) -> Examples:
    """The first training strings; those of repeated epochs once."""
    drawn = stream(sampler)
    parts = [drawn.epoch(epoch) for epoch in range(_epochs(sampler, most_epochs))]
    if len(parts) == 1:
        return parts[0].take(slice(0, FITTED_ON))
    letters = np.concatenate(pad_to_one_width(*(part.strings.letters for part in parts)))
    lengths = np.concatenate([part.strings.lengths for part in parts])
    targets = pad_to_one_width(*(part.targets for part in parts))
    strings = TokenStrings(parts[0].strings.num_letters, lengths, letters)
    return Examples(strings, np.concatenate(targets)).take(slice(0, FITTED_ON))


@dataclass(frozen=True, eq=False)
class _Reading:
    """The strings that readers are fitted on, and those that they are evaluated on."""

    fitted: Examples
    tested: Examples

    def obstacle(self, reader: str) -> str | None:
        """Why a reader cannot be fitted on these strings."""
        in_order = reader in ("bigrams", "trigrams", "ends")
        if in_order and (self.fitted.strings.is_counted or self.tested.strings.is_counted):
            return "the strings are drawn by letter counts: their tokens have no order"
        if reader in _LINEAR and len(np.unique(self.fitted.targets)) < 2:
            return "the training strings all have one label"
        return None

    @cached_property
    def majority(self) -> bool:
        """The label of most training strings."""
        return bool(2 * np.count_nonzero(self.fitted.labels) >= len(self.fitted))

    def majority_by(self, key: Callable[[TokenStrings], np.ndarray]) -> Bool[np.ndarray, " string"]:
        """True where the majority label of training strings with the same key is right."""
        keys, rows = np.unique(key(self.fitted.strings), return_inverse=True)
        balances = np.bincount(rows, 2 * self.fitted.labels.astype(np.int64) - 1, len(keys))
        # Where both labels are equally frequent, the majority of all strings decides.
        predicted = np.where(balances == 0, self.majority, balances > 0)
        tested_keys = key(self.tested.strings)
        place = np.minimum(np.searchsorted(keys, tested_keys), len(keys) - 1)
        known = keys[place] == tested_keys
        return np.asarray(np.where(known, predicted[place], self.majority) == self.tested.labels)

    def modeled(self, features: Callable[[TokenStrings], Any], model: Any = None) -> np.ndarray:
        """True where a model, by default logistic regression, on features of strings is right."""
        fitted = _fit(features(self.fitted.strings), self.fitted.labels, model)
        return np.asarray(fitted.predict(features(self.tested.strings)) == self.tested.labels)

    def counts(self, strings: TokenStrings) -> np.ndarray:
        """Letter counts and the length, divided by the length of the longest training string."""
        counts = np.column_stack([strings.counts, strings.lengths])
        return counts / int(self.fitted.strings.lengths.max(initial=1))

    def trees(self) -> np.ndarray:
        """True where gradient-boosted decision trees on letter counts are right."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        model = HistGradientBoostingClassifier(max_iter=100, early_stopping=False, random_state=0)
        return self.modeled(self.counts, model)

    def grams(self, size: int) -> np.ndarray:
        """True where logistic regression on the runs of `size` tokens that occur is right."""
        from scipy.sparse import csr_matrix

        columns = np.unique(_grams(self.fitted.strings, size)[1])
        longest = int(self.fitted.strings.lengths.max(initial=1))

        def features(strings: TokenStrings) -> Any:
            rows, grams = _grams(strings, size)
            place = np.minimum(np.searchsorted(columns, grams), len(columns) - 1)
            # Runs that no training string has are no features.
            known = columns[place] == grams
            every = np.arange(len(strings))
            row = np.concatenate([rows[known], every])
            # One more column, after the runs, for the length.
            column = np.concatenate([place[known], np.full(len(strings), len(columns))])
            value = np.concatenate([np.ones(known.sum()), strings.lengths / longest])
            return csr_matrix((value, (row, column)), shape=(len(strings), len(columns) + 1))

        return self.modeled(features)


def _fit(features: Any, targets: np.ndarray, model: Any = None) -> Any:
    """Fits a model, by default logistic regression."""
    from sklearn.linear_model import LogisticRegression

    # Weak regularization, so that a reader may fit the training strings.
    fitted = LogisticRegression(C=30, max_iter=200) if model is None else model
    with warnings.catch_warnings():
        # A reader that has not converged is still a reader.
        warnings.simplefilter("ignore")
        return fitted.fit(features, targets)


def _grams(
    strings: TokenStrings, size: int
) -> tuple[Int64[np.ndarray, " gram"], Int64[np.ndarray, " gram"]]:
    """The runs of tokens that occur in strings, ends included: rows, and a number for each run."""
    width = int(strings.lengths.max(initial=1))
    block = max(1, BLOCK_TOKENS // width)
    rows, numbers = [], []
    for first in range(0, max(1, len(strings)), block):
        found, grams = _grams_of(strings.take(slice(first, first + block)), size)
        rows.append(first + found)
        numbers.append(grams)
    return np.concatenate(rows), np.concatenate(numbers)


def _grams_of(
    strings: TokenStrings, size: int
) -> tuple[Int64[np.ndarray, " gram"], Int64[np.ndarray, " gram"]]:
    # A string has one mark before it and one after it, as in factors of a language.
    end = strings.num_letters
    before, after = (np.full((len(strings), 1), mark, dtype=np.int64) for mark in (end + 1, end))
    letters = np.where(strings.letters == NO_LETTER, end, strings.letters.astype(np.int64))
    padded = np.concatenate([before, letters, after], axis=1)
    width = max(0, padded.shape[1] - size + 1)
    numbers = np.zeros((len(strings), width), dtype=np.int64)
    for first in range(size):
        numbers = numbers * (end + 2) + padded[:, first : first + width]
    # With two marks a string of n tokens has n + 3 - size runs of `size` tokens.
    inside = np.arange(width) < strings.lengths[:, None] + 3 - size
    rows = np.broadcast_to(np.arange(len(strings))[:, None], inside.shape)[inside]
    base = (end + 2) ** size
    rows, grams = np.divmod(np.unique(rows * base + numbers[inside]), base)
    return rows, grams


def _ends(strings: TokenStrings) -> Int64[np.ndarray, " string"]:
    """A number for the first and last letters of each string."""
    there = strings.with_a_place()
    row = np.arange(len(strings))
    last = there.letters[row, np.maximum(there.lengths - 1, 0)].astype(np.int64)
    # Letters are bytes, so that two of them are one number.
    return np.asarray(256 * there.letters[:, 0].astype(np.int64) + last)


def _identity(reading: _Reading) -> np.ndarray:
    written, targets = pad_to_one_width(reading.tested.strings.letters, reading.tested.targets)
    return np.asarray((written == targets).all(axis=1))


def _most_frequent(reading: _Reading) -> np.ndarray:
    fitted, targets = pad_to_one_width(reading.fitted.targets, reading.tested.targets)
    outputs, times = np.unique(fitted, axis=0, return_counts=True)
    return np.asarray((targets == outputs[times.argmax()]).all(axis=1))


def _write_aligned(reading: _Reading) -> np.ndarray:
    """True where logistic regression from the tokens around each place gives the target."""
    fitted = reading.fitted
    size = fitted.strings.num_letters
    around, next_tokens = _around(fitted.strings, fitted.targets.shape[1] + 1), fitted.targets
    next_tokens = np.where(next_tokens == NO_LETTER, size, next_tokens.astype(np.int64))
    next_tokens = np.pad(next_tokens, ((0, 0), (0, 1)), constant_values=size)
    # Nothing is written after the end.
    written = np.arange(next_tokens.shape[1]) <= (fitted.targets != NO_LETTER).sum(axis=1)[:, None]
    first = tuple(place[:MAX_FITTED_PLACES] for place in np.nonzero(written))
    features, classes = around[first], next_tokens[first]
    tested = reading.tested
    places = tested.targets.shape[1] + 1
    every = _around(tested.strings, places)
    if len(np.unique(classes)) < 2:
        predicted = np.full(every.shape[:2], classes[0])
    else:
        # Different triples of tokens are few: each is predicted once.
        kinds, row = np.unique(every.reshape(-1, 3), axis=0, return_inverse=True)
        model = _fit(_one_hot(features, size + 2), classes)
        predicted = model.predict(_one_hot(kinds, size + 2))[row].reshape(every.shape[:2])
    # Predictions after the end do not count.
    ended = np.cumsum(predicted == size, axis=1) > 0
    outputs = np.where(ended, NO_LETTER, predicted)
    targets = np.pad(tested.targets, ((0, 0), (0, 1)), constant_values=NO_LETTER)
    return np.asarray((outputs == targets).all(axis=1))


def _around(strings: TokenStrings, places: int) -> Int64[np.ndarray, "string place 3"]:
    """The token at each place, and those before and after it; beyond the input, its ends."""
    size = strings.num_letters
    letters = np.where(strings.letters == NO_LETTER, size, strings.letters.astype(np.int64))
    more = max(0, places + 1 - letters.shape[1])
    letters = np.pad(letters, ((0, 0), (0, more)), constant_values=size)
    before = np.pad(letters, ((0, 0), (1, 0)), constant_values=size + 1)
    parts = [before[:, :places], letters[:, :places], letters[:, 1 : places + 1]]
    return np.stack(parts, axis=2)


def _one_hot(tokens: Int64[np.ndarray, "row 3"], size: int) -> Any:
    from scipy.sparse import csr_matrix

    rows, width = tokens.shape
    columns = (tokens + size * np.arange(width)).ravel()
    places = (np.repeat(np.arange(rows), width), columns)
    return csr_matrix((np.ones(rows * width), places), shape=(rows, width * size))


_LINEAR = ("counts", "counts_trees", "bigrams", "trigrams")

_READ: Mapping[str, Callable[[_Reading], np.ndarray]] = {
    "length": lambda reading: reading.majority_by(lambda strings: strings.lengths),
    "ends": lambda reading: reading.majority_by(_ends),
    "counts": lambda reading: reading.modeled(reading.counts),
    "counts_trees": _Reading.trees,
    "bigrams": lambda reading: reading.grams(2),
    "trigrams": lambda reading: reading.grams(3),
    "identity": _identity,
    "most_frequent": _most_frequent,
    "aligned": _write_aligned,
}
