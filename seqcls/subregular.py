"""Subregular classes: which of them hold a regular language, decided from its minimal automaton.

Each class has what it looks at: factors (strings of neighboring letters) up to some width k, or
subsequences, their order, and how often they occur. Two strings that look the same to it are both
in a language of the class, or neither is. Whether there is such a width at all is decided by the
syntactic semigroup or by pairs of states; the least one, by the graph of all factors of that
width. Letters that do the same to every state are one letter, and those that do nothing are
neutral: a class on a tier is the class itself, where they are left out.

A factor of width k may begin or end with the string: `⋊` and `⋉` count as letters of it.
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Bool, Int64
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from seqcls.errors import ConfigError
from seqcls.monoids import MAX_STATES, Monoid, Table, monoid_of
from seqcls.strings.tokenizer import Tokenizer

MAX_FACTORS = 300_000
"""The most factors of one width, times states, among which the least width is sought."""

MAX_COUNTS = 3_000
"""The most numbers in which factors of one width occur, counted up to t."""

MAX_SUBSEQUENCES = 500
"""The most least subsequences that decide a language."""

MAX_STRETCHES = 100_000
"""The most stretches of letters that are followed for the least k of a piecewise testable one."""

Letters = tuple[int, ...]
State = TypeVar("State", bound=Hashable)


@dataclass(frozen=True)
class SubregularClass:
    """One class of languages."""

    words: str
    """What it is called in a sentence."""
    within: tuple[str, ...]
    """The next larger classes."""
    definition: str
    """What its languages are: those in which ..."""
    test: str
    """What the minimal automaton, or the syntactic semigroup, of these and no others has."""
    source: str


CLASSES: Mapping[str, SubregularClass] = {
    "finite": SubregularClass(
        "finite",
        ("definite",),
        "finitely many strings are in it",
        "no circle passes through a state from which an accepting one is reached",
        "by definition",
    ),
    "cofinite": SubregularClass(
        "cofinite",
        ("definite",),
        "all strings but finitely many are in it",
        "its complement is finite",
        "by definition",
    ),
    "definite": SubregularClass(
        "definite",
        ("SL", "coSL"),
        "the last k letters decide",
        "all strings of k letters lead from every state to one",
        "Perles, Rabin & Shamir 1963",
    ),
    "SL": SubregularClass(
        "strictly local",
        ("LT", "TSL"),
        "every factor of width k is an allowed one",
        "after any k - 1 letters there is one state from which an accepting one is reached",
        "McNaughton & Papert 1971; Rogers & Pullum 2011",
    ),
    "coSL": SubregularClass(
        "the complement of strictly local",
        ("LT", "TcoSL"),
        "one of some factors of width k occurs",
        "its complement is strictly local",
        "McNaughton & Papert 1971; van der Poel et al. 2024",
    ),
    "SP": SubregularClass(
        "strictly piecewise",
        ("PT",),
        "none of some subsequences of up to k letters occurs",
        "leaving out any letter of a string in it leaves one in it",
        "Rogers et al. 2010; Fu, Heinz & Tanner 2011",
    ),
    "coSP": SubregularClass(
        "the complement of strictly piecewise",
        ("PT",),
        "one of some subsequences of up to k letters occurs",
        "its complement is strictly piecewise",
        "Haines 1969; van der Poel et al. 2024",
    ),
    "LT": SubregularClass(
        "locally testable",
        ("LTT", "TLT"),
        "which factors of width k occur decides",
        "eSe is idempotent and commutative for every idempotent e",
        "Brzozowski & Simon 1973; McNaughton 1974",
    ),
    "PT": SubregularClass(
        "piecewise testable",
        ("PLT",),
        "which subsequences of up to k letters occur decides",
        "the syntactic monoid is J-trivial",
        "Simon 1975",
    ),
    "LTT": SubregularClass(
        "locally threshold testable",
        ("PLT", "TLTT"),
        "how often each factor of width k occurs, counted up to t, decides",
        "aperiodic, and a f u e b f = b f u e a f after e, for all idempotents e and f",
        "Thérien & Weiss 1985; Beauquier & Pin 1989",
    ),
    "PLT": SubregularClass(
        "piecewise locally testable",
        ("TPLT",),
        "which sequences of factors occur, one after the other, decides: dot-depth one",
        "(eafb)ⁿ eafde (cfde)ⁿ = (eafb)ⁿ e (cfde)ⁿ for all idempotents e and f and large n",
        "Knast 1983",
    ),
    "TSL": SubregularClass(
        "strictly local on a tier",
        ("TLT",),
        "it is strictly local once letters outside the tier are left out",
        "letters outside the tier change no state; without them it is SL",
        "Heinz, Rawal & Tanner 2011; Lambert & Rogers 2020",
    ),
    "TcoSL": SubregularClass(
        "the complement of strictly local on a tier",
        ("TLT",),
        "its complement is strictly local on a tier",
        "letters outside the tier change no state; without them it is coSL",
        "van der Poel et al. 2024",
    ),
    "TLT": SubregularClass(
        "locally testable on a tier",
        ("TLTT",),
        "it is locally testable once letters outside the tier are left out",
        "letters outside the tier change no state; without them it is LT",
        "Lambert & Rogers 2020; Lambert 2023",
    ),
    "TLTT": SubregularClass(
        "locally threshold testable on a tier",
        ("TPLT",),
        "it is locally threshold testable once letters outside the tier are left out",
        "letters outside the tier change no state; without them it is LTT",
        "Lambert & Rogers 2020; Lambert 2023",
    ),
    "TPLT": SubregularClass(
        "piecewise locally testable on a tier",
        ("SF",),
        "it is piecewise locally testable once letters outside the tier are left out",
        "letters outside the tier change no state; without them it is PLT",
        "Knast 1983; Lambert 2023",
    ),
    "SF": SubregularClass(
        "star-free",
        ("quasi-aperiodic",),
        "it is made of letters by unions, complements and concatenation",
        "no element of the syntactic monoid has powers that turn in a circle",
        "Schützenberger 1965",
    ),
    "quasi-aperiodic": SubregularClass(
        "quasi-aperiodic",
        ("solvable",),
        "it is in AC0",
        "strings of no one length make a group in the syntactic monoid",
        "Barrington, Compton, Straubing & Thérien 1992",
    ),
    "Zp": SubregularClass(
        "counting modulo a prime",
        ("solvable",),
        "a weighted sum of letter counts modulo the prime k decides",
        "the syntactic monoid is the cyclic group of k elements",
        "by definition",
    ),
    "solvable": SubregularClass(
        "solvable groups",
        ("Reg",),
        "it is in ACC0",
        "every group in the syntactic monoid is solvable",
        "Barrington & Thérien 1988",
    ),
    "Reg": SubregularClass(
        "regular",
        (),
        "a finite automaton recognizes it",
        "the automaton is finite",
        "Kleene 1956",
    ),
}


class Membership(NamedTuple):
    """A class that a language is in."""

    name: str
    k: int | None = None
    """The least width, length of subsequences, or the prime; None where the class has none, or
    where finding it would take too long."""
    t: int | None = None
    """The least number up to which occurrences are counted, at that width."""
    tier: Letters | None = None
    """The letters of the tier."""

    def describe(self, alphabet: Sequence[str]) -> str:
        """The class in words, such as: strictly local (k = 2) on the tier of a and b."""
        numbers = [f"{name} = {x}" for name, x in (("k", self.k), ("t", self.t)) if x is not None]
        words = CLASSES[self.name].words.removesuffix(" on a tier")
        words += f" ({', '.join(numbers)})" if numbers else ""
        if self.tier is None:
            return words
        return f"{words} on the tier {' '.join(alphabet[x] for x in self.tier)}"


class Witness(NamedTuple):
    """Strings that show that a language is not in a class, of some width at least."""

    name: str
    k: int
    inside: tuple[Letters, ...]
    """Strings in the language."""
    outside: tuple[Letters, ...]
    """Strings not in it, which would be in it, or one of those in it would not, if the language
    were in the class of that width."""

    def describe(self, alphabet: Sequence[str]) -> str:
        """What the strings are and why they tell, in one sentence."""
        spell = Tokenizer(alphabet).spell
        inside, outside = (
            " and ".join(spell(word) or "the empty string" for word in words)
            for words in (self.inside, self.outside)
        )
        verbs = ["is" if len(words) == 1 else "are" for words in (self.inside, self.outside)]
        return (
            f"not {CLASSES[self.name].words}: {inside} {verbs[0]} in it, {outside} {verbs[1]} not, "
            f"and {_ALIKE[self.name.removeprefix('T')].format(k=self.k)}"
        )


_ALIKE = {
    "definite": "both have the same last {k} letters",
    "SL": "every factor of width {k} of the last is one of the first two",
    "coSL": "every factor of width {k} of the first is one of the others",
    "SP": "letters left out of the first make the second",
    "coSP": "letters left out of the second make the first",
    "LT": "both have the same factors of width {k}",
    "PT": "both have the same subsequences of up to {k} letters",
    "LTT": "both have every factor of width {k} as often",
    "PLT": "both have the same sequences of up to {k} factors of width {k}",
    "SF": "one repeats the same letters once more, which star-free ones do not tell from some "
    "number on",
}
"""What two strings have in common, on the tier if the class has one."""


def smallest_classes(automaton: Table) -> tuple[Membership, ...]:
    """The classes that a language is in and of which it is in no smaller one, in the order of
    `CLASSES`; none of them holds another.

    Args:
        automaton: its minimal automaton.

    Raises:
        ConfigError: it is too large to be decided.
    """
    return Subregular(automaton).smallest


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


class Subregular:
    """The classes of one language, each decided when it is asked for."""

    def __init__(self, automaton: Table) -> None:
        """Takes the minimal automaton of the language.

        Raises:
            ConfigError: it has too many states.
        """
        if len(automaton.table) > MAX_STATES:
            raise ConfigError(
                f"its minimal automaton has {len(automaton.table):,} states, more than "
                f"{MAX_STATES:,}"
            )
        self._start = automaton.start
        self._accepting = automaton.accepting
        self._num_letters = automaton.table.shape[1]
        columns, self._letters = np.unique(automaton.table.T, axis=0, return_index=True)
        self._columns: Int64[np.ndarray, "letter state"] = columns
        self._neutral = (columns == np.arange(columns.shape[1])).all(axis=1)
        outside = (automaton.table == np.arange(len(automaton.table))[:, None]).all(axis=0)
        self.tier: Letters = tuple(np.flatnonzero(~outside).tolist())
        """The letters that change any state: the smallest tier."""
        self._automaton = automaton
        self._found: dict[str, Membership | None] = {}

    @cached_property
    def monoid(self) -> Monoid:
        """The syntactic monoid."""
        return monoid_of(self._automaton)

    @cached_property
    def smallest(self) -> tuple[Membership, ...]:
        """The classes that it is in, without those that hold another of them."""
        larger: set[str] = set()
        smallest = []
        for name in CLASSES:
            if name not in larger and (found := self.find(name)) is not None:
                smallest.append(found)
                larger.update(_larger(name))
        return tuple(smallest)

    @property
    def missed(self) -> tuple[str, ...]:
        """The classes next below the smallest ones."""
        held = {found.name for found in self.smallest}
        return tuple(name for name, known in CLASSES.items() if held & set(known.within))

    def find(self, name: str) -> Membership | None:
        """The language's membership in a class; None where it is not in it.

        Raises:
            ConfigError: that is not decided.
        """
        if name not in CLASSES:
            raise ConfigError(f"class={name!r}: expected one of {', '.join(CLASSES)}")
        if name not in self._found:
            self._found[name] = self._decide(name)
        return self._found[name]

    def _decide(self, name: str) -> Membership | None:
        on_tier = name.startswith("T")
        base = name.removeprefix("T")
        if on_tier and not self._neutral.any():
            same = self.find(base)
            return None if same is None else Membership(name, same.k, same.t, self.tier)
        accepting = self._accepting != base.startswith("co")
        k: int | None = None
        t: int | None = None
        match base.removeprefix("co"):
            case "finite":
                held = self._is_finite(accepting)
            case "definite":
                k = self._steps_together(np.ones(len(accepting), dtype=np.int64))
                held = k is not None
            case "SL":
                live = self._live(accepting)
                steps = self._steps_together(np.where(live, 0, -1), on_tier)
                held = steps is not None
                k = None if steps is None else steps + 1
            case "SP":
                held = self._is_j_trivial and self._deletion(accepting) is None
                k = self._subsequence_length(accepting) if held else None
            case "LT" | "LTT" as local:
                held = self.find("SF") is not None and self._local_violation(local, on_tier) is None
                k, t = self._width(local, on_tier) if held else (None, None)
            case "PT":
                held = self._is_j_trivial
                k = self._height() if held else None
            case "PLT":
                held = self.find("SF") is not None and self._dot_depth_violation(on_tier) is None
            case "SF":
                held = self.monoid.is_aperiodic
            case "quasi-aperiodic":
                held = self.monoid.is_quasi_aperiodic()
            case "Zp":
                k = len(self.monoid.elements)
                held = self.monoid.is_cyclic_group and all(k % x for x in range(2, k)) and k > 1
            case "solvable":
                held = self.monoid.is_solvable()
            case _:
                held = True
        return Membership(name, k, t, self.tier if on_tier else None) if held else None

    def witness(self, name: str, k: int = 2) -> Witness | None:
        """Strings that show that the language is not in a class of width k; None where it is, or
        where no few strings show it.
        """
        base, on_tier = name.removeprefix("T"), name.startswith("T")
        if base in {"definite", "SL", "coSL"}:
            return self._split(name, k, on_tier)
        if base not in _ALIKE or self.find(name) is not None:
            return None
        accepting = self._accepting != base.startswith("co")
        if base in {"SP", "coSP"}:
            state, letter, suffix = self._deletion(accepting) or (0, 0, ())
            prefix = self._access[state]
            one, other = (*prefix, letter, *suffix), (*prefix, *suffix)
            return self._sorted(name, k, one, other)
        if self.find("SF") is None or base == "SF":
            word = self.monoid.word(int(np.flatnonzero(~self.monoid.aperiodic)[0]))
            return self._apart("SF", k, word * k, word * (k + 1))
        if base == "PT":
            return self._apart(name, k, *self._turn(k))
        if base == "PLT":
            return self._back_and_forth(name, k, on_tier)
        e, f, a, u, b = self._local_violation(base, on_tier) or (0, 0, 0, 0, 0)
        there, back, first, middle, second = (
            self._long(e, k), self._long(f, k), *map(self.monoid.word, (a, u, b)),
        )  # fmt: skip
        if e == f == u and a == b:
            once = (*there, *first, *there)
            return self._apart(name, k, once, (*once, *first, *there))
        return self._apart(
            name,
            k,
            (*there, *first, *back, *middle, *there, *second, *back),
            (*there, *second, *back, *middle, *there, *first, *back),
        )

    def _split(self, name: str, k: int, on_tier: bool) -> Witness | None:
        """Two states that k letters, or k - 1, keep apart, and from which strings go on."""
        accepting = self._accepting != ("co" in name)
        local = name != "definite"
        groups = np.where(self._live(accepting), 0, -1) if local else np.zeros(len(accepting))
        apart = list(islice(self._apart_after(groups, on_tier), k + 1 - local))
        if len(apart) < k + 1 - local or not apart[-1].any():
            return None
        columns = self._columns_of(on_tier)
        letters = self._letters[~self._neutral] if on_tier else self._letters
        first, second = (int(x) for x in np.argwhere(apart[-1])[0])
        ends, word = (first, second), []
        for before in reversed(apart[:-1]):
            pairs = np.argwhere(
                before & (columns[:, :, None] == first) & (columns[:, None, :] == second)
            )
            letter, first, second = (int(x) for x in pairs[0])
            word.insert(0, int(letters[letter]))
        one, other = (*self._access[first], *word), (*self._access[second], *word)
        differ = accepting[:, None] != accepting
        _, suffix = self._search([ends], differ) or (0, ())
        if not self._ends_in(accepting, (*one, *suffix)):
            one, other, ends = other, one, ends[::-1]
        good, bad = (*one, *suffix), (*other, *suffix)
        if not local:
            return Witness(name, k, (good,), (bad,))
        _, suffix = self._search([(ends[1], ends[1])], accepting[:, None] & accepting) or (0, ())
        allowed = (good, (*other, *suffix))
        return Witness(name, k, *((bad,), allowed) if "co" in name else (allowed, (bad,)))

    def _turn(self, k: int) -> tuple[Letters, Letters]:
        """Two strings with the same subsequences of up to k letters that make different elements:
        of two elements of one R-class, or of one L-class, each is made of the other.
        """
        monoid = self.monoid
        for after, order in ((monoid.following, 1), (monoid.preceding, -1)):
            _, classes = _components(after)
            several = np.flatnonzero(np.bincount(classes)[classes] > 1)
            if len(several):
                one = int(several[0])
                other = int(several[classes[several] == classes[one]][1])
                there, back = self._path(after, one, other), self._path(after, other, one)
                word = monoid.word(one)[::order] + (there + back) * k
                return word[::order], (word + there)[::order]
        raise AssertionError

    def _back_and_forth(self, name: str, k: int, on_tier: bool) -> Witness | None:
        """Two strings that break Knast's identity at the states and elements that are found."""
        if (found := self._dot_depth_violation(on_tier)) is None:
            return None
        monoid, (r, s, q, p) = self.monoid, found
        idempotents = self._idempotents(on_tier)

        def stay(state: int, element: int) -> Letters:
            keeps = monoid.elements[idempotents, state] == state
            keeps &= monoid.products[idempotents, element] == element
            return self._long(int(idempotents[keeps][0]), k)

        e, f = stay(r, q), stay(s, p)
        x, y = self._path(self._columns.T, r, s), self._path(self._columns.T, s, r)
        z, t = self._path(monoid.preceding, p, q)[::-1], self._path(monoid.preceding, q, p)[::-1]
        before = (*self._access[r], *(e + x + f + y) * k, *e)
        behind = (*(z + f + t + e) * k, *monoid.word(q))
        return self._sorted(name, k, before + behind, before + x + f + t + e + behind)

    @cached_property
    def _access(self) -> list[Letters]:
        """A shortest string that leads to each state."""
        words: dict[int, Letters] = {self._start: ()}
        queue = [self._start]
        for state in queue:
            for letter, after in zip(self._letters, self._columns[:, state], strict=True):
                if int(after) not in words:
                    words[int(after)] = (*words[state], int(letter))
                    queue.append(int(after))
        return [words[state] for state in range(len(self._accepting))]

    def _long(self, idempotent: int, k: int) -> Letters:
        """A string of at least k - 1 letters that makes an idempotent of the semigroup."""
        letter = int(self._letters[self._neutral][0]) if not idempotent else -1
        word = self.monoid.word(idempotent) if idempotent else (letter,)
        return word * max(1, -(-(k - 1) // len(word)))

    def _apart(self, name: str, k: int, one: Letters, other: Letters) -> Witness:
        """A witness of two strings that make different elements: what stands around them tells."""
        pairs = [
            (self._run(state, one), self._run(state, other))
            for state in range(len(self._accepting))
        ]
        differ = self._accepting[:, None] != self._accepting
        start, suffix = self._search(pairs, differ) or (0, ())
        prefix = self._access[start]
        return self._sorted(name, k, prefix + one + suffix, prefix + other + suffix)

    def _sorted(self, name: str, k: int, one: Letters, other: Letters) -> Witness:
        if self._ends_in(self._accepting, other):
            one, other = other, one
        return Witness(name, k, (one,), (other,))

    def _run(self, state: int, word: Letters) -> int:
        for letter in word:
            state = int(self._automaton.table[state, letter])
        return state

    def _ends_in(self, accepting: Bool[np.ndarray, " state"], word: Letters) -> bool:
        return bool(accepting[self._run(self._start, word)])

    def _path(self, following: Int64[np.ndarray, "vertex letter"], start: int, end: int) -> Letters:
        """The letters of a shortest walk."""
        words: dict[int, Letters] = {start: ()}
        queue = [start]
        for vertex in queue:
            if vertex == end:
                break
            for letter, after in zip(self._letters, following[vertex], strict=True):
                if int(after) not in words:
                    words[int(after)] = (*words[vertex], int(letter))
                    queue.append(int(after))
        return words[end]

    def _search(
        self, pairs: Sequence[tuple[int, int]], goal: Bool[np.ndarray, "state state"]
    ) -> tuple[int, Letters] | None:
        """The number of a pair of states, and a shortest string that leads from it to a goal."""
        states = len(goal)
        first = np.array([one * states + other for one, other in pairs], dtype=np.int64)
        # Of each pair that is met, the one before it and the letter; -2 where it was not met.
        before = np.full(states**2, -2)
        by = np.zeros(states**2, dtype=np.int64)
        codes = np.unique(first)
        before[codes] = -1
        while len(codes):
            if len(met := codes[goal.ravel()[codes]]):
                code, word = int(met[0]), []
                while before[code] >= 0:
                    word.append(int(self._letters[by[code]]))
                    code = int(before[code])
                return int(np.flatnonzero(first == code)[0]), tuple(reversed(word))
            one, other = np.divmod(codes, states)
            after = (self._columns[:, one] * states + self._columns[:, other]).ravel()
            fresh = np.flatnonzero(before[after] == -2)
            reached, places = np.unique(after[fresh], return_index=True)
            by[reached], origin = np.divmod(fresh[places], len(codes))
            before[reached] = codes[origin]
            codes = reached
        return None

    def _columns_of(self, on_tier: bool) -> Int64[np.ndarray, "letter state"]:
        return self._columns[~self._neutral] if on_tier else self._columns

    def _live(self, accepting: Bool[np.ndarray, " state"]) -> Bool[np.ndarray, " state"]:
        """From which states one of these is reached."""
        live, before = accepting, None
        while before is None or (live != before).any():
            live, before = live | live[self._columns].any(axis=0), live
        return live

    def _is_finite(self, accepting: Bool[np.ndarray, " state"]) -> bool:
        live = self._live(accepting)
        states = np.flatnonzero(live)
        for _ in range(len(live)):
            states = np.unique(self._columns[:, states])
            states = states[live[states]]
        return not len(states)

    def _steps_together(
        self, groups: Int64[np.ndarray, " state"], on_tier: bool = False
    ) -> int | None:
        """After how many letters at most no two states of one group are in one group; -1 is none.

        None where some strings of every length keep two apart.
        """
        for column in self._columns_of(on_tier):
            kept = groups[(column == np.arange(len(column))) & (groups >= 0)]
            if len(np.unique(kept)) < len(kept):
                return None
        before, steps = None, 0
        for apart in self._apart_after(groups, on_tier):
            if not apart.any():
                return steps
            if before is not None and (apart == before).all():
                return None
            before, steps = apart, steps + 1
        return steps

    def _apart_after(
        self, groups: Int64[np.ndarray, " state"], on_tier: bool
    ) -> Iterator[Bool[np.ndarray, "state state"]]:
        """Which two states of one group some strings of 0 letters, of 1, of 2 ... lead to from two
        of one group, all the way.
        """
        within = (groups[:, None] == groups) & (groups >= 0) & ~np.eye(len(groups), dtype=bool)
        columns, apart = self._columns_of(on_tier), within
        while True:
            yield apart
            first, second = np.nonzero(apart)
            apart = np.zeros_like(within)
            apart[columns[:, first], columns[:, second]] = True
            apart &= within

    def _deletion(self, accepting: Bool[np.ndarray, " state"]) -> tuple[int, int, Letters] | None:
        """A state, a letter and a string: with the letter it is accepted, without it is not."""
        letters, states = np.nonzero(self._columns != np.arange(len(accepting)))
        pairs = zip(self._columns[letters, states].tolist(), states.tolist(), strict=True)
        found = self._search(list(pairs), accepting[:, None] & ~accepting)
        if found is None:
            return None
        return int(states[found[0]]), int(self._letters[letters[found[0]]]), found[1]

    def _subsequence_length(self, accepting: Bool[np.ndarray, " state"]) -> int | None:
        """The most letters of the least subsequences that no accepted string has."""
        least: dict[int, list[str] | None] = {}

        def below(state: int) -> list[str] | None:
            if state not in least:
                found = {"" for _ in range(1) if not accepting[state]}
                for letter, column in enumerate(self._columns):
                    after = int(column[state])
                    if found == {""} or after == state:
                        continue
                    if (rest := below(after)) is None:
                        least[state] = None
                        return None
                    found |= {chr(letter) + x for x in rest}
                kept: list[str] = []
                for word in sorted(found, key=len):
                    if not any(_is_subsequence(x, word) for x in kept):
                        kept.append(word)
                least[state] = kept if len(kept) <= MAX_SUBSEQUENCES else None
            return least[state]

        try:
            found = below(self._start)
        except RecursionError:
            return None
        return None if found is None else max([1, *map(len, found)])

    def _height(self) -> int | None:
        """The least k of a piecewise testable language.

        Two strings with the same subsequences of up to k letters are in it or not if and only if
        those are that differ by one letter, u v and u a v. These have the same if and only if
        u ends in p, and v begins with q, p + q = k, stretches such that each, going away from the
        a, has all letters of the one before, and the first an a (Simon 1975). So k is one more
        than the most stretches about a letter that matters.
        """
        states = len(self._accepting)
        before: list[list[tuple[int, int]]] = [[] for _ in range(states)]
        for letter, state in zip(*np.nonzero(self._columns >= 0), strict=True):
            before[self._columns[letter, state]].append((1 << int(letter), int(state)))
        columns = self._columns.T.tolist()

        def to_start(state: int) -> Iterator[tuple[int, int]]:
            yield from before[state]

        def apart(pair: tuple[int, int]) -> Iterator[tuple[int, tuple[int, int]]]:
            for letter, after in enumerate(zip(columns[pair[0]], columns[pair[1]], strict=True)):
                if after[0] != after[1]:
                    yield 1 << letter, after

        def differ(pair: tuple[int, int]) -> bool:
            return bool(self._accepting[pair[0]] != self._accepting[pair[1]])

        ahead = _Stretches(to_start, lambda state: state == self._start)
        behind = _Stretches(apart, differ)
        try:
            return 1 + max(
                (
                    ahead.most(state, 1 << letter, 0) + behind.most((state, after), 1 << letter, 0)
                    for state in range(states)
                    for letter, after in enumerate(columns[state])
                    if after != state
                ),
                default=0,
            )
        except (ConfigError, RecursionError):
            return None

    @cached_property
    def _is_j_trivial(self) -> bool:
        return is_acyclic(self.monoid.following) and is_acyclic(self.monoid.preceding)

    def _idempotents(self, on_tier: bool) -> Int64[np.ndarray, " idempotent"]:
        """Those of the syntactic semigroup. The monoid's 1 is among them if a letter is neutral."""
        products = self.monoid.products
        idempotents = np.flatnonzero(products.diagonal() == np.arange(len(products)))
        return idempotents[idempotents > 0] if on_tier or not self._neutral.any() else idempotents

    def _local_violation(self, name: str, on_tier: bool) -> tuple[int, ...] | None:
        """Elements that break the identity of LT, or of LTT: e, f, a, u, b."""
        products = self.monoid.products
        idempotents = self._idempotents(on_tier)
        # Those of one J-class have isomorphic local monoids: one of each is enough.
        _, classes = _components(np.hstack([self.monoid.following, self.monoid.preceding]))
        idempotents = idempotents[np.unique(classes[idempotents], return_index=True)[1]]
        for e in idempotents:
            local = np.unique(products[products[e], e])
            table = products[np.ix_(local, local)]
            different = table != table.T
            if different.any():
                a, b = local[np.argwhere(different)[0]]
                return int(e), int(e), int(a), int(e), int(b)
            if name == "LT" and (table.diagonal() != local).any():
                a = local[table.diagonal() != local][0]
                return int(e), int(e), int(a), int(e), int(a)
        for e in idempotents if name == "LTT" else ():
            for f in idempotents[idempotents != e]:
                there = np.unique(products[products[e], f])
                for u in np.unique(products[products[f], e]):
                    table = products[np.ix_(products[there, u], there)]
                    different = table != table.T
                    if different.any():
                        a, b = there[np.argwhere(different)[0]]
                        return int(e), int(f), int(a), int(u), int(b)
        return None

    def _dot_depth_violation(self, on_tier: bool) -> tuple[int, int, int, int] | None:
        """Two states r, s of one strong component and elements q, p of one L-class with r q ≠ s p,
        though idempotents e and f are such that r e = r, e q = q, s f = s, f p = p.

        That none are is Knast's condition: as r is r (x y)ⁿ for any way x to s and back by y, and
        q is (z t)ⁿ q likewise.
        """
        monoid = self.monoid
        elements = monoid.elements
        size, states = elements.shape
        idempotents = self._idempotents(on_tier)
        linked = np.zeros((states, size), dtype=bool)
        rows, columns = np.nonzero((elements[idempotents] == np.arange(states)).T)
        columns = idempotents[columns]
        while len(rows):
            linked[rows, columns] = True
            fresh = np.zeros_like(linked)
            fresh[rows[:, None], monoid.following[columns]] = True
            rows, columns = np.nonzero(fresh & ~linked)
        states_of, elements_of = np.nonzero(linked)
        _, components = _components(self._columns.T)
        number, left = _components(monoid.preceding)
        keys = components[states_of] * number + left[elements_of]
        reached = elements[elements_of, states_of]
        order = np.lexsort([reached, keys])
        first, second = order[:-1], order[1:]
        broken = np.flatnonzero((keys[first] == keys[second]) & (reached[first] != reached[second]))
        if not len(broken):
            return None
        one, other = first[broken[0]], second[broken[0]]
        return (
            int(states_of[one]),
            int(states_of[other]),
            int(elements_of[one]),
            int(elements_of[other]),
        )

    def _width(self, name: str, on_tier: bool) -> tuple[int | None, int | None]:
        """The least width, and the least number that is counted up to at it; None: not found."""
        _, components = _components(self._columns.T)
        steps = self._steps_together(components, on_tier)
        assert steps is not None
        k = steps + 1
        while True:
            try:
                t = self.threshold(k, on_tier, 1 if name == "LT" else None)
            except ConfigError:
                return None, None
            if t is not None:
                return k, t if name == "LTT" else None
            k += 1

    def threshold(self, k: int, on_tier: bool, most: int | None = None) -> int | None:
        """The least t such that factors of width k, counted up to t, decide; None: no such t, or
        none up to the most.

        Strings are walks from a vertex, their first k - 1 letters, over factors of k letters. In
        the product with the automaton, a factor counts if it ever leaves a strong component, or
        if no others lead back. If a component has two states of one vertex, strings that go back
        and forth between them tell that no t is enough. Else what does not count changes no
        component, and can be put in as often as anyone likes: so t is enough if and only if the
        numbers of those that count, up to t, and the last vertex give the component.

        Raises:
            ConfigError: there are too many factors.
        """
        if (walks := self._walks(k, on_tier)) is None:
            return None
        for t in range(1, (most or len(self._accepting)) + 1):
            if (alike := _alike(*walks, t)) is None:
                return t
            if alike[0] == alike[1]:
                return None
        return None

    def _walks(self, k: int, on_tier: bool) -> "tuple[list[Node], dict[Node, list[Move]]] | None":
        columns = self._columns_of(on_tier)
        letters, states = columns.shape
        vertices = letters ** (k - 1)
        if vertices * states > MAX_FACTORS:
            raise ConfigError(f"there are more than {MAX_FACTORS:,} factors of width {k}")
        occurs = np.ones((1, states), dtype=bool)
        first = np.array([self._start])
        for _ in range(k - 1):
            vertex, state = np.nonzero(occurs)
            occurs = np.zeros((len(occurs) * letters, states), dtype=bool)
            for letter in range(letters):
                occurs[vertex * letters + letter, columns[letter, state]] = True
            first = columns[:, first].T.ravel()
        vertex, state = np.nonzero(occurs)
        numbers = np.zeros(occurs.shape, dtype=np.int64)
        numbers[vertex, state] = np.arange(len(vertex))
        factors = vertex[:, None] * letters + np.arange(letters)
        following = numbers[factors % vertices, columns[:, state].T]
        _, components = _components(following)
        if len(np.unique(components * vertices + vertex)) < len(vertex):
            return None
        counted = np.zeros(vertices * letters, dtype=bool)
        counted[factors[components[following] != components[:, None]]] = True
        before, after = np.arange(len(counted)) // letters, np.arange(len(counted)) % vertices
        # A factor that counts leads nowhere here.
        other = np.where(counted, before, after).reshape(vertices, letters)
        _, places = _components(other)
        counted |= places[before] != places[after]
        moves: dict[Node, list[Move]] = {}
        rows, chosen = np.nonzero(counted[factors])
        ends = following[rows, chosen]
        edges = np.unique(
            np.column_stack(
                [
                    components[rows], places[vertex[rows]], factors[rows, chosen],
                    components[ends], places[vertex[ends]],
                ]
            ),
            axis=0,
        )  # fmt: skip
        for component, place, factor, *after_it in edges.tolist():
            moves.setdefault((component, place), []).append((factor, (after_it[0], after_it[1])))
        at_first = numbers[np.arange(vertices), first]
        starts = np.unique(np.column_stack([components[at_first], places]), axis=0)
        # Components are numbered from the last: the earliest begin, as most others follow them.
        return [(pair[0], pair[1]) for pair in reversed(starts.tolist())], moves


Node = tuple[int, int]
"""A strong component of states and vertices, and one of the vertices alone."""
Move = tuple[int, Node]
"""A factor that counts, and where it leads."""


def _alike(
    starts: list[Node], moves: dict[Node, list[Move]], t: int
) -> tuple[Counter[int], Counter[int]] | None:
    """How often what counts occurs in two walks that end in different components, though they
    begin and end at the same place and up to t they have as many of each; None if there are none.

    Factors are looked at one by one, those that tell apart walks that were alike so far.

    Raises:
        ConfigError: there are too many numbers.
    """
    looked_at: list[int] = []
    while (walks := _undecided(starts, moves, t, looked_at)) is not None:
        one, other = walks
        apart = {x: abs(min(one[x], t) - min(other[x], t)) for x in one | other}
        if not any(apart.values()):
            return walks
        looked_at.append(max(apart, key=lambda x: (apart[x], one[x] + other[x])))
    return None


def _undecided(
    starts: list[Node], moves: dict[Node, list[Move]], t: int, looked_at: list[int]
) -> tuple[Counter[int], Counter[int]] | None:
    """Likewise two walks with as many of each factor that is looked at."""
    covered: set[Node] = set()
    units = {factor: (t + 1) ** place for place, factor in enumerate(looked_at)}
    left = {node[0] for node, steps in moves.items() if any(x[0] != node[0] for _, x in steps)}
    ends = Counter(x[0] for steps in moves.values() for _, x in steps if x[0] not in left)
    last = max(ends, key=lambda component: ends[component], default=-1)
    for start in starts:
        if start in covered or start[0] == last:
            continue
        first = (start[1], 0)
        reached = {first: (start[0], first, -1)}
        queue, ended = [first], list[tuple[int, int]]()
        for keys in (queue, ended):
            # Of walks that have come to the last component, which they never leave, only those
            # go on that may still have the numbers of one that has not.
            numbers = {counts for _, counts in queue} if keys is ended else set()
            within: dict[int, bool] = {}
            bounds = np.array([[x // unit % (t + 1) for unit in units.values()] for x in numbers])
            for key in keys:
                place, counts = key
                node = (reached[key][0], place)
                covered.add(node)
                for factor, (component, after) in moves.get(node, ()):
                    unit = units.get(factor, 0)
                    full = not unit or counts // unit % (t + 1) == t
                    to = (after, counts if full else counts + unit)
                    if to in reached:
                        if reached[to][0] != component:
                            one, other = _factors_of(reached, key), _factors_of(reached, to)
                            return Counter([*one, factor]), Counter(other)
                        continue
                    if keys is ended and to[1] not in within:
                        own = [to[1] // unit % (t + 1) for unit in units.values()]
                        within[to[1]] = bool((bounds >= own).all(axis=1).any())
                    if keys is ended and not within[to[1]]:
                        continue
                    reached[to] = (component, key, factor)
                    (ended if component == last else queue).append(to)
                if len(reached) > MAX_COUNTS:
                    raise ConfigError(f"there are more than {MAX_COUNTS:,} numbers of factors")
    return None


def _factors_of(
    reached: Mapping[tuple[int, int], tuple[int, tuple[int, int], int]], key: tuple[int, int]
) -> Iterator[int]:
    while (step := reached[key])[2] >= 0:
        yield step[2]
        key = step[1]


class _Stretches(Generic[State]):
    """The most stretches of a walk over letters, of which each has all letters of the last."""

    def __init__(
        self,
        steps: Callable[[State], Iterable[tuple[int, State]]],
        ends: Callable[[State], bool],
    ) -> None:
        self._steps = steps
        self._ends = ends
        self._after: dict[State, list[tuple[int, State]]] = {}
        self._most: dict[tuple[State, int, int], float] = {}

    def most(self, state: State, last: int, own: int) -> float:
        """As many as can still follow, to an end; -inf where none is reached.

        Args:
            state: where the walk is.
            last: the letters of the last stretch, as bits.
            own: those of this one so far.
        """
        key = (state, last, own)
        if key in self._most:
            return self._most[key]
        if len(self._most) > MAX_STRETCHES:
            raise ConfigError(f"there are more than {MAX_STRETCHES:,} stretches")
        if state not in self._after:
            self._after[state] = list(self._steps(state))
        most = 0 if self._ends(state) else -math.inf
        for letter, after in self._after[state]:
            letters = own | letter
            if not last & ~letters:
                more = 1 + self.most(after, letters, 0)
            elif letters != own or after != state:
                more = self.most(after, last, letters)
            else:
                continue
            if more > most:
                most = more
        self._most[key] = most
        return most


def _components(
    following: Int64[np.ndarray, "vertex edge"],
) -> tuple[int, Int64[np.ndarray, " vertex"]]:
    """How many strong components a graph has, and in which each vertex is."""
    number, edges = following.shape
    before = np.repeat(np.arange(number), edges)
    graph = coo_array(
        (np.ones(len(before), dtype=bool), (before, following.ravel())), (number, number)
    )
    count, components = connected_components(graph, connection="strong")
    return int(count), components.astype(np.int64)


def is_acyclic(following: Int64[np.ndarray, "vertex edge"]) -> bool:
    """Whether a graph has no circles but those of one vertex."""
    return _components(following)[0] == len(following)


def _is_subsequence(word: str, text: str) -> bool:
    letters = iter(text)
    return all(letter in letters for letter in word)


def _larger(name: str) -> Iterator[str]:
    for above in CLASSES[name].within:
        yield above
        yield from _larger(above)
