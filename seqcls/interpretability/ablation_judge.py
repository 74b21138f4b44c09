"""What is left of a model without some of its parts, judged by strings.

A part that is ablated by *zero* adds nothing; by *mean*, it has its mean over the test strings,
whatever the string.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float, Int64

from seqcls.cancellation import check
from seqcls.evaluation import distinct_test_strings
from seqcls.interpretability.network import Network
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.kinds import Kind
from seqcls.models.parts import Part
from seqcls.results import Confusion
from seqcls.strings.token_strings import TokenStrings

AblationMethod = Literal["zero", "mean"]
Ablation = Mapping[Part, AblationMethod]
"""Which parts are ablated, and how."""


@dataclass(frozen=True, eq=False)
class Ablated:
    """What is left of a model without some of its parts."""

    parts: tuple[Part, ...]
    errors: int
    accuracy: float
    """In [0, 1]."""
    confusion: Confusion | None
    """The confusion, of a language."""
    loss: float
    """Mean over the strings, in nats."""
    logit_change: float
    """Mean |change of the logit|; of a model that writes, of the target's log-probability."""
    lengths: Int64[np.ndarray, " length"]
    """Those of the strings, ascending."""
    strings: Int64[np.ndarray, " length"]
    right: Int64[np.ndarray, " length"]
    """How many strings of each length there are, and how many are answered rightly."""

    def record(self) -> dict[str, Any]:
        """What programs read of it."""
        return {
            "without": [part.text for part in self.parts],
            "misclassified": self.errors,
            "accuracy": self.accuracy,
            "loss": self.loss,
            "logit_change": self.logit_change,
            "lengths": self.lengths.tolist(),
            "strings": self.strings.tolist(),
            "right": self.right.tolist(),
        }


class Judge(ABC):
    """A model's strings, by which what is left of it is judged."""

    max_pruned: float = math.inf
    """Parts that greedy pruning begins with at most: it tries all that are left at every step."""

    def __init__(
        self,
        kind: Kind,
        strings: TokenStrings,
        targets: np.ndarray,
        occurrences: Int64[np.ndarray, " string"],
    ) -> None:
        """Takes distinct strings, what is right of each, and how often each counts."""
        self.kind = kind
        self.strings = strings
        self.targets = targets
        self.occurrences = occurrences

    @property
    @abstractmethod
    def parts(self) -> tuple[Part, ...]:
        """Those to ablate one by one, where none are named."""

    @abstractmethod
    def outputs(self, ablation: Ablation) -> Float[np.ndarray, "string *output"]:
        """What the head gives without these parts."""

    @abstractmethod
    def loss(self, outputs: Float[np.ndarray, "string *output"]) -> float:
        """The mean over the strings, in nats; no logit is scaled."""

    @cached_property
    def before(self) -> Float[np.ndarray, " string"]:
        """The logits, or margins, of the whole model."""
        return self.margins(self.outputs({}))

    def margins(self, outputs: Float[np.ndarray, "row *output"]) -> Float[np.ndarray, " string"]:
        """The one number of each string that ablation moves, by what the head gives for it."""
        return self.kind.margins(outputs, self.targets)

    def are_wrong(self, outputs: Float[np.ndarray, "row *output"]) -> Bool[np.ndarray, " string"]:
        """Which strings are misclassified."""
        return self.kind.are_wrong(outputs, self.targets)

    def without(self, ablation: Ablation) -> Ablated:
        """What is left without these parts."""
        check()
        outputs, times = self.outputs(ablation), self.occurrences
        are_wrong = self.are_wrong(outputs)
        wrong = np.flatnonzero(are_wrong)
        change = np.abs(self.margins(outputs) - self.before)
        lengths, rows, strings = self._lengths
        wrong_by_length = np.bincount(rows[wrong], times[wrong], len(lengths)).astype(np.int64)
        return Ablated(
            parts=tuple(ablation),
            errors=int(wrong_by_length.sum()),
            accuracy=float((strings - wrong_by_length).sum() / strings.sum()),
            confusion=self._confusion(are_wrong),
            loss=self.loss(outputs),
            logit_change=float(np.average(change, weights=times)),
            lengths=lengths,
            strings=strings,
            right=strings - wrong_by_length,
        )

    def _confusion(self, are_wrong: Bool[np.ndarray, " string"]) -> Confusion | None:
        if not self.kind.cells:
            return None
        cell = 2 * self.targets.astype(np.int64) + (self.targets ^ are_wrong)
        cells = np.bincount(cell, self.occurrences, 4)
        return Confusion(*cells.astype(np.int64).tolist())

    @cached_property
    def _lengths(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Those that there are, the place of each string's among them, and how many have it."""
        lengths, rows = np.unique(self.strings.lengths, return_inverse=True)
        return lengths, rows, np.bincount(rows, self.occurrences).astype(np.int64)


# Heads and hidden dimensions ablated, exactly, judged by the whole test set.
#
# A hidden dimension that is ablated is zero in the residual stream throughout.


def heads_of(model: TrainedModel) -> tuple[Part, ...]:
    """The heads of a model of one block."""
    return tuple(Part(0, "head", head) for head in range(model.config.num_attention_heads))


def dimensions_of(model: TrainedModel) -> tuple[Part, ...]:
    """The hidden dimensions of its stream, which can be ablated by zero."""
    return tuple(Part(0, "dimension", number) for number in range(model.config.hidden_size))


class CountedJudge(Judge):
    """A network, and its test strings, each as often as it occurs."""

    def __init__(self, network: Network) -> None:
        test = distinct_test_strings(network.problem.test)
        super().__init__(network.problem.kind, test.strings, test.targets, test.occurrences)
        self._network = network

    @property
    def parts(self) -> tuple[Part, ...]:
        """The heads; `dimensions_of` may be ablated too."""
        return heads_of(self._network)

    def outputs(self, ablation: Ablation) -> Float[np.ndarray, " string"]:
        """Logits of the test strings after an ablation, in float64."""
        return self.logits(self.strings.counts, ablation)

    def logits(
        self, counts: Int64[np.ndarray, "string letter"], ablation: Ablation
    ) -> Float[np.ndarray, " string"]:
        """Logits of any strings after an ablation; means are those over the test strings."""
        ablated = without_dimensions(self._network, ablation)
        occurrences = ablated.occurrences(counts)
        states = np.tile(ablated.embedding[0], (len(counts), 1))
        for head, part in enumerate(heads_of(ablated)):
            how = ablation.get(part)
            if how == "mean":
                output = ablated.head_output(head, ablated.occurrences(self.strings.counts))
                states += np.average(output, axis=0, weights=self.occurrences)
            elif how is None:
                states += ablated.head_output(head, occurrences)
        return ablated.logits_after_attention(states)

    def loss(self, outputs: Float[np.ndarray, " string"]) -> float:
        """Mean binary cross entropy, in nats."""
        signed = np.where(self.targets, -outputs, outputs)
        return float(np.average(np.logaddexp(0, signed), weights=self.occurrences))


def without_dimensions(network: Network, ablation: Ablation) -> Network:
    """The network whose stream is zero in the hidden dimensions that are ablated.

    A norm still divides by the whole hidden size.
    """
    off = sorted(part.number for part in ablation if part.kind == "dimension")
    if not off:
        return network
    weights = {name: value.copy() for name, value in network.weights.items()}
    weights["embedding.weight"][:, off] = 0
    for name in ("attention.output", "feed_forward.output"):
        weights[f"blocks.0.{name}.weight"][off] = 0
    return Network(network.problem, weights)
