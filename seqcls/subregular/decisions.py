"""Decisions of membership, by the syntactic semigroup or pairs of states of the minimal automaton.

Letters that act equally on all states are one letter, and those that change no state are neutral: a
class on a tier is its base class without them.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise, permutations

import numpy as np
from jaxtyping import Bool, Int64

from seqcls.errors import ConfigError
from seqcls.monoids import (
    Monoid,
    Table,
    check_states,
    components,
    distances_to,
    is_acyclic,
    monoid_of,
)
from seqcls.subregular.classes import CLASSES, Letters, Membership, larger_classes
from seqcls.subregular.widths import least_length, least_threshold, longest_forbidden

MAX_TRIPLES = 2_000_000
"""The most words, times states, times elements, in the search for the width of PLT."""


class Subregular:
    """The classes of one language, each decided on demand."""

    def __init__(self, automaton: Table) -> None:
        """Take the minimal automaton of the language.

        Raises:
            ConfigError: it has too many states.
        """
        check_states(automaton)
        self.start = automaton.start
        self.accepting = automaton.accepting
        columns, self.letters = np.unique(automaton.table.T, axis=0, return_index=True)
        self.columns: Int64[np.ndarray, "letter state"] = columns
        self.neutral = (columns == np.arange(columns.shape[1])).all(axis=1)
        outside = (automaton.table == np.arange(len(automaton.table))[:, None]).all(axis=0)
        self.tier: Letters = tuple(np.flatnonzero(~outside).tolist())
        """The letters that change any state: the smallest tier."""
        self.automaton = automaton
        self.undecided: str | None = None
        """Why some class was not decided, set by `smallest`."""
        self._found: dict[str, Membership | None] = {}

    @cached_property
    def monoid(self) -> Monoid:
        """The syntactic monoid."""
        return monoid_of(self.automaton)

    @cached_property
    def smallest(self) -> tuple[Membership, ...]:
        """The classes that it is in, without those that include another of them; classes that are
        not decided are left out.
        """
        larger: set[str] = set()
        smallest = []
        # Smaller classes come first, so those that include a found one need no decision.
        for name in CLASSES:
            try:
                if name not in larger and (found := self.find(name)) is not None:
                    smallest.append(found)
                    larger.update(larger_classes(name))
            except ConfigError as error:
                self.undecided = str(error)
        return tuple(smallest)

    @property
    def missed(self) -> tuple[str, ...]:
        """The classes next below the smallest ones."""
        held = {found.name for found in self.smallest}
        return tuple(name for name, known in CLASSES.items() if held & set(known.within))

    def find(self, name: str) -> Membership | None:
        """The language's membership in a class; None where it is not in it.

        Raises:
            ConfigError: deciding takes too long.
        """
        if name not in CLASSES:
            raise ConfigError(f"class={name!r}: expected one of {', '.join(CLASSES)}")
        if name not in self._found:
            self._found[name] = self._decide(name)
        return self._found[name]

    def _decide(self, name: str) -> Membership | None:
        on_tier = name.startswith("T")
        base = name.removeprefix("T")
        # Without neutral letters the tier is the alphabet, and the class its base.
        if on_tier and not self.neutral.any():
            same = self.find(base)
            return None if same is None else Membership(name, same.k, same.t, self.tier)
        # The complement accepts where the language does not.
        accepting = self.accepting != base.startswith("co")
        k: int | None = None
        t: int | None = None
        match base.removeprefix("co"):
            case "finite":
                # No accepting state is reached from a state on a cycle.
                _, strong = components(self.columns.T)
                has_circle = (strong[self.columns] == strong).any(axis=0)
                held = not (has_circle & self.live(accepting)).any()
            case "definite":
                k = self._steps_together(np.ones(len(accepting), dtype=np.int64))
                held = k is not None
            case "SL":
                live = self.live(accepting)
                steps = self._steps_together(np.where(live, 0, -1), on_tier)
                held = steps is not None
                k = None if steps is None else steps + 1
            case "SP":
                held = self._is_j_trivial and self.deletion(accepting) is None
                k = longest_forbidden(self.columns, self.start, accepting) if held else None
            case "LT" | "LTT" as local:
                held = self.find("SF") is not None and self.local_violation(local, on_tier) is None
                k, t = self._width(local, on_tier) if held else (None, None)
            case "PT":
                held = self._is_j_trivial
                k = least_length(self.columns, self.start, self.accepting) if held else None
            case "PLT":
                held = self.find("SF") is not None and self.dot_depth_violation(on_tier) is None
            case "SF":
                held = self.monoid.is_aperiodic
            case "quasi-aperiodic":
                held = self.monoid.is_quasi_aperiodic()
            case "Zp":
                k = len(self.monoid.elements)
                # A single element is the monoid of all strings, or none, and 1 is no prime.
                held = self.monoid.is_cyclic_group and all(k % x for x in range(2, k)) and k > 1
            case "solvable":
                held = self.monoid.is_solvable()
            case _:
                held = True
        return Membership(name, k, t, self.tier if on_tier else None) if held else None

    def measure(self, found: Membership) -> Membership:
        """A membership with the width of PLT too, which takes longer than deciding it."""
        if found.name.removeprefix("T") != "PLT":
            return found
        return found._replace(k=self._width_in_order(on_tier=found.name != "PLT"))

    def columns_of(self, on_tier: bool) -> Int64[np.ndarray, "letter state"]:
        """The transitions of each letter, without neutral letters if there is a tier."""
        return self.columns[~self.neutral] if on_tier else self.columns

    def live(self, accepting: Bool[np.ndarray, " state"]) -> Bool[np.ndarray, " state"]:
        """True for states from which one of these is reached."""
        return np.asarray(distances_to(self.columns.T, accepting) >= 0)

    def _steps_together(
        self, groups: Int64[np.ndarray, " state"], on_tier: bool = False
    ) -> int | None:
        """The number of letters after which no two states of a group are different states of one
        group; group -1 is none.

        None where strings of every length lead two states to such pairs.
        """
        for column in self.columns_of(on_tier):
            # Two states that a letter does not move stay different forever.
            still = groups[(column == np.arange(len(column))) & (groups >= 0)]
            if len(np.unique(still)) < len(still):
                return None
        for steps, (apart, after) in enumerate(pairwise(self.apart_after(groups, on_tier))):
            if not apart.any():
                return steps
            # The next pairs depend on these alone, so nothing changes any more.
            if (apart == after).all():
                return None
        raise AssertionError

    def apart_after(
        self, groups: Int64[np.ndarray, " state"], on_tier: bool
    ) -> Iterator[Bool[np.ndarray, "state state"]]:
        """Pairs of states of one group reached from such pairs, through such pairs, by strings of
        0 letters, of 1, of 2 ...
        """
        within = (groups[:, None] == groups) & (groups >= 0) & ~np.eye(len(groups), dtype=bool)
        columns, apart = self.columns_of(on_tier), within
        while True:
            yield apart
            first, second = np.nonzero(apart)
            apart = np.zeros_like(within)
            apart[columns[:, first], columns[:, second]] = True
            apart &= within

    def deletion(self, accepting: Bool[np.ndarray, " state"]) -> tuple[int, int, Letters] | None:
        """A state, a letter and a string, accepted with the letter before it and not without."""
        # A letter that does not change the state cannot matter.
        letters, states = np.nonzero(self.columns != np.arange(len(accepting)))
        pairs = zip(self.columns[letters, states].tolist(), states.tolist(), strict=True)
        found = self.search(list(pairs), accepting[:, None] & ~accepting)
        if found is None:
            return None
        return int(states[found[0]]), int(self.letters[letters[found[0]]]), found[1]

    def search(
        self, pairs: Sequence[tuple[int, int]], goal: Bool[np.ndarray, "state state"]
    ) -> tuple[int, Letters] | None:
        """The index of a pair of states, and a shortest string that leads from it to a goal."""
        states = len(goal)
        first = np.array([one * states + other for one, other in pairs], dtype=np.int64)
        # The pair before each pair that is reached, and the letter; -2 where it was not reached.
        before = np.full(states**2, -2)
        by = np.zeros(states**2, dtype=np.int64)
        codes = np.unique(first)
        before[codes] = -1
        while len(codes):
            if len(met := codes[goal.ravel()[codes]]):
                code, word = int(met[0]), []
                while before[code] >= 0:
                    word.append(int(self.letters[by[code]]))
                    code = int(before[code])
                return int(np.flatnonzero(first == code)[0]), tuple(reversed(word))
            one, other = np.divmod(codes, states)
            after = (self.columns[:, one] * states + self.columns[:, other]).ravel()
            fresh = np.flatnonzero(before[after] == -2)
            reached, places = np.unique(after[fresh], return_index=True)
            by[reached], origin = np.divmod(fresh[places], len(codes))
            before[reached] = codes[origin]
            codes = reached
        return None

    @cached_property
    def _is_j_trivial(self) -> bool:
        return is_acyclic(self.monoid.following) and is_acyclic(self.monoid.preceding)

    def idempotents(self, on_tier: bool) -> Int64[np.ndarray, " idempotent"]:
        """The idempotents of the syntactic semigroup, which has the monoid's 1 if a letter is
        neutral.
        """
        products = self.monoid.products
        idempotents = np.flatnonzero(products.diagonal() == np.arange(len(products)))
        # Element 0 is the monoid's 1.
        return idempotents[idempotents > 0] if on_tier or not self.neutral.any() else idempotents

    def local_violation(self, name: str, on_tier: bool) -> tuple[int, ...] | None:
        """Elements that break the identity of LT, or of LTT: e, f, a, u, b."""
        products = self.monoid.products
        idempotents = self.idempotents(on_tier)
        # Idempotents of one J-class have isomorphic local monoids: one of each is enough.
        _, classes = components(np.hstack([self.monoid.following, self.monoid.preceding]))
        idempotents = idempotents[np.unique(classes[idempotents], return_index=True)[1]]
        pairs = [(e, e) for e in idempotents.tolist()]
        if name == "LTT":
            pairs += permutations(idempotents.tolist(), 2)
        for e, f in pairs:
            there = np.unique(products[products[e], f])
            # If all elements of eSe commute, no u between them matters.
            for u in [e] if e == f else np.unique(products[products[f], e]).tolist():
                table = products[np.ix_(products[there, u], there)]
                if len(found := np.argwhere(table != table.T)):
                    a, b = there[found[0]].tolist()
                    return e, f, a, u, b
                if name == "LT" and len(found := there[table.diagonal() != there]):
                    return e, e, int(found[0]), e, int(found[0])
        return None

    def dot_depth_violation(self, on_tier: bool) -> tuple[int, int, int, int] | None:
        """Two states r, s of one strong component and elements q, p of one L-class with r q ≠ s p
        and idempotents e, f such that r e = r, e q = q, s f = s, f p = p; None without such.

        That there are none is Knast's condition: r = r (x y)ⁿ for any strings x from r to s and y
        back, and likewise q = (z t)ⁿ q.
        """
        monoid = self.monoid
        elements = monoid.elements
        size, states = elements.shape
        idempotents = self.idempotents(on_tier)
        linked = np.zeros((states, size), dtype=bool)
        rows, columns = np.nonzero((elements[idempotents] == np.arange(states)).T)
        columns = idempotents[columns]
        while len(rows):
            linked[rows, columns] = True
            fresh = np.zeros_like(linked)
            fresh[rows[:, None], monoid.following[columns]] = True
            rows, columns = np.nonzero(fresh & ~linked)
        states_of, elements_of = np.nonzero(linked)
        _, strong = components(self.columns.T)
        number, left = components(monoid.preceding)
        keys = strong[states_of] * number + left[elements_of]
        reached = elements[elements_of, states_of]
        # Sorted, different ends of one key are adjacent.
        order = np.lexsort([reached, keys])
        first, second = order[:-1], order[1:]
        broken = np.flatnonzero((keys[first] == keys[second]) & (reached[first] != reached[second]))
        if not len(broken):
            return None
        pair = order[broken[0] : broken[0] + 2]
        r, s = states_of[pair].tolist()
        q, p = elements_of[pair].tolist()
        return r, s, q, p

    def _width_in_order(self, *, on_tier: bool) -> int | None:
        """The least width of factors whose order decides; None where finding it takes too long.

        As in `dot_depth_violation`, but with strings u and v of k - 1 letters in place of the
        idempotents, before the places of r and q, and of s and p: r and s are in one strong
        component of the graph of states with the letters before them, and so, read backwards, are
        q and p (Knast 1983, *Some theorems on graph congruences*; Tilson 1987).
        """
        columns = self.columns_of(on_tier)
        # With factors of one letter, subsequences decide.
        if self._is_j_trivial:
            return 1
        letters, states = columns.shape
        size, k = len(self.monoid.elements), 2
        while letters ** (k - 1) * states * size <= MAX_TRIPLES:
            if self._is_decided_in_order(columns, k, on_tier):
                return k
            k += 1
        return None

    def _is_decided_in_order(
        self, columns: Int64[np.ndarray, "letter state"], k: int, on_tier: bool
    ) -> bool:
        elements = self.monoid.elements
        (letters, states), size = columns.shape, len(elements)
        words = np.arange(letters ** (k - 1))
        # Words after one more letter, and words with one more letter in front.
        after = (words[:, None] * letters + np.arange(letters)) % len(words)
        before = np.arange(letters) * letters ** (k - 2) + words[:, None] // letters
        following = after[:, None] * states + columns.T
        _, strong = components(following.reshape(-1, letters))
        preceding = self.monoid.preceding[:, ~self.neutral | (not on_tier)]
        to = preceding[:, words % letters].T[:, :, None]
        _, left = components((before[:, None] * size + to).reshape(-1, letters))
        first = np.array([self.start])
        for _ in range(k - 1):
            first = columns[:, first].T.ravel()
        reached = np.zeros(len(words) * states, dtype=bool)
        fresh = words * states + first
        while len(fresh):
            reached[fresh] = True
            fresh = np.unique(following.reshape(-1, letters)[fresh])
            fresh = fresh[~reached[fresh]]
        places, at = np.divmod(np.flatnonzero(reached), states)
        # One number for each pair of components: before and after.
        keys = strong[reached][:, None] * (left.max() + 1) + left.reshape(-1, size)[places]
        ends = elements[:, at].T
        return len(np.unique(keys)) == len(np.unique(keys * states + ends))

    def _width(self, name: str, on_tier: bool) -> tuple[int | None, int | None]:
        """The least width, and the least threshold at that width; None where not found."""
        _, strong = components(self.columns.T)
        steps = self._steps_together(strong, on_tier)
        assert steps is not None
        k = steps + 1
        while True:
            try:
                most = 1 if name == "LT" else None
                t = least_threshold(self.columns_of(on_tier), self.start, k, most)
            except ConfigError:
                return None, None
            if t is not None:
                return k, t if name == "LTT" else None
            k += 1
