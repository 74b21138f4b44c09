"""The encoder-decoder Transformer (Vaswani et al. 2017): the readable truth.

The encoder reads `CLS` and the input, every token attending to all; the decoder reads `SEP` and
the output from left to right and attends, in every block, to the encoder's last states too. Each
has `num_blocks` blocks and separate positions: a table of `learned` or `relative` ones each.
Both share one table of embeddings.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Integer
from torch import Tensor, nn

from seqcls.config import NetworkConfig
from seqcls.models.base import Hidden, Ids, Outputs, Places, Recorder, make_head
from seqcls.models.blocks import Attending, Attention, Block, Scale, attending_of
from seqcls.models.forms import Scores, Tokens
from seqcls.models.layers import Dropout, Embedding, Linear, make_norm
from seqcls.models.parts import ONLY_SELF, Site, block_parts, block_sites
from seqcls.models.pictures import PictureEncoder, memory_shape
from seqcls.models.positions.schemes import Positions
from seqcls.models.transformer import Cache, Keys, Side, cache_keys
from seqcls.models.two_streams import OutputStates, Streams, TwoStreams, split

BOTH: Mapping[str, str] = {**ONLY_SELF, "cross-attention ": "cross_attention"}
"""The attentions of a decoder's block, in the form that `block_parts` takes."""


Encoded = Float[Tensor, "string encoded hidden"]


class DecoderBlock(Block):
    """A block that attends to the encoder's states between attention and feed-forward."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        self.cross_attention_norm = make_norm(config)
        self.cross_attention = Attention(config)

    def forward(
        self,
        states: Hidden,
        attending: Attending,
        record: Recorder,
        crossing: Attending | None = None,
        encoded: Float[Tensor, "string other hidden"] | None = None,
    ) -> Hidden:
        assert crossing is not None
        states = self.attend(states, attending, record)
        inside = record.within("cross_attention")

        def part(read: Hidden) -> Hidden:
            mixed: Hidden = self.cross_attention(read, crossing, inside, encoded)
            return mixed

        crossed = self.add_part("cross_attention", self.cross_attention_norm, part, states, record)
        return self.apply_feed_forward(crossed, record)

    def adding(self) -> tuple[Linear, ...]:
        return *super().adding(), self.cross_attention.output


class Crossing(NamedTuple):
    """The cache of strings whose outputs are being written."""

    own: Cache
    keys: dict[str, Keys]
    """Keys and values of the input by name, for each of the decoder's blocks."""
    attendable: Bool[Tensor, "string #position input_position"]
    scale: Scale


class EncoderDecoder(TwoStreams):
    """Encoder, decoder, and a head that reads the decoder's states.

    Attention from decoder to encoder uses no positions. With `no_attend_cls` neither attends to
    `CLS`; with `attention_scale` `log_length` the decoder's attention to the input is scaled like
    the encoder's, with `learned_log_length` by its own parameters.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        # Vaswani et al. (2017) scale embeddings so.
        scale = math.sqrt(config.hidden_size) if config.embedding_scale == "sqrt" else 1.0
        self.embedding = Embedding(config.vocabulary_size, config.hidden_size, scale)
        # Parameters are drawn in the order of these lines, so old seeds depend on it.
        self.encoder = self.make_encoder(config)
        # The decoder reads no `CLS` that might not be attended to.
        causal = {"attention_mask": "causal", "no_attend_cls": False}
        self.decoder = Side(config.model_copy(update=causal), DecoderBlock)
        self.classifier = make_head(config)
        self.dropout = Dropout(config.dropout_rate)
        self.nowhere = Positions(config)

    def decode_states(
        self, streams: Streams, record: Recorder, places: Places | None
    ) -> OutputStates:
        encoded = self.encode(streams, record, places)
        crossing = self.crossing(streams, places)
        writing = self._attending(self.decoder, streams.outputs, streams, places)
        embedded = self.embedding(streams.outputs)
        inside = record.within("decoder")
        return self.decoder.pass_through(embedded, writing, inside, crossing, encoded)

    def begin(self, ids: Ids, most_tokens: int) -> tuple[Scores, Crossing]:
        recorded, streams = self.activations(ids), split(self.config, ids)
        lengths = streams.written.sum(dim=1)
        own = cache_keys(recorded, "attention", most_tokens, "decoder.")
        input_keys = cache_keys(recorded, "cross_attention", stream="decoder.")
        attendable, scale, *_ = self.crossing(streams, None)
        crossing = Crossing(Cache(lengths, own, None), input_keys, attendable, scale)
        return recorded["decoder.logits"][torch.arange(len(ids)), lengths - 1], crossing

    def step(self, tokens: Tokens, cached: Crossing) -> tuple[Scores, Crossing]:
        """Implements `Stepping.step`; it costs one token of the output."""
        embedded, counted = self.embedding(tokens.unsqueeze(1)), cached.own.lengths.unsqueeze(1)
        crossing = Attending(cached.attendable, cached.scale, self.nowhere, counted)
        # The given keys and values of the input replace those computed from these states.
        states, own = self.decoder.pass_next(embedded, cached.own, cached.keys, crossing, embedded)
        return self.head(states), cached._replace(own=own)

    def make_encoder(self, config: NetworkConfig) -> nn.Module:
        """Makes the encoder; it comes before the decoder, since parameters are drawn in order."""
        return Side(config.model_copy(update={"attention_mask": "full"}), Block)

    def encode(self, streams: Streams, record: Recorder, places: Places | None) -> Encoded:
        """Encodes the inputs to the states that the decoder attends to."""
        attending = self._reading(streams, places)
        embedded = self.embedding(streams.inputs)
        assert isinstance(self.encoder, Side)
        return self.encoder.pass_through(embedded, attending, record.within("encoder"))

    def crossing(self, streams: Streams, places: Places | None) -> Attending:
        """Makes the decoder's attention to the encoder's states."""
        return self._reading(streams, places)._replace(positions=self.nowhere, bias=None)

    def head(self, read: Float[Tensor, "*string hidden"]) -> Outputs:
        """Implements `BodyAndHead.head`, after dropout."""
        return super().head(self.dropout(read))

    def attention(self) -> tuple[str, ...]:
        """Implements `Classifier.attention`: each encoder block's, then two of each decoder block.

        Positions are those of one stream; for cross-attention the decoder's by the encoder's.
        """
        blocks = range(self.config.num_blocks)
        encoder = [f"encoder.blocks.{block}.attention.weights" for block in blocks]
        names = ("attention", "cross_attention")
        return *encoder, *(f"decoder.blocks.{x}.{name}.weights" for x in blocks for name in names)

    def decoder_states(self) -> tuple[str, ...]:
        norms_first = self.config.norm_placement == "pre"
        last = "after_feed_forward" if norms_first else "feed_forward_norm"
        return tuple(f"decoder.blocks.{x}.{last}" for x in range(self.config.num_blocks))

    def parts(self) -> Mapping[Site, str]:
        """Implements `Classifier.parts`: those of the encoder's and the decoder's blocks."""
        encoder_parts = (
            block_parts(self.config, "encoder") if isinstance(self.encoder, Side) else {}
        )
        return {**encoder_parts, **block_parts(self.config, "decoder", BOTH)}

    def sites(self) -> Mapping[Site, tuple[str, ...]]:
        """Implements `Classifier.sites`; none if the encoder reads a picture, not tokens."""
        if not isinstance(self.encoder, Side):
            return {}
        return {
            Site("embedding", side="encoder"): ("encoder.embedding",),
            **block_sites(self.config, "encoder"),
            **block_sites(self.config, "decoder", BOTH),
        }

    def _reading(self, streams: Streams, places: Places | None) -> Attending:
        assert isinstance(self.encoder, Side)
        return self._attending(self.encoder, streams.inputs, streams, places)

    def _attending(
        self,
        side: Side,
        ids: Integer[Tensor, "string stream_position"],
        streams: Streams,
        places: Places | None,
    ) -> Attending:
        return attending_of(side.config, ids, side.positions, streams.positions_of(places, ids))


class ParagraphReader(EncoderDecoder):
    """A picture in, its text out (Singh & Karayev 2021): the decoder attends to an encoded picture.

    The task draws the picture from the input's token ids.
    """

    # Repeated, because forms are not inherited past a class that defines functions.
    begin, step = EncoderDecoder.begin, EncoderDecoder.step

    def make_encoder(self, config: NetworkConfig) -> nn.Module:
        return PictureEncoder(config)

    def encode(self, streams: Streams, record: Recorder, places: Places | None) -> Encoded:
        memory: Hidden = self.encoder(streams.inputs, record.within("encoder"))
        return memory

    def crossing(self, streams: Streams, places: Places | None) -> Attending:
        """Implements `EncoderDecoder.crossing`: attention to the whole picture."""
        inputs, weight = streams.inputs, self.embedding.weight
        size = math.prod(memory_shape(self.config))
        attendable = torch.ones(len(inputs), 1, size, dtype=torch.bool, device=inputs.device)
        scale = torch.ones((), dtype=weight.dtype, device=weight.device)
        # Attention from text to picture uses no positions.
        output_places = streams.positions_of(places, streams.outputs)
        return Attending(
            attendable, scale.expand(len(inputs), 1, 1, 1), self.nowhere, output_places
        )

    def attention(self) -> tuple[str, ...]:
        """Implements `Classifier.attention`: those of the decoder's blocks."""
        return tuple(name for name in super().attention() if name.startswith("decoder"))
