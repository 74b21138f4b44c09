"""A recurrent model's states after prefixes: each is one step from that of the prefix before."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from seqcls.interpretability.model.readable_model import plain_model
from seqcls.interpretability.model.trained_model import Letters, TrainedModel
from seqcls.models.recurrent import Recurrent
from seqcls.tokens.tokenizer import CLS, FIRST_LETTER

State = Float[Tensor, "string hidden"]

MOST_KEPT = 20_000
"""Prefixes whose states are kept; beyond, those kept so far are forgotten."""


@dataclass(frozen=True, eq=False)
class Kept:
    """What a network knows of some prefixes: a state and a cell a layer."""

    states: tuple[State, ...]
    cells: tuple[State, ...]

    def repeated(self, times: int) -> "Kept":
        """Each prefix so many times, one after another."""
        return Kept(
            tuple(state.repeat_interleave(times, dim=0) for state in self.states),
            tuple(cell.repeat_interleave(times, dim=0) for cell in self.cells),
        )


class PrefixStates:
    """Steps of a recurrent network that reads its answer off the last state."""

    def __init__(self, network: Recurrent, num_letters: int) -> None:
        self.num_letters = num_letters
        self._network = network
        self._kept: dict[Letters, Kept] = {}

    @classmethod
    def of(cls, model: TrainedModel) -> "PrefixStates | None":
        """The steps of a model; None where its answers are no function of states after prefixes."""
        if model.writes or model.problem.network.readout != "last":
            return None
        network = plain_model(model)
        if not isinstance(network, Recurrent):
            return None
        return cls(network, model.num_letters)

    @property
    def start(self) -> Kept:
        """That of the empty prefix."""
        config = self._network.config
        zeros = tuple(
            torch.zeros(1, config.hidden_size, dtype=torch.float64)
            for _ in range(config.num_blocks)
        )
        return Kept(zeros, zeros)

    @torch.no_grad()
    def step(self, kept: Kept, letters: Sequence[int]) -> Kept:
        """After one more letter each."""
        return self._read(kept, torch.tensor(letters) + FIRST_LETTER)

    @torch.no_grad()
    def logits(self, kept: Kept) -> Float[Tensor, " string"]:
        """The answers to the prefixes as strings of their own."""
        ended = self._read(kept, torch.full((len(kept.states[0]),), CLS))
        return self._network.head(ended.states[-1])

    def after(self, letters: Letters) -> Kept:
        """What is known after a prefix, from the longest one of it that was stepped before."""
        end = next((n for n in range(len(letters), 0, -1) if letters[:n] in self._kept), 0)
        kept = self._kept[letters[:end]] if end else self.start
        if len(self._kept) + len(letters) - end > MOST_KEPT:
            self._kept.clear()
        for place in range(end, len(letters)):
            kept = self.step(kept, letters[place : place + 1])
            self._kept[letters[: place + 1]] = kept
        return kept

    def _read(self, kept: Kept, ids: Tensor) -> Kept:
        given = self._network.embedding(ids)
        states, cells = [], []
        for layer, state, cell in zip(self._network.layers, kept.states, kept.cells, strict=True):
            step = layer.step(layer.from_input(given), state, cell)
            given = step.state
            states.append(step.state)
            cells.append(step.cell)
        return Kept(tuple(states), tuple(cells))
