"""Direct logit attribution: a logit as the sum of what each part of a model adds to it."""

from collections.abc import Iterable
from dataclasses import dataclass

from seqcls.interpretability.network import Network
from seqcls.interpretability.states_by_counts import activations


@dataclass(frozen=True)
class LogitStep:
    """One part of a model and what it adds to the logit."""

    part: str
    """`embedding`, `head`, `feed-forward`, `bias` or `norm`."""
    block: int | None
    """None where there is one."""
    head: int | None
    adds: float
    logit: float
    """What the logit would be if the classifier read the stream after this part."""

    @property
    def text(self) -> str:
        """What the step is called, such as `block 0: head 1`."""
        part = self.part if self.head is None else f"head {self.head}"
        return part if self.block is None else f"block {self.block}: {part}"


def summed(parts: Iterable[tuple[str, int | None, int | None, float]]) -> tuple[LogitStep, ...]:
    """Steps of part, block, head and what is added, in the order of the computation."""
    steps = []
    total = 0.0
    for part, block, head, adds in parts:
        total += adds
        steps.append(LogitStep(part, block, head, adds, total))
    return tuple(steps)


# The stream read out: what each part of the network adds to a string's logit.
#
# The classifier is linear and reads the stream itself, without a norm before it. So the logit is
# exactly the sum of what the classifier makes of each addend: the embedding of `CLS`, each head's
# output and each feed-forward unit's output. Norms stand only before attention and before the
# feed-forward; they are inside the addends, as they act on this string, and nothing is frozen.


@dataclass(frozen=True)
class LogitAttribution:
    """A string's logit, step by step."""

    string: str
    steps: tuple[LogitStep, ...]
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
