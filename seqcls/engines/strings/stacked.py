"""All members of a group at once through one plain model, by `vmap`: for a GPU."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.func import functional_call, vmap

from seqcls.config import NetworkConfig
from seqcls.engines.computation import Losses
from seqcls.engines.stacked_group import StackedGroup
from seqcls.engines.strings.batches import Batch, testing_pieces, training_batches
from seqcls.engines.strings.encoder_decoder import encoder_decoder_logits
from seqcls.engines.strings.transformer import transformer_logits
from seqcls.models.base import Outputs
from seqcls.models.initialization import make_model
from seqcls.models.positions.places import TrainingPlaces
from seqcls.models.transformer import Transformer
from seqcls.models.two_streams.encoder_decoder import EncoderDecoder
from seqcls.tokens.strings import TokenStrings


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
    """A `seqcls.engines.computation.Computation` for any model without dropout in training."""

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
