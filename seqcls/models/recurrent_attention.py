"""A recurrent encoder and decoder, with additive attention between them: the readable truth.

Both are `num_blocks` layers of LSTM cells; the encoder reads `CLS` and the input from left to
right, and each of the decoder's layers starts from the last state and cell of the encoder's layer
(Sutskever et al. 2014). With `attention` `additive` the decoder also reads a context with every
token (Bahdanau et al. 2015): the mean of the encoder's states weighted by the softmax of
v^T tanh(W s + U h), where s is the state of the decoder's last layer before the token and h one of
the encoder's last layer. The context is concatenated to the token's embedding as the input of the
decoder's first layer. Unlike theirs, the encoder reads in one direction, and the head reads the
decoder's state alone. If the task draws pictures, a network of pictures is the encoder, and the
decoder starts from the mean of its memory.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from seqcls.config import NetworkConfig
from seqcls.models.base import Hidden, Ids, Places, Recorder, make_head
from seqcls.models.forms import Scores, Tokens, read_on
from seqcls.models.layers import Dropout, Embedding, Linear, masked_softmax
from seqcls.models.parts import Site, parts_among
from seqcls.models.pictures import PictureEncoder
from seqcls.models.recurrent import (
    Cell,
    LSTMCell,
    Recurrence,
    State,
    layer_sites,
)
from seqcls.models.two_streams import OutputStates, Streams, TwoStreams, split
from seqcls.strings.tokenizer import PAD


class Encoded(NamedTuple):
    """Encoded inputs, as the decoder reads them."""

    states: Float[Tensor, "string input_position hidden"]
    """The states of the encoder's last layer."""
    keys: Float[Tensor, "string input_position hidden"]
    """U h; without attention the states."""
    is_read: Bool[Tensor, "string input_position"]


class Additive(nn.Module):
    """v^T tanh(W s + U h), without biases."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.query = Linear(hidden, hidden)
        self.key = Linear(hidden, hidden)
        self.score = Linear(hidden, 1)

    def forward(
        self, state: State, encoded: Encoded
    ) -> tuple[State, Float[Tensor, "string input_position"]]:
        """Returns the context of a state and its attention weights."""
        mixed = (self.query(state).unsqueeze(1) + encoded.keys).tanh()
        weights = masked_softmax(self.score(mixed).squeeze(2), encoded.is_read)
        return (weights.unsqueeze(1) @ encoded.states).squeeze(1), weights


class RecurrentAttention(TwoStreams):
    """Encoder, decoder, and a head that reads the decoder's states."""

    steps_through = True

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        hidden, layers = config.hidden_size, range(config.num_blocks)
        attends = config.attention == "additive"
        self.embedding = Embedding(config.vocabulary_size, hidden)
        self.pictures = PictureEncoder(config) if config.picture else None
        encoder = nn.ModuleList([] if config.picture else [LSTMCell(config) for _ in layers])
        self.encoder = cast("Iterable[Cell]", encoder)
        decoder = nn.ModuleList(
            [LSTMCell(config, 2 * hidden if attends and not x else hidden) for x in layers]
        )
        self.decoder = cast("Iterable[Cell]", decoder)
        self.additive = Additive(hidden) if attends else None
        self.classifier = make_head(config)
        self.dropout = Dropout(config.dropout_rate)

    def decode_states(
        self, streams: Streams, record: Recorder, places: Places | None
    ) -> OutputStates:
        """Implements `TwoStreams.decode_states`; places mean nothing here."""
        encoded, recurrence = self.encode(streams, record.within("encoder"))
        inside = record.within("decoder")
        embedded = inside("embedding", self.dropout(self.embedding(streams.outputs)))
        # The first piece is empty, so that outputs without tokens can be joined as well.
        states, weights, steps = [embedded[:, :0]], [], list[Recurrence]()
        for place in range(embedded.shape[1]):
            state, weight, recurrence = self.decode(
                embedded[:, place], encoded, recurrence, inside, place
            )
            states.append(state.unsqueeze(1))
            weights += [] if weight is None else [weight]
            steps.append(recurrence)
        if weights:
            # Recorded attention weights have an axis of heads; here there is one.
            inside("weights", torch.stack(weights, dim=1).unsqueeze(1))
        for number in range(self.config.num_blocks if steps else 0):
            layer_record = inside.within(f"layers.{number}")
            layer_record("state", torch.stack([after.states[number] for after in steps], dim=1))
            layer_record("cell", torch.stack([after.cells[number] for after in steps], dim=1))
        return torch.cat(states, dim=1)

    def encode(self, streams: Streams, record: Recorder) -> tuple[Encoded, Recurrence]:
        """Encodes the inputs and returns them with the start of the decoder's layers."""
        if self.pictures is not None:
            return self._encode_pictures(self.pictures(streams.inputs, record))
        # Padding changes states, so each string's last token is read, not the last column.
        is_read = streams.inputs != PAD
        last = torch.arange(len(is_read)), is_read.sum(dim=1) - 1
        states = record("embedding", self.dropout(self.embedding(streams.inputs)))
        start = Recurrence([], [])
        for number, layer in enumerate(self.encoder):
            states, cells = layer(states, record.within(f"layers.{number}"))
            start.states.append(states[last])
            start.cells.append(cells[last])
            states = self.dropout(states)
        return self._add_keys(states, is_read), start

    def _encode_pictures(self, memory: Hidden) -> tuple[Encoded, Recurrence]:
        """Encodes pictures; all layers start from the mean of the memory."""
        mean, size = memory.mean(dim=1), self.config.num_blocks
        start = Recurrence([mean] * size, [torch.zeros_like(mean)] * size)
        return self._add_keys(memory, torch.ones_like(memory[..., 0], dtype=torch.bool)), start

    def _add_keys(self, states: Hidden, is_read: Bool[Tensor, "string input_position"]) -> Encoded:
        # U h is the same for every token of the output, so it is computed once.
        keys = states if self.additive is None else self.additive.key(states)
        return Encoded(states, keys, is_read)

    def begin(self, ids: Ids, most_tokens: int) -> tuple[Scores, tuple[Encoded, Recurrence]]:
        streams = split(self.config, ids)
        encoded, started = self.encode(streams, Recorder())

        def step(tokens: Tensor, recurrence: Recurrence) -> tuple[Scores, Recurrence]:
            outputs, (_, after) = self.step(tokens, (encoded, recurrence))
            return outputs, after

        outputs, recurrence = read_on(step, started, streams.outputs, streams.written)
        return outputs, (encoded, recurrence)

    def step(
        self, tokens: Tokens, cached: tuple[Encoded, Recurrence]
    ) -> tuple[Scores, tuple[Encoded, Recurrence]]:
        encoded, before = cached
        state, _, after = self.decode(self.embedding(tokens), encoded, before)
        return self.head(state), (encoded, after)

    def decode(
        self,
        embedded: State,
        encoded: Encoded,
        recurrence: Recurrence,
        record: Recorder | None = None,
        place: int = 0,
    ) -> tuple[State, Float[Tensor, "string input_position"] | None, Recurrence]:
        """Reads one token of the output; returns the state for the head, the attention weights
        and the states after it.
        """
        record = Recorder() if record is None else record
        read, weights = embedded, None
        if self.additive is not None:
            context, weights = self.additive(recurrence.states[-1], encoded)
            read = torch.cat([embedded, context], dim=1)
        after = Recurrence([], [])
        layers = enumerate(zip(self.decoder, recurrence.states, recurrence.cells, strict=True))
        for number, (layer, state, cell) in layers:
            step = layer.step(layer.from_input(read), state, cell)
            inside = record.within(f"layers.{number}")
            after.states.append(inside.step("state", place, step.state))
            after.cells.append(inside.step("cell", place, step.cell))
            read = self.dropout(after.states[-1])
        return read, weights, after

    def decoder_states(self) -> tuple[str, ...]:
        return tuple(f"decoder.layers.{layer}.state" for layer in range(self.config.num_blocks))

    def attention(self) -> tuple[str, ...]:
        """Implements `Classifier.attention`: one head, the decoder's positions by the encoder's."""
        return () if self.additive is None else ("decoder.weights",)

    def sites(self) -> Mapping[Site, tuple[str, ...]]:
        """Implements `Classifier.sites`; none if the encoder reads a picture, not tokens."""
        if self.pictures is not None:
            return {}
        return {**layer_sites(self.config, LSTMCell, "encoder"), **self._decoder_sites()}

    def parts(self) -> Mapping[Site, str]:
        """Implements `Classifier.parts`: units of the decoder, and of an encoder of tokens."""
        return parts_among(self.config, self.sites() or self._decoder_sites())

    def _decoder_sites(self) -> Mapping[Site, tuple[str, ...]]:
        return layer_sites(self.config, LSTMCell, "decoder")
