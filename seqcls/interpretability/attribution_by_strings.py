"""Direct logit attribution: what every part of a Transformer adds to the logit.

The logit is linear in the residual stream at the readout place. With the norms after each sum
(`norm_placement = "post"`), or one after the last block (`final_norm`), what is added is scaled by
every later norm, which is held at the scale that it has for this string, so the parts still sum to
the logit exactly.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from seqcls.errors import ConfigError
from seqcls.interpretability.attribution import LogitStep, summed
from seqcls.interpretability.readable_model import ids_of, plain_model
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.models.base import read_states
from seqcls.models.blocks import Attention, Block, ResidualStream
from seqcls.models.forms import form
from seqcls.models.layers import Linear

Hidden = Float[Tensor, "1 position hidden"]


@dataclass(frozen=True)
class _StreamPart:
    name: str
    block: int | None
    head: int | None
    states: Hidden


def has_residual_stream(model: TrainedModel) -> bool:
    """Whether a model's logit is a sum of what its parts add to a residual stream."""
    one_logit = model.problem.network.num_outputs == 1
    return one_logit and form(plain_model(model), "residual_stream") is not None


def logit_steps(model: TrainedModel, letters: Sequence[int]) -> tuple[LogitStep, ...]:
    """What each part adds to the logit of a string, in the order of the computation.

    The parts sum to the logit, in double precision.

    Raises:
        ConfigError: the model has no residual stream.
    """
    network = plain_model(model)
    if model.problem.network.num_outputs > 1:
        raise ConfigError("the head gives several numbers, and steps are of one logit")
    if (stream := form(network, "residual_stream")) is None:
        raise ConfigError(
            f"architecture={model.config.architecture!r} has no residual stream to attribute the "
            "logit to; look at its units along the string instead"
        )
    ids = ids_of(model, [letters])
    head: Linear = stream().head
    with torch.no_grad():
        parts = _parts(stream(), network.activations(ids))
        reads = [(x, read_states(network.config, x.states, ids)) for x in parts]
        adds = [(x.name, x.block, x.head, float((y @ head.weight.T).squeeze())) for x, y in reads]
        if head.bias is not None:
            adds.append(("bias", None, None, float(head.bias)))
    return summed(adds)


def _parts(stream: ResidualStream, states: dict[str, Tensor]) -> list[_StreamPart]:
    """What each part adds to the stream behind the last block."""
    parts = [_StreamPart("embedding", None, None, states["embedding"])]
    for number, block in enumerate(stream.blocks):
        inside = f"blocks.{number}."
        parts += _heads(block.attention, states[f"{inside}attention.mixed_value"], number)
        if not block.norms_first:
            before = states[f"{inside}after_attention"]
            parts = _normalized(parts, block.attention_norm, before, number)
        parts += _feed_forward(block, states[f"{inside}feed_forward.activation"], number)
        if not block.norms_first:
            before = states[f"{inside}after_feed_forward"]
            parts = _normalized(parts, block.feed_forward_norm, before, number)
    if stream.final_norm is not None:
        parts = _normalized(parts, stream.final_norm, states[stream.last], None)
    return parts


def _heads(attention: Attention, mixed: Tensor, block: int) -> list[_StreamPart]:
    heads, size = attention.heads
    weight = attention.output.weight.unflatten(1, (heads, size))
    parts = [
        _StreamPart("head", block, head, mixed[:, head] @ weight[:, head].T)
        for head in range(heads)
    ]
    if attention.output.bias is not None:
        shape = (1, mixed.shape[2], len(attention.output.bias))
        parts.append(_StreamPart("bias", block, None, attention.output.bias.expand(shape)))
    return parts


def _feed_forward(block: Block, active: Tensor, number: int) -> list[_StreamPart]:
    output = block.feed_forward.output
    parts = [_StreamPart("feed-forward", number, None, active @ output.weight.T)]
    if output.bias is not None:
        shape = (*active.shape[:2], len(output.bias))
        parts.append(_StreamPart("bias", number, None, output.bias.expand(shape)))
    return parts


def _normalized(
    parts: list[_StreamPart], norm: nn.Module, before: Hidden, block: int | None
) -> list[_StreamPart]:
    """The parts after a norm whose scale is what it is for their sum."""
    if isinstance(norm, nn.Identity):
        return parts
    if isinstance(norm, nn.LayerNorm):
        variance = before.var(dim=2, unbiased=False, keepdim=True)
        factor = norm.weight / (variance + norm.eps).sqrt()
        scaled = [
            _StreamPart(
                x.name, x.block, x.head, (x.states - x.states.mean(2, keepdim=True)) * factor
            )
            for x in parts
        ]
        if norm.bias is None:
            return scaled
        return [*scaled, _StreamPart("norm", block, None, norm.bias.expand(before.shape))]
    assert isinstance(norm, nn.RMSNorm)
    mean_square = before.square().mean(dim=2, keepdim=True)
    factor = norm.weight / (mean_square + (norm.eps or 0.0)).sqrt()
    return [_StreamPart(x.name, x.block, x.head, x.states * factor) for x in parts]
