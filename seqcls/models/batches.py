"""A batch of strings as models read it: masks and places, made once for all members of a group."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from seqcls.config import NetworkConfig
from seqcls.kinds.transduction import separator_id
from seqcls.models.base import Ids, Outputs, Places
from seqcls.models.blocks import attendable_tokens, length_scale
from seqcls.models.two_streams import decoder_config, encoder_config, split
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
            Batch(encoder_config(self.config), inputs, streams.positions_of(self.places, inputs)),
            Batch(decoder_config(self.config), outputs, streams.positions_of(self.places, outputs)),
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
        if self.config.head != "output":
            return read
        return read & ((self.ids == separator_id(self.config)).cumsum(dim=1) > 0)

    @cached_property
    def asked_tokens(self) -> Int64[Tensor, " token"]:
        """The places of those asked for among the tokens."""
        return self.is_asked[self.ids != PAD].nonzero()[:, 0]

    def select_asked(self, outputs: Outputs) -> Float[Tensor, "asked ..."]:
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
