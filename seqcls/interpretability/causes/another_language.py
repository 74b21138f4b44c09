"""Errors of a model that has learned another regular language, as far as a small budget shows."""

import numpy as np

from seqcls.errors import ConfigError
from seqcls.interpretability.automata.budget import Budget, obstacle
from seqcls.interpretability.automata.learning import learn
from seqcls.interpretability.causes.tried_strings import Tried
from seqcls.interpretability.model.trained_model import TrainedModel
from seqcls.tasks.automata.automaton import Automaton
from seqcls.tokens.strings import NO_LETTER

BUDGET = Budget(rounds=40, states=20, strings=2**12, single=5_000)
"""Hypotheses of at most so many states are looked at: larger ones explain little. What ends the
learning is counted, so that a slow machine finds the same cause."""


def smallest_automaton(
    model: TrainedModel, test: Tried, short: Tried, agrees: float, explains: float
) -> Automaton | None:
    """The smallest automaton learned of a model that says what it says, and makes its errors.

    Args:
        model: the model.
        test: the test strings.
        short: all short ones.
        agrees: the share of the strings of either on which they say the same.
        explains: the share of the errors of either.
    """
    if obstacle(model) is not None:
        return None
    # Whole strings are asked: what answers is what was tested.
    try:
        learned = learn(model, BUDGET, stepped=False)
    except ConfigError:
        # Some of them have no answer, so it is no machine.
        return None
    for made in learned.rounds:
        if all(_holds(made.automaton, tried, agrees, explains) for tried in (test, short)):
            return made.automaton
    return None


def first_difference(model: TrainedModel, automaton: Automaton, short: Tried) -> str | None:
    """The first short string on which an automaton and the language differ, if any."""
    said = automaton.accepting[automaton.states(short.strings)]
    rows = np.flatnonzero(said != short.labels)
    if not len(rows):
        return None
    row = rows[int(short.strings.lengths[rows].argmin())]
    return model.display([x for x in short.strings.letters[row].tolist() if x != NO_LETTER])


def _holds(automaton: Automaton, tried: Tried, agrees: float, explains: float) -> bool:
    same = automaton.accepting[automaton.states(tried.strings)] == tried.predicted
    share = float(tried.times[same].sum() / max(tried.times.sum(), 1))
    return share >= agrees and (not tried.wrong.any() or same[tried.wrong].mean() >= explains)
