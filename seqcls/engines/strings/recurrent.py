"""Recurrent networks' logits by PyTorch's own kernels, a layer at once."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from seqcls.engines.strings.batches import Batch
from seqcls.models.base import Outputs
from seqcls.models.heads import read_states
from seqcls.models.recurrent import Cell, GRUCell, LSTMCell, Recurrent


def recurrent_logits(model: Recurrent, batch: Batch) -> Outputs:
    """Computes `Recurrent.forward` without dropout."""
    # One place after another is how the kernels go through memory.
    ids = batch.ids.T
    table: Tensor | None = None
    if len(model.embedding.weight) >= batch.config.hidden_size:
        states = model.embedding(ids)
    else:
        # Every token's product with the first layer's input weight is computed once and looked up.
        table = model.embedding.weight
        states = functional.one_hot(ids.long(), len(table)).to(table.dtype)
    for layer in model.layers:
        states = _layer(layer, states, table)
        table = None
    if batch.config.head != "string":
        return model.head(states.transpose(0, 1)[batch.is_asked])
    read = read_states(batch.config, states.transpose(0, 1), batch.ids)
    return model.head(read)


def _layer(
    layer: Cell, states: Float[Tensor, "position string input"], table: Tensor | None
) -> Float[Tensor, "position string hidden"]:
    start = states.new_zeros(1, states.shape[1], layer.state_weight.shape[1])
    if not len(states):
        return start[:0]
    weights: list[Tensor] = list(layer.parameters())
    if table is not None:
        weights[0] = layer.input_weight @ table.T
    settings = (layer.input_bias is not None, 1, 0.0, torch.is_grad_enabled(), False, False)
    if isinstance(layer, LSTMCell):
        return torch.lstm(states, (start, start), weights, *settings)[0]
    kernel = torch.gru if isinstance(layer, GRUCell) else torch.rnn_tanh
    return kernel(states, start, weights, *settings)[0]
