"""Shortcuts that decide a language: a model that uses no more is right, and takes no shortcut."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache

import numpy as np

from seqcls.errors import ConfigError
from seqcls.monoids import commute
from seqcls.subregular.decisions import Subregular
from seqcls.tasks.automaton import language_automaton
from seqcls.tasks.base import LanguageTask, Task


@lru_cache(maxsize=1024)
def decided_by(task: Task) -> str | None:
    """The input of a shortcut reader that decides the label, or the output, of every string.

    Such a reader's accuracy is no sign of a shortcut. It is decided from a language's minimal
    automaton, or for languages of letter counts stated by the task; for a transduction, by its
    attribute `decided_by`.

    Returns:
        The first of `_DECIDES` that decides, such as `first and last letters`; None where none
        does, or it is not known.
    """
    if not isinstance(task, LanguageTask):
        stated: str | None = getattr(task, "decided_by", None)
        return stated
    if (automaton := language_automaton(task)) is None:
        return None if task.order_sensitive else COUNTS
    try:
        language = Subregular(automaton)
    except ConfigError:
        return None
    return next((by for by, decides in _DECIDES.items() if decides(language)), None)


def _decided_by_ends(language: Subregular) -> bool:
    """True if strings with the same first and last letters have the same label."""
    columns, accepting = language.columns, language.accepting
    for first, state in enumerate(columns[:, language.start]):
        reached = np.arange(len(accepting)) == state
        while not reached[columns[:, reached]].all():
            reached[columns[:, reached]] = True
        labels = accepting[columns[:, reached]]
        # Strings of two letters or more, and the one letter alone.
        if (labels != labels[:, :1]).any() or labels[first, 0] != accepting[state]:
            return False
    return True


def _decided_by_runs(language: Subregular, width: int) -> bool:
    """True if strings with the same set of runs of `width` tokens, ends included, have the same
    label: the language is locally testable (McNaughton & Papert 1971).
    """
    # The first two are smaller classes, which can be decided for larger automata.
    for name in ("SL", "coSL", "LT"):
        with suppress(ConfigError):
            found = language.find(name)
            if found is not None and found.k is not None and found.k <= width:
                return True
    return False


COUNTS = "letter counts"

_DECIDES: Mapping[str, Callable[[Subregular], bool]] = {
    "the length": lambda language: len(language.columns) == 1,
    "first and last letters": _decided_by_ends,
    COUNTS: lambda language: commute(language.columns),
    "pairs of neighboring tokens": lambda language: _decided_by_runs(language, 2),
    "runs of three tokens": lambda language: _decided_by_runs(language, 3),
}
"""The inputs of shortcut readers of languages, with tests whether they decide one."""
