"""The minimal automaton of a task's language, where the language is known to be regular."""

import numpy as np

from seqcls.remembered import remembered
from seqcls.tasks.automata.automaton import Automaton
from seqcls.tasks.automata.expression import minimal_automaton
from seqcls.tasks.base import Task
from seqcls.tasks.contains_all import ContainsAll
from seqcls.tasks.even_pairs import EvenPairs
from seqcls.tasks.first import First
from seqcls.tasks.parity import Parity
from seqcls.tasks.regular import Regular
from seqcls.tasks.repeat_01 import Repeat01

_PATTERNS: dict[type, str] = {
    Parity: "0*10*(10*10*)*",
    EvenPairs: "()|0|1|0.*0|1.*1",
    First: "1.*",
    Repeat01: "(01)*",
}


def language_automaton(task: Task) -> Automaton | None:
    """The minimal automaton of a task's language; None where none is known here."""
    if isinstance(task, Regular):
        return task.automaton
    if isinstance(task, ContainsAll):
        return _of_required(task)
    pattern = _PATTERNS.get(type(task))
    return None if pattern is None else _of_pattern(pattern, "".join(task.alphabet))


@remembered
def _of_pattern(pattern: str, alphabet: str) -> Automaton:
    return minimal_automaton(pattern, alphabet)


def _of_required(task: ContainsAll) -> Automaton:
    """Its states are the sets of required letters that have occurred."""
    bits = np.zeros(task.num_letters, dtype=np.int64)
    bits[list(task.required)] = 1 << np.arange(len(task.required))
    sets = np.arange(1 << len(task.required))
    return Automaton(sets[:, None] | bits, sets == len(sets) - 1)
