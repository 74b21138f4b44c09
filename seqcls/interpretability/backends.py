"""Backends: what is changed inside a trained model, in float64, with outputs teacher forced.

A backend has the test strings that a change is scored by, the parts that can be changed, and the
model's answers without some of them. `Counts` computes models of letter counts exactly, for the
whole test set and without PyTorch; any other model is run on a sample (`backends_by_strings`).

A part that is ablated by *zero* adds nothing; by *mean*, it has its mean over the test strings,
whatever the string.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int64

from seqcls.evaluation import DistinctStrings, distinct_test_strings
from seqcls.interpretability.network import Network
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.models.parts import Part, PartKind

AblationMethod = Literal["zero", "mean"]
Ablation = Mapping[Part, AblationMethod]
"""Which parts are ablated, and how."""


@dataclass(frozen=True, eq=False)
class Scores:
    """What a changed model makes of a backend's test strings."""

    margins: Float[np.ndarray, " string"]
    """The one number of each string that a change moves: the logit, or the margin."""
    wrong: Bool[np.ndarray, " string"]
    loss: float
    """Mean over the strings, in nats; no logit is scaled."""


class Backend(ABC):
    """A trained model that can be changed inside, and the test strings that this is scored by."""

    max_pruned: float = math.inf
    """Parts that greedy pruning begins with at most: it tries all that are left at every step."""

    def __init__(self, model: TrainedModel) -> None:
        self.model = model

    @cached_property
    @abstractmethod
    def tested(self) -> DistinctStrings:
        """The test strings, each as often as it counts."""

    @abstractmethod
    def parts(self, kinds: Sequence[PartKind] = ()) -> tuple[Part, ...]:
        """The parts of these kinds that can be ablated; those to try one by one if none is named.

        Raises:
            ConfigError: an architecture from outside that names none.
        """

    @abstractmethod
    def outputs(self, ablation: Ablation) -> Float[np.ndarray, "string *output"]:
        """What the head gives for the test strings without these parts."""

    @abstractmethod
    def loss(self, outputs: Float[np.ndarray, "string *output"]) -> float:
        """The mean over the test strings, in nats; no logit is scaled."""

    def score(self, ablation: Ablation) -> Scores:
        """The answers to the test strings without these parts."""
        kind, targets = self.model.problem.kind, self.tested.targets
        outputs = self.outputs(ablation)
        margins, wrong = kind.margins(outputs, targets), kind.are_wrong(outputs, targets)
        return Scores(margins, wrong, self.loss(outputs))

    @cached_property
    def before(self) -> Float[np.ndarray, " string"]:
        """The logits, or margins, of the whole model."""
        return self.score({}).margins

    @cached_property
    def lengths(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Those that there are, the place of each string's among them, and how many have it."""
        lengths, rows = np.unique(self.tested.strings.lengths, return_inverse=True)
        return lengths, rows, np.bincount(rows, self.tested.occurrences).astype(np.int64)


class Counts(Backend):
    """A network of letter counts, exactly; its test strings, each as often as it occurs.

    A hidden dimension that is ablated is zero in the residual stream throughout.
    """

    def __init__(self, network: Network) -> None:
        super().__init__(network)
        self._network = network

    @cached_property
    def tested(self) -> DistinctStrings:
        """All test strings."""
        return distinct_test_strings(self._network.problem.test)

    def parts(self, kinds: Sequence[PartKind] = ()) -> tuple[Part, ...]:
        """The heads and the feed-forward; if named, its units, and dimensions, by zero alone."""
        config = self._network.config
        sizes: dict[PartKind, int] = {
            "head": config.num_attention_heads,
            "feed-forward": min(config.feed_forward_size, 1),
            "unit": config.feed_forward_size,
            "dimension": config.hidden_size,
        }
        chosen = kinds or ("head", "feed-forward")
        return tuple(Part(0, kind, number) for kind in chosen for number in range(sizes[kind]))

    def outputs(self, ablation: Ablation) -> Float[np.ndarray, " string"]:
        return self.logits(self.tested.strings.counts, ablation)

    def logits(
        self, counts: Int64[np.ndarray, "string letter"], ablation: Ablation
    ) -> Float[np.ndarray, " string"]:
        """Logits of any strings after an ablation.

        Means are those over the test strings of what a part adds where the answer is read.
        """
        network = without_dimensions(self._network, ablation)
        states = self._after_attention(network, counts, ablation)
        if not any(part.kind in ("feed-forward", "unit") for part in ablation):
            return network.logits_after_attention(states)
        return np.asarray((states + self._feed(network, states, ablation)) @ network.classifier)

    def _after_attention(
        self, network: Network, counts: Int64[np.ndarray, "string letter"], ablation: Ablation
    ) -> Float[np.ndarray, "string hidden"]:
        """The states of `CLS` after attention, without the heads that are ablated."""
        occurrences = network.occurrences(counts)
        states = np.tile(network.embedding[0], (len(counts), 1))
        for head, part in enumerate(self.parts(["head"])):
            how = ablation.get(part)
            if how == "mean":
                of_test = network.occurrences(self.tested.strings.counts)
                states += self._mean(network.head_output(head, of_test))
            elif how is None:
                states += network.head_output(head, occurrences)
        return states

    def _feed(
        self, network: Network, states: Float[np.ndarray, "string hidden"], ablation: Ablation
    ) -> Float[np.ndarray, "string hidden"]:
        """What the feed-forward adds, without it or some of its units."""
        before = self._after_attention(network, self.tested.strings.counts, {})
        of_test, activation = network.feed_forward(before), network.feed_forward(states).activation
        for part, how in ablation.items():
            if part.kind == "feed-forward":
                added = self._mean(of_test.output) if how == "mean" else np.zeros_like(before[0])
                return np.tile(added, (len(states), 1))
            if part.kind == "unit":
                unit = of_test.activation[:, part.number]
                activation[:, part.number] = self._mean(unit) if how == "mean" else 0.0
        return np.asarray(activation @ network.weights["blocks.0.feed_forward.output.weight"].T)

    def _mean(self, of_test: Float[np.ndarray, "string *state"]) -> np.ndarray:
        return np.asarray(np.average(of_test, axis=0, weights=self.tested.occurrences))

    def loss(self, outputs: Float[np.ndarray, " string"]) -> float:
        """Mean binary cross entropy, in nats."""
        signed = np.where(self.tested.targets, -outputs, outputs)
        return float(np.average(np.logaddexp(0, signed), weights=self.tested.occurrences))


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
