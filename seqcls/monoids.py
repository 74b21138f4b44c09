"""The syntactic monoid of a regular language, the maps of its minimal automaton's states that
strings induce, and its groups.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from jaxtyping import Bool, Int64, Integer, UInt16

from seqcls.errors import ConfigError

MAX_ELEMENTS = 100_000
"""The most elements of a monoid that is built."""

MAX_STATES = 2_000
"""The most states of the minimal automaton."""

MAX_CELLS = 20_000_000
"""The most elements times states, each two bytes."""

MAX_BITS = 1_000_000_000
"""The most elements times lengths, of the sets of elements of strings of one length."""

LEAST_UNSOLVABLE = 60
"""The order of A5, the smallest group that is not solvable."""

MAX_MULTIPLIED = 5_000
"""The most elements of a monoid with a table of products."""

Maps = UInt16[np.ndarray, "element state"]


class Table(Protocol):
    """A complete deterministic automaton over numbered letters."""

    table: Int64[np.ndarray, "state letter"]
    accepting: Bool[np.ndarray, " state"]
    start: int


@dataclass(frozen=True, eq=False)
class Monoid:
    """The maps of the states of a minimal automaton that strings induce, the identity first."""

    tokens: UInt16[np.ndarray, "token state"]
    """The different maps of single letters."""
    letters: Int64[np.ndarray, " token"]
    """The first letter of each token."""
    elements: Maps
    following: Int64[np.ndarray, "element token"]
    """The element after one more token."""

    @cached_property
    def last(self) -> tuple[Int64[np.ndarray, " element"], Int64[np.ndarray, " element"]]:
        """The element of a shortest string of each element without its last token, and that token;
        0 and 0 for the empty string.
        """
        first = np.unique(self.following, return_index=True)
        before = np.zeros(len(self.elements), dtype=np.int64)
        before[first[0]] = first[1]
        before[0] = 0
        parents, tokens = np.divmod(before, len(self.tokens))
        return parents, tokens

    def word(self, element: int) -> tuple[int, ...]:
        """The letters of a shortest string that makes an element."""
        parents, tokens = self.last
        letters: list[int] = []
        while element:
            letters.append(int(self.letters[tokens[element]]))
            element = int(parents[element])
        return tuple(reversed(letters))

    @cached_property
    def preceding(self) -> Int64[np.ndarray, "element token"]:
        """The element with one more token in front."""
        return self._times_all(self.following[0])

    @cached_property
    def products(self) -> Int64[np.ndarray, "first second"]:
        """The products of elements, the first applied first.

        Raises:
            ConfigError: there are too many.
        """
        number = len(self.elements)
        if number > MAX_MULTIPLIED:
            raise ConfigError(
                f"its syntactic monoid has {number:,} elements, and of more than "
                f"{MAX_MULTIPLIED:,} products are not worked out"
            )
        return self._times_all(np.arange(number)).T

    def _times_all(self, firsts: Int64[np.ndarray, " first"]) -> Int64[np.ndarray, "element first"]:
        """The products of some elements, applied first, and each element."""
        parents, tokens = self.last
        products = np.empty((len(self.elements), len(firsts)), dtype=np.int64)
        products[0] = firsts
        for element in range(1, len(products)):
            # Elements are numbered by their shortest strings, so that parents come first.
            products[element] = self.following[products[parents[element]], tokens[element]]
        return products

    @property
    def is_commutative(self) -> bool:
        """True if the order of tokens does not matter, so that letter counts decide."""
        return commute(self.tokens)

    @property
    def is_cyclic_group(self) -> bool:
        """True if every token permutes the states, and all elements are powers of one."""
        permutes = all(len(np.unique(token)) == len(token) for token in self.tokens)
        return permutes and len(self.elements) in {period(x) for x in self.elements}

    @property
    def token_periods(self) -> tuple[int, ...]:
        """The period of each token: so many more of it change nothing, after enough."""
        return tuple(period(token) for token in self.tokens)

    @cached_property
    def aperiodic(self) -> Bool[np.ndarray, " element"]:
        """True for elements x with x^(n+1) = x^n for some n."""
        powers = self.elements
        for _ in range(int(powers.shape[1]).bit_length()):
            powers = _after(powers, powers)
        return np.asarray((_after(powers, self.elements) == powers).all(axis=1))

    @property
    def is_aperiodic(self) -> bool:
        """True if it has only trivial groups: the language is star-free (Schützenberger 1965)."""
        return bool(self.aperiodic.all())

    def is_quasi_aperiodic(self) -> bool:
        """True if the elements of strings of one length never include a nontrivial group: the
        language is in AC0 (Barrington, Compton, Straubing & Thérien 1992).

        The set of elements of strings of length t is periodic from some t on. A group in that of t
        is in that of every multiple of t, so one multiple of the period decides.

        Raises:
            ConfigError: the period begins too late.
        """
        if self.is_aperiodic:
            return True
        number = len(self.elements)
        made = np.zeros(number, dtype=bool)
        # The empty string is the one string of length 0.
        made[0] = True
        lengths: dict[bytes, int] = {}
        while (packed := np.packbits(made).tobytes()) not in lengths:
            if len(lengths) * number > MAX_BITS:
                raise ConfigError(
                    f"what strings of one length do to its automaton has not repeated at length "
                    f"{len(lengths):,}"
                )
            lengths[packed] = len(lengths)
            following = self.following[made].ravel()
            made = np.zeros(number, dtype=bool)
            made[following] = True
        first = lengths[packed]
        repeats = len(lengths) - first
        multiple = list(lengths)[-(-first // repeats) * repeats]
        stable = np.unpackbits(np.frombuffer(multiple, dtype=np.uint8), count=number)
        return bool(self.aperiodic[stable.astype(bool)].all())

    def is_solvable(self) -> bool:
        """True if every group in it is solvable.

        A maximal subgroup consists of the elements of one kernel and one image that permute that
        image.
        """
        chosen = self.elements[~self.aperiodic]
        images = _images(chosen)
        permutes = images.sum(axis=1) == _images(_after(chosen, chosen)).sum(axis=1)
        chosen, images = chosen[permutes], images[permutes]
        groups: dict[bytes, list[int]] = {}
        for row, (image, kernel) in enumerate(zip(images, _kernels(chosen), strict=True)):
            groups.setdefault(image.tobytes() + kernel.tobytes(), []).append(row)
        known: set[bytes] = set()
        for rows in groups.values():
            # Idempotents are aperiodic, and so the identity is missing.
            if len(rows) + 1 < LEAST_UNSOLVABLE:
                continue
            image = np.flatnonzero(images[rows[0]])
            points = np.searchsorted(image, chosen[rows][:, image]).astype(np.uint16)
            permutations = np.unique(points, axis=0)
            # Many maximal subgroups are the same group of permutations: each is decided once.
            key = permutations.tobytes()
            if key not in known and not _is_solvable_group(permutations):
                return False
            known.add(key)
        return True


def monoid_of(automaton: Table) -> Monoid:
    """The transition monoid of an automaton; of a minimal one the syntactic monoid.

    Raises:
        ConfigError: it is too large.
    """
    check_states(automaton)
    states = len(automaton.table)
    tokens, letters = np.unique(automaton.table.T.astype(np.uint16), axis=0, return_index=True)
    most = min(MAX_ELEMENTS, MAX_CELLS // states)
    identity = np.arange(states, dtype=np.uint16)
    numbers = {identity.tobytes(): 0}
    levels, following = [identity[None]], []
    while len(levels[-1]):
        fresh = []
        for row in np.moveaxis(tokens[:, levels[-1]], 0, 1):
            reached = []
            for element in row:
                key = element.tobytes()
                if key not in numbers:
                    numbers[key] = len(numbers)
                    fresh.append(element)
                reached.append(numbers[key])
            following.append(reached)
        if len(numbers) > most:
            raise ConfigError(f"its syntactic monoid has more than {most:,} elements")
        levels.append(np.array(fresh, dtype=np.uint16).reshape(-1, states))
    elements = np.concatenate(levels)
    return Monoid(tokens, letters, elements, np.array(following, dtype=np.int64))


def check_states(automaton: Table) -> None:
    """Refuse a minimal automaton with too many states.

    Raises:
        ConfigError: it has more than `MAX_STATES`.
    """
    if (states := len(automaton.table)) > MAX_STATES:
        raise ConfigError(f"its minimal automaton has {states:,} states, more than {MAX_STATES:,}")


def distances_to(
    table: Int64[np.ndarray, "state letter"], goals: Bool[np.ndarray, " state"]
) -> Int64[np.ndarray, " state"]:
    """The length of the shortest string from each state to a goal; -1 where there is none."""
    distances, reached, length = np.where(goals, 0, -1), goals, 0
    while (more := ~reached & reached[table].any(axis=1)).any():
        length += 1
        distances[more] = length
        reached = reached | more
    return distances


def shortest_words(
    following: Int64[np.ndarray, "state letter"], start: int = 0
) -> dict[int, tuple[int, ...]]:
    """A shortest string from one state to each reachable state, the nearest first."""
    words: dict[int, tuple[int, ...]] = {start: ()}
    for state in (queue := [start]):
        for letter, after in enumerate(following[state].tolist()):
            if after not in words:
                words[after] = (*words[state], letter)
                queue.append(after)
    return words


def commute(tokens: Integer[np.ndarray, "token state"]) -> bool:
    """True if the order of any two maps of states does not matter."""
    return all((a[b] == b[a]).all() for a in tokens for b in tokens)


def period(element: UInt16[np.ndarray, " state"]) -> int:
    """The least k with x^(n+k) = x^n for a large n."""
    power = element
    for _ in range(len(element).bit_length()):
        # Squared often enough, a power is in the periodic part.
        power = power[power]
    turned, turns = element[power], 1
    while (turned != power).any():
        turned, turns = element[turned], turns + 1
    return turns


def _after(first: Maps, second: Maps) -> Maps:
    """Compose maps row by row, the second after the first."""
    return np.take_along_axis(second, first.astype(np.int64), axis=1)


def _images(elements: Maps) -> Bool[np.ndarray, "element state"]:
    """True for the states in the image of each map."""
    images = np.zeros(elements.shape, dtype=bool)
    np.put_along_axis(images, elements.astype(np.int64), True, axis=1)
    return images


def _kernels(elements: Maps) -> Maps:
    """For each state, the first state with the same image."""
    first = np.zeros_like(elements)
    rows = np.arange(len(elements))
    for state in reversed(range(elements.shape[1])):
        first[rows, elements[:, state]] = state
    return np.take_along_axis(first, elements.astype(np.int64), axis=1)


def _is_solvable_group(permutations: UInt16[np.ndarray, "element point"]) -> bool:
    """True if these are, with the identity, all elements of a solvable group."""
    # Takes half a second to load: only where there is such a group.
    from sympy.combinatorics import Permutation, PermutationGroup

    group = PermutationGroup([Permutation(permutations[0].tolist())])
    generators = []
    for row in permutations.tolist():
        if group.order() > len(permutations):
            break
        if not group.contains(permutation := Permutation(row)):
            generators.append(permutation)
            group = PermutationGroup(generators)
    return bool(group.is_solvable)


def components(
    following: Int64[np.ndarray, "vertex edge"],
) -> tuple[int, Int64[np.ndarray, " vertex"]]:
    """Number of strong components of a graph, and the component of each vertex."""
    # Takes half a second to load: imported only where a class is decided.
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    number, edges = following.shape
    before = np.repeat(np.arange(number), edges)
    graph = coo_array(
        (np.ones(len(before), dtype=bool), (before, following.ravel())), (number, number)
    )
    count, strong = connected_components(graph, connection="strong")
    return int(count), strong.astype(np.int64)


def is_acyclic(following: Int64[np.ndarray, "vertex edge"]) -> bool:
    """True if a graph has no cycles but loops at one vertex."""
    return components(following)[0] == len(following)
