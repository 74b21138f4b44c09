"""One member after another through a plain model of its own, which shares the group's memory."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional

from seqcls.config import NetworkConfig
from seqcls.engines.computation import Losses
from seqcls.engines.strings.batches import Batch, testing_pieces, training_batches
from seqcls.engines.strings.encoder_decoder import encoder_decoder_logits
from seqcls.engines.strings.flat_group import FlatGroup
from seqcls.engines.strings.recurrent import recurrent_logits
from seqcls.engines.strings.recurrent_attention import recurrent_attention_logits
from seqcls.engines.strings.transformer import transformer_logits
from seqcls.models.base import Classifier, Outputs
from seqcls.models.initialization import make_model
from seqcls.models.positions.places import TrainingPlaces
from seqcls.models.recurrent import GRU, LSTM, RNN, Recurrent
from seqcls.models.transformer import Transformer
from seqcls.models.two_streams.encoder_decoder import EncoderDecoder
from seqcls.models.two_streams.recurrent_attention import RecurrentAttention
from seqcls.tokens.strings import TokenStrings
from seqcls.tokens.tokenizer import PAD


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
    """A `seqcls.engines.computation.Computation` for any model.

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
