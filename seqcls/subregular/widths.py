"""The least widths, thresholds and lengths of a language's membership in a class.

Factors of one width make a graph: strings are walks from a vertex, their first k - 1 letters, and
each factor of k letters leads from the k - 1 before its last letter to its last k - 1.
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import cache
from typing import TypeVar

import numpy as np
from jaxtyping import Bool, Int64

from seqcls.errors import ConfigError
from seqcls.monoids import components

# Random languages are drawn until one is decided to be of the class: other limits draw others.
MAX_FACTORS = 300_000
"""The most factors of one width, times states, in the search for the least width."""

MAX_COUNTS = 3_000
"""The most combinations of counts of factors of one width, up to t."""

MAX_SUBSEQUENCES = 500
"""The most minimal subsequences that decide a language."""

MAX_STRETCHES = 100_000
"""The most stretches of letters followed for the least k of a piecewise testable language."""

Columns = Int64[np.ndarray, "letter state"]
"""The transitions of each letter; no two are equal."""
State = TypeVar("State", bound=Hashable)
Node = tuple[int, int]
"""A strong component of states and vertices, and one of the vertices alone."""
Move = tuple[int, Node]
"""A factor that counts, and where it leads."""


def least_threshold(columns: Columns, start: int, k: int, most: int | None = None) -> int | None:
    """The least t such that factors of width k, counted up to t, decide; None: no such t, or
    none up to the most.

    In the product of the graph with the automaton, a factor counts if it ever leaves a strong
    component, or if no others lead back. If a component has two states of one vertex, strings that
    go back and forth between them show that no t is enough. Otherwise factors that do not count
    change no component and can be inserted any number of times: so t is enough if and only if the
    numbers of those that count, up to t, and the last vertex determine the component.

    Raises:
        ConfigError: there are too many factors.
    """
    if (walks := _walks(columns, start, k)) is None:
        return None
    for t in range(1, (most or columns.shape[1]) + 1):
        if (alike := _alike(*walks, t)) is None:
            return t
        if alike[0] == alike[1]:
            return None
    return None


def _walks(
    columns: Columns, start: int, k: int
) -> tuple[list[Node], dict[Node, list[Move]]] | None:
    """The start nodes, and the moves by factors that count; None: two states of one vertex."""
    letters, states = columns.shape
    vertices = letters ** (k - 1)
    if vertices * states > MAX_FACTORS:
        raise ConfigError(f"there are more than {MAX_FACTORS:,} factors of width {k}")
    occurs = np.ones((1, states), dtype=bool)
    first = np.array([start])
    for _ in range(k - 1):
        vertex, state = np.nonzero(occurs)
        occurs = np.zeros((len(occurs) * letters, states), dtype=bool)
        for letter in range(letters):
            # One more letter of the vertex, which in the end is the last k - 1 letters.
            occurs[vertex * letters + letter, columns[letter, state]] = True
        # The states that exactly these letters lead to from the start.
        first = columns[:, first].T.ravel()
    vertex, state = np.nonzero(occurs)
    numbers = np.zeros(occurs.shape, dtype=np.int64)
    numbers[vertex, state] = np.arange(len(vertex))
    factors = vertex[:, None] * letters + np.arange(letters)
    following = numbers[factors % vertices, columns[:, state].T]
    _, strong = components(following)
    # Two states of one vertex in one component: no threshold is enough.
    if len(np.unique(strong * vertices + vertex)) < len(vertex):
        return None
    counted = np.zeros(vertices * letters, dtype=bool)
    counted[factors[strong[following] != strong[:, None]]] = True
    before, after = np.arange(len(counted)) // letters, np.arange(len(counted)) % vertices
    # A factor that counts is a loop here.
    other = np.where(counted, before, after).reshape(vertices, letters)
    _, places = components(other)
    counted |= places[before] != places[after]
    moves: dict[Node, list[Move]] = {}
    rows, chosen = np.nonzero(counted[factors])
    ends = following[rows, chosen]
    nodes = np.column_stack([strong, places[vertex]])
    edges = np.hstack([nodes[rows], factors[rows, chosen][:, None], nodes[ends]])
    for *node, factor, component, place in np.unique(edges, axis=0).tolist():
        moves.setdefault((node[0], node[1]), []).append((factor, (component, place)))
    starts = np.unique(nodes[numbers[np.arange(vertices), first]], axis=0)
    # Components are numbered from the last: the earliest begin, as most others follow them.
    return [(component, place) for component, place in reversed(starts.tolist())], moves


def _alike(
    starts: list[Node], moves: dict[Node, list[Move]], t: int
) -> tuple[Counter[int], Counter[int]] | None:
    """The counts of factors in two walks that end in different components, though they begin and
    end at the same vertex and have equal counts up to t; None if there are none.

    Factors are added one by one: each distinguishes the walks that were alike before.

    Raises:
        ConfigError: there are too many numbers.
    """
    looked_at: list[int] = []
    while (walks := _find_walks(starts, moves, t, looked_at)) is not None:
        one, other = walks
        apart = {x: abs(min(one[x], t) - min(other[x], t)) for x in one | other}
        if not any(apart.values()):
            return walks
        looked_at.append(max(apart, key=lambda x: (apart[x], one[x] + other[x])))
    return None


def _find_walks(
    starts: list[Node], moves: dict[Node, list[Move]], t: int, looked_at: list[int]
) -> tuple[Counter[int], Counter[int]] | None:
    """Two walks like those of `_alike`, with equal counts of the factors in `looked_at`."""
    covered: set[Node] = set()
    # Numbers of the factors, each up to t, are the digits of one number in base t + 1.
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
            # Walks in the last component, which they never leave, go on only if they may still
            # reach the counts of a walk outside it.
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


def least_length(columns: Columns, start: int, accepting: Bool[np.ndarray, " state"]) -> int | None:
    """The least k of a piecewise testable language; None where finding it takes too long.

    Strings with the same subsequences of up to k letters have the same label if and only if those
    have that differ by one letter, u v and u a v. These have the same subsequences if and only if
    u ends in p, and v begins with q, p + q = k, stretches such that each, going away from the a,
    has all letters of the one before, and the first an a (Simon 1975). So k is one more than the
    most stretches around a letter that matters.
    """
    before: list[list[tuple[int, int]]] = [[] for _ in accepting]
    for letter, column in enumerate(columns.tolist()):
        for state, after in enumerate(column):
            # Sets of letters are bits, which are fast to join and compare.
            before[after].append((1 << letter, state))
    rows = columns.T.tolist()

    @cache
    def apart(pair: tuple[int, int]) -> list[tuple[int, tuple[int, int]]]:
        pairs = enumerate(zip(rows[pair[0]], rows[pair[1]], strict=True))
        return [(1 << letter, after) for letter, after in pairs if after[0] != after[1]]

    ahead = _most_stretches(before.__getitem__, lambda state: state == start)
    behind = _most_stretches(apart, lambda pair: bool(accepting[pair[0]] != accepting[pair[1]]))
    try:
        most = max(
            (
                ahead(state, 1 << letter, 0) + behind((state, after), 1 << letter, 0)
                for state, row in enumerate(rows)
                for letter, after in enumerate(row)
                if after != state
            ),
            default=0,
        )
    # Walks through many states may be deeper than Python's stack.
    except (ConfigError, RecursionError):
        return None
    return 1 + int(most)


def _most_stretches(
    steps: Callable[[State], Iterable[tuple[int, State]]], ends: Callable[[State], bool]
) -> Callable[[State, int, int], float]:
    """A function of a state, the letters of the last stretch and those of this one so far, as bits:
    the most stretches, each with all letters of the one before, that can follow up to an end; -inf
    where no end is reached.
    """
    known: dict[tuple[State, int, int], float] = {}

    def find(state: State, last: int, own: int) -> float:
        key = (state, last, own)
        if key in known:
            return known[key]
        if len(known) > MAX_STRETCHES:
            raise ConfigError(f"there are more than {MAX_STRETCHES:,} stretches")
        most = 0 if ends(state) else -math.inf
        for letter, after in steps(state):
            letters = own | letter
            # The most stretches result from ending each once it has all letters of the one before.
            if not last & ~letters:
                most = max(most, 1 + find(after, letters, 0))
            elif letters != own or after != state:
                most = max(most, find(after, last, letters))
        known[key] = most
        return most

    return find


def longest_forbidden(
    columns: Columns, start: int, accepting: Bool[np.ndarray, " state"]
) -> int | None:
    """The least k of a strictly piecewise language: the length of its longest minimal forbidden
    subsequence; None where there are too many.
    """
    least: dict[int, list[str]] = {}

    def below(state: int) -> list[str]:
        if state not in least:
            # From a state that does not accept, even the empty subsequence is forbidden.
            found = set[str]() if accepting[state] else {""}
            for letter, column in enumerate(columns):
                after = int(column[state])
                if found != {""} and after != state:
                    # Words as text, one character a letter, which sets and `in` handle fast.
                    found |= {chr(letter) + x for x in below(after)}
            words: list[str] = []
            # Shortest first, as no longer word is a subsequence.
            for word in sorted(found, key=len):
                if not any(_is_subsequence(x, word) for x in words):
                    words.append(word)
            if len(words) > MAX_SUBSEQUENCES:
                raise ConfigError(f"there are more than {MAX_SUBSEQUENCES:,} subsequences")
            least[state] = words
        return least[state]

    try:
        return max([1, *map(len, below(start))])
    except (ConfigError, RecursionError):
        return None


def _is_subsequence(word: str, text: str) -> bool:
    letters = iter(text)
    # The iterator continues after the letter that was found last.
    return all(letter in letters for letter in word)
