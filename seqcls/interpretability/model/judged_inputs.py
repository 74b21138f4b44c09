"""Which strings are inputs of a transduction, and what a model makes of those."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

from seqcls.decoding.judging import Judged, judge, readable_inputs
from seqcls.interpretability.enumeration import strings_of_length
from seqcls.interpretability.model.trained_model import TrainedModel
from seqcls.kinds import Examples
from seqcls.tokens.strings import TokenStrings


@dataclass(frozen=True, eq=False)
class JudgedInputs:
    """The inputs among some strings that a model has places for, and what it makes of them."""

    rows: Int64[np.ndarray, " input"]
    """Their places among the strings."""
    examples: Examples
    judged: Judged


def judged_inputs(model: TrainedModel, strings: TokenStrings) -> JudgedInputs:
    """Asks a model about those of some strings that it can be asked about.

    Args:
        model: one that writes.
        strings: inputs of its task or not.
    """
    is_input, targets = model.inputs_among(strings)
    examples = Examples(strings, targets)
    rows = np.flatnonzero(readable_inputs(model.problem, examples) & is_input)
    taken = examples.take(rows)
    return JudgedInputs(rows, taken, judge(model.problem, model.weights, taken))


def inputs_of_length(model: TrainedModel, length: int) -> TokenStrings:
    """All inputs of a task of so many tokens, in the order of the alphabet."""
    strings = strings_of_length(model.num_letters, length)
    inputs = [each.letters[model.inputs_among(each)[0]] for each in strings]
    return TokenStrings.of_letters(model.num_letters, np.concatenate(inputs))
