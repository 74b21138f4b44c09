"""A picture in, its text out (Singh & Karayev 2021): the decoder of `encoder_decoder`.

It attends to a memory of the picture that the task draws of the input.
"""

import torch
from torch import nn

from seqcls.config import NetworkConfig
from seqcls.models.base import Places, Recorder
from seqcls.models.heads import Hidden
from seqcls.models.transformer import Attending
from seqcls.models.two_streams.encoder_decoder import EncoderDecoder
from seqcls.models.two_streams.pictures import PictureEncoder
from seqcls.models.two_streams.two_streams import Streams


class ParagraphReader(EncoderDecoder):
    """An `EncoderDecoder` with another encoder: token ids say only what is drawn."""

    def made_encoder(self, config: NetworkConfig) -> nn.Module:
        """Implements `EncoderDecoder.made_encoder`."""
        return PictureEncoder(config)

    def encoded(self, streams: Streams, record: Recorder, places: Places | None) -> Hidden:
        """Implements `EncoderDecoder.encoded`."""
        del places
        memory: Hidden = self.encoder(streams.inputs, record.within("encoder"))
        return memory

    def crossing(self, streams: Streams, places: Places | None) -> Attending:
        """Implements `EncoderDecoder.crossing`: to all of the picture."""
        assert isinstance(self.encoder, PictureEncoder)
        rows, columns = self.encoder.shape
        inputs, weight = streams.inputs, self.embedding.weight
        attendable = torch.ones(
            len(inputs), 1, rows * columns, dtype=torch.bool, device=inputs.device
        )
        scale = torch.ones((), dtype=weight.dtype, device=weight.device)
        # Between pictures and text no scheme of positions has a part.
        places_of_output = streams.places_of(places, streams.outputs)
        return Attending(
            attendable, scale.expand(len(inputs), 1, 1, 1), self.nowhere, places_of_output
        )

    def attention(self) -> tuple[str, ...]:
        """Implements `Classifier.attention`, for the decoder's blocks alone; the last over the
        memory.
        """
        return tuple(name for name in super().attention() if name.startswith("decoder"))
