"""What training and testing make of a run: plain values that need no PyTorch to be read."""

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
    """The losses of one epoch of one member, as `TrainedMember` has them: sums, in nats."""

    member: int
    """Its place in the group, counted from 0."""
    epoch: int
    """Counted from 1."""
    train_loss: float
    validation_loss: float


@dataclass
class TrainedMember:
    """What training made of one run. Losses are sums over an epoch's strings, in nats."""

    config: RunConfig
    model_seed: int
    train_losses: list[float] = field(default_factory=list)
    validation_losses: list[float] = field(default_factory=list)
    best_epoch: int | None = None
    weights: dict[int, Weights] = field(default_factory=dict)
    """By epoch, counted from 1: the best one's, or every epoch's."""
    failure: str | None = None
    """Why there is no model, where training diverged."""
    train_seconds: float = 0.0
    """Its share of the group's time: each epoch's, divided by the members still training."""

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
    """Numbers of test strings; negative is the label 0, false is misclassified."""

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
    """In the precision of the model. For tasks that are no languages the margins of their kind: of
    transductions the log-probability of the target."""

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True, eq=False)
class OutputResults:
    """What an evaluation of a transduction says beside which strings are wrong."""

    right_length_given: Int64[np.ndarray, " length"]
    """Test strings of each length whose output is the target where its length is imposed."""
    edits: Int64[np.ndarray, " length"]
    """Edit distances between outputs and targets, summed over the test strings of each length."""
    target_tokens: Int64[np.ndarray, " length"]
    """Tokens of their targets; edits over these is the token error rate."""
    texts: Sequence[str]
    """The output of each misclassified string, in the order of their numbers."""
    first_wrong: Int64[np.ndarray, " error"]
    """Where output and target part: tokens before are the same."""
    error_kinds: Sequence[ErrorKind]


RangeSource = Literal["test", "validation"]
"""Where the strings of trained lengths are from that a model is judged by."""

ProofOutcome = Literal["proved", "refuted", "not decided"]
"""What comes of trying to prove a model right on every string."""


@dataclass(frozen=True)
class RangeCounts:
    """How often a model is right on strings of trained lengths, and on longer ones.

    Strings count as often as they occur; those shorter than any that training draws are in neither.
    """

    tested_within: int
    """Strings of trained lengths."""
    wrong_within: int
    within_from: RangeSource
    """The test, or validation where the test holds too few."""
    tested_beyond: int
    """Test strings longer than any that training draws."""
    wrong_beyond: int


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One model's results on its test set."""

    lengths: Int64[np.ndarray, " length"]
    """Those of which there are test strings, ascending."""
    tested_by_length: Int64[np.ndarray, " length"]
    """Test strings of each length, each as often as it occurs."""
    wrong_by_length: Int64[np.ndarray, " length"]
    """Those of them that were misclassified."""
    cells: Int64[np.ndarray, "length 4"] | None
    """The confusion at each length, in the order of `Confusion`; None where there is none."""
    errors: StringErrors
    solved_length: int
    """The greatest L such that no test string of length <= L is misclassified.

    Without any error it is the longest length that the test set may hold.
    """
    test_set: str
    """The digest of the test set's strings: by it numbers mean the same wherever they are read."""
    outputs: OutputResults | None = None
    """The outputs of a transduction; None for all other kinds."""
    ranges: RangeCounts | None = None
    """Counts on trained and on longer lengths; None of models trained elsewhere."""

    @cached_property
    def tested(self) -> int:
        """Test strings, each as often as it occurs."""
        return int(self.tested_by_length.sum())

    @cached_property
    def wrong(self) -> int:
        """Those that were misclassified."""
        return int(self.wrong_by_length.sum())

    @property
    def has_confusion(self) -> bool:
        """Whether the task is a language, so that errors are false positives or negatives."""
        return self.cells is not None

    @cached_property
    def confusion(self) -> Confusion:
        """The confusion of all lengths; asked only where there is one."""
        assert self.cells is not None
        return Confusion(*self.cells.sum(axis=0).tolist())

    @property
    def by_length(self) -> dict[int, Confusion]:
        """The confusion at each length; asked only where there is one."""
        assert self.cells is not None
        pairs = zip(self.lengths.tolist(), self.cells.tolist(), strict=True)
        return {length: Confusion(*cells) for length, cells in pairs}


Unit = Literal["multiset", "string"]
"""What an exhaustive check counts once: all strings with the same letter counts, or each string."""


@dataclass(frozen=True)
class Verdict:
    """What a model makes of every string up to a length."""

    max_length: int
    unit: Unit
    inputs: int
    """How many multisets, or strings, were tried."""
    false_positives: int
    false_negatives: int
    shortest_error: str | None
    """The first of the shortest misclassified strings, as text."""


@dataclass(frozen=True)
class Cause:
    """What some of a failing run's errors have in common."""

    mechanism: str
    """One that a counterfactual has shown, or how the model behaves where none can be shown."""
    head: int | None
    tokens: str
    """The tokens that it is about, or a rule in words; may be empty."""
    share: float
    """The share of the errors that were looked at, in (0, 1]."""
    strings: int
    """How many of the errors that were looked at."""
    agreement: float | None = None
    """On what share of all test strings a rule says what the model says."""
