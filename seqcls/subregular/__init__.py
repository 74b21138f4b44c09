"""Subregular classes: which of them hold a regular language, decided from its minimal automaton.

Each class has what it looks at: factors (strings of neighboring letters) up to some width k, or
subsequences, their order, and how often they occur. Two strings that look the same to it are both
in a language of the class, or neither is. Whether there is such a width at all is decided by the
syntactic semigroup or by pairs of states; the least one, by the graph of all factors of that
width. A factor may begin or end with the string: `⋊` and `⋉` count as letters of it.
"""

from collections.abc import Sequence

from seqcls.errors import ConfigError
from seqcls.monoids import Table
from seqcls.subregular.classes import CLASSES, Membership, Witness
from seqcls.subregular.decisions import Subregular
from seqcls.subregular.witnesses import find_witness

__all__ = [
    "CLASSES",
    "Membership",
    "Subregular",
    "Witness",
    "belongs",
    "find_witness",
    "smallest_classes",
]


def smallest_classes(automaton: Table) -> tuple[Membership, ...]:
    """The classes that a language is in and of which it is in no smaller one, in the order of
    `CLASSES`; none of them holds another.

    Args:
        automaton: its minimal automaton.

    Raises:
        ConfigError: it is too large to be decided.
    """
    decided = Subregular(automaton)
    smallest = decided.smallest
    if decided.undecided is not None:
        raise ConfigError(decided.undecided)
    return smallest


def belongs(
    automaton: Table,
    name: str,
    k: int | None = None,
    t: int | None = None,
    tier: Sequence[int] | None = None,
) -> bool:
    """Whether a language is in a class.

    Args:
        automaton: its minimal automaton.
        name: one of `CLASSES`.
        k: the width, or the length of subsequences, at most; the prime of `Zp`.
        t: the number up to which occurrences are counted, at most; needs `k`.
        tier: letters that include those of the tier.

    Raises:
        ConfigError: it is too large to be decided.
    """
    decided = Subregular(automaton)
    found = decided.find(name)
    if found is None or (tier is not None and not set(found.tier or ()) <= set(tier)):
        return False
    if k is None:
        return True
    base, on_tier = name.removeprefix("T"), name.startswith("T")
    if base in {"LT", "LTT"} and (found.k is None or t is not None):
        return decided.threshold(k, on_tier, 1 if base == "LT" else t) is not None
    if found.k is None:
        raise ConfigError(f"the least k of {name} is not known here")
    return found.k == k if name == "Zp" else found.k <= k
