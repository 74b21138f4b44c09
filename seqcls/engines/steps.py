"""Members' logits in training: by letter counts, or through the plain model where it must be."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import functional_call

from seqcls.config import RunConfig
from seqcls.counts.forward import Parameters, group_logits, log_counts
from seqcls.data import network_of
from seqcls.models.base import read_ids
from seqcls.models.transformer import Transformer
from seqcls.strings import TokenStrings


@runtime_checkable
class TrainingLogits(Protocol):
    """How a group's logits are computed while it trains."""

    def encode(self, strings: TokenStrings) -> Tensor:
        """An epoch's strings as one tensor, its leading axis `string`."""
        ...

    def __call__(
        self, parameters: Parameters, encoded: Tensor
    ) -> Float[Tensor, "member string"]: ...

    def keep(self, rows: Sequence[int]) -> None:
        """Drops all members but these."""
        ...


def training_logits(config: RunConfig, members: int, device: torch.device) -> TrainingLogits:
    """By letter counts where equal letters stay equal; dropout makes them differ."""
    if config.dropout_rate > 0:
        return PlainLogits(config, members, device)
    return MultisetLogits(config, device)


class MultisetLogits:
    """All members at once, from letter counts."""

    def __init__(self, config: RunConfig, device: torch.device) -> None:
        self._network = network_of(config)
        self._device = device

    def encode(self, strings: TokenStrings) -> Tensor:
        return log_counts(self._network, strings.counts).to(self._device)

    def __call__(self, parameters: Parameters, encoded: Tensor) -> Float[Tensor, "member string"]:
        return group_logits(self._network, parameters, encoded)

    def keep(self, rows: Sequence[int]) -> None:
        """Holds nothing of any member."""


class PlainLogits:
    """One member after another through the plain model, each with its own stream of dropout.

    As in the report's program the stream begins at `train_seed`, so a member drops the same
    whoever trains beside it.
    """

    def __init__(self, config: RunConfig, members: int, device: torch.device) -> None:
        self._network = network_of(config)
        self._model = (
            Transformer(self._network).to(device, getattr(torch, config.precision)).train()
        )
        self._device = device
        self._generators = [
            torch.Generator(device).manual_seed(config.train_seed) for _ in range(members)
        ]

    def encode(self, strings: TokenStrings) -> Tensor:
        return torch.from_numpy(read_ids(strings, self._network.readout)).int().to(self._device)

    def __call__(self, parameters: Parameters, encoded: Tensor) -> Float[Tensor, "member string"]:
        logits = []
        for member, generator in enumerate(self._generators):
            self._model.use_dropout_generator(generator)
            own = {name: values[member] for name, values in parameters.items()}
            logits.append(functional_call(self._model, own, (encoded,)))
        return torch.stack(logits)

    def keep(self, rows: Sequence[int]) -> None:
        self._generators = [self._generators[row] for row in rows]
