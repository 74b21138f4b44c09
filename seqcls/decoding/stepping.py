"""Models that write token by token, with what they keep of the tokens before."""

from collections.abc import Callable
from typing import Protocol, Self

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from seqcls.decoding.encoder_decoder import EncoderDecoderStepper
from seqcls.decoding.mixing import MixingStepper
from seqcls.decoding.recurrent import RecurrentStepper
from seqcls.decoding.recurrent_attention import RecurrentAttentionStepper
from seqcls.decoding.transformer import TransformerStepper
from seqcls.models.base import Classifier, Ids
from seqcls.models.mixing.body import Mixing
from seqcls.models.mixing.deltanet import DeltaNet
from seqcls.models.mixing.linear_attention import LinearAttention
from seqcls.models.mixing.mamba import Mamba
from seqcls.models.mixing.slstm import SLSTM
from seqcls.models.recurrent import GRU, LSTM, RNN, Recurrent
from seqcls.models.transformer import Transformer
from seqcls.models.two_streams.encoder_decoder import EncoderDecoder
from seqcls.models.two_streams.paragraph_reader import ParagraphReader
from seqcls.models.two_streams.recurrent_attention import RecurrentAttention
from seqcls.tokens.tokenizer import PAD

Scores = Float[Tensor, "string output"]
"""The head's outputs for the next token of each string."""


class Stepper(Protocol):
    """Strings being written."""

    def step(self, tokens: Int64[Tensor, " string"]) -> Scores:
        """Reads one more token of each string, and says what follows it."""
        ...

    def take(self, rows: Int64[Tensor, " row"]) -> None:
        """Goes on with these strings, of which one may be taken several times."""
        ...


Start = Callable[[Classifier, Ids, int], tuple[Stepper, Scores]]
"""The signature of `start`."""


def start(model: Classifier, ids: Ids, most_tokens: int) -> tuple[Stepper, Scores]:
    """Reads the beginnings of strings, and says what follows each.

    Args:
        model: one whose head answers token by token, without dropout.
        ids: the beginnings, `PAD` after each.
        most_tokens: tokens that will be written at most.
    """
    # A subclass may compute something else.
    if type(model) is Transformer:
        return TransformerStepper.start(model, ids, most_tokens)
    if type(model) in (EncoderDecoder, ParagraphReader) and isinstance(model, EncoderDecoder):
        return EncoderDecoderStepper.of_input(model, ids, most_tokens)
    if type(model) is RecurrentAttention:
        return RecurrentAttentionStepper.start(model, ids)
    if type(model) in (RNN, GRU, LSTM) and isinstance(model, Recurrent):
        return RecurrentStepper.start(model, ids)
    if type(model) in (DeltaNet, LinearAttention, Mamba, SLSTM) and isinstance(model, Mixing):
        return MixingStepper.start(model, ids)
    return Again.start(model, ids, most_tokens)


class Again:
    """Keeps nothing but the tokens, and runs the model again for each: any architecture."""

    def __init__(self, model: Classifier, ids: Tensor, lengths: Tensor) -> None:
        self._model = model
        self._ids = ids
        self._lengths = lengths

    @classmethod
    def start(cls, model: Classifier, ids: Ids, most_tokens: int) -> tuple[Self, Scores]:
        """Implements `start`."""
        stepper = cls(model, *padded(ids, most_tokens))
        return stepper, stepper._scores()

    def step(self, tokens: Int64[Tensor, " string"]) -> Scores:
        """Implements `Stepper.step`."""
        self._ids[torch.arange(len(tokens)), self._lengths] = tokens.to(self._ids.dtype)
        self._lengths = self._lengths + 1
        return self._scores()

    def take(self, rows: Int64[Tensor, " row"] | Bool[Tensor, " string"]) -> None:
        """Implements `Stepper.take`."""
        self._ids, self._lengths = self._ids[rows], self._lengths[rows]

    def _scores(self) -> Scores:
        ids = self._ids[:, : int(self._lengths.max())]
        outputs: Tensor = self._model(ids)
        return outputs[torch.arange(len(ids)), self._lengths - 1]


def padded(ids: Ids, most_tokens: int) -> tuple[Tensor, Tensor]:
    """Token ids with room for so many more, and the length of each string."""
    wide = torch.nn.functional.pad(ids, (0, most_tokens), value=PAD)
    return wide, (ids != PAD).sum(dim=1)
