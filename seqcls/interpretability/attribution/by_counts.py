"""The stream read out: what each part of the network adds to a string's logit.

The classifier is linear and reads the stream itself, without a norm before it. So the logit is
exactly the sum of what the classifier makes of each addend: the embedding of `CLS`, each head's
output and each feed-forward unit's output. Norms stand only before attention and before the
feed-forward; they are inside the addends, as they act on this string, and nothing is frozen.
"""

from dataclasses import dataclass

from seqcls.interpretability.attribution.steps import Step, summed
from seqcls.interpretability.model.network import Network
from seqcls.interpretability.states.by_counts import activations


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
    adds = [
        ("embedding", None, None, float(network.embedding[0] @ network.classifier)),
        *(("head", None, head, float(value)) for head, value in enumerate(heads)),
        ("feed-forward", None, None, float(units.sum())),
    ]
    return LogitAttribution(string, summed(adds), tuple(units.tolist()), float(states.logit[0]))
