"""Some of the strings that models are trained and tested on, by how they were drawn."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from seqcls.cancellation import check
from seqcls.problem import Problem
from seqcls.results import DRAWN
from seqcls.sampling import Sampler
from seqcls.sampling.streams import AnsweredAgain, stream
from sweeps.api.strings import kinds_of, write_rows

MOST_TOKENS = 2**21
"""Tokens of an epoch that is drawn as it is to be looked at; a larger one takes long to draw."""


@dataclass(frozen=True)
class StringsOfKind:
    """Strings that were drawn in one way."""

    kind: str
    """Positive, or how the negative ones were drawn; negative where that is not known. Empty where
    the strings have targets."""
    by_length: Sequence[int]
    """How many of each length there are, the shortest of all kinds first."""
    first: pd.DataFrame
    """The first of them, as `draw` gives them, in the notation."""


@dataclass(frozen=True)
class FirstStrings:
    """The first strings of one part, by how they were drawn."""

    kinds: Sequence[StringsOfKind]
    lengths: range
    """From the shortest to the longest of all of them."""
    number: int
    """How many were looked at."""
    drawn_apart: bool
    """Whether an epoch is too large to be looked at: these are then drawn as it is, but fewer, and
    none is kept out because it was trained on."""


def first_strings(problem: Problem, part: str, number: int = 10) -> FirstStrings:
    """Some strings of each kind, and how many there are of each length."""
    sampler = problem.sampler(part)
    small = make_smaller(sampler)
    examples = stream(small).epoch(0)
    lengths = examples.strings.lengths
    span = range(int(lengths.min()), int(lengths.max()) + 1)
    # One target tells what kind of answers these are; spelling out all would take long.
    texts = problem.kind.texts(problem.task, examples.targets[:1])
    unknown = "negative" if texts is None else ""
    kinds = np.array([kind or unknown for kind in kinds_of(problem, examples)])
    of_each = []
    # The empty kind is that of strings with targets, which have no other.
    for kind in ("", *DRAWN, "negative"):
        check()
        rows = np.flatnonzero(kinds == kind)
        if len(rows):
            by_length = np.bincount(lengths[rows] - span.start, minlength=len(span)).tolist()
            first = write_rows(problem, examples.take(rows[:number]), in_notation=True)
            of_each.append(StringsOfKind(kind, by_length, first))
    return FirstStrings(of_each, span, len(examples), small != sampler)


def make_smaller(sampler: Sampler) -> Sampler:
    """A sampler of fewer strings, where drawing an epoch takes long and none was drawn before."""
    if isinstance(sampler, AnsweredAgain):
        return replace(sampler, sampler=make_smaller(sampler.sampler))
    longest = max(1, sampler.lengths[-1])
    is_small = sampler.epoch_size * longest <= MOST_TOKENS
    of_lengths: Any = sampler
    knows_trained = getattr(of_lengths, "trained", None) is not None
    if (is_small and not knows_trained) or stream(sampler).is_cached(0):
        return sampler
    # Keeping out trained strings would take drawing all of the training first.
    changes = {"trained": None} if knows_trained else {}
    if not is_small and hasattr(of_lengths, "size"):
        changes["size"] = max(MOST_TOKENS // longest, of_lengths.batch_size)
    smaller: Sampler = replace(of_lengths, **changes)
    return smaller
