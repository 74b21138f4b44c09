"""The encoder-decoder's logits without states of padding, as `transformer` beside it has them."""

from torch import Tensor

from seqcls.engines.strings.batches import Batch
from seqcls.engines.strings.transformer import Hidden, Queries, attended, attention, fed
from seqcls.models.base import Outputs
from seqcls.models.transformer import Side
from seqcls.models.two_streams.encoder_decoder import DecoderBlock, EncoderDecoder


def encoder_decoder_logits(model: EncoderDecoder, batch: Batch) -> Outputs:
    """Computes `EncoderDecoder.forward` of the outputs' tokens one after another, without
    dropout.
    """
    assert isinstance(model.encoder, Side)
    inputs, outputs = batch.sides
    encoded = _embedded(model, model.encoder, inputs)
    queries = Queries(inputs, model.encoder.positions)
    for block in model.encoder.blocks:
        encoded = fed(block, attended(block, encoded, encoded, queries))
    encoded = _normed(model.encoder, encoded)
    states = _embedded(model, model.decoder, outputs)
    queries = Queries(outputs, model.decoder.positions)
    crossing = Queries(outputs, model.nowhere, keys=inputs)
    for block in model.decoder.blocks:
        states = attended(block, states, states, queries)
        assert isinstance(block, DecoderBlock)
        states = fed(block, _crossed(block, states, encoded, crossing))
    return model.head(_normed(model.decoder, states))


def _embedded(model: EncoderDecoder, side: Side, batch: Batch) -> Hidden:
    embedded = side.positions.embed(model.embedding(batch.ids), batch.places)
    return embedded.flatten(0, 1).index_select(0, batch.token_rows)


def _normed(side: Side, states: Hidden) -> Hidden:
    return states if side.final_norm is None else side.final_norm(states)


def _crossed(block: DecoderBlock, states: Hidden, encoded: Hidden, queries: Queries) -> Hidden:
    """The decoder's states after attention to the encoder's."""
    layer, norm = block.cross_attention, block.cross_attention_norm
    if block.norms_first:
        return states + attention(layer, norm(states), encoded, queries)
    normed: Tensor = norm(states + attention(layer, states, encoded, queries))
    return normed
