"""Subregular classes: which of them hold a regular language, decided from its minimal automaton.

Each class has what it looks at: factors (strings of neighboring letters) up to some width k, or
subsequences, their order, and how often they occur. Two strings that look the same to it are both
in a language of the class, or neither is. Whether there is such a width at all is decided by the
syntactic semigroup or by pairs of states; the least one, by the graph of all factors of that
width. Letters that do the same to every state are one letter, and those that do nothing are
neutral: a class on a tier is the class itself, where they are left out.

A factor of width k may begin or end with the string: `⋊` and `⋉` count as letters of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int64
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from seqcls.errors import ConfigError
from seqcls.monoids import Monoid, Table, monoid_of

MAX_FACTORS = 300_000
"""The most factors of one width, times states, among which the least width is sought."""

MAX_COUNTS = 20_000
"""The most numbers in which factors of one width occur, counted up to t."""

MAX_SUBSEQUENCES = 500
"""The most least subsequences that decide a language."""

Letters = tuple[int, ...]


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
        "with solvable groups",
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
    if found.k is None:
        raise ConfigError(f"the least k of {name} is not known here")
    if name == "Zp":
        return found.k == k
    if t is None or found.t is None or found.k > k:
        return found.k <= k
    at = decided.threshold(k, on_tier=name.startswith("T"))
    return at is not None and at <= t


class Subregular:
    """The classes of one language, each decided when it is asked for."""

    def __init__(self, automaton: Table) -> None:
        """Takes the minimal automaton of the language."""
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
        held = {name: found for name in CLASSES if (found := self.find(name)) is not None}
        larger = {above for name in held for above in _larger(name)}
        return tuple(found for name, found in held.items() if name not in larger)

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
                held = self.find("PT") is not None and self._deletion(accepting) is None
                k = self._subsequence_length(accepting) if held else None
            case "LT" | "LTT" as local:
                held = self.find("SF") is not None and self._local_violation(local, on_tier) is None
                k, t = self._width(local, on_tier) if held else (None, None)
            case "PT":
                held = _is_acyclic(self.monoid.following) and _is_acyclic(self.monoid.preceding)
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
        within = (groups[:, None] == groups) & (groups >= 0) & ~np.eye(len(groups), dtype=bool)
        columns, apart, steps = self._columns_of(on_tier), within, 0
        while apart.any():
            first, second = np.nonzero(apart)
            after = np.zeros_like(apart)
            after[columns[:, first], columns[:, second]] = True
            after &= within
            if (after == apart).all():
                return None
            apart, steps = after, steps + 1
        return steps

    def _deletion(self, accepting: Bool[np.ndarray, " state"]) -> tuple[int, int] | None:
        """A state and a letter without which some string is not accepted that was; None: none."""
        letters, states = np.nonzero(self._columns != np.arange(len(accepting)))
        codes = np.unique(self._columns[letters, states] * len(accepting) + states)
        seen = np.zeros(len(accepting) ** 2, dtype=bool)
        while len(codes):
            seen[codes] = True
            first, second = np.divmod(codes, len(accepting))
            if (accepting[first] & ~accepting[second]).any():
                return int(first[0]), int(second[0])
            codes = np.unique(self._columns[:, first] * len(accepting) + self._columns[:, second])
            codes = codes[~seen[codes]]
        return None

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

        found = below(self._start)
        return None if found is None else max([1, *map(len, found)])

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
        codes = rows * size + idempotents[columns]
        while len(codes):
            linked.ravel()[codes] = True
            rows, columns = np.divmod(codes, size)
            codes = np.unique(rows[:, None] * size + monoid.following[columns])
            codes = codes[~linked.ravel()[codes]]
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
        starts, moves = self._walks(k, on_tier) or (None, None)
        if starts is None or moves is None:
            return None
        t = 1
        while not _counts_decide(starts, moves, t):
            if t == (most or len(self._accepting)):
                return None
            t += 1
        return t

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
        rows, letter = np.nonzero(counted[factors])
        ends = following[rows, letter]
        edges = np.unique(
            np.column_stack(
                [
                    components[rows], places[vertex[rows]], factors[rows, letter],
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


def _counts_decide(starts: list[Node], moves: dict[Node, list[Move]], t: int) -> bool:
    """Whether what counts, up to t, and the last vertex give the component.

    Raises:
        ConfigError: there are too many numbers.
    """
    covered: set[Node] = set()
    # A number for each factor that counts, as one: in a system of base t + 1.
    factors = {factor for following in moves.values() for factor, _ in following}
    units = {factor: (t + 1) ** place for place, factor in enumerate(sorted(factors))}
    for start in starts:
        if start in covered:
            continue
        reached = {(start[1], 0): start[0]}
        queue = list(reached)
        for place, counts in queue:
            node = (reached[place, counts], place)
            covered.add(node)
            for factor, (component, after) in moves.get(node, ()):
                unit = units[factor]
                key = (after, counts if counts // unit % (t + 1) == t else counts + unit)
                if key not in reached:
                    reached[key] = component
                    queue.append(key)
                elif reached[key] != component:
                    return False
            if len(queue) > MAX_COUNTS:
                raise ConfigError(f"there are more than {MAX_COUNTS:,} numbers of factors")
    return True


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


def _is_acyclic(following: Int64[np.ndarray, "vertex edge"]) -> bool:
    return _components(following)[0] == len(following)


def _is_subsequence(word: str, text: str) -> bool:
    letters = iter(text)
    return all(letter in letters for letter in word)


def _larger(name: str) -> Iterator[str]:
    for above in CLASSES[name].within:
        yield above
        yield from _larger(above)
