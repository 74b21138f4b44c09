"""Some of the strings that models are trained and tested on, by how they were drawn."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from seqcls.cancellation import check
from seqcls.problem import Problem
from seqcls.results import DRAWN
from seqcls.sampling.streams import stream
from sweeps.api.strings import kinds_of, make_smaller, write_rows


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
    texts = problem.kind.texts(problem.task, examples.targets[:1])
    unknown = "negative" if texts is None else ""
    kinds = np.array([kind or unknown for kind in kinds_of(problem, examples)])
    of_each = []
    for kind in ("", *DRAWN, "negative"):
        check()
        rows = np.flatnonzero(kinds == kind)
        if len(rows):
            by_length = np.bincount(lengths[rows] - span.start, minlength=len(span)).tolist()
            first = write_rows(problem, examples.take(rows[:number]), in_notation=True)
            of_each.append(StringsOfKind(kind, by_length, first))
    return FirstStrings(of_each, span, len(examples), small != sampler)
