"""Recurrent networks, one string a row and one token after another: the readable truth.

The cells are those of `torch.nn.RNN` (tanh), `GRU` and `LSTM`, gate by gate and with their biases.
Padding comes after a string, so the head reads no state that depends on it.
"""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, NamedTuple, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from seqcls.config import NetworkConfig
from seqcls.models.base import (
    BodyAndHead,
    Hidden,
    Ids,
    Outputs,
    Places,
    Recorder,
    make_head,
    read_states,
)
from seqcls.models.forms import Scores, Tokens, form
from seqcls.models.layers import Dropout, Embedding
from seqcls.models.parts import Site, inside
from seqcls.strings.tokenizer import PAD

State = Float[Tensor, "string hidden"]
Gates = Float[Tensor, "string gates"]
"""The gates of a cell, concatenated, each of the hidden size."""


class CellStep(NamedTuple):
    """A cell's new state, new cell and gates by name after one token."""

    state: State
    cell: State
    gates: dict[str, State]


class Cell(nn.Module):
    """One layer's parameters; `step` is its formula."""

    gates: ClassVar[tuple[str, ...]] = ()
    """Names of the gates, in the order of the parameters' rows; empty for a plain cell."""
    has_cell: ClassVar[bool] = False
    """True if it has a second state that it does not output."""

    def __init__(self, config: NetworkConfig, inputs: int | None = None) -> None:
        """Makes a cell that reads `inputs` numbers for each token, by default the hidden size."""
        super().__init__()
        hidden = config.hidden_size
        rows = hidden * max(len(self.gates), 1)
        self.input_weight = nn.Parameter(torch.empty(rows, inputs or hidden))
        self.state_weight = nn.Parameter(torch.empty(rows, hidden))
        self.input_bias = nn.Parameter(torch.empty(rows)) if config.biases else None
        self.state_bias = nn.Parameter(torch.empty(rows)) if config.biases else None

    def from_input(self, states: Float[Tensor, "*token inputs"]) -> Float[Tensor, "*token gates"]:
        return functional.linear(states, self.input_weight, self.input_bias)

    def from_state(self, state: State) -> Gates:
        return functional.linear(state, self.state_weight, self.state_bias)

    def step(self, given: Gates, state: State, cell: State) -> CellStep:
        """Reads one token, given its input's share of the gates and the state and cell before."""
        raise NotImplementedError

    def forward(self, states: Hidden, record: Recorder) -> tuple[Hidden, Hidden]:
        """Returns the state and the cell after every token; without a cell zeros."""
        given = self.from_input(states)
        state = cell = states.new_zeros(len(states), states.shape[2])
        steps = []
        for place in range(states.shape[1]):
            step = self.step(given[:, place], state, cell)
            # A recorder may replace the state, and the next token has to read the new one.
            state, cell = record.step("state", place, step.state), step.cell
            if self.has_cell:
                cell = record.step("cell", place, cell)
            steps.append(step._replace(state=state, cell=cell))

        def stack(values: Iterable[State]) -> Tensor:
            tensors = list(values)
            return torch.stack(tensors, dim=1) if tensors else torch.zeros_like(states)

        for gate in self.gates:
            record(gate, stack(step.gates[gate] for step in steps))
        cells = torch.zeros_like(states)
        if self.has_cell:
            cells = record("cell", stack(step.cell for step in steps))
        return record("state", stack(step.state for step in steps)), cells


class RNNCell(Cell):
    """tanh(W x + U h)."""

    def step(self, given: Gates, state: State, cell: State) -> CellStep:
        return CellStep((given + self.from_state(state)).tanh(), cell, {})

    kernel = staticmethod(torch.rnn_tanh)
    """PyTorch's kernel, which computes the states of all positions, (position, string, hidden)."""


class GRUCell(Cell):
    """(1 - z) n + z h, with the candidate n = tanh(W x + r (U h)) and the gates r and z."""

    gates = ("reset_gate", "update_gate", "candidate")

    def step(self, given: Gates, state: State, cell: State) -> CellStep:
        reset, update, candidate = given.chunk(3, dim=1)
        own_reset, own_update, own_candidate = self.from_state(state).chunk(3, dim=1)
        reset, update = (reset + own_reset).sigmoid(), (update + own_update).sigmoid()
        candidate = (candidate + reset * own_candidate).tanh()
        after = (1 - update) * candidate + update * state
        return CellStep(after, cell, dict(zip(self.gates, (reset, update, candidate), strict=True)))

    kernel = staticmethod(torch.gru)


class LSTMCell(Cell):
    """o tanh(c), with the cell c = f c + i g, the candidate g and the gates i, f and o."""

    gates = ("input_gate", "forget_gate", "candidate", "output_gate")
    has_cell = True

    def step(self, given: Gates, state: State, cell: State) -> CellStep:
        gates = (given + self.from_state(state)).chunk(4, dim=1)
        take, keep, give = (gates[row].sigmoid() for row in (0, 1, 3))
        candidate = gates[2].tanh()
        cell = keep * cell + take * candidate
        named = dict(zip(self.gates, (take, keep, candidate, give), strict=True))
        return CellStep(give * cell.tanh(), cell, named)

    @staticmethod
    def kernel(states: Tensor, start: Tensor, weights: list[Tensor], *settings: Any) -> Any:
        # oneDNN's kernel turns NaN into a number.
        mkldnn: Any = torch.backends.mkldnn
        was_on, mkldnn.enabled = mkldnn.enabled, False
        try:
            return torch.lstm(states, (start, start), weights, *settings)
        finally:
            mkldnn.enabled = was_on


CELLS: Mapping[str, type[Cell]] = {"rnn": RNNCell, "gru": GRUCell, "lstm": LSTMCell}
"""The cells of our architectures, by name."""


class Recurrence(NamedTuple):
    """The states and cells of layers between tokens; without cells those mean nothing."""

    states: list[State]
    cells: list[State]


class Recurrent(BodyAndHead):
    """Layers of cells, and a head that reads the last state, the mean of all, or each."""

    steps_through = True
    cell: type[Cell] = RNNCell
    """The cell; one of an architecture from outside, a subclass, is its own."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        self.cell = CELLS.get(config.architecture, self.cell)
        self.embedding = Embedding(config.vocabulary_size, config.hidden_size)
        layers = nn.ModuleList([self.cell(config) for _ in range(config.num_blocks)])
        self.layers = cast("Iterable[Cell]", layers)
        self.classifier = make_head(config)
        self.dropout = Dropout(config.dropout_rate)

    def states(self, ids: Ids, record: Recorder, places: Places | None) -> Hidden:
        """Implements `BodyAndHead.states`; places mean nothing here."""
        states = record("embedding", self.dropout(self.embedding(ids)))
        for number, layer in enumerate(self.layers):
            states, _ = layer(states, record.within(f"layers.{number}"))
            states = self.dropout(states)
        return states

    def nothing(self, strings: int) -> Recurrence:
        """The cache before the first token of so many strings."""
        zeros = self.embedding.weight.new_zeros(strings, self.config.hidden_size)
        return Recurrence([zeros] * self.config.num_blocks, [zeros] * self.config.num_blocks)

    def begin(self, ids: Ids, most_tokens: int) -> tuple[Scores, Recurrence]:
        recorded = self.activations(ids)
        last = torch.arange(len(ids)), (ids != PAD).sum(dim=1) - 1
        layers = range(self.config.num_blocks)
        states = [recorded[f"layers.{layer}.state"][last] for layer in layers]
        # Without cells the states are repeated: a `Recurrence` has both, and no step reads them.
        cells = list(states)
        if self.cell.has_cell:
            cells = [recorded[f"layers.{layer}.cell"][last] for layer in layers]
        return recorded["logits"][last], Recurrence(states, cells)

    def step(self, tokens: Tokens, cached: Recurrence) -> tuple[Scores, Recurrence]:
        states, after = self.embedding(tokens), Recurrence([], [])
        for layer, state, cell in zip(self.layers, *cached, strict=True):
            step = layer.step(layer.from_input(states), state, cell)
            after.states.append(step.state)
            after.cells.append(step.cell)
            states = step.state
        return self.head(states), after

    def by_kernels(self, ids: Ids) -> Outputs | None:
        """Computes `forward` without dropout by PyTorch's kernels, layer by layer; None if a cell
        has none.
        """
        kernels = [form(layer, "kernel") for layer in self.layers]
        if None in kernels:
            return None
        # Positions come first, in the order in which the kernels go through memory.
        states, hidden = self.embedding(ids.T), self.config.hidden_size
        for layer, kernel in zip(self.layers, kernels, strict=True):
            start = states.new_zeros(1, states.shape[1], hidden)
            # Biases, layers, dropout, training, both ways, strings first. cuDNN keeps what a
            # gradient needs only in training mode.
            settings = (layer.input_bias is not None, 1, 0.0, torch.is_grad_enabled(), False, False)
            # `Cell` declares its parameters in the order in which PyTorch's kernels take them.
            weights = list(layer.parameters())
            # PyTorch's kernels refuse strings without a token.
            states = kernel(states, start, weights, *settings)[0] if len(states) else start[:0]
        states = states.transpose(0, 1)
        if self.config.head != "string":
            return self.head(states)
        return self.head(read_states(self.config, states, ids))

    def sites(self) -> Mapping[Site, tuple[str, ...]]:
        return layer_sites(self.config, self.cell)

    def units(self) -> tuple[Mapping[str, str], ...]:
        """Implements `Classifier.units`: the state, every gate, and an LSTM's cell."""
        names = ["state", *self.cell.gates, *(["cell"] if self.cell.has_cell else [])]
        return tuple(
            {name: f"layers.{layer}.{name}" for name in names}
            for layer in range(self.config.num_blocks)
        )


def layer_sites(
    config: NetworkConfig, cell: type[Cell], side: str = ""
) -> Mapping[Site, tuple[str, ...]]:
    """Lists the sites of layers: each layer, then its parts; `side` is that of `block_parts`."""
    sites = dict[Site, tuple[str, ...]]()
    for layer in range(config.num_blocks):
        state_names = ("state", "cell") if cell.has_cell else ("state",)
        names = {name: f"{inside('layers', layer, side)}{name}" for name in state_names}
        sites[Site("layer", layer, side=side)] = tuple(names.values())
        if cell.has_cell:
            sites |= {Site(name, layer, side=side): (state,) for name, state in names.items()}
        for unit in range(config.hidden_size):
            sites[Site("unit", layer, unit, side)] = tuple(names.values())
    return sites
