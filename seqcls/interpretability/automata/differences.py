"""Where two automata, or a model and its language, first differ."""

from collections import deque
from itertools import chain

import numpy as np

from seqcls.interpretability.automata.answers import ModelAnswers
from seqcls.interpretability.enumeration import strings_of_length
from seqcls.interpretability.model.trained_model import Letters
from seqcls.tasks.automata.automaton import Automaton
from seqcls.tokens.strings import NO_LETTER


def shortest_difference(one: Automaton, other: Automaton, *, empty: bool = True) -> Letters | None:
    """The shortest string that one automaton accepts and the other does not; None if there is none.

    Args:
        one: over the same letters as the other.
        other: likewise.
        empty: whether the empty string counts.
    """
    start = (one.start, other.start)
    reached: dict[tuple[int, int], Letters] = {start: ()}
    queue = deque([start])
    if empty and one.accepting[one.start] != other.accepting[other.start]:
        return ()
    while queue:
        pair = queue.popleft()
        for letter in range(one.table.shape[1]):
            after = int(one.table[pair[0], letter]), int(other.table[pair[1], letter])
            string = (*reached[pair], letter)
            if one.accepting[after[0]] != other.accepting[after[1]]:
                return string
            if after not in reached:
                reached[after] = string
                queue.append(after)
    return None


def first_error(answers: ModelAnswers) -> Letters | None:
    """The shortest string that the model is wrong on, of all that it was asked."""
    letters = answers.model.num_letters
    for length in range(int(answers.empty_given), len(answers.levels)):
        start = 0
        for strings in strings_of_length(letters, length):
            said = answers.levels[length][start : start + len(strings)]
            wrong = np.flatnonzero(answers.wrong(strings, said))
            if len(wrong):
                return tuple(strings.letters[wrong[0]].tolist())
            start += len(strings)
    errors: list[Letters] = []
    for strings, said in chain(answers.batches, [answers.singles]):
        wrong = np.flatnonzero(answers.wrong(strings, said))
        if len(wrong):
            row = wrong[int(strings.lengths[wrong].argmin())]
            errors.append(tuple(x for x in strings.letters[row].tolist() if x != NO_LETTER))
    return min(errors, key=len, default=None)
