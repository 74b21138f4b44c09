"""The automaton that a model has become: learned from its answers, and looked for inside.

PyTorch and AALpy are imported where they are used: they take a second or two to load.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from sweeps.questions.models import model
from sweeps.store.databases.engine import Store

if TYPE_CHECKING:
    from seqcls.interpretability.automata.inside import Inside
    from seqcls.interpretability.automata.learned_automaton import Learned, Round


def automaton(
    store: Store,
    run: int | str,
    epoch: int | None = None,
    *,
    states: int | None = None,
    rounds: int | None = None,
    strings: int | None = None,
    length: int | None = None,
    seconds: float | None = None,
    on_round: "Callable[[Round], None] | None" = None,
) -> "Learned":
    """The minimal automaton of what a model answers, as far as it was asked.

    What comes back is exported by its methods `dot`, `record` (as JSON has it) and `dfa` (of
    automata-lib).

    Args:
        store: the database.
        run: as `model` takes it.
        epoch: as `model` takes it.
        states: of a hypothesis at most; this and what follows as the `Budget` has it, if not named.
        rounds: hypotheses at most.
        strings: short strings, all of which are tried, at most.
        length: tokens of the longest string asked.
        seconds: after which the learning ends.
        on_round: told of every hypothesis.

    Raises:
        UnknownRunError: there is no such run, or it has no such weights.
        ConfigError: the task is no language, its alphabet is too large, or nothing may be asked.
    """
    from seqcls.interpretability.automata.budget import Budget
    from seqcls.interpretability.automata.learning import learn

    given = {"states": states, "rounds": rounds, "strings": strings, "length": length}
    named = {name: value for name, value in given.items() if value is not None}
    budget = Budget(**named) if seconds is None else Budget(**named, seconds=seconds)
    return learn(model(store, run, epoch), budget, on_round)


def automaton_inside(
    store: Store, run: int | str, learned: "Learned", epoch: int | None = None
) -> "Inside":
    """Where the states of a learned automaton are inside a model: linear probes and clusters.

    Args:
        store: the database.
        run: as `model` takes it.
        learned: what `automaton` has found of the same model; its `main_hypothesis` is looked for.
        epoch: as `model` takes it.

    Raises:
        UnknownRunError: as `automaton`.
        ConfigError: the model names no states of its blocks or layers.
    """
    from seqcls.interpretability.automata.inside import look_inside

    return look_inside(model(store, run, epoch), learned.main_hypothesis.automaton)
