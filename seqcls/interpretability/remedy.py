"""One change of a configuration that may help, and the values that such changes have."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from seqcls.problem import Problem

Value = Callable[[Problem], Any]
"""The value of the changed field for a problem; None where there is nothing to change."""


@dataclass(frozen=True)
class Remedy:
    """One field whose change may help against some mechanisms."""

    mechanisms: frozenset[str]
    field: str
    value: Value
    reason: str
    source: str
    others: Callable[[Problem], Mapping[str, Any]] = lambda _: {}
    """Other fields that have to change with it, since they mean nothing beside the new value."""


def always(value: Any) -> Value:
    """The same whatever the problem."""
    return lambda _: value


def one_more(field: str) -> Value:
    """One more than there are."""
    return lambda problem: getattr(problem.config, field) + 1


def in_a_transformer(value: Value) -> Value:
    """A value only where the network is one."""
    return lambda problem: value(problem) if problem.config.architecture == "transformer" else None
