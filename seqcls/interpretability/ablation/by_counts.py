"""Heads and hidden dimensions ablated, exactly, judged by the whole test set.

A hidden dimension that is ablated is zero in the residual stream throughout.
"""

import numpy as np
from jaxtyping import Float, Int64

from seqcls.evaluation import distinct_test_strings
from seqcls.interpretability.ablation.judge import Ablation, Judge
from seqcls.interpretability.model.network import Network
from seqcls.interpretability.model.trained_model import TrainedModel
from seqcls.models.parts import Part


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
