"""The sizes of a recurrent network, and where its parameters and states stand, for compiled code.

Widths are filled up to multiples of 4, as those of Transformers.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Int64

from seqcls.config import NetworkConfig
from seqcls.engines.lanes.packing import (
    COLUMNS,
    Slots,
    embedded_rows,
    head_rows,
    one_after_another,
    output_rows,
    padded_size,
)

RNN, GRU, LSTM = range(3)
CELLS = {"rnn": RNN, "gru": GRU, "lstm": LSTM}
GATES = {"rnn": 1, "gru": 3, "lstm": 4}


class RecurrentSizes(NamedTuple):
    """Sizes and switches."""

    cell: int
    types: int
    """Token types that are read: CLS and the letters."""
    type_width: int
    """Rows of the embedding, filled up: of these, and where the head writes also of PAD."""
    outputs: int
    """Numbers that the head gives of a state."""
    at_places: bool
    """Whether these are answers, which are read at every token."""
    tied: bool
    """Whether the embedding is the head's matrix."""
    hidden: int
    width: int
    """The hidden size, filled up."""
    gates: int
    """The width of all gates beside one another."""
    layers: int
    biases: bool
    mean: bool
    """Whether the mean of all states is read, else the last one."""
    scaled_loss: bool


class RecurrentParameters(NamedTuple):
    """Where parameters begin; of a layer those of the first, the next being `layer_size` on."""

    embedding: int
    layer_size: int
    input_weight: int
    state_weight: int
    input_bias: int
    state_bias: int
    classifier: int
    classifier_bias: int
    size: int


class RecurrentStates(NamedTuple):
    """Where states begin, counted in vectors; of a layer those of the first.

    A row is a group at a token. There are as many as groups have tokens, token by token; at each
    token the groups whose strings have not ended, the longest first.
    """

    rows: int
    types: int
    is_token: int
    read: int
    read_gradient: int
    share: int
    zero: int
    """A state of zeros for each group: before the first token."""
    state_gradient: int
    """One for each group."""
    cell_gradient: int
    output_gradient: int
    """One for each row."""
    input_gates_gradient: int
    state_gates_gradient: int
    """The same as the one before, but of a GRU."""
    layer_size: int
    gates: int
    from_state: int
    """In a GRU, what the state before gives to the gates."""
    state: int
    previous: int
    """The state before, row by row."""
    cell: int
    cell_tanh: int
    outputs: int
    """Outputs of a head that writes: of every row in training, else of `COLUMNS` at once."""
    size: int


def sizes_of(config: NetworkConfig, *, scaled_loss: bool = False) -> RecurrentSizes:
    """A network's sizes and switches."""
    width = padded_size(config.hidden_size)
    return RecurrentSizes(
        cell=CELLS[config.architecture],
        types=config.num_letters + 1,
        type_width=padded_size(embedded_rows(config)),
        outputs=config.num_outputs,
        at_places=config.head == "places",
        tied=config.tied_embeddings,
        hidden=config.hidden_size,
        width=width,
        gates=GATES[config.architecture] * width,
        layers=config.num_blocks,
        biases=config.biases,
        mean=config.readout == "mean",
        scaled_loss=scaled_loss,
    )


@lru_cache(maxsize=64)
def parameters_of(config: NetworkConfig) -> RecurrentParameters:
    """Where a network's parameters stand."""
    s = sizes_of(config)
    layer = {
        "input_weight": s.gates * s.width,
        "state_weight": s.gates * s.width,
        "input_bias": s.gates,
        "state_bias": s.gates,
    }
    size, embedding = sum(layer.values()), s.type_width * s.width
    classifier = embedding + s.layers * size
    classified = 0 if s.tied else padded_size(s.outputs)
    at_tokens = s.outputs > 1 or s.at_places
    bias = classifier + (classified if at_tokens else 1) * s.width
    return RecurrentParameters(
        embedding=0,
        layer_size=size,
        **one_after_another(layer, embedding),
        classifier=classifier,
        classifier_bias=bias,
        size=bias + classified,
    )


@lru_cache(maxsize=64)
def slots_of(config: NetworkConfig) -> Slots:
    """The places of the values of each parameter, by its name."""
    return dict(_slots(config, sizes_of(config), parameters_of(config)))


def _slots(
    config: NetworkConfig, s: RecurrentSizes, p: RecurrentParameters
) -> Iterator[tuple[str, Int64[np.ndarray, "..."]]]:
    hidden = np.arange(s.hidden)
    gates = np.add.outer(np.arange(GATES[config.architecture]) * s.width, hidden).reshape(-1)
    rows = head_rows(config)
    yield "embedding.weight", p.embedding + np.add.outer(rows * s.width, hidden)
    for layer in range(s.layers):
        inside, moved = f"layers.{layer}.", layer * p.layer_size
        matrix = np.add.outer(gates * s.width, hidden)
        yield f"{inside}input_weight", moved + p.input_weight + matrix
        yield f"{inside}state_weight", moved + p.state_weight + matrix
        if s.biases:
            yield f"{inside}input_bias", moved + p.input_bias + gates
            yield f"{inside}state_bias", moved + p.state_bias + gates
    if s.tied:
        return
    outputs = output_rows(config)
    yield "classifier.weight", p.classifier + np.add.outer(outputs * s.width, hidden)
    if s.biases:
        yield "classifier.bias", p.classifier_bias + outputs


def states_of(
    s: RecurrentSizes, rows: int, groups: int, *, training: bool = False
) -> RecurrentStates:
    """Where the states of a batch stand.

    Args:
        rows: as `RecurrentStates` counts them.
        groups: so many at most.
        training: whether what the gradients of a head that writes need is kept.
    """
    # One vector more in every row: rows that are a power of two apart share lines of the cache.
    width, gates = s.width + 1, s.gates + 1
    gru, lstm = s.cell == GRU, s.cell == LSTM
    common = {
        "types": rows * (s.type_width + 1),
        "is_token": rows,
        "read": groups * width,
        "read_gradient": groups * width,
        "share": groups,
        "zero": groups * width,
        "state_gradient": groups * width,
        "cell_gradient": groups * width,
        "output_gradient": rows * width,
        "input_gates_gradient": rows * gates,
        "state_gates_gradient": rows * gates * gru,
    }
    layer = {
        "gates": rows * gates,
        "from_state": rows * gates * gru,
        "state": rows * width,
        "previous": rows * width,
        "cell": rows * width * lstm,
        "cell_tanh": rows * width * lstm,
    }
    starts, first, size = one_after_another(common), sum(common.values()), sum(layer.values())
    if not gru:
        starts["state_gates_gradient"] = starts["input_gates_gradient"]
    layers, end = one_after_another(layer, first), first + s.layers * size
    outputs = (rows if training else COLUMNS) * (padded_size(s.outputs) + 1)
    outputs *= s.outputs > 1 or s.at_places
    return RecurrentStates(
        rows=rows, **starts, layer_size=size, **layers, outputs=end, size=end + outputs
    )
