"""How a group's logits are computed: from letter counts, by `vmap`, or one member after another."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from seqcls.config import NetworkConfig
from seqcls.counts.forward import group_logits, log_counts
from seqcls.engines.pytorch.batches import Batch, testing_pieces, training_batches
from seqcls.engines.pytorch.groups import FlatGroup, Losses, StackedGroup
from seqcls.engines.pytorch.transformer import encoder_decoder_logits, transformer_logits
from seqcls.models.base import Classifier, Hidden, Outputs, read_states
from seqcls.models.encoder_decoder import EncoderDecoder
from seqcls.models.initialization import make_model
from seqcls.models.positions.places import TrainingPlaces
from seqcls.models.recurrent import GRU, LSTM, RNN, Cell, GRUCell, LSTMCell, Recurrent
from seqcls.models.recurrent_attention import RecurrentAttention
from seqcls.models.transformer import Transformer
from seqcls.models.two_streams import Streams, split
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import PAD

# All members of a group at once, from letter counts.


STATES_AT_ONCE = 4096
"""Token types of strings in a piece: keeps a group's widest state within tens of megabytes."""


class ByCounts:
    """A `seqcls.engines.pytorch.groups.Computation` where letter counts suffice."""

    def __init__(
        self, config: NetworkConfig, group: StackedGroup, batch_size: int, device: torch.device
    ) -> None:
        self._config = config
        self._group = group
        self._batch_size = batch_size
        self._device = device

    def batches(self, strings: TokenStrings) -> Iterator[Tensor]:
        """An epoch's batches, in order, as logarithms of counts."""
        yield from self._encoded(strings).split(self._batch_size)

    def backward(self, batch: Tensor, losses: Losses) -> Float[Tensor, " member"]:
        """Each member's mean loss, its gradients left with the group's parameters."""
        parameters = self._group.parameters
        means = losses(group_logits(self._config, parameters, batch)).mean(dim=1)
        for value in parameters.values():
            value.grad = None
        means.sum().backward()
        return means.detach()

    def pieces(self, strings: TokenStrings) -> Iterator[tuple[Int64[np.ndarray, " row"], Tensor]]:
        """All of the strings in pieces that fit in memory, with their rows."""
        encoded = self._encoded(strings)
        # With one block all strings share the states of their token types.
        types = 1 if self._config.num_blocks == 1 else encoded.shape[1] + 1
        size = max(STATES_AT_ONCE // types, 1)
        rows = torch.arange(len(encoded)).split(size)
        for piece_rows, piece in zip(rows, encoded.split(size), strict=True):
            yield piece_rows.numpy(), piece

    @torch.no_grad()
    def logits(self, piece: Tensor) -> Float[Tensor, "member string"]:
        """Every member's logits; dropout is off."""
        return group_logits(self._config, self._group.parameters, piece)

    def keep(self, rows: Sequence[int]) -> None:
        """Holds nothing of any member but what the group holds."""

    def _encoded(self, strings: TokenStrings) -> Float[Tensor, "string token_type"]:
        return log_counts(self._config, strings.counts).to(self._device)


# All members of a group at once through one plain model, by `vmap`: for a GPU.


class _Shortest(nn.Module):
    """The model's logits on the shortest way to them that `vmap` can go."""

    def __init__(self, config: NetworkConfig, device: torch.device) -> None:
        super().__init__()
        self.model = make_model(config).to(device, getattr(torch, config.precision))

    def forward(self, batch: Batch) -> Outputs:
        if type(self.model) is Transformer:
            return transformer_logits(self.model, batch)
        if type(self.model) is EncoderDecoder:
            return encoder_decoder_logits(self.model, batch)
        return batch.asked(self.model(batch.ids, batch.places))


class Stacked:
    """A `seqcls.engines.pytorch.groups.Computation` for any model without dropout in training."""

    def __init__(
        self,
        group: StackedGroup,
        config: NetworkConfig,
        batch_size: int,
        device: torch.device,
        seed: int = 0,
    ) -> None:
        self._config = config
        self._group = group
        self._batch_size = batch_size
        self._device = device
        self._places = TrainingPlaces(config, seed)
        self._model = _Shortest(config, device).eval()

    def batches(self, strings: TokenStrings) -> Iterator[Batch]:
        """An epoch's batches, in order."""
        return training_batches(self._config, strings, self._batch_size, self._places, self._device)

    def backward(self, batch: Batch, losses: Losses) -> Float[Tensor, " member"]:
        """Each member's mean loss, its gradients left with the group's parameters."""
        means = losses(self._all(batch)).sum(dim=1) / losses.units
        for value in self._group.parameters.values():
            value.grad = None
        means.sum().backward()
        return means.detach()

    def pieces(self, strings: TokenStrings) -> Iterator[tuple[Int64[np.ndarray, " row"], Batch]]:
        """All of the strings in pieces that fit in memory, with their rows."""
        return testing_pieces(self._config, strings, self._device)

    @torch.no_grad()
    def logits(self, piece: Batch) -> Float[Tensor, "member string *output"]:
        """Every member's logits; dropout is off."""
        # One after another: so many members' states would not fit beside each other.
        parameters = self._group.parameters
        rows = [
            {name: value[row] for name, value in parameters.items()}
            for row in range(len(self._group))
        ]
        return torch.stack([self._one(weights, piece) for weights in rows])

    def keep(self, rows: Sequence[int]) -> None:
        """Holds nothing of any member but what the group holds."""

    def _all(self, batch: Batch) -> Float[Tensor, "member string *output"]:
        def one(weights: Mapping[str, Tensor]) -> Tensor:
            return self._one(weights, batch)

        logits: Tensor = vmap(one)(self._group.parameters)
        return logits

    def _one(self, weights: Mapping[str, Tensor], batch: Batch) -> Outputs:
        named = {f"model.{name}": value for name, value in weights.items()}
        logits: Tensor = functional_call(self._model, named, (batch,))
        return logits


# Recurrent networks' logits by PyTorch's own kernels, a layer at once.


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


# The outputs of a recurrent encoder and decoder on a shorter way: nothing on it has a name.

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


# One member after another through a plain model of its own, which shares the group's memory.


def plain_logits(model: Classifier, batch: Batch) -> Outputs:
    """The model's logits on the shortest way to them; dropout is off."""
    # A subclass may compute something else.
    if type(model) is Transformer:
        return transformer_logits(model, batch)
    if type(model) is EncoderDecoder:
        return encoder_decoder_logits(model, batch)
    if type(model) is RecurrentAttention and not model.config.picture:
        return recurrent_attention_logits(model, batch)
    if type(model) in (RNN, GRU, LSTM) and isinstance(model, Recurrent):
        return recurrent_logits(model, batch)
    return batch.asked(model(batch.ids, batch.places))


class OneByOne:
    """A `seqcls.engines.pytorch.groups.Computation` for any model.

    Each member has a stream of dropout of its own, which begins at the seed of training as in the
    report's program, so it drops the same whoever trains beside it.
    """

    def __init__(
        self,
        flat: FlatGroup,
        config: NetworkConfig,
        batch_size: int,
        device: torch.device,
        seed: int = 0,
    ) -> None:
        self._config = config
        self._flat = flat
        self._batch_size = batch_size
        self._device = device
        self._places = TrainingPlaces(config, seed)
        dtype = getattr(torch, config.precision)
        self.models = [make_model(config).to(device, dtype) for _ in range(len(flat))]
        for row, model in enumerate(self.models):
            model.use_dropout_generator(torch.Generator(device).manual_seed(seed))
            flat.bind(row, model)

    def batches(self, strings: TokenStrings) -> Iterator[Batch]:
        """An epoch's batches, in order."""
        batches = training_batches(
            self._config, strings, self._batch_size, self._places, self._device
        )
        if self._config.dropout_rate == 0:
            return batches
        # What dropout draws depends on the width: as in the report's program that of the epoch.
        width = strings.lengths.max(initial=0) + (self._config.readout != "mean")
        return (_widened(batch, int(width)) for batch in batches)

    def backward(self, batch: Batch, losses: Losses) -> Float[Tensor, " member"]:
        """Each member's mean loss, its gradients left with the group's parameters."""
        means = []
        self._flat.forget_gradients()
        for model in self.models:
            if self._config.dropout_rate > 0:
                logits = batch.asked(model.train()(batch.ids, batch.places))
            else:
                logits = plain_logits(model, batch)
            mean = losses(logits).sum() / losses.units
            mean.backward()
            means.append(mean.detach())
        return torch.stack(means)

    def pieces(self, strings: TokenStrings) -> Iterator[tuple[Int64[np.ndarray, " row"], Batch]]:
        """All of the strings in pieces that fit in memory, with their rows."""
        return testing_pieces(self._config, strings, self._device)

    @torch.no_grad()
    def logits(self, piece: Batch) -> Float[Tensor, "member string *output"]:
        """Every member's logits; dropout is off."""
        return torch.stack([plain_logits(model.eval(), piece) for model in self.models])

    def keep(self, rows: Sequence[int]) -> None:
        """Drops the models of all members but these."""
        self.models = [self.models[row] for row in rows]
        for row, model in enumerate(self.models):
            self._flat.bind(row, model)


def _widened(batch: Batch, width: int) -> Batch:
    more = (0, width - batch.ids.shape[1])
    ids = functional.pad(batch.ids, more, value=PAD)
    return Batch(batch.config, ids, functional.pad(batch.places, more))
