"""Strings that show that a language is not in a class, which does not distinguish them."""

from functools import cached_property
from itertools import combinations, islice

import numpy as np
from jaxtyping import Bool, Int64

from seqcls.monoids import components, shortest_words
from seqcls.subregular.classes import ALIKE, Letters, Witness
from seqcls.subregular.decisions import Subregular


def find_witness(decided: Subregular, name: str, k: int = 2) -> Witness | None:
    """Strings that show that a language is not in a class of width k; None where it is, or where
    a few strings cannot show it.
    """
    base = name.removeprefix("T")
    strings = _Strings(decided, k, name != base)
    if base in {"definite", "SL", "coSL"}:
        found = strings.split(base)
    elif base not in ALIKE or decided.find(name) is not None:
        return None
    elif base in {"SP", "coSP"}:
        found = strings.shorten(base)
    elif base in {"finite", "cofinite"}:
        found = strings.go_on(base)
    elif base in {"quasi-aperiodic", "Zp"}:
        found = strings.count() if base == "quasi-aperiodic" else strings.exchange()
    # A language that is not star-free is in no smaller class for that reason.
    elif base == "SF" or decided.find("SF") is None:
        name, found = "SF", strings.repeat()
    elif base == "PT":
        found = strings.turn()
    elif base == "PLT":
        found = strings.insert()
    else:
        found = strings.swap(base)
    return None if found is None else Witness(name, k, *found)


Found = tuple[tuple[Letters, ...], tuple[Letters, ...]]
"""Strings in the language, and strings not in it."""


class _Strings:
    """The search for such strings, one method for each kind of class."""

    def __init__(self, decided: Subregular, k: int, on_tier: bool) -> None:
        self._decided = decided
        self._k = k
        self._on_tier = on_tier
        self._differ = decided.accepting[:, None] != decided.accepting

    def split(self, base: str) -> Found | None:
        """Strings with the same last k letters, or the same k - 1 letters before a suffix, that
        lead two states to two.
        """
        decided, local = self._decided, base != "definite"
        accepting = decided.accepting != (base == "coSL")
        groups = np.where(decided.live(accepting) | (not local), 0, -1)
        # A factor of width k has k - 1 letters before its last.
        steps = self._k - local
        apart = list(islice(decided.apart_after(groups, self._on_tier), steps + 1))
        if not apart[-1].any():
            return None
        columns = decided.columns_of(self._on_tier)
        letters = decided.letters[~decided.neutral] if self._on_tier else decided.letters
        first, second = np.argwhere(apart[-1])[0].tolist()
        ends: tuple[int, int] = (first, second)
        word: Letters = ()
        # Backward: each pair was reached from one of the pairs before.
        for before in reversed(apart[:-1]):
            leads = (columns[:, :, None] == first) & (columns[:, None, :] == second)
            letter, first, second = np.argwhere(leads & before)[0].tolist()
            word = (int(letters[letter]), *word)
        one, other = self._access[first] + word, self._access[second] + word
        suffix = self._suffix(ends, self._differ)
        # The suffix makes the two differ, but either may be the accepted one.
        if not accepting[self._run(decided.start, one + suffix)]:
            one, other, ends = other, one, ends[::-1]
        if not local:
            return (one + suffix,), (other + suffix,)
        further = self._suffix((ends[1], ends[1]), accepting[:, None] & accepting)
        allowed, made = (one + suffix, other + further), (other + suffix,)
        return (made, allowed) if base == "coSL" else (allowed, made)

    def shorten(self, base: str) -> Found:
        """A string, and the same string without a letter."""
        found = self._decided.deletion(self._decided.accepting != (base == "coSP"))
        assert found is not None
        state, letter, suffix = found
        prefix = self._access[state]
        return self._label((*prefix, letter, *suffix), prefix + suffix)

    def go_on(self, base: str) -> Found:
        """Two of infinitely many strings of one label, one with a cycle repeated once more."""
        decided = self._decided
        accepting = decided.accepting != (base == "cofinite")
        live, following = decided.live(accepting), decided.columns.T
        _, strong = components(following)
        turns = live & (strong[following] == strong[:, None]).any(axis=1)
        # The state nearest to the start gives the shortest strings.
        state = min(np.flatnonzero(turns).tolist(), key=lambda x: len(self._access[x]))
        letter = int(np.flatnonzero(strong[following[state]] == strong[state])[0])
        back = self._walk(following, int(following[state, letter]))[state]
        turn = (int(decided.letters[letter]), *back)
        after = self._suffix((state, state), accepting[:, None] & accepting)
        one, other = (self._access[state] + turn * (self._k + x) + after for x in (0, 1))
        return ((one, other), ()) if base == "finite" else ((), (one, other))

    def count(self) -> Found:
        """Blocks of one length whose last is an idempotent in one string, and another element of
        its group in the other.
        """
        monoid = self._decided.monoid
        numbers = {x.tobytes(): number for number, x in enumerate(monoid.elements)}
        made = [np.array([0])]
        while True:
            made.append(np.unique(monoid.following[made[-1]]))
            known = set(made[-1].tolist())
            for element in made[-1][~monoid.aperiodic[made[-1]]].tolist():
                turn = power = monoid.elements[element]
                # Some power of an element of a finite monoid is idempotent.
                while (power[power] != power).any():
                    power = turn[power]
                idempotent = numbers[power.tobytes()]
                if idempotent in known and (turn[power] == turn).all():
                    first, second = (self._word_of(made, x) for x in (idempotent, element))
                    before = first * (self._k - 1)
                    return self._within(before + first, before + second)

    def _word_of(self, made: list[Int64[np.ndarray, " element"]], element: int) -> Letters:
        """Letters that make an element, one for each list of elements of shorter strings."""
        monoid, word = self._decided.monoid, list[int]()
        # From the last letter back to the first.
        for before in reversed(made[:-1]):
            place, token = np.argwhere(monoid.following[before] == element)[0]
            word.append(int(monoid.letters[token]))
            element = int(before[place])
        return tuple(reversed(word))

    def exchange(self) -> Found | None:
        """Two letters, and the same exchanged; if order does not matter, one k times and none."""
        maps = list(zip(self._decided.columns, self._decided.letters.tolist(), strict=True))
        for (one, x), (other, y) in combinations(maps, 2):
            if (one[other] != other[one]).any():
                return self._within((x, y), (y, x))
        for column, x in maps:
            if any(self._run(state, (x,) * self._k) != state for state in range(len(column))):
                return self._within((), (x,) * self._k)
        return None

    def repeat(self) -> Found:
        """A string k times, and once more."""
        monoid = self._decided.monoid
        word = monoid.word(int(np.flatnonzero(~monoid.aperiodic)[0]))
        return self._within(word * self._k, word * (self._k + 1))

    def turn(self) -> Found:
        """Strings with the same subsequences of up to k letters that make different elements: two
        of one R-class, or of one L-class, each of which is a multiple of the other.
        """
        monoid = self._decided.monoid
        for after, order in ((monoid.following, 1), (monoid.preceding, -1)):
            _, classes = components(after)
            several = np.flatnonzero(np.bincount(classes)[classes] > 1)
            if len(several):
                one, other = several[classes[several] == classes[several[0]]][:2].tolist()
                there, back = self._walk(after, one)[other], self._walk(after, other)[one]
                # Words of an L-class grow at the front: they are built and read backward.
                word = monoid.word(one)[::order] + (there + back) * self._k
                return self._within(word[::order], (word + there)[::order])
        raise AssertionError

    def swap(self, base: str) -> Found:
        """Strings that violate the identity of LT, or of LTT."""
        violation = self._decided.local_violation(base, self._on_tier)
        assert violation is not None
        e, f, a, u, b = violation
        before, behind = self._long(e), self._long(f)
        first, middle, second = map(self._decided.monoid.word, (a, u, b))
        # The violation is of idempotence: once and twice differ.
        if a == b:
            return self._within(before + first + behind, (before + first) * 2 + behind)
        middle = behind + middle + before
        return self._within(
            before + first + middle + second + behind, before + second + middle + first + behind
        )

    def insert(self) -> Found:
        """Strings that violate Knast's identity."""
        found = self._decided.dot_depth_violation(self._on_tier)
        assert found is not None
        r, s, q, p = found
        monoid, columns = self._decided.monoid, self._decided.columns.T
        # Names are those of `Subregular.dot_depth_violation`: x leads from r to s and y back.
        e, f = self._staying(r, q), self._staying(s, p)
        x, y = self._walk(columns, r)[s], self._walk(columns, s)[r]
        z, t = (self._walk(monoid.preceding, x)[y][::-1] for x, y in ((p, q), (q, p)))
        before = self._access[r] + (e + x + f + y) * self._k + e
        behind = (z + f + t + e) * self._k + monoid.word(q)
        return self._label(before + behind, before + x + f + t + e + behind)

    def _staying(self, state: int, element: int) -> Letters:
        """A string of an idempotent e with `state e = state` and `e element = element`."""
        monoid, idempotents = self._decided.monoid, self._decided.idempotents(self._on_tier)
        keeps = monoid.elements[idempotents, state] == state
        keeps &= monoid.products[idempotents, element] == element
        return self._long(int(idempotents[keeps][0]))

    def _long(self, idempotent: int) -> Letters:
        """A string of at least k - 1 letters whose element is an idempotent of the semigroup."""
        neutral = self._decided.letters[self._decided.neutral]
        # The word of 1 is empty, and a neutral letter makes the same element.
        word = self._decided.monoid.word(idempotent) or (int(neutral[0]),)
        return word * max(1, -(-(self._k - 1) // len(word)))

    def _within(self, one: Letters, other: Letters) -> Found:
        """Two strings that make different elements, in a context that gives different labels."""
        # Different elements lead some state to two others, which some suffix distinguishes.
        pairs = [(self._run(x, one), self._run(x, other)) for x in range(len(self._differ))]
        found = self._decided.search(pairs, self._differ)
        assert found is not None
        prefix, suffix = self._access[found[0]], found[1]
        return self._label(prefix + one + suffix, prefix + other + suffix)

    def _label(self, one: Letters, other: Letters) -> Found:
        accepts = self._decided.accepting[self._run(self._decided.start, one)]
        return ((one,), (other,)) if accepts else ((other,), (one,))

    def _suffix(self, pair: tuple[int, int], goal: Bool[np.ndarray, "state state"]) -> Letters:
        found = self._decided.search([pair], goal)
        assert found is not None
        return found[1]

    @cached_property
    def _access(self) -> list[Letters]:
        """A shortest string that leads to each state."""
        words = self._walk(self._decided.columns.T, self._decided.start)
        return [words[state] for state in range(len(self._differ))]

    def _walk(
        self, following: Int64[np.ndarray, "vertex letter"], start: int
    ) -> dict[int, Letters]:
        """The letters of a shortest walk to each vertex."""
        letters = self._decided.letters.tolist()
        words = shortest_words(following, start)
        return {vertex: tuple(letters[x] for x in word) for vertex, word in words.items()}

    def _run(self, state: int, word: Letters) -> int:
        for letter in word:
            state = int(self._decided.automaton.table[state, letter])
        return state
