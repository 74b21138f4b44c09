"""Kinds of answers, which define how tasks are trained, tested and shown."""

from typing import Any

from seqcls.kinds.base import (
    MISCLASSIFIED,
    Examples,
    Kind,
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
    "KINDS",
    "MISCLASSIFIED",
    "Examples",
    "Kind",
    "Words",
    "examples_of",
    "kind_name",
]


def kind_name(task: Task | type[Task], answers: Any = "string") -> str:
    """Returns the name of a task's kind; a task without one is a language.

    Args:
        task: the task or its class.
        answers: the field of a configuration: what a model of a language predicts.
    """
    name: str = getattr(task, "kind", "membership")
    # A file may hold anything as `answers`; what cannot be hashed must not reach the registry.
    names_kind = isinstance(answers, str) and answers != "string" and answers in KINDS
    # Only a language has several kinds of answers; the kind of any other task is fixed.
    return answers if names_kind and name == "membership" else name


def examples_of(task: Task, strings: TokenStrings) -> Examples:
    """Makes strings with their targets; the task's kind must be installed."""
    return Examples(strings, KINDS[kind_name(task)]().targets(task, strings))
