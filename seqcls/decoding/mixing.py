"""A model of mixers that keeps their memories after the tokens before."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from seqcls.models.base import Ids
from seqcls.models.mixing.body import Kept, Mixing
from seqcls.tokens.tokenizer import PAD


class MixingStepper:
    """A `seqcls.decoding.stepping.Stepper` of blocks with a memory."""

    def __init__(self, model: Mixing, kept: list[Kept]) -> None:
        self._model = model
        self._kept = kept

    @classmethod
    def start(
        cls, model: Mixing, ids: Ids
    ) -> "tuple[MixingStepper, Float[Tensor, 'string output']]":
        """Implements `seqcls.decoding.stepping.start`."""
        embedded = model.embedding(ids[:, 0])
        stepper = cls(model, [block.mixer.nothing(embedded) for block in model.blocks])
        outputs = stepper.step(ids[:, 0])
        for place in range(1, ids.shape[1]):
            # Where a string has ended, all is as it was.
            before, goes_on = stepper._kept, ids[:, place] != PAD
            further = stepper.step(ids[:, place])
            outputs = _chosen(goes_on, further, outputs)
            stepper._kept = [
                tuple(_chosen(goes_on, *pair) for pair in zip(*both, strict=True))
                for both in zip(stepper._kept, before, strict=True)
            ]
        return stepper, outputs

    def step(self, tokens: Int64[Tensor, " string"]) -> Float[Tensor, "string output"]:
        """Implements `Stepper.step`."""
        states, after = self._model.embedding(tokens), []
        for block, kept in zip(self._model.blocks, self._kept, strict=True):
            states, now = block.step(states, kept)
            after.append(now)
        self._kept = after
        norm = self._model.final_norm
        return self._model.head(states if norm is None else norm(states))

    def take(self, rows: Int64[Tensor, " row"]) -> None:
        """Implements `Stepper.take`."""
        self._kept = [tuple(values[rows] for values in kept) for kept in self._kept]


def _chosen(goes_on: Tensor, further: Tensor, before: Tensor) -> Tensor:
    return torch.where(goes_on.view(-1, *[1] * (further.ndim - 1)), further, before)
