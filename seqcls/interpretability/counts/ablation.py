"""Parts of a network ablated, and what is left of it: exactly, on the test set.

A zero-ablated head adds nothing; a mean-ablated one adds its mean over the test set, whatever the
string. A zero-ablated hidden dimension is zero in the residual stream throughout.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int64

from seqcls.evaluation import DistinctStrings, distinct_test_strings, evaluation_of
from seqcls.interpretability.counts.network import Network
from seqcls.results import Evaluation


@dataclass(frozen=True)
class Ablation:
    """What is done to a network."""

    zeroed: frozenset[int] = frozenset()
    """Zero-ablated heads."""
    averaged: frozenset[int] = frozenset()
    """Mean-ablated heads."""
    zeroed_dimensions: frozenset[int] = frozenset()


@dataclass(frozen=True, eq=False)
class AblationResult:
    """What an ablation makes of the test set; one entry a distinct test string."""

    ablation: Ablation
    evaluation: Evaluation
    """Confusion, accuracy by length and misclassified strings afterwards."""
    before: Evaluation
    counts: Int64[np.ndarray, "string letter"]
    occurrences: Int64[np.ndarray, " string"]
    positive: Bool[np.ndarray, " string"]
    logits: Float[np.ndarray, " string"]
    logits_before: Float[np.ndarray, " string"]


def ablate(network: Network, ablation: Ablation) -> AblationResult:
    """The network after an ablation, tested as it was before."""
    test = distinct_test_strings(network.problem.test)
    before = network.logits(test.strings.counts)
    after = logits_after(network, test, ablation)
    return AblationResult(
        ablation=ablation,
        evaluation=evaluation_of(network.problem, test, after),
        before=evaluation_of(network.problem, test, before),
        counts=test.strings.counts,
        occurrences=test.occurrences,
        positive=test.labels,
        logits=after,
        logits_before=before,
    )


def logits_after(
    network: Network, test: DistinctStrings, ablation: Ablation
) -> Float[np.ndarray, " string"]:
    """Logits of the test strings after an ablation, in float64."""
    ablated = without_dimensions(network, ablation.zeroed_dimensions)
    occurrences = ablated.occurrences(test.strings.counts)
    states = np.tile(ablated.embedding[0], (len(occurrences), 1))
    for head in range(ablated.config.num_attention_heads):
        if head in ablation.averaged:
            output = ablated.head_output(head, occurrences)
            states += np.average(output, axis=0, weights=test.occurrences)
        elif head not in ablation.zeroed:
            states += ablated.head_output(head, occurrences)
    return ablated.logits_after_attention(states)


def without_dimensions(network: Network, dimensions: frozenset[int]) -> Network:
    """The network whose stream is zero in these hidden dimensions.

    A norm still divides by the whole hidden size.
    """
    if not dimensions:
        return network
    off = sorted(dimensions)
    weights = {name: value.copy() for name, value in network.weights.items()}
    weights["embedding.weight"][:, off] = 0
    for name in ("attention.output", "feed_forward.output"):
        weights[f"blocks.0.{name}.weight"][off] = 0
    return Network(network.problem, weights)
