"""Recurrent networks' logits by PyTorch's own kernels, a layer at once."""

import torch
from jaxtyping import Float
from torch import Tensor

from seqcls.engines.strings.batches import Batch
from seqcls.models.base import Outputs
from seqcls.models.heads import read_states
from seqcls.models.recurrent import Cell, GRUCell, LSTMCell, Recurrent


def recurrent_logits(model: Recurrent, batch: Batch) -> Outputs:
    """As `Recurrent.forward`, without dropout."""
    # One place after another is how the kernels go through memory.
    states = model.embedding(batch.ids.T)
    for layer in model.layers:
        states = _layer(layer, states)
    read = read_states(batch.config, states.transpose(0, 1), batch.ids)
    return model.head(read)


def _layer(
    layer: Cell, states: Float[Tensor, "position string hidden"]
) -> Float[Tensor, "position string hidden"]:
    if not len(states):
        return states
    weights: list[Tensor] = list(layer.parameters())
    start = states.new_zeros(1, states.shape[1], states.shape[2])
    settings = (layer.input_bias is not None, 1, 0.0, torch.is_grad_enabled(), False, False)
    if isinstance(layer, LSTMCell):
        return torch.lstm(states, (start, start), weights, *settings)[0]
    kernel = torch.gru if isinstance(layer, GRUCell) else torch.rnn_tanh
    return kernel(states, start, weights, *settings)[0]
