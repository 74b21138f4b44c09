"""The minimal automaton of a task's language, where the language is known to be regular."""

from seqcls.errors import ConfigError
from seqcls.tasks.automata.automaton import Automaton
from seqcls.tasks.base import Task


def language_automaton(task: Task) -> Automaton | None:
    """The task's attribute `automaton`; None where it has none, or one of too many states."""
    try:
        automaton: Automaton | None = getattr(task, "automaton", None)
    except ConfigError:
        return None
    return automaton
