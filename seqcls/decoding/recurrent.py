"""A recurrent network that keeps its state after the tokens before."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from seqcls.models.base import Ids
from seqcls.models.recurrent import Recurrent, State
from seqcls.tokens.tokenizer import PAD


class RecurrentStepper:
    """A `seqcls.decoding.stepping.Stepper` of recurrent networks."""

    def __init__(self, model: Recurrent, states: list[State], cells: list[State]) -> None:
        self._model = model
        self._states = states
        self._cells = cells

    @classmethod
    def start(
        cls, model: Recurrent, ids: Ids
    ) -> "tuple[RecurrentStepper, Float[Tensor, 'string output']]":
        """Implements `seqcls.decoding.stepping.start`."""
        kept = model.activations(ids)
        last = torch.arange(len(ids)), (ids != PAD).sum(dim=1) - 1
        layers = range(model.config.num_blocks)
        states = [kept[f"layers.{layer}.state"][last] for layer in layers]
        cells = list(states)
        if model.cell.has_cell:
            cells = [kept[f"layers.{layer}.cell"][last] for layer in layers]
        return cls(model, states, cells), kept["logits"][last]

    def step(self, tokens: Int64[Tensor, " string"]) -> Float[Tensor, "string output"]:
        """Implements `Stepper.step`."""
        states = self._model.embedding(tokens)
        for number, layer in enumerate(self._model.layers):
            given = layer.from_input(states)
            step = layer.step(given, self._states[number], self._cells[number])
            self._states[number], self._cells[number] = step.state, step.cell
            states = step.state
        return self._model.head(states)

    def take(self, rows: Int64[Tensor, " row"]) -> None:
        """Implements `Stepper.take`."""
        self._states = [states[rows] for states in self._states]
        self._cells = [cells[rows] for cells in self._cells]
