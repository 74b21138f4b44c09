"""Recurrent networks as functions of many sets of states, by the checker's own arithmetic.

A state is all that layers keep: of each layer the state and, of an LSTM, the cell.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64

from seqcls.config import NetworkConfig
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.problem import Problem
from seqcls.proofs.checker import GATES, Forms, Network
from seqcls.strings.tokenizer import CLS, FIRST_LETTER

MOST_UNITS = 256
"""Units of a layer at most: a form has a generator for each and each letter it is carried over."""

BLOCK = 64
"""Forms that are stepped at once, so that the results stay in the processor's cache."""


def why_not_proved(problem: Problem) -> str | None:
    """The reason why no model of a problem is proved; None where one may be."""
    config, network = problem.config, problem.network
    if reason := problem.lacks("labels") or problem.unknown_labels:
        return reason
    if config.architecture not in GATES:
        return (
            f"architecture={config.architecture!r} cannot be proved, only {', '.join(GATES)}; "
            "`seqcls model verdict` checks it up to a length"
        )
    if network.readout not in ("last", "last_letter"):
        return (
            f"readout={network.readout!r} cannot be proved: the answer does not depend on the last "
            "state alone"
        )
    if network.tied_embeddings or network.head != "string":
        return "tied_embeddings and heads of several outputs have no single logit"
    if network.hidden_size > MOST_UNITS:
        return f"hidden_size={network.hidden_size}: models of up to {MOST_UNITS} units are proved"
    return None


def end_token(network: NetworkConfig) -> int | None:
    """The token that is read after a string; None where the last letter's state is read."""
    return CLS if network.readout == "last" else None


def boxes(low: Float64[np.ndarray, "row unit"], high: Float64[np.ndarray, "row unit"]) -> Forms:
    """The forms of boxes."""
    # The center is rounded, so the radius covers the further end.
    center = (low + high) / 2
    none = np.zeros((len(low), 0, low.shape[1]))
    return Forms(center, none, np.maximum(high - center, center - low))


def rows_of(forms: Forms, rows: np.ndarray | slice) -> Forms:
    """Some of many forms."""
    return Forms(*(x[rows] for x in forms))


@dataclass(frozen=True, eq=False)
class Cells:
    """A recurrent network, and its steps of many forms at once."""

    network: Network
    end: int | None
    """The token that is read after a string; None where the last letter's state is read."""

    @classmethod
    def from_model(cls, model: TrainedModel) -> "Cells":
        """The network of a model for which `why_not_proved` has no reason."""
        network = Network(str(model.config.architecture), dict(model.weights))
        return cls(network, end_token(model.problem.network))

    @property
    def cells(self) -> Bool[np.ndarray, " unit"]:
        """True for the numbers of a state that are an LSTM's cells: those have no bound."""
        # A layer keeps its state first, then an LSTM its cell.
        own = np.arange(self.network.layer_units) >= self.network.hidden
        return np.tile(own, len(self.network.layers))

    def after_letter(self, states: Forms, letter: int) -> Forms:
        """The states after one more letter.

        Raises:
            RejectedError: numbers may overflow on the way.
        """
        return self._step(states, letter + FIRST_LETTER)

    def logits(self, states: Forms) -> tuple[np.ndarray, np.ndarray]:
        """The least and the greatest answer to strings that end in these states."""
        ended = states if self.end is None else self._step(states, self.end)
        low, high = self.network.answer(ended, None)
        return low[:, 0], high[:, 0]

    def _step(self, states: Forms, token: int) -> Forms:
        # Without any form one empty block still gives results of the right shape.
        blocks = range(0, max(len(states.center), 1), BLOCK)
        parts = (self.network.step(rows_of(states, slice(x, x + BLOCK)), token) for x in blocks)
        return Forms(*map(np.concatenate, zip(*parts, strict=True)))
