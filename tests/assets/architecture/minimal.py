"""A minimal gated recurrence (Feng et al. 2024): h = (1 - z) h + z c; z and c know no state."""

from collections.abc import Iterable, Mapping
from typing import cast

import torch
from jaxtyping import Int64
from torch import Tensor, nn

from seqcls.config import NetworkConfig
from seqcls.models.base import BodyAndHead, Hidden, Ids, Places, Recorder, make_head
from seqcls.models.forms import Scores, read_on
from seqcls.models.layers import Dropout, Embedding, Linear
from seqcls.models.parts import Site
from seqcls.models.recurrent import RNNCell, layer_sites
from seqcls.strings.tokenizer import PAD


class Minimal(BodyAndHead):
    """Layers of gated means, and a logit read off the last state or off the mean of all."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        hidden, bias = config.hidden_size, config.biases
        self.embedding = Embedding(config.vocabulary_size, hidden)
        layers = [Linear(hidden, 2 * hidden, bias=bias) for _ in range(config.num_blocks)]
        self.layers = cast("Iterable[Linear]", nn.ModuleList(layers))
        self.classifier = make_head(config)
        self.dropout = Dropout(config.dropout_rate)

    def states(self, ids: Ids, record: Recorder, places: Places | None) -> Hidden:
        """Implements `BodyAndHead.states`; places mean nothing here."""
        del places
        states = record("embedding", self.dropout(self.embedding(ids)))
        for number, layer in enumerate(self.layers):
            inside, after = record.within(f"layers.{number}"), [torch.zeros_like(states[:, 0])]
            gate, candidate = layer(states).chunk(2, dim=2)
            gate = inside("update_gate", gate.sigmoid())
            for position in range(states.shape[1]):
                state = torch.lerp(after[-1], candidate[:, position], gate[:, position])
                after.append(inside.step("state", position, state))
            states = self.dropout(inside("state", torch.stack(after[1:], dim=1)))
        return states

    def nothing(self, strings: int) -> list[Tensor]:
        """The state before the first token of so many strings, a layer each."""
        zeros = self.embedding.weight.new_zeros(strings, self.config.hidden_size)
        return [zeros] * self.config.num_blocks

    def begin(self, ids: Ids, most_tokens: int) -> tuple[Scores, list[Tensor]]:
        """Implements `Stepping.begin`."""
        del most_tokens
        return read_on(self.step, self.nothing(len(ids)), ids, ids != PAD)

    def step(
        self, tokens: Int64[Tensor, " string"], cached: list[Tensor]
    ) -> tuple[Scores, list[Tensor]]:
        """Implements `Stepping.step`."""
        states, after = self.embedding(tokens), list[Tensor]()
        for layer, before in zip(self.layers, cached, strict=True):
            gate, candidate = layer(states).chunk(2, dim=1)
            states = torch.lerp(before, candidate, gate.sigmoid())
            after.append(states)
        return self.head(states), after

    def sites(self) -> Mapping[Site, tuple[str, ...]]:
        """Implements `Classifier.sites`."""
        return layer_sites(self.config, RNNCell)

    def units(self) -> tuple[Mapping[str, str], ...]:
        """Implements `Classifier.units`."""
        names = ("state", "update_gate")
        return tuple({x: f"layers.{n}.{x}" for x in names} for n in range(self.config.num_blocks))
