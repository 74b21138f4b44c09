"""An exhaustive check of a model that writes: every input of its task up to a length."""

import numpy as np

from seqcls.interpretability.enumeration import MAX_STRINGS, affordable_length, inputs_of_length
from seqcls.interpretability.model.judged_inputs import judged_inputs
from seqcls.interpretability.model.trained_model import Answer, TrainedModel
from seqcls.interpretability.verdicts.output_verdict import OfLength, OutputVerdict

MAX_INPUTS = 25_000
"""How many inputs a model writes outputs for where all are tried: seconds of a small one's time."""

MAX_SHOWN = 20
"""Shortest inputs with a wrong output that are named; the others are counted."""


def output_verdict(
    model: TrainedModel, max_strings: int = MAX_STRINGS, max_inputs: int = MAX_INPUTS
) -> OutputVerdict:
    """What a model writes for every input up to the greatest length at which all can be tried.

    That is at most the longest test length, or what the model has places for.

    Args:
        model: one that writes.
        max_strings: strings that are held against the task at most, inputs or not.
        max_inputs: inputs that are tried at most; those of a length all or not at all.
    """
    longest = model.problem.longest_tested
    lengths = list[OfLength]()
    shortest = list[Answer]()
    tried = reached = 0
    most = affordable_length(model.num_letters, max_strings, longest)
    for length in range(0 if model.problem.tries_empty else 1, most + 1):
        inputs = inputs_of_length(model, length)
        tried += len(inputs)
        if tried > max_inputs:
            break
        reached = length
        if not len(inputs):
            continue
        judged = judged_inputs(model, inputs).judged
        kinds, numbers = np.unique(np.array(judged.error_kinds, dtype=object), return_counts=True)
        wrong = dict(zip(kinds.tolist(), numbers.tolist(), strict=True))
        lengths.append(OfLength(length, len(inputs), wrong))
        rows = np.flatnonzero(judged.is_wrong)[: MAX_SHOWN - len(shortest)]
        shortest += [model.answer(tuple(inputs.letters[row, :length].tolist())) for row in rows]
    return OutputVerdict(reached, longest, tuple(lengths), tuple(shortest))
