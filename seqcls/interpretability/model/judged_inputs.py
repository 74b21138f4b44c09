"""Which strings are inputs of a transduction, and what a model makes of those."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int64

from seqcls.interpretability.model.trained_model import TrainedModel
from seqcls.kinds import Examples
from seqcls.tokens.strings import TokenStrings

if TYPE_CHECKING:
    from seqcls.decoding.judging import Judged


@dataclass(frozen=True, eq=False)
class JudgedInputs:
    """The inputs among some strings that a model has places for, and what it makes of them."""

    rows: Int64[np.ndarray, " input"]
    """Their places among the strings."""
    examples: Examples
    judged: "Judged"


def judged_inputs(model: TrainedModel, strings: TokenStrings) -> JudgedInputs:
    """Asks a model about those of some strings that it can be asked about.

    Args:
        model: one that writes.
        strings: inputs of its task or not.
    """
    # PyTorch, which takes a second or two to load.
    from seqcls.decoding.judging import judge, readable_inputs

    is_input, targets = model.inputs_among(strings)
    examples = Examples(strings, targets)
    rows = np.flatnonzero(readable_inputs(model.problem, examples) & is_input)
    taken = examples.take(rows)
    return JudgedInputs(rows, taken, judge(model.problem, model.weights, taken))
