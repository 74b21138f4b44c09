"""Forgetting of a recurrent network while a token or a word repeats: states after u v{n} w, by n.

A string that refutes the model shows which word repeats; the model's states show the rest.
"""

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from seqcls.config import RunConfig
from seqcls.interpretability.mechanisms import FORGETS, FORGETS_WORD
from seqcls.interpretability.trained_model import MAX_LENGTH, Letters, TrainedModel
from seqcls.proofs.search import Steps
from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks.automaton import Automaton

LONGEST_WORD = 3
"""Tokens of the longest word whose repetitions are looked for."""

MIN_REPETITIONS = 5
"""Repetitions at least: a string that repeats a word less often need not be about that."""

BEYOND = 2
"""States are followed for this many times the repetitions that refute the model."""

MOST_UNITS = 3
"""Units that are named."""


class MovedUnit(NamedTuple):
    """A number of the network's state, and the distance that it has moved."""

    layer: int
    name: str
    """Such as `unit 3`, or an LSTM's `cell 3`, counted from 0."""
    moved: float


@dataclass(frozen=True, eq=False)
class Forgetting:
    """A model's states while a word repeats."""

    mechanism: str
    before: str
    word: str
    repetitions: int
    """The number after which the model is wrong on the string; after fewer it is right."""
    string: str
    """The whole string with that number."""
    units: tuple[MovedUnit, ...]
    """Those that have moved most by then, the one that has moved furthest first."""
    distances: Float[np.ndarray, " repetition"]
    """After 0, 1, … repetitions, how far the state is from the first one after which the automaton
    is in the same state: the largest difference of any unit."""
    margins: Float[np.ndarray, " repetition"]
    """The logit of the whole string, negative where the model is wrong."""

    def record(self) -> dict[str, Any]:
        """The same as it is stored: without the pictures' numbers."""
        names = ("mechanism", "before", "word", "repetitions", "string")
        return {
            **{name: getattr(self, name) for name in names},
            "units": list(map(list, self.units)),
        }


def repeated_word(letters: Letters) -> tuple[int, int, int] | None:
    """Start, length and number of repetitions of the word that covers most of a string."""
    # A character for each letter, of which there are fewer than 256.
    text = bytes(letters).decode("latin-1")
    found = [
        (len(repeated[1]), -length, -repeated.start())
        for length in range(1, LONGEST_WORD + 1)
        # The lookahead takes no letters, so repetitions that overlap are all found.
        for repeated in re.finditer(rf"(?s)(?=((.{{{length}}})\2{{{MIN_REPETITIONS - 1},}}))", text)
    ]
    if not found:
        return None
    # What covers most; of equals the shortest word, then the first place.
    covered, length, start = max(found)
    return -start, -length, covered // -length


def find_forgetting(model: TrainedModel, automaton: Automaton, string: str) -> Forgetting | None:
    """Finds what a model forgets while a word repeats in a string that refutes it; None where no
    word does, or where fewer repetitions are answered wrongly, too.

    Args:
        automaton: whose answers the model should give.
        string: one on which the two differ.
    """
    letters = tuple(model.letters(string))
    if (place := repeated_word(letters)) is None:
        return None
    start, length, times = place
    before, word = letters[:start], letters[start : start + length]
    after = letters[start + length * times :]
    most = min(BEYOND * times, (MAX_LENGTH - len(before) - len(after)) // length)
    strings = [(*before, *word * n, *after) for n in range(most + 1)]
    repeated = TokenStrings.of_lists(model.num_letters, strings)
    answers = model.ask(repeated)
    expected = automaton.accepting[automaton.states(repeated)]
    differ = (np.asarray(answers.predicted, dtype=bool) != expected) | answers.unanswered
    wrong = np.flatnonzero(differ)
    # A model that has no answer any more does not forget: its numbers overflow.
    if not len(wrong) or wrong[0] < MIN_REPETITIONS or answers.unanswered[wrong[0]]:
        return None
    first = int(wrong[0])
    steps, states = Steps.from_model(model), list[np.ndarray]()
    cached = steps.after(before)
    for n in range(most + 1):
        # Before the first repetition the state is the one that `before` leads to.
        for letter in word * (n > 0):
            cached = steps.step(cached, [letter])
        states.append(steps.values(cached)[0])
    values = np.array(states)
    path = automaton.path(strings[-1][: len(before) + length * most])[start::length]
    # After so few repetitions the automaton is first in the state that it is in after each.
    _, first_of, phases = np.unique(path, return_index=True, return_inverse=True)
    moved = np.abs(values - values[first_of[phases]])
    if not np.isfinite(moved[first]).all():
        return None
    return Forgetting(
        mechanism=FORGETS if length == 1 else FORGETS_WORD,
        before=model.text(before),
        word=model.text(word),
        repetitions=first,
        string=model.text(strings[first]),
        units=_most_moved(moved[first], model.config),
        distances=moved.max(axis=1),
        margins=np.where(expected, 1.0, -1.0) * np.asarray(answers.score, dtype=np.float64),
    )


def _most_moved(moved: Float[np.ndarray, " value"], config: RunConfig) -> tuple[MovedUnit, ...]:
    order = np.argsort(-moved, kind="stable")[:MOST_UNITS]
    # Beside the one that moved most, those that moved half as far.
    far = [int(n) for n in order if moved[n] >= moved[order[0]] / 2]
    # Of each layer the state, then an LSTM's cell, which is as wide.
    hidden, width = config.hidden_size, len(moved) // config.num_blocks
    return tuple(
        MovedUnit(
            n // width + 1,
            f"{('unit', 'cell')[n % width // hidden]} {n % hidden}",
            float(moved[n]),
        )
        for n in far
    )
