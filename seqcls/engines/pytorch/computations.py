"""How a group's logits are computed: from letter counts, by `vmap`, or one member after another."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int64, Integer
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn import functional

from seqcls.config import NetworkConfig
from seqcls.counts import read_counts
from seqcls.engines.pytorch.groups import FlatGroup, Losses, StackedGroup
from seqcls.models.base import Classifier, Outputs
from seqcls.models.batches import Batch
from seqcls.models.forms import form
from seqcls.models.initialization import make_model
from seqcls.models.pictures import pictures_at_once
from seqcls.models.positions import read_ids, special_tokens
from seqcls.models.positions.places import TrainingPlaces, positions_of
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import PAD

# Strings in batches and pieces.


def training_batches(
    config: NetworkConfig,
    strings: TokenStrings,
    batch_size: int,
    places: TrainingPlaces,
    device: torch.device,
) -> Iterator[Batch]:
    """An epoch's batches, in order."""
    for start in range(0, len(strings), batch_size):
        ids = trimmed_ids(config, strings, slice(start, start + batch_size))
        yield Batch(config, ids.to(device), places.draw(ids).to(device))


PAIRS_AT_ONCE = 2**22
"""Scores of one head in a piece: keeps the widest state of a piece within tens of megabytes."""

STATES_AT_ONCE = 2**23
"""Numbers in the widest state of one token each, likewise."""


def testing_pieces(
    config: NetworkConfig, strings: TokenStrings, device: torch.device
) -> Iterator[tuple[Int64[np.ndarray, " row"], Batch]]:
    """Pieces of strings that fit in memory, and their rows among the strings, shortest first."""
    order = np.argsort(strings.lengths, kind="stable")
    widths = strings.lengths[order] + special_tokens(config)
    start = 0
    while start < len(order):
        end = start + 1
        while end < len(order) and _fits(config, end + 1 - start, int(widths[end])):
            end += 1
        rows = order[start:end]
        ids = trimmed_ids(config, strings, rows)
        yield rows, Batch(config, ids.to(device), positions_of(config, ids).to(device))
        start = end


def trimmed_ids(
    config: NetworkConfig, strings: TokenStrings, rows: slice | Int64[np.ndarray, " row"]
) -> Integer[Tensor, "string position"]:
    """The token ids of some strings, no wider than the longest of them."""
    taken = strings.take(rows)
    ids = read_ids(taken, config.readout)
    width = int(taken.lengths.max(initial=0)) + special_tokens(config)
    return torch.from_numpy(ids[:, :width].astype(np.int32))


def _fits(config: NetworkConfig, strings: int, width: int) -> bool:
    heads = max(config.num_attention_heads, 1)
    answers = config.num_outputs if config.head != "string" else 0
    widest = max(4 * config.hidden_size, config.feed_forward_size, 2 * answers)
    return (
        strings <= pictures_at_once(config)
        and strings * width * width * heads <= PAIRS_AT_ONCE
        and strings * width * widest <= STATES_AT_ONCE
    )


# All members of a group at once, from letter counts.


Counted = tuple[Integer[Tensor, "string position"], Float[Tensor, "string position"]]
"""The tokens that are read of strings, and how often each occurs."""

TYPES_AT_ONCE = 4096
"""Token types of strings in a piece: keeps a group's widest state within tens of megabytes."""


class ByCounts:
    """A `seqcls.engines.pytorch.groups.Computation` where letter counts suffice."""

    def __init__(
        self, config: NetworkConfig, group: StackedGroup, batch_size: int, device: torch.device
    ) -> None:
        self._config = config
        self._group = group
        self._batch_size = batch_size
        self._device = device
        self._model = make_model(config).to(device, getattr(torch, config.precision)).eval()

    def batches(self, strings: TokenStrings) -> Iterator[Counted]:
        """An epoch's batches, in order."""
        return (part for _, part in self._parts(strings, self._batch_size))

    def backward(self, batch: Counted, losses: Losses) -> Float[Tensor, " member"]:
        means = losses(self._all(batch)).mean(dim=1)
        for value in self._group.parameters.values():
            value.grad = None
        means.sum().backward()
        return means.detach()

    def pieces(self, strings: TokenStrings) -> Iterator[tuple[Int64[np.ndarray, " row"], Counted]]:
        return self._parts(strings, max(TYPES_AT_ONCE // (self._config.num_letters + 1), 1))

    @torch.no_grad()
    def logits(self, piece: Counted) -> Float[Tensor, "member string"]:
        return self._all(piece)

    def keep(self, rows: Sequence[int]) -> None:
        """Holds nothing of any member but what the group holds."""

    def _all(self, batch: Counted) -> Float[Tensor, "member string"]:
        def one(weights: Mapping[str, Tensor]) -> Outputs:
            logits: Tensor = functional_call(self._model, dict(weights), (batch[0], None, batch[1]))
            return logits

        logits: Tensor = vmap(one)(self._group.parameters)
        return logits

    def _parts(
        self, strings: TokenStrings, size: int
    ) -> Iterator[tuple[Int64[np.ndarray, " row"], Counted]]:
        """So many strings at a time, with their rows."""
        ids, times = (
            torch.from_numpy(x) for x in read_counts(self._config.readout, strings.counts)
        )
        times = times.to(self._device, getattr(torch, self._config.precision))
        ids = ids.int().to(self._device)
        for start in range(0, len(times), size):
            part = times[start : start + size]
            yield np.arange(start, start + len(part)), (ids.expand(len(part), -1), part)


class _OnStrings:
    """How a `seqcls.engines.pytorch.groups.Computation` reads strings token by token."""

    def __init__(
        self, config: NetworkConfig, batch_size: int, device: torch.device, seed: int = 0
    ) -> None:
        self._config = config
        self._batch_size = batch_size
        self._device = device
        self._places = TrainingPlaces(config, seed)

    def batches(self, strings: TokenStrings) -> Iterator[Batch]:
        return training_batches(self._config, strings, self._batch_size, self._places, self._device)

    def pieces(self, strings: TokenStrings) -> Iterator[tuple[Int64[np.ndarray, " row"], Batch]]:
        return testing_pieces(self._config, strings, self._device)


# All members of a group at once through one plain model, by `vmap`: for a GPU.


class _Shortest(nn.Module):
    """The model's logits on the shortest way to them that `vmap` can go."""

    def __init__(self, config: NetworkConfig, device: torch.device) -> None:
        super().__init__()
        self.model = make_model(config).to(device, getattr(torch, config.precision))

    def forward(self, batch: Batch) -> Outputs:
        return _run_form(self.model, "stacked", batch)


class Stacked(_OnStrings):
    """A `seqcls.engines.pytorch.groups.Computation` for any model without dropout in training."""

    def __init__(
        self,
        group: StackedGroup,
        config: NetworkConfig,
        batch_size: int,
        device: torch.device,
        seed: int = 0,
    ) -> None:
        super().__init__(config, batch_size, device, seed)
        self._group = group
        self._model = _Shortest(config, device).eval()

    def backward(self, batch: Batch, losses: Losses) -> Float[Tensor, " member"]:
        means = losses(self._all(batch)).sum(dim=1) / losses.units
        for value in self._group.parameters.values():
            value.grad = None
        means.sum().backward()
        return means.detach()

    @torch.no_grad()
    def logits(self, piece: Batch) -> Float[Tensor, "member string *output"]:
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


# One member after another through a plain model of its own, which shares the group's memory.


def plain_logits(model: Classifier, batch: Batch) -> Outputs:
    """The model's logits on the shortest way to them; dropout is off."""
    return _run_form(model, "shortest", batch)


def _run_form(model: Classifier, name: str, batch: Batch) -> Outputs:
    """What a form of the model gives of a batch, or the model itself where it has none."""
    shorter: Callable[[Batch], Outputs | None] | None = form(model, name)
    outputs = None if shorter is None else shorter(batch)
    return batch.select_asked(model(batch.ids, batch.places)) if outputs is None else outputs


class OneByOne(_OnStrings):
    """A `seqcls.engines.pytorch.groups.Computation` for any model.

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
        super().__init__(config, batch_size, device, seed)
        self._flat = flat
        dtype = getattr(torch, config.precision)
        self.models = [make_model(config).to(device, dtype) for _ in range(len(flat))]
        for row, model in enumerate(self.models):
            model.use_dropout_generator(torch.Generator(device).manual_seed(seed))
            flat.bind(row, model)

    def batches(self, strings: TokenStrings) -> Iterator[Batch]:
        batches = super().batches(strings)
        if self._config.dropout_rate == 0:
            return batches
        # What dropout draws depends on the width: as in the report's program that of the epoch.
        width = strings.lengths.max(initial=0) + special_tokens(self._config)
        return (_pad_batch(batch, int(width)) for batch in batches)

    def backward(self, batch: Batch, losses: Losses) -> Float[Tensor, " member"]:
        means = []
        self._flat.forget_gradients()
        for model in self.models:
            if self._config.dropout_rate > 0:
                logits = batch.select_asked(model.train()(batch.ids, batch.places))
            else:
                logits = plain_logits(model, batch)
            mean = losses(logits).sum() / losses.units
            mean.backward()
            means.append(mean.detach())
        return torch.stack(means)

    @torch.no_grad()
    def logits(self, piece: Batch) -> Float[Tensor, "member string *output"]:
        return torch.stack([plain_logits(model.eval(), piece) for model in self.models])

    def keep(self, rows: Sequence[int]) -> None:
        """Drops the models of all members but these."""
        self.models = [self.models[row] for row in rows]
        for row, model in enumerate(self.models):
            self._flat.bind(row, model)


def _pad_batch(batch: Batch, width: int) -> Batch:
    more = (0, width - batch.ids.shape[1])
    ids = functional.pad(batch.ids, more, value=PAD)
    return Batch(batch.config, ids, functional.pad(batch.places, more))
