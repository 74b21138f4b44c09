"""The strings on which a cause of errors is tried: those of the test, and all short ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Int64

from seqcls.evaluation import distinct_test_strings, readable_strings
from seqcls.interpretability.enumeration import CHUNK, affordable_length, all_strings
from seqcls.interpretability.model.trained_model import Letters, TrainedModel
from seqcls.interpretability.multisets import multisets_differ, multisets_of, num_multisets
from seqcls.sampling.streams import stream
from seqcls.tasks.base import PartlyKnown
from seqcls.tokens.strings import NO_LETTER, TokenStrings

MAX_SHORT = 2**16
"""So many short strings are tried at most: of two letters, all up to length 15."""

MAX_TRAINED = 10_000
"""Strings of the training that are tried at most."""


@dataclass(frozen=True, eq=False)
class Tried:
    """Strings and which of them a model misclassifies."""

    strings: TokenStrings
    times: Int64[np.ndarray, " string"]
    """How often each counts."""
    labels: Bool[np.ndarray, " string"]
    wrong: Bool[np.ndarray, " string"]

    @property
    def predicted(self) -> Bool[np.ndarray, " string"]:
        return np.asarray(self.labels ^ self.wrong)


def tested(model: TrainedModel, wrong: Sequence[str]) -> tuple[Tried, list[str]]:
    """The distinct test strings that the model was tested on, and their texts.

    Args:
        model: the model.
        wrong: all of them that it misclassifies.
    """
    test = distinct_test_strings(model.problem.test)
    rows = np.flatnonzero(readable_strings(model.problem, test.strings))
    texts, failing = [test.texts[row] for row in rows], set(wrong)
    fails = np.array([text in failing for text in texts], dtype=bool)
    return Tried(test.strings.take(rows), test.occurrences[rows], test.labels[rows], fails), texts


def short_strings(model: TrainedModel) -> Tried:
    """All strings no longer than those of the training; at most `MAX_SHORT`, the shortest.

    Where letter counts decide what is right and what the model answers, each multiset once.
    """
    return _asked(model, _all_short(model))


def shortest_short_error(model: TrainedModel, *tried: Tried) -> Letters | None:
    """The shortest misclassified string that is no longer than those of the training, if any is.

    Args:
        model: the model.
        tried: where to look besides the strings of the training's first epoch.
    """
    sampler = model.problem.train
    trained = stream(sampler).epoch(0).strings.take(slice(MAX_TRAINED))
    strings: list[Letters] = []
    for sample in (*tried, _asked(model, trained)):
        wrong = np.flatnonzero(sample.wrong & (sample.strings.lengths <= sampler.lengths[-1]))
        if len(wrong):
            # The first of equals: that of all short strings is the first in alphabetical order.
            row = wrong[int(sample.strings.lengths[wrong].argmin())]
            (letters,) = sample.strings.take(np.array([row])).letters.tolist()
            strings.append(tuple(x for x in letters if x != NO_LETTER))
    return min(strings, key=len, default=None)


def _asked(model: TrainedModel, strings: TokenStrings) -> Tried:
    starts = range(0, len(strings), CHUNK)
    answers = [model.ask(strings.take(slice(start, start + CHUNK))) for start in starts]
    known = np.flatnonzero(np.concatenate([answered.known for answered in answers]))
    labels, wrong = (
        np.concatenate([getattr(answered, name) for answered in answers])[known]
        for name in ("targets", "wrong")
    )
    return Tried(strings.take(known), np.ones(len(known), dtype=np.int64), labels, wrong)


def _all_short(model: TrainedModel) -> TokenStrings:
    problem, letters = model.problem, model.num_letters
    longest = problem.train.lengths[-1]
    if isinstance(problem.task, PartlyKnown):
        strings = problem.task.known_strings()
        shortest = np.argsort(strings.lengths, kind="stable")[:MAX_SHORT]
        return strings.take(shortest[strings.lengths[shortest] <= longest])
    if multisets_differ(problem) is None and num_multisets(letters, longest) < MAX_SHORT:
        return TokenStrings.of_counts(letters, multisets_of(problem, longest))
    # One string is tried in any case: no model is asked about none.
    length = max(affordable_length(letters, MAX_SHORT, longest), 1)
    return _spelled_out(letters, length, problem.tries_empty)


@lru_cache(maxsize=4)
def _spelled_out(num_letters: int, length: int, has_empty: bool) -> TokenStrings:
    parts = list(all_strings(num_letters, length, empty=has_empty))
    letters = [
        np.pad(x.letters, ((0, 0), (0, length - x.letters.shape[1])), constant_values=NO_LETTER)
        for x in parts
    ]
    lengths = np.concatenate([part.lengths for part in parts])
    return TokenStrings.of_letters(num_letters, np.concatenate(letters), lengths)
