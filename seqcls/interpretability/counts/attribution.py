"""The stream read out: what each part of the network adds to a string's logit.

The classifier is linear and reads the stream itself, without a norm before it. So the logit is
exactly the sum of what the classifier makes of each addend: the embedding of `CLS`, each head's
output and each feed-forward unit's output. Norms stand only before attention and before the
feed-forward; they are inside the addends, as they act on this string, and nothing is frozen.
"""

from dataclasses import dataclass

import numpy as np

from seqcls.interpretability.counts.activations import activations
from seqcls.interpretability.counts.network import Network


@dataclass(frozen=True)
class Step:
    """One part's share of the logit."""

    name: str
    """`embedding`, `head 0` and on, or `feed-forward`."""
    adds: float
    logit: float
    """What the classifier would say if it read `CLS` here."""


@dataclass(frozen=True)
class LogitAttribution:
    """A string's logit, step by step."""

    string: str
    steps: tuple[Step, ...]
    units: tuple[float, ...]
    """What each feed-forward unit adds; they sum to the step `feed-forward`."""
    logit: float


def direct_logit_attribution(network: Network, string: str) -> LogitAttribution:
    """The steps from the embedding of `CLS` to the logit, whose `adds` sum to it.

    Raises:
        InvalidStringError: the string is not of this alphabet.
    """
    states = activations(network, [string])
    output = network.weights["blocks.0.feed_forward.output.weight"]
    units = states.feed_forward_activation[0, 0] * (network.classifier @ output)
    heads = states.head_output[0, :, 0] @ network.classifier
    adds = {
        "embedding": float(network.embedding[0] @ network.classifier),
        **{f"head {head}": float(value) for head, value in enumerate(heads)},
        "feed-forward": float(units.sum()),
    }
    logits = np.cumsum(list(adds.values())).tolist()
    return LogitAttribution(
        string=string,
        steps=tuple(
            Step(name, value, logit)
            for (name, value), logit in zip(adds.items(), logits, strict=True)
        ),
        units=tuple(units.tolist()),
        logit=float(states.logit[0]),
    )
