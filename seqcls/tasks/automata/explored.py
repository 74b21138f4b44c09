"""An automaton from its first state and what each token makes of a state."""

from collections.abc import Callable, Hashable
from typing import TypeVar

import numpy as np

from seqcls.errors import ConfigError
from seqcls.tasks.automata.automaton import Automaton

MAX_STATES = 10_000

State = TypeVar("State", bound=Hashable)


def explored(
    num_letters: int,
    start: State,
    step: Callable[[State, int], State],
    accepts: Callable[[State], bool],
) -> Automaton:
    """The automaton of all states that can be reached, the first of them the start.

    Raises:
        ConfigError: there are more than `MAX_STATES`.
    """
    numbers = {start: 0}
    states = [start]
    table = []
    for state in states:
        following = [step(state, letter) for letter in range(num_letters)]
        for reached in following:
            if reached not in numbers:
                numbers[reached] = len(states)
                states.append(reached)
        if len(states) > MAX_STATES:
            raise ConfigError(f"its automaton has more than {MAX_STATES:,} states")
        table.append([numbers[reached] for reached in following])
    return Automaton(np.array(table, dtype=np.int64), np.array([accepts(x) for x in states]))
