"""The class of a task's language: decided from its minimal automaton, or stated with a source.

What decides is the syntactic monoid of the language: the maps that strings make of the states of
the automaton.
"""

from dataclasses import dataclass
from functools import lru_cache

from seqcls.errors import ConfigError
from seqcls.monoids import monoid_of
from seqcls.tasks import Task
from seqcls.tasks.base import LanguageTask, NotRegular


@dataclass(frozen=True)
class RegularClass:
    """A regular language, as its syntactic monoid has it."""

    states: int
    """States of the minimal automaton."""
    size: int
    """Elements of the monoid."""
    is_commutative: bool
    is_star_free: bool
    is_quasi_aperiodic: bool
    is_solvable: bool
    is_cyclic_group: bool
    token_periods: tuple[int, ...]
    """How many more of one token change nothing, in the long run; of each token that differs."""

    @property
    def name(self) -> str:
        """The smallest class of those that the table tells apart."""
        if self.is_star_free:
            return "star-free"
        if self.is_quasi_aperiodic:
            return "quasi-aperiodic"
        return "solvable groups" if self.is_solvable else "a group that is not solvable"

    def describe(self) -> str:
        """The class in one sentence's words."""
        means = {
            "star-free": "its syntactic monoid holds no group",
            "quasi-aperiodic": "not star-free, but in AC0: strings of one length make no group",
            "solvable groups": "not in AC0: strings of one length make a group, and every group is "
            "solvable",
            "a group that is not solvable": "NC1-complete",
        }
        order = "letter counts decide" if self.is_commutative else "the order of tokens matters"
        return (
            f"regular, {self.name} ({means[self.name]}); {order}; {_count(self.states, 'state')}, "
            f"{_count(self.size, 'element')} in the monoid"
        )


@dataclass(frozen=True)
class Undecided:
    """A task of which it is not known what language it is."""

    reason: str

    name = "not decided"

    def describe(self) -> str:
        """The class in one sentence's words."""
        return f"not decided: {self.reason}"


@dataclass(frozen=True)
class Stated:
    """A language that is not regular."""

    hierarchy: NotRegular

    name = "not regular"

    def describe(self) -> str:
        """The class in one sentence's words."""
        return f"not regular; {self.hierarchy.words} ({self.hierarchy.source})"


LanguageClass = RegularClass | Stated | Undecided


@lru_cache(maxsize=1024)
def class_of(task: Task) -> LanguageClass:
    """The class of a task's language.

    A task with an attribute `automaton`, its minimal automaton, is decided; one with an attribute
    `hierarchy` states its own; either may be None.
    """
    if not isinstance(task, LanguageTask):
        return Undecided("the task writes outputs, and the classes are of languages")
    if (stated := getattr(task, "hierarchy", None)) is not None:
        return Stated(stated)
    try:
        automaton = getattr(task, "automaton", None)
        return (
            Undecided("the task gives no automaton and states no class")
            if automaton is None
            else _decide(automaton)
        )
    except ConfigError as error:
        return Undecided(str(error))


def _decide(automaton: object) -> RegularClass:
    from seqcls.tasks.automaton import Automaton

    assert isinstance(automaton, Automaton)
    monoid = monoid_of(automaton)
    return RegularClass(
        states=len(automaton.table),
        size=len(monoid.elements),
        is_commutative=monoid.is_commutative,
        is_star_free=monoid.is_aperiodic,
        is_quasi_aperiodic=monoid.is_quasi_aperiodic(),
        is_solvable=monoid.is_solvable(),
        is_cyclic_group=monoid.is_cyclic_group,
        token_periods=monoid.token_periods,
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
