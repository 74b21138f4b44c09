"""Parts of a network switched off, and what is left of it: exactly, on the test set.

A head that is *off* adds nothing (zero ablation); one that is *frozen* adds its mean over the test
set whatever the string. A hidden dimension that is off is zero in the stream throughout.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int64

from seqcls.data import sampler_of
from seqcls.evaluation import DistinctStrings, distinct_test_strings, evaluation_of
from seqcls.inside.network import Network
from seqcls.results import Evaluation


@dataclass(frozen=True)
class Surgery:
    """What is done to a network."""

    off: frozenset[int] = frozenset()
    """Heads."""
    frozen: frozenset[int] = frozenset()
    """Heads."""
    dimensions_off: frozenset[int] = frozenset()


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a surgery makes of the test set; one entry a distinct test string."""

    surgery: Surgery
    evaluation: Evaluation
    """Confusion, accuracy by length and misclassified strings afterwards."""
    before: Evaluation
    counts: Int64[np.ndarray, "string letter"]
    occurrences: Int64[np.ndarray, " string"]
    positive: Bool[np.ndarray, " string"]
    logits: Float[np.ndarray, " string"]
    logits_before: Float[np.ndarray, " string"]


def operate(network: Network, surgery: Surgery) -> Outcome:
    """The network after a surgery, tested as it was before."""
    test = distinct_test_strings(sampler_of(network.config, "test"))
    before = network.logits(test.strings.counts)
    after = logits_after(network, test, surgery)
    return Outcome(
        surgery=surgery,
        evaluation=evaluation_of(network.config, test, after),
        before=evaluation_of(network.config, test, before),
        counts=test.strings.counts,
        occurrences=test.occurrences,
        positive=test.labels,
        logits=after,
        logits_before=before,
    )


def logits_after(
    network: Network, test: DistinctStrings, surgery: Surgery
) -> Float[np.ndarray, " string"]:
    """Logits of the test strings after a surgery, in float64."""
    operated = without_dimensions(network, surgery.dimensions_off)
    occurrences = operated.occurrences(test.strings.counts)
    states = np.tile(operated.embedding[0], (len(occurrences), 1))
    for head in range(operated.config.num_attention_heads):
        if head in surgery.frozen:
            output = operated.head_output(head, occurrences)
            states += np.average(output, axis=0, weights=test.occurrences)
        elif head not in surgery.off:
            states += operated.head_output(head, occurrences)
    return operated.logits_after_attention(states)


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
    return Network(network.config, weights)
