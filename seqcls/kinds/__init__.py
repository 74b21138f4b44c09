"""Kinds of answers: what a task asks for, and what that means for training, testing and showing."""

from typing import Any

from seqcls.kinds.base import (
    ACCURACY,
    MISCLASSIFIED,
    ErrorColumn,
    Examples,
    Kind,
    Measure,
    Words,
)
from seqcls.kinds.membership import MembershipKind
from seqcls.kinds.places import NextSymbolsKind, PrefixesKind, StatesKind
from seqcls.kinds.transduction import TransductionKind
from seqcls.plugins import Registry
from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks.base import Task

KINDS: Registry[type[Kind]] = Registry(
    "seqcls.kinds",
    {
        "membership": MembershipKind,
        "transduction": TransductionKind,
        "prefixes": PrefixesKind,
        "next_symbols": NextSymbolsKind,
        "states": StatesKind,
    },
)

__all__ = [
    "ACCURACY",
    "KINDS",
    "MISCLASSIFIED",
    "ErrorColumn",
    "Examples",
    "Kind",
    "Measure",
    "Words",
    "examples_of",
    "kind_name",
]


def kind_name(task: Task | type[Task], answers: Any = "string") -> str:
    """The name of a task's kind; a language need not say that it is one.

    Args:
        task: which it is.
        answers: the field of a configuration: what is asked of a language.
    """
    name: str = getattr(task, "kind", "membership")
    # A file may hold anything as `answers`; what cannot be hashed must not reach the registry.
    names_kind = isinstance(answers, str) and answers != "string" and answers in KINDS
    # Only of a language something else can be asked; any other task keeps its own kind.
    return answers if names_kind and name == "membership" else name


def examples_of(task: Task, strings: TokenStrings) -> Examples:
    """Strings with their targets; the task's kind is known to be there."""
    return Examples(strings, KINDS[kind_name(task)]().targets(task, strings))
