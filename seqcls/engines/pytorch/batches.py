"""Batches of strings as models read them, made once for all members of a group."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64, Integer
from torch import Tensor

from seqcls.config import NetworkConfig
from seqcls.kinds.transduction import separator_id
from seqcls.models.base import Ids, Outputs, Places
from seqcls.models.encoder_decoder import decoder_config, encoder_config
from seqcls.models.pictures import pictures_at_once
from seqcls.models.positions import read_ids, special_tokens
from seqcls.models.positions.places import TrainingPlaces, places_of
from seqcls.models.transformer import attendable_tokens, length_scale
from seqcls.models.two_streams import split
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import PAD


@dataclass(frozen=True, eq=False)
class Batch:
    """Strings that go through a model at once, no wider than the longest of them."""

    config: NetworkConfig
    ids: Ids
    places: Places

    @cached_property
    def sides(self) -> "tuple[Batch, Batch]":
        """What an encoder and a decoder read of it."""
        streams = split(self.config, self.ids)
        inputs, outputs = streams.inputs, streams.outputs
        return (
            Batch(encoder_config(self.config), inputs, streams.places_of(self.places, inputs)),
            Batch(decoder_config(self.config), outputs, streams.places_of(self.places, outputs)),
        )

    @cached_property
    def lengths(self) -> Int64[Tensor, " string"]:
        """Tokens that the model reads of each string."""
        return (self.ids != PAD).sum(dim=1)

    @cached_property
    def token_rows(self) -> Int64[Tensor, " token"]:
        """Where the tokens stand among the positions of all strings, string by string."""
        return self._rows(1)

    @cached_property
    def head_rows(self) -> Int64[Tensor, " token_head"]:
        """Where the heads of each token stand among the positions of all strings' heads."""
        return self._rows(self.config.num_attention_heads)

    def _rows(self, heads: int) -> Int64[Tensor, " token_head"]:
        strings, width = self.ids.shape
        rows = torch.arange(strings * heads * width, device=self.ids.device)
        by_position = rows.view(strings, heads, width).transpose(1, 2)
        return by_position[self.ids != PAD].flatten()

    @cached_property
    def is_asked(self) -> Bool[Tensor, "string position"]:
        """At which tokens a head that answers token by token is asked for the next one."""
        read = self.ids != PAD
        if self.config.head == "all":
            return read
        return read & ((self.ids == separator_id(self.config)).cumsum(dim=1) > 0)

    @cached_property
    def asked_tokens(self) -> Int64[Tensor, " token"]:
        """The places of those asked for among the tokens."""
        return self.is_asked[self.ids != PAD].nonzero()[:, 0]

    def asked(self, outputs: Outputs) -> Outputs:
        """Chooses from a model's outputs those that are asked for, where its head answers token
        by token.
        """
        return outputs if self.config.head == "string" else outputs[self.is_asked]

    @cached_property
    def attendable(self) -> Bool[Tensor, "string #position position"]:
        return attendable_tokens(self.config, self.ids)

    @cached_property
    def mask(self) -> Float[Tensor, "string 1 #position position"]:
        """What is added to scores: 0, or the least number where nothing is attended to."""
        dtype = getattr(torch, self.config.precision)
        zeros = torch.zeros((), dtype=dtype, device=self.ids.device)
        return torch.where(self.attendable, zeros, torch.finfo(dtype).min).unsqueeze(1)

    @cached_property
    def idle(self) -> Bool[Tensor, "string 1 #position 1"] | None:
        """Where a token has nothing to attend to; None where all have something."""
        idle = ~self.attendable.any(dim=2)
        return idle[:, None, :, None] if idle.any() else None

    @cached_property
    def scale(self) -> Float[Tensor, "string 1 #position 1"] | None:
        """What scores are multiplied by beside 1 / sqrt(head size); None for nothing."""
        if self.config.attention_scale == "sqrt":
            return None
        return length_scale(self.config, self.ids)

    @cached_property
    def read_rows(self) -> Int64[Tensor, " string"]:
        """Where the logit is read, with the readouts `first` and `last`."""
        if self.config.readout == "first":
            return torch.zeros_like(self.lengths)
        return self.lengths - 1

    @cached_property
    def read_tokens(self) -> Int64[Tensor, " string"]:
        """The places among the tokens of those that are read."""
        return self.lengths.cumsum(0) - self.lengths + self.read_rows


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
        yield rows, Batch(config, ids.to(device), places_of(config, ids).to(device))
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
