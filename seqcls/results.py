"""Results of training and testing a run: plain values that can be read without PyTorch."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int64

from seqcls.config import RunConfig
from seqcls.kinds.base import DRAWN as DRAWN
from seqcls.kinds.base import ErrorKind as ErrorKind

Weights = dict[str, np.ndarray]
"""One model's parameters by name."""


class EpochLosses(NamedTuple):
    """The losses of one epoch of one member: sums over strings, in nats."""

    member: int
    """Index in the group, from 0."""
    epoch: int
    """Number of the epoch, from 1."""
    train_loss: float
    validation_loss: float


@dataclass
class TrainedMember:
    """The result of training one run. Losses are sums over an epoch's strings, in nats."""

    config: RunConfig
    model_seed: int
    train_losses: list[float] = field(default_factory=list)
    validation_losses: list[float] = field(default_factory=list)
    best_epoch: int | None = None
    weights: dict[int, Weights] = field(default_factory=dict)
    """Weights by epoch, from 1: those of the best epoch, or of every epoch."""
    failure: str | None = None
    """The reason for having no model, if training diverged."""
    train_seconds: float = 0.0
    """Its share of the group's time: each epoch's time divided by the members still training."""

    @property
    def epochs(self) -> int:
        return len(self.train_losses)

    @property
    def kept_weights(self) -> Weights:
        """The weights of the best epoch."""
        if self.best_epoch is None:
            raise ValueError(f"model_seed={self.model_seed} has no model: {self.failure}")
        return self.weights[self.best_epoch]


class Confusion(NamedTuple):
    """Counts of test strings; negative is the label 0, false is misclassified."""

    tn: int
    fp: int
    fn: int
    tp: int

    @property
    def tested(self) -> int:
        return sum(self)

    @property
    def wrong(self) -> int:
        return self.fp + self.fn


@dataclass(frozen=True, eq=False)
class StringErrors:
    """Misclassified test strings, each once, however often it occurs in the test set."""

    numbers: Int64[np.ndarray, " error"]
    """Numbers of the test set's strings, ascending."""
    logits: Float[np.ndarray, " error"]
    """Logits in the precision of the model; for tasks other than languages the margins of their
    kind, for transductions the log-probability of the target."""

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True, eq=False)
class OutputResults:
    """Results of a transduction beside the wrong strings."""

    right_length_given: Int64[np.ndarray, " length"]
    """Test strings of each length whose output is the target if it gets the target's length."""
    edits: Int64[np.ndarray, " length"]
    """Edit distances between outputs and targets, summed over the test strings of each length."""
    target_tokens: Int64[np.ndarray, " length"]
    """Tokens of the targets of each length; the token error rate is edits divided by these."""
    texts: Sequence[str]
    """The output of each misclassified string, in the order of their numbers."""
    first_wrong: Int64[np.ndarray, " error"]
    """Number of tokens before the first that differs."""
    error_kinds: Sequence[ErrorKind]


RangeSource = Literal["test", "validation"]
"""Source of the strings of trained lengths on which a model is evaluated."""

ProofOutcome = Literal["proved", "refuted", "not decided"]
"""Outcome of an attempt to prove a model right on every string."""


@dataclass(frozen=True)
class RangeCounts:
    """Counts of tested and wrong strings of trained lengths, and of longer ones.

    Strings count as often as they occur; those shorter than any that training draws are in neither.
    """

    tested_within: int
    """Number of strings of trained lengths."""
    wrong_within: int
    within_from: RangeSource
    """The test, or validation if the test holds too few."""
    tested_beyond: int
    """Number of test strings longer than any that training draws."""
    wrong_beyond: int


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One model's results on its test set."""

    lengths: Int64[np.ndarray, " length"]
    """Lengths of test strings, ascending."""
    tested_by_length: Int64[np.ndarray, " length"]
    """Number of test strings of each length, each as often as it occurs."""
    wrong_by_length: Int64[np.ndarray, " length"]
    """Number of these that were misclassified."""
    cells: Int64[np.ndarray, "length 4"] | None
    """The confusion at each length, in the order of `Confusion`; None if the task is no language.
    """
    errors: StringErrors
    solved_length: int
    """The greatest L such that no test string of length <= L is misclassified.

    Without any error it is the longest length that the test set may hold.
    """
    test_set: str
    """The digest of the test set, which gives strings' numbers their meaning."""
    outputs: OutputResults | None = None
    """The outputs of a transduction; None for all other kinds."""
    ranges: RangeCounts | None = None
    """Counts on trained and on longer lengths; None for models trained elsewhere."""

    @cached_property
    def tested(self) -> int:
        """Number of test strings, each as often as it occurs."""
        return int(self.tested_by_length.sum())

    @cached_property
    def wrong(self) -> int:
        """Number of misclassified test strings."""
        return int(self.wrong_by_length.sum())

    @cached_property
    def confusion(self) -> Confusion:
        """The confusion of all lengths, for languages alone."""
        assert self.cells is not None
        return Confusion(*self.cells.sum(axis=0).tolist())

    @property
    def by_length(self) -> dict[int, Confusion]:
        """The confusion at each length, for languages alone."""
        assert self.cells is not None
        pairs = zip(self.lengths.tolist(), self.cells.tolist(), strict=True)
        return {length: Confusion(*cells) for length, cells in pairs}


Unit = Literal["multiset", "string"]
"""Unit of an exhaustive check: all strings with the same letter counts, or each string."""


@dataclass(frozen=True)
class Verdict:
    """A model's errors on all strings up to a length."""

    max_length: int
    unit: Unit
    inputs: int
    """Number of multisets, or strings, that were tried."""
    false_positives: int
    false_negatives: int
    shortest_error: str | None
    """The first of the shortest misclassified strings, as text."""


@dataclass(frozen=True)
class Cause:
    """A common cause of some of a failing run's errors."""

    mechanism: str
    """A mechanism shown by a counterfactual, or a description of the model's behavior."""
    head: int | None
    tokens: str
    """The tokens involved, or a rule in words; may be empty."""
    share: float
    """Share of the inspected errors, in (0, 1]."""
    strings: int
    """Number of inspected errors with this cause."""
    agreement: float | None = None
    """Share of all test strings on which a rule agrees with the model."""
