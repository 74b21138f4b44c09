"""Recurrent networks as functions of sets of states: what a token makes of a form.

Each formula is that of `seqcls.models.recurrent`, in affine forms. A state is all that layers keep:
of each layer the state and, of an LSTM, the cell.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64

from seqcls.config import NetworkConfig
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.problem import Problem
from seqcls.proofs.arithmetic import (
    Forms,
    beside,
    concatenate,
    limit,
    linear,
    minus,
    plus,
    sigmoid,
    tanh,
    times,
)
from seqcls.strings.tokenizer import CLS, FIRST_LETTER

GATES = {"rnn": 1, "gru": 3, "lstm": 4}
"""Gates of each architecture whose models are proved."""

MOST_UNITS = 256
"""Units of a layer at most: a form has a generator for each and each letter it is carried over."""

BLOCK = 64
"""Forms that are stepped at once, so that what is made of them stays in the processor's cache."""


def why_not_proved(problem: Problem) -> str | None:
    """Why no model of a problem is proved; None where one may be."""
    config, network = problem.config, problem.network
    if reason := problem.lacks("labels") or problem.unknown_labels:
        return reason
    if config.architecture not in GATES:
        return (
            f"architecture={config.architecture!r} cannot be proved: only states of "
            f"{', '.join(GATES)} have bounds here"
        )
    if network.readout not in ("last", "last_letter"):
        return (
            f"readout={network.readout!r} cannot be proved: the answer is no function of the last "
            "state"
        )
    if network.tied_embeddings or network.head != "string":
        return "tied_embeddings and heads of several outputs have no single logit"
    if network.hidden_size > MOST_UNITS:
        return f"hidden_size={network.hidden_size}: models of up to {MOST_UNITS} units are proved"
    return None


def end_token(network: NetworkConfig) -> int | None:
    """The token that is read after a string; None where the last letter's state is read."""
    return CLS if network.readout == "last" else None


Given = Forms | np.ndarray
"""What a layer reads of one token: the states of the layer before, or the token's own vector."""


@dataclass(frozen=True, eq=False)
class Layer:
    """One layer's parameters."""

    input_weight: Float64[np.ndarray, "gate unit"]
    state_weight: Float64[np.ndarray, "gate unit"]
    input_bias: Float64[np.ndarray, " gate"]
    state_bias: Float64[np.ndarray, " gate"]


@dataclass(frozen=True, eq=False)
class Cells:
    """A recurrent network, and what it makes of forms."""

    kind: str
    """One of `GATES`."""
    embedding: Float64[np.ndarray, "token unit"]
    layers: Sequence[Layer]
    head: tuple[np.ndarray, np.ndarray]
    """Its weight (1, unit) and its bias (1,)."""
    end: int | None
    """The token that is read after a string; None where the last letter's state is read."""

    @classmethod
    def of(cls, model: TrainedModel) -> "Cells":
        """The network of a model for which `why_not_proved` has no reason."""
        network: NetworkConfig = model.problem.network
        weights = {name: np.asarray(x, dtype=np.float64) for name, x in model.weights.items()}
        kind = str(model.config.architecture)
        none = np.zeros(GATES[kind] * network.hidden_size)
        layers = []
        for row in range(network.num_blocks):
            named = {
                x.rsplit(".", 1)[1]: w for x, w in weights.items() if x.startswith(f"layers.{row}.")
            }
            layers.append(Layer(**{"input_bias": none, "state_bias": none, **named}))
        head = weights["classifier.weight"], weights.get("classifier.bias", np.zeros(1))
        return cls(kind, weights["embedding.weight"], layers, head, end_token(network))

    @property
    def units(self) -> int:
        """Numbers in a state."""
        return len(self.layers) * self._layer_units

    @property
    def _layer_units(self) -> int:
        return int(self.embedding.shape[1]) * (2 if self.kind == "lstm" else 1)

    @property
    def cells(self) -> Bool[np.ndarray, " unit"]:
        """Which numbers of a state are cells: those have no bound."""
        half = self.embedding.shape[1]
        own = np.arange(self._layer_units) >= half
        return np.tile(own, len(self.layers))

    def bound_tokens(self) -> None:
        """Looks whether what the first layer makes of a token may overflow, of any in the table:
        programs look that up, and multiply what is of other tokens by 0.

        Raises:
            MayOverflowError: it may.
        """
        first = self.layers[0]
        biases = np.abs(first.input_bias) + np.abs(first.state_bias)
        limit(np.abs(self.embedding) @ np.abs(first.input_weight).T + biases)

    def after_letter(self, states: Forms, letter: int) -> Forms:
        """The states after one more letter."""
        return self._step(states, letter + FIRST_LETTER)

    def logits(self, states: Forms) -> tuple[np.ndarray, np.ndarray]:
        """The least and the greatest answer to strings that end in these states."""
        if self.end is not None:
            states = self._step(states, self.end)
        last = (len(self.layers) - 1) * self._layer_units
        low, high = linear(
            states.units(slice(last, last + self.embedding.shape[1])), *self.head
        ).ends
        return low[:, 0], high[:, 0]

    def _step(self, states: Forms, token: int) -> Forms:
        rows = len(states.center)
        if rows > BLOCK:
            parts = (states.rows(slice(x, x + BLOCK)) for x in range(0, rows, BLOCK))
            return concatenate([self._step(x, token) for x in parts])
        states = states.shared()
        given: Given = self.embedding[token]
        after = []
        for number, layer in enumerate(self.layers):
            start = number * self._layer_units
            kept = states.units(slice(start, start + self._layer_units))
            after.append(_STEPS[self.kind](layer, given, kept))
            given = after[-1].units(slice(0, self.embedding.shape[1]))
        return beside(*after)


def _rnn(layer: Layer, given: Given, state: Forms) -> Forms:
    return tanh(_gates(layer, given, state, slice(None)))


def _gru(layer: Layer, given: Given, state: Forms) -> Forms:
    hidden = layer.state_weight.shape[1]
    reset, update = _split(sigmoid(_gates(layer, given, state, slice(0, 2 * hidden))), hidden)
    last = slice(2 * hidden, None)
    own = linear(state, layer.state_weight[last], layer.state_bias[last])
    weight, bias = layer.input_weight[last], layer.input_bias[last]
    if isinstance(given, Forms):
        told = linear(given, weight, bias)
    else:
        told = linear(state, np.zeros_like(weight), bias, *(weight * given).T)
    # Its rest is told of twice below, and shared it is told of by the two together.
    candidate = tanh(plus(told, times(reset, own))).shared()
    return plus(candidate, times(update, minus(state, candidate)))


def _lstm(layer: Layer, given: Given, kept: Forms) -> Forms:
    hidden = layer.state_weight.shape[1]
    state, cell = _split(kept, hidden)
    gates = _split(_gates(layer, given, state, slice(None)), hidden)
    take, keep, give = (sigmoid(gates[row]) for row in (0, 1, 3))
    cell = plus(times(keep, cell), times(take, tanh(gates[2])))
    return beside(times(give, tanh(cell)), cell)


_STEPS = {"rnn": _rnn, "gru": _gru, "lstm": _lstm}


def _gates(layer: Layer, given: Given, state: Forms, chosen: slice) -> Forms:
    """What input and state come to in some rows of the parameters: one sum, in any order."""
    biases = layer.input_bias[chosen], layer.state_bias[chosen]
    if isinstance(given, Forms):
        weights = np.concatenate([layer.input_weight, layer.state_weight], axis=1)[chosen]
        return linear(beside(given, state), weights, *biases)
    return linear(
        state, layer.state_weight[chosen], *biases, *(layer.input_weight[chosen] * given).T
    )


def _split(forms: Forms, hidden: int) -> list[Forms]:
    """Parts of as many units each."""
    starts = range(0, forms.center.shape[1], hidden)
    return [forms.units(slice(start, start + hidden)) for start in starts]
