"""An encoder-decoder that reads the input once, and keeps what its decoder has read."""

import math

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from seqcls.decoding.transformer import NOTHING, Cache, TransformerStepper, cached
from seqcls.models.base import Ids
from seqcls.models.transformer import Block
from seqcls.models.two_streams.encoder_decoder import DecoderBlock, EncoderDecoder
from seqcls.models.two_streams.two_streams import split


class EncoderDecoderStepper(TransformerStepper):
    """A `seqcls.decoding.stepping.Stepper` whose step costs one token of the output."""

    _encoded: tuple[list[Cache], list[Cache]]
    """Keys and values of the input, of each of the decoder's blocks."""
    _attendable: Tensor
    _scales: Tensor

    @classmethod
    def of_input(
        cls, model: EncoderDecoder, ids: Ids, most_tokens: int
    ) -> "tuple[EncoderDecoderStepper, Float[Tensor, 'string output']]":
        """Implements `seqcls.decoding.stepping.start`."""
        kept, streams = model.activations(ids), split(model.config, ids)
        lengths = streams.written.sum(dim=1)
        caches = cached(model, kept, "decoder.blocks.{}.attention", most_tokens)
        stepper = cls(model, model.decoder, lengths, *caches)
        stepper._encoded = cached(model, kept, "decoder.blocks.{}.cross_attention")
        crossing = model.crossing(streams, None)
        stepper._attendable, stepper._scales = crossing.attendable.unsqueeze(1), crossing.scale
        return stepper, kept["decoder.logits"][torch.arange(len(ids)), lengths - 1]

    def take(self, rows: Int64[Tensor, " row"]) -> None:
        """Implements `Stepper.take`."""
        super().take(rows)
        keys, values = self._encoded
        self._encoded = [key[rows] for key in keys], [value[rows] for value in values]
        self._attendable, self._scales = self._attendable[rows], self._scales[rows]

    def _crossed(self, number: int, block: Block, states: Tensor) -> Tensor:
        assert isinstance(block, DecoderBlock)
        layer, (keys, values) = block.cross_attention, self._encoded

        def part(read: Tensor) -> Tensor:
            factor = self._scales / math.sqrt(layer.heads[1])
            scores = layer.split(layer.query(read)) @ keys[number].mT * factor
            return layer.mixed(scores, values[number], self._attendable, NOTHING)

        return block.added("cross_attention", block.cross_attention_norm, part, states, NOTHING)
