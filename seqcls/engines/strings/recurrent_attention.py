"""The outputs of a recurrent encoder and decoder on a shorter way: nothing on it has a name."""

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from seqcls.engines.strings.batches import Batch
from seqcls.models.base import Outputs
from seqcls.models.heads import Hidden
from seqcls.models.recurrent import Cell
from seqcls.models.two_streams.recurrent_attention import RecurrentAttention
from seqcls.models.two_streams.two_streams import Streams, split
from seqcls.tokens.tokenizer import PAD

Kept = tuple[Tensor, Tensor]
"""States and cells, of shape (layer, string, hidden)."""


def recurrent_attention_logits(model: RecurrentAttention, batch: Batch) -> Outputs:
    """Computes `RecurrentAttention.forward` of the outputs' tokens, one by one, without dropout."""
    streams = split(batch.config, batch.ids)
    encoded, kept = _encoded(model, streams)
    embedded = model.embedding(streams.outputs)
    if model.additive is None:
        states = _lstm(list(model.decoder), embedded.transpose(0, 1), kept).transpose(0, 1)
    else:
        states = _decoded(model, embedded, encoded, streams, kept)
    return model.head(states[streams.written])


def _encoded(model: RecurrentAttention, streams: Streams) -> tuple[Hidden, Kept]:
    """The encoder's last states of every token, and what each layer keeps at the end."""
    read = pack_padded_sequence(
        model.embedding(streams.inputs),
        streams.input_lengths.cpu(),
        batch_first=True,
        enforce_sorted=False,
    )
    layers = list(model.encoder)
    start = read.data.new_zeros(len(layers), len(streams.inputs), model.config.hidden_size)
    settings = (layers[0].input_bias is not None, len(layers), 0.0, False, False)
    states, last, cells = torch.lstm(
        read.data, read.batch_sizes, (start, start), _weights(layers), *settings
    )
    assert read.unsorted_indices is not None
    states_after, _ = pad_packed_sequence(
        PackedSequence(states, read.batch_sizes, read.sorted_indices, read.unsorted_indices),
        batch_first=True,
    )
    rows = read.unsorted_indices
    return states_after, (last.index_select(1, rows), cells.index_select(1, rows))


def _decoded(
    model: RecurrentAttention, embedded: Hidden, encoded: Hidden, streams: Streams, kept: Kept
) -> Hidden:
    """The decoder's last states, with a context before each."""
    additive = model.additive
    assert additive is not None
    keys = additive.key(encoded)
    lowest = torch.finfo(keys.dtype).min
    mask = torch.zeros_like(keys[..., 0]).masked_fill(streams.inputs == PAD, lowest)
    first, *others = model.decoder
    hidden = model.config.hidden_size
    from_token, from_context = first.input_weight.split(hidden, dim=1)
    given = torch.nn.functional.linear(embedded, from_token, first.input_bias).unbind(1)
    states, cells = list(kept[0].unbind(0)), list(kept[1].unbind(0))
    written = []
    for gates in given:
        mixed = (additive.query(states[-1]).unsqueeze(1) + keys).tanh()
        weights = (additive.score(mixed).squeeze(2) + mask).softmax(dim=1)
        context = torch.bmm(weights.unsqueeze(1), encoded).squeeze(1)
        step = first.step(torch.addmm(gates, context, from_context.T), states[0], cells[0])
        states[0], cells[0] = step.state, step.cell
        for number, layer in enumerate(others, start=1):
            step = layer.step(layer.from_input(step.state), states[number], cells[number])
            states[number], cells[number] = step.state, step.cell
        written.append(step.state)
    return torch.stack(written, dim=1)


def _lstm(layers: list[Cell], embedded: Tensor, kept: Kept) -> Tensor:
    """The last layer's states, of embeddings of shape (position, string, hidden)."""
    settings = (layers[0].input_bias is not None, len(layers), 0.0, False, False, False)
    return torch.lstm(embedded, kept, _weights(layers), *settings)[0]


def _weights(layers: list[Cell]) -> list[Tensor]:
    return [weight for layer in layers for weight in layer.parameters()]
