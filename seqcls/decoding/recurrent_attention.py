"""A recurrent encoder-decoder that reads the input once, and keeps its decoder's states."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from seqcls.models.base import Ids, Recorder
from seqcls.models.two_streams.recurrent_attention import Encoded, Kept, RecurrentAttention
from seqcls.models.two_streams.two_streams import split


class RecurrentAttentionStepper:
    """A `seqcls.decoding.stepping.Stepper` of recurrent networks that attend."""

    def __init__(self, model: RecurrentAttention, encoded: Encoded, kept: Kept) -> None:
        self._model = model
        self._encoded = encoded
        self._kept = kept

    @classmethod
    def start(
        cls, model: RecurrentAttention, ids: Ids
    ) -> "tuple[RecurrentAttentionStepper, Float[Tensor, 'string output']]":
        """Implements `seqcls.decoding.stepping.start`."""
        streams = split(model.config, ids)
        stepper = cls(model, *model.encoded(streams, Recorder()))
        outputs = stepper.step(streams.outputs[:, 0])
        for place in range(1, streams.outputs.shape[1]):
            # Where a string has ended, all is as it was.
            before, goes_on = stepper._kept, streams.written[:, place, None]
            further = stepper.step(streams.outputs[:, place])
            outputs = torch.where(goes_on, further, outputs)
            pairs = zip(stepper._kept, before, strict=True)
            states, cells = (
                [torch.where(goes_on, *pair) for pair in zip(*both, strict=True)] for both in pairs
            )
            stepper._kept = Kept(states, cells)
        return stepper, outputs

    def step(self, tokens: Int64[Tensor, " string"]) -> Float[Tensor, "string output"]:
        """Implements `Stepper.step`."""
        model = self._model
        state, _, self._kept = model.step(model.embedding(tokens), self._encoded, self._kept)
        return model.head(state)

    def take(self, rows: Int64[Tensor, " row"]) -> None:
        """Implements `Stepper.take`."""
        self._encoded = Encoded(*(values[rows] for values in self._encoded))
        states, cells = ([state[rows] for state in layers] for layers in self._kept)
        self._kept = Kept(states, cells)
