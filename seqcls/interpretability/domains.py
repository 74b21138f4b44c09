"""Sets of strings on which models are evaluated: all of a length, all multisets, those tested."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal

import numpy as np
from jaxtyping import Bool, Int64, UInt8

from seqcls.config import REPORT_TASK
from seqcls.counts import counts_suffice
from seqcls.errors import ConfigError
from seqcls.evaluation import DistinctStrings, distinct_test_strings, readable
from seqcls.interpretability.mechanisms import spread_evenly
from seqcls.interpretability.trained_model import Letters, TrainedModel
from seqcls.problem import Problem
from seqcls.sampling.streams import stream
from seqcls.strings.token_strings import TokenStrings, join_strings
from seqcls.tasks import CountTask
from seqcls.tasks.places import AtEveryPlace

# All strings over an alphabet, the shortest first.


MAX_STRINGS = 200_000
"""Strings that are tried at most where all are: seconds of a small model's time."""


def affordable_length(num_letters: int, limit: int = MAX_STRINGS, longest: int = 64) -> int:
    """The greatest length, up to `longest`, such that no more than `limit` strings are as short."""
    length, strings = 0, num_letters
    while length < longest and strings <= limit:
        length += 1
        strings += num_letters ** (length + 1)
    return length


def strings_of_length(num_letters: int, length: int) -> TokenStrings:
    """All strings of one length in the order of the alphabet."""
    # A string's number in base `num_letters` has its letters as digits.
    powers = num_letters ** np.arange(length - 1, -1, -1, dtype=np.int64)
    letters: UInt8[np.ndarray, "string position"]
    letters = (np.arange(num_letters**length)[:, None] // powers % num_letters).astype(np.uint8)
    return TokenStrings.of_letters(num_letters, letters)


def inputs_by_length(
    problem: Problem, longest: int, max_strings: int = MAX_STRINGS, max_inputs: int = MAX_STRINGS
) -> Iterator[tuple[int, TokenStrings]]:
    """All inputs of a task up to the greatest length at which there are not too many.

    Of a file they are those in it, of any length.

    Args:
        max_strings: strings that are held against the task at most, inputs or not.
        max_inputs: inputs at most; those of a length all or not at all.

    Yields:
        Each length, the shortest first, with its inputs in the order of the alphabet; maybe none.
    """
    if (known := problem.known_strings) is not None:
        for length in np.unique(known.lengths).tolist():
            yield length, known.take(np.flatnonzero(known.lengths == length))
        return
    letters, task, total = len(problem.task.alphabet), problem.task, 0
    # Such a task lists its inputs itself, which are few among all strings.
    lists = isinstance(task, AtEveryPlace) and not problem.kind.every_string
    longest = longest if lists else affordable_length(letters, max_strings, longest)
    for length in range(0 if problem.tries_empty else 1, longest + 1):
        if isinstance(task, AtEveryPlace) and lists:
            strings = task.inputs_of_length(length, max_inputs - total)
        else:
            strings = strings_of_length(letters, length)
            if not problem.kind.every_string:
                strings = strings.take(np.flatnonzero(problem.questions(strings).has_target))
        total += len(strings)
        if total > max_inputs:
            return
        yield length, strings


# Models for which analyses by letter counts are exact: checked by these, commands and pages.

Needs = Literal["states", "labels", "one block"]
"""The assumptions of an analysis; each includes all before it.

`states`: the order of tokens has no part in the model's states. `labels`: nor in the labels. `one
block`: a string is positive if each of some letters occurs, and the model is the report's, of whose
one block bounds are proved.
"""

_REPORT_BLOCK: tuple[tuple[str, object, str], ...] = (
    ("num_blocks", 1, "one block"),
    ("readout", "first", "a readout at CLS"),
    ("attention_scale", "sqrt", "scores that do not depend on the length"),
    ("norm_placement", "pre", "norms before attention and feed-forward"),
    ("activation", "gelu", "GELU"),
    ("biases", False, "no biases"),
    ("final_norm", False, "no norm after the last block"),
)


def obstacle(problem: Problem, needs: Needs = "one block") -> str | None:
    """The reason why an analysis by letter counts would be wrong of a model; None where it holds.

    Args:
        needs: the assumptions of the analysis.
    """
    network, task = problem.network, problem.config.task
    reason = problem.lacks("labels") or counts_suffice(network, training=False)
    for field, value, words in _REPORT_BLOCK if needs == "one block" else ():
        if reason is None and getattr(network, field) != value:
            reason = f"{field}={getattr(network, field)!r}: this analysis is of models with {words}"
    if reason is not None or needs == "states":
        return reason
    # Analyses of the model's states alone hold whatever the labels are.
    if problem.unknown_labels is not None:
        return problem.unknown_labels
    if not isinstance(problem.task, CountTask):
        return f"in task={task!r} the order of tokens decides, not letter counts"
    if needs != "labels" and task != REPORT_TASK:
        return f"the analysis is of required letters, and task={task!r} requires none"
    return None


def refuse(problem: Problem, needs: Needs = "one block") -> None:
    """Refuses a model that the analysis does not hold for.

    Raises:
        ConfigError: with the reason of `obstacle`.
    """
    if (reason := obstacle(problem, needs)) is not None:
        raise ConfigError(f"this analysis does not hold here: {reason}")


# All multisets of letters, each representing all strings with its letter counts.


def num_multisets(num_letters: int, max_length: int) -> int:
    """The number of multisets of 1 to `max_length` letters."""
    # One more kind of letter fills up what is missing to the length; the empty string is left out.
    return math.comb(num_letters + max_length, num_letters) - 1


def all_multisets(
    num_letters: int, max_length: int, *, empty: bool = False
) -> Int64[np.ndarray, "multiset letter"]:
    """The letter counts of every multiset of 1 to `max_length` letters, and of none if `empty`."""
    counts = np.zeros((1, 0), dtype=np.int64)
    left = np.array([max_length])
    for _ in range(num_letters):
        # Each multiset so far is extended by every number of the next letter that still fits.
        choices = left + 1
        starts = np.repeat(np.cumsum(choices) - choices, choices)
        number = np.arange(len(starts)) - starts
        counts = np.column_stack([np.repeat(counts, choices, axis=0), number])
        left = np.repeat(left, choices) - number
    return counts[0 if empty else 1 :]


def multisets_of(
    problem: Problem, max_length: int | None = None
) -> Int64[np.ndarray, "multiset letter"]:
    """The multisets that represent all strings of a problem's language, up to a length.

    Args:
        max_length: the longest test string's if not given.
    """
    length = problem.test.lengths[-1] if max_length is None else max_length
    return all_multisets(len(problem.task.alphabet), length, empty=problem.tries_empty)


# The strings on which a cause of errors is tried: those of the test, and all short ones.

MAX_SHORT = 2**16
"""So many short strings are tried at most: of two letters, all up to length 15."""

MAX_TRAINED = 10_000
"""Strings of the training that are tried at most."""


@dataclass(frozen=True, eq=False)
class TriedStrings:
    """Strings and which of them a model misclassifies."""

    strings: TokenStrings
    times: Int64[np.ndarray, " string"]
    """The multiplicity of each string."""
    labels: Bool[np.ndarray, " string"]
    wrong: Bool[np.ndarray, " string"]

    @property
    def predicted(self) -> Bool[np.ndarray, " string"]:
        # There are two answers, so a wrong one is the other label.
        return np.asarray(self.labels ^ self.wrong)


def tested_strings(problem: Problem) -> DistinctStrings:
    """The distinct test strings that a problem's models have places for."""
    test = distinct_test_strings(problem.test)
    fits = readable(problem, test)
    return test if fits.all() else test.take(np.flatnonzero(fits))


def sampled_strings(problem: Problem, sample: int) -> DistinctStrings:
    """At most `sample` of the tested strings, the shortest first, spread evenly over lengths."""
    test = tested_strings(problem)
    rows = np.argsort(test.strings.lengths, kind="stable")
    return test.take(rows[spread_evenly(len(rows), sample)])


def ask_tested(model: TrainedModel, wrong: Sequence[str]) -> tuple[TriedStrings, list[str]]:
    """The strings that the model was tested on, and their texts."""
    test, failing = tested_strings(model.problem), set(wrong)
    fails = np.array([text in failing for text in test.texts], dtype=bool)
    return TriedStrings(test.strings, test.occurrences, test.labels, fails), test.texts


def short_strings(model: TrainedModel) -> TriedStrings:
    """All strings no longer than those of the training; at most `MAX_SHORT`, the shortest.

    Where letter counts decide both labels and answers, each multiset once.
    """
    problem, letters = model.problem, model.num_letters
    # Training on the empty string alone would leave no string to try.
    longest = max(problem.train.lengths[-1], 1)
    if obstacle(problem, "labels") is None and num_multisets(letters, longest) < MAX_SHORT:
        return _ask(model, TokenStrings.of_counts(letters, multisets_of(problem, longest)))
    lengths = takewhile(lambda x: x[0] <= longest, inputs_by_length(problem, longest, MAX_SHORT))
    return _ask(model, join_strings([x for _, x in lengths if len(x)]).take(slice(MAX_SHORT)))


def shortest_short_error(model: TrainedModel, *tried: TriedStrings) -> Letters | None:
    """The shortest misclassified string that is no longer than those of the training, if any is.

    Args:
        tried: where to look besides the strings of the training's first epoch.
    """
    sampler = model.problem.longest_train
    # Of long trained lengths only what training draws can be tried, not all strings.
    trained = stream(sampler).epoch(0).strings.take(slice(MAX_TRAINED))
    found = (
        shortest_of(x.strings, x.wrong & (x.strings.lengths <= sampler.lengths[-1]))
        for x in (*tried, _ask(model, trained))
    )
    return min((x for x in found if x is not None), key=len, default=None)


def shortest_of(strings: TokenStrings, chosen: Bool[np.ndarray, " string"]) -> Letters | None:
    """The shortest of the chosen strings, of equals the first; None where none is chosen."""
    rows = np.flatnonzero(chosen)
    if not len(rows):
        return None
    one = strings.take(rows[[int(strings.lengths[rows].argmin())]])
    return tuple(one.letters[0, : one.lengths[0]].tolist())


def _ask(model: TrainedModel, strings: TokenStrings) -> TriedStrings:
    answers = model.ask(strings)
    known = np.flatnonzero(answers.known)
    times = np.ones(len(known), dtype=np.int64)
    return TriedStrings(strings.take(known), times, answers.targets[known], answers.wrong[known])
