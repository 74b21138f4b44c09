"""The class of a task's language: decided from its minimal automaton, or stated with a source.

Decisions rest on the syntactic monoid of the language: the maps of the automaton's states that
strings induce.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np

from seqcls.counting import Counting, decide_counting
from seqcls.errors import ConfigError
from seqcls.monoids import Table, is_acyclic, monoid_of
from seqcls.subregular.classes import Membership, Witness
from seqcls.subregular.decisions import Subregular
from seqcls.subregular.witnesses import find_witness
from seqcls.tasks import Task
from seqcls.tasks.automaton import minimize
from seqcls.tasks.base import LanguageTask, NotRegular
from seqcls.text import count


@dataclass(frozen=True)
class RegularClass:
    """A regular language, with properties of its syntactic monoid."""

    automaton: Table = field(repr=False, compare=False)
    """The minimal automaton."""
    alphabet: Sequence[str] = field(repr=False)
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
    """The period of each different token: so many more of it change nothing, after enough."""

    @property
    def name(self) -> str:
        """The smallest class among those that the table of statements distinguishes."""
        if self.is_star_free:
            return "star-free"
        if self.is_quasi_aperiodic:
            return "quasi-aperiodic"
        return "solvable groups" if self.is_solvable else "a group that is not solvable"

    @cached_property
    def is_r_trivial_before_the_end(self) -> bool:
        """True if for every last letter the language of the strings before it is R-trivial: its
        minimal automaton has no cycles but loops at one state (Brzozowski & Fich 1980).
        """
        table, accepting = self.automaton.table, self.automaton.accepting
        # For each letter, the states from which it leads to acceptance.
        befores = np.unique(accepting[table], axis=1).T
        return all(
            is_acyclic(minimize(table, before, self.automaton.start).table) for before in befores
        )

    @cached_property
    def counting(self) -> Counting | None:
        """The decision whether the state is a function of counts; None if it takes too long."""
        return _decide_counting(self.automaton, self.alphabet)

    @cached_property
    def smallest(self) -> tuple[Membership, ...]:
        """The smallest subregular classes, of those that are decided."""
        decided = Subregular(self.automaton)
        return tuple(map(decided.measure, self.unmeasured[0]))

    @cached_property
    def unmeasured(self) -> tuple[tuple[Membership, ...], str | None]:
        """These classes without the width of PLT, and why some class was not decided."""
        decided = Subregular(self.automaton)
        return decided.smallest, decided.undecided

    @property
    def smallest_words(self) -> str:
        """Their words, such as: strictly local (k = 2) and strictly piecewise (k = 2)."""
        undecided = self.unmeasured[1]
        words = [membership.describe(self.alphabet) for membership in self.smallest]
        text = " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
        if undecided is None:
            return text
        return f"{text} (whether it is in a smaller class is not decided: {undecided})"

    def witnesses(self) -> list[Witness]:
        """Strings that exclude the classes next below the smallest ones, where there are some."""
        if self.unmeasured[1] is not None:
            return []
        decided = Subregular(self.automaton)
        return [x for name in decided.missed if (x := find_witness(decided, name)) is not None]

    def describe(self) -> str:
        """The class in one sentence's words."""
        means = {
            "star-free": "its syntactic monoid holds no group",
            "quasi-aperiodic": "not star-free, but in AC0: strings of one length make no group",
            "solvable groups": "not in AC0: strings of one length make a group, and every group is "
            "solvable",
            "a group that is not solvable": "NC1-complete",
        }
        smaller = f"{self.smallest_words}; " if self.smallest_words != self.name else ""
        order = "letter counts decide" if self.is_commutative else "the order of tokens matters"
        return (
            f"regular, {self.name} ({means[self.name]}); {smaller}{order}; "
            f"{count(self.states, 'state')}, {count(self.size, 'element')} in the monoid"
        )


@dataclass(frozen=True)
class Undecided:
    """The unknown class of a task."""

    reason: str
    counting: Counting | None = field(default=None, compare=False)
    """Often known for a regular language whose monoid is too large."""

    name = "not decided"

    def describe(self) -> str:
        """The class in one sentence's words."""
        return f"not decided: {self.reason}"


@dataclass(frozen=True)
class Stated:
    """A language that is not regular."""

    hierarchy: NotRegular

    name = "not regular"
    counting: ClassVar[None] = None

    def describe(self) -> str:
        """The class in one sentence's words."""
        return f"not regular; {self.hierarchy.words} ({self.hierarchy.source})"


LanguageClass = RegularClass | Stated | Undecided


def class_names(known: LanguageClass) -> str | None:
    """The smallest classes by their names, such as SL, SP; None where they are not decided."""
    if isinstance(known, RegularClass):
        smallest, undecided = known.unmeasured
        return None if undecided else ", ".join(x.name for x in smallest)
    return known.name if isinstance(known, Stated) else None


# Deciding a class is slow, and the same few tasks come up again and again.
@lru_cache(maxsize=1024)
def class_of(task: Task) -> LanguageClass:
    """The class of a task's language.

    It is decided from the task's attribute `automaton`, its minimal automaton, or stated by its
    attribute `hierarchy`; either may be None.
    """
    if not isinstance(task, LanguageTask):
        return Undecided("the task writes outputs, and the classes are of languages")
    # A language that states its class has no automaton.
    if (stated := getattr(task, "hierarchy", None)) is not None:
        return Stated(stated)
    automaton = None
    try:
        automaton = getattr(task, "automaton", None)
        return (
            Undecided("the task gives no automaton and states no class")
            if automaton is None
            else _decide(automaton, task.alphabet)
        )
    except ConfigError as error:
        # A monoid may be too large to decide, and the automaton still small enough.
        counting = None if automaton is None else _decide_counting(automaton, task.alphabet)
        return Undecided(str(error), counting)


def counting_program(task: Task) -> Counting:
    """The program of counters that computes the state of a task's language after any string.

    Raises:
        ConfigError: there is none: counting does not distinguish all states, the language is not
            regular, or it is not decided.
    """
    known = class_of(task)
    counting = known.counting
    if counting is None or counting.level is None:
        why = known.describe() if counting is None else "; ".join(counting.describe())
        raise ConfigError(f"no program of counters: {why}")
    return counting


def _decide_counting(automaton: Table, alphabet: Sequence[str]) -> Counting | None:
    with suppress(ConfigError):
        return decide_counting(automaton, alphabet)
    return None


def _decide(automaton: Table, alphabet: Sequence[str]) -> RegularClass:
    monoid = monoid_of(automaton)
    return RegularClass(
        automaton=automaton,
        alphabet=alphabet,
        states=len(automaton.table),
        size=len(monoid.elements),
        is_commutative=monoid.is_commutative,
        is_star_free=monoid.is_aperiodic,
        is_quasi_aperiodic=monoid.is_quasi_aperiodic(),
        is_solvable=monoid.is_solvable(),
        is_cyclic_group=monoid.is_cyclic_group,
        token_periods=monoid.token_periods,
    )
