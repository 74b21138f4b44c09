"""Direct logit attribution: a logit as the sum of what each part of a model adds to it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from seqcls.errors import ConfigError
from seqcls.interpretability.network import Network
from seqcls.interpretability.states_by_counts import activations
from seqcls.interpretability.trained_model import TrainedModel


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


def sum_steps(parts: Iterable[tuple[str, int | None, int | None, float]]) -> tuple[LogitStep, ...]:
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
    return LogitAttribution(string, sum_steps(adds), tuple(units.tolist()), float(states.logit[0]))


# The same of any Transformer, by running the string.
#
# The logit is linear in the residual stream at the readout place. With the norms after each sum
# (`norm_placement = "post"`), or one after the last block (`final_norm`), what is added is scaled
# by every later norm, which is held at the scale that it has for this string, so the parts still
# sum to the logit exactly.


def has_residual_stream(model: TrainedModel) -> bool:
    """Whether a model's logit is a sum of what its parts add to a residual stream."""
    # Imported where it is used: PyTorch takes a second or two to load.
    from seqcls.interpretability.readable_model import plain_model
    from seqcls.models.forms import form

    network = model.problem.network
    one_logit = network.num_outputs == 1 and network.head == "string"
    return one_logit and form(plain_model(model), "residual_stream") is not None


def logit_steps(model: TrainedModel, letters: Sequence[int]) -> tuple[LogitStep, ...]:
    """What each part adds to the logit of a string, in the order of the computation.

    The parts sum to the logit, in double precision.

    Raises:
        ConfigError: the model has no residual stream.
    """
    # Imported where it is used: PyTorch takes a second or two to load.
    import torch

    from seqcls.interpretability.readable_model import ids_of, plain_model
    from seqcls.models.base import read_states
    from seqcls.models.forms import form

    network = plain_model(model)
    if model.problem.network.num_outputs > 1 or model.problem.at_places:
        raise ConfigError("the head gives several numbers, and steps are of one logit")
    if (stream := form(network, "residual_stream")) is None:
        raise ConfigError(
            f"architecture={model.config.architecture!r} has no residual stream to attribute the "
            "logit to; look at its units along the string instead"
        )
    ids = ids_of(model, [letters])
    head = stream().head
    with torch.no_grad():
        parts = stream().parts(network.activations(ids))
        reads = [(x, read_states(network.config, x.states, ids)) for x in parts]
        adds = [(x.name, x.block, x.head, float((y @ head.weight.T).squeeze())) for x, y in reads]
        if head.bias is not None:
            adds.append(("bias", None, None, float(head.bias)))
    return sum_steps(adds)
