"""Longer strings on which a hypothesis is held against a model."""

import numpy as np

from seqcls.interpretability.automata.answers import ModelAnswers
from seqcls.interpretability.model.trained_model import Letters
from seqcls.tasks.automata.automaton import Automaton
from seqcls.tokens.strings import TokenStrings

WALKS = 1_024
"""Random walks for a hypothesis, shared out over its transitions; at least one each."""


def walks(automaton: Automaton, answers: ModelAnswers) -> TokenStrings:
    """Strings longer than the short ones, in which every transition of an automaton is taken.

    As many go on at random, are drawn by what the automaton says, or repeat a few tokens. Half of
    those drawn have one token replaced: of many languages a random string is hardly ever near one
    that is accepted.
    """
    letters = answers.model.num_letters
    rng = np.random.default_rng(len(automaton.table))
    longest = min(answers.longest, answers.model.problem.test.lengths[-1])
    shortest = answers.tried_length + 1
    strings: list[Letters] = []
    times = max(WALKS // automaton.table.size, 1)
    for access in _access(automaton):
        least = max(len(access) + 1, shortest)
        for letter in range(letters) if least <= longest else ():
            for length in rng.integers(least, longest + 1, size=times).tolist():
                after = rng.integers(letters, size=length - len(access) - 1).tolist()
                strings.append((*access, letter, *after))
    if shortest <= longest:
        strings += _drawn(automaton, rng, rng.integers(shortest, longest + 1, size=WALKS))
        strings += _repeating(letters, rng, rng.integers(shortest, longest + 1, size=WALKS))
    return TokenStrings.of_lists(letters, list(dict.fromkeys(strings)))


def _repeating(letters: int, rng: np.random.Generator, lengths: np.ndarray) -> list[Letters]:
    """Strings of two parts, in which a few tokens each are repeated: what counts is found out."""
    strings: list[Letters] = []
    for length in lengths.tolist():
        end = int(rng.integers(length + 1))
        parts = [rng.integers(letters, size=size).tolist() for size in rng.integers(1, 4, size=2)]
        first, second = (part * length for part in parts)
        strings.append((*first[:end], *second[: length - end]))
    return strings


def _drawn(automaton: Automaton, rng: np.random.Generator, lengths: np.ndarray) -> list[Letters]:
    """Uniform strings of some lengths that are accepted, or rejected; every other one is edited."""
    strings: list[Letters] = []
    for positive in (False, True):
        having = [x for x in lengths[positive::2].tolist() if automaton.has(x, positive)]
        drawn = automaton.draw(rng, np.array(having, dtype=np.int64), positive)
        for row, length in enumerate(having):
            letters = drawn[row, :length]
            if row % 2:
                letters[rng.integers(length)] = rng.integers(automaton.table.shape[1])
            strings.append(tuple(letters.tolist()))
    return strings


def _access(automaton: Automaton) -> list[Letters]:
    """A shortest string to each state."""
    reached: dict[int, Letters] = {automaton.start: ()}
    queue = [automaton.start]
    for state in queue:
        for letter, after in enumerate(automaton.table[state].tolist()):
            if after not in reached:
                reached[after] = (*reached[state], letter)
                queue.append(after)
    return list(reached.values())
