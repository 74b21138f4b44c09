"""Subregular classes: known languages, published ones, and small automata against definitions."""

import itertools
import random
from collections import Counter
from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
import pytest

from seqcls.monoids import Table
from seqcls.subregular.classes import ALIKE, CLASSES, Letters, Membership, Witness
from seqcls.subregular.decisions import Subregular
from seqcls.subregular.widths import least_threshold
from seqcls.subregular.witnesses import find_witness
from seqcls.tasks.automaton import Automaton, minimize
from seqcls.tasks.regular import minimal_automaton
from sweeps.api.task_theory import theory
from tests.conftest import ASSETS

EXAMPLES = {
    "()": "finite, SP (k = 1)",
    "ab|ba": "finite, PT (k = 2)",
    "(a|b)*": "cofinite, SP (k = 1), coSP (k = 1)",
    "(a|b)*aba": "definite (k = 3)",
    "(ab)*": "SL (k = 2)",
    "a(a|b)*": "SL (k = 2), coSL (k = 2)",
    "a*b*": "SL (k = 2), SP (k = 2)",
    "(a|b)*aa(a|b)*": "coSL (k = 2)",
    "(a|b|c)*a(a|b|c)*b(a|b|c)*": "coSP (k = 2), TcoSL (k = 2, tier a b)",
    "((a|b)*aa(a|b)*)&((a|b)*bb(a|b)*)": "LT (k = 2)",
    "((a|b)*aa(a|b)*)&((a|b)*abab(a|b)*)|b*": "LT (k = 4)",
    "(a|b)*aa(a|b)*bb(a|b)*": "PLT (k = 2)",
    "b*(aab*)?": "PT (k = 3), LTT (k = 2, t = 2)",
    "(c*ac*bc*)*c*": "TSL (k = 2, tier a b)",
    "b*ab*": "PT (k = 2), LTT (k = 1, t = 2), TSL (k = 2, tier a), TcoSL (k = 3, tier a)",
    "(a(ab)*b)*": "SF",
    "(aa)*": "quasi-aperiodic, Zp (k = 2)",
    "(b*ab*ab*a)*b*": "Zp (k = 3)",
    "(b*ab*ab*ab*a)*b*": "solvable",
}


def smallest_of(automaton: Automaton) -> tuple[Membership, ...]:
    """The smallest classes of a language of which each class is decided."""
    decided = Subregular(automaton)
    smallest = tuple(map(decided.measure, decided.smallest))
    assert decided.undecided is None
    return smallest


def belongs(made: Automaton, name: str, k: int | None = None, t: int | None = None) -> bool:
    """True if a language is in a class, of at most this width and number."""
    decided = Subregular(made)
    found = decided.find(name)
    if found is None or k is None:
        return found is not None
    if name in {"LT", "LTT"} and (found.k is None or t is not None):
        most = 1 if name == "LT" else t
        return least_threshold(decided.columns, decided.start, k, most) is not None
    assert found.k is not None
    return found.k <= k


def automaton(pattern: str) -> tuple[Automaton, str]:
    letters = "".join(sorted(set(pattern) & set("abcd"))) or "ab"
    return minimal_automaton(pattern, letters), letters


def described(found: Membership, letters: str) -> str:
    """A class, its width, its number and its tier."""
    tier = None if found.tier is None else " ".join(letters[x] for x in found.tier)
    numbers = {"k": found.k, "t": found.t}
    parts = [f"{name} = {value}" for name, value in numbers.items() if value is not None]
    parts += [] if tier is None else [f"tier {tier}"]
    return f"{found.name} ({', '.join(parts)})" if parts else found.name


def test_language_has_its_smallest_classes() -> None:
    for pattern, expected in EXAMPLES.items():
        made, letters = automaton(pattern)
        names = [described(membership, letters) for membership in smallest_of(made)]
        assert ", ".join(names) == expected, pattern
        words = [membership.describe(letters) for membership in smallest_of(made)]
        assert len({*words}) == len(words)


def test_witnesses_refute_their_class() -> None:
    for pattern in EXAMPLES:
        decided = Subregular(automaton(pattern)[0])
        for name, k in itertools.product(CLASSES, (1, 2, 3)):
            witness = find_witness(decided, name, k)
            if witness is not None:
                assert_refutes(automaton(pattern)[0], witness, decided.tier)


def test_refutable_classes_have_witnesses() -> None:
    decided = Subregular(automaton("(a(ab)*b)*")[0])
    for name in ALIKE:
        assert (find_witness(decided, name) is None) == (name in {"SF", "quasi-aperiodic"}), name
    assert find_witness(Subregular(automaton("(aa)*")[0]), "SF") is not None
    witness = find_witness(Subregular(automaton("(b*ab*ab*ab*a)*b*")[0]), "quasi-aperiodic")
    assert witness is not None
    words = witness.describe("ab")
    assert words.startswith("not quasi-aperiodic: bb is in it, ba is not")
    assert "modulo" in words
    # Two sums modulo 2, each of which distinguishes some strings.
    assert find_witness(Subregular(automaton("(b*ab*a)*b*&(a*ba*b)*a*")[0]), "Zp") is None


def test_mlregtest_languages_have_the_class_of_their_name() -> None:
    for path in sorted((ASSETS / "automata").glob("*.att")):
        _, tier, name, k, t, _ = path.stem.split(".")
        (found,) = theory("automaton", path=str(path)).classes
        assert found.name == name
        assert found.k in (None, int(k)), path
        assert found.t in (None, int(t)), path
        assert found.tier is None or len(found.tier) == int(tier), path


@pytest.mark.parametrize("seed", range(3))
def test_small_automata_are_classified_as_by_definition(seed: int) -> None:
    for made in random_automata(seed, 12):
        for k in (1, 2, 3):
            assert {x: belongs(made, x, k) for x in ("LT", "PT", "SP", "coSP", "SL", "coSL")} == {
                "LT": decides(made, Factors(k, 1)),
                "PT": decides(made, Subsequences(k)),
                "SP": allows_what_it_has(made, k, True),
                "coSP": allows_what_it_has(made, k, False),
                "SL": one_state_after(made, k - 1, True),
                "coSL": one_state_after(made, k - 1, False),
            }, made.table
        for k, t in ((1, 2), (1, 3), (2, 2), (2, 3)):
            assert belongs(made, "LTT", k, t) == decides(made, Factors(k, t)), made.table
        decided = Subregular(made)
        for name in CLASSES:
            witness = find_witness(decided, name, 2)
            if witness is not None:
                by_width = name.removeprefix("T") in {"definite", "SL", "coSL"}
                assert by_width or decided.find(name) is None
                assert_refutes(made, witness, decided.tier)


def test_dot_depth_one_equals_knasts_identity() -> None:
    found = Counter(
        (belongs(made, "PLT"), keeps_knasts_identity(Subregular(made)))
        for made in random_automata(3, 150)
        if belongs(made, "SF")
    )
    assert set(found) == {(True, True), (False, False)}


def test_theory_reports_class_source_and_witnesses() -> None:
    language_theory = theory("regular", alphabet="abc", pattern="(c*ac*bc*)*c*")
    (found,) = language_theory.classes
    assert (found.name, found.k, found.t, found.tier) == ("TSL", 2, None, ("a", "b"))
    assert "strictly local (k = 2) on the tier a b" in language_theory.language
    assert "Heinz, Rawal & Tanner 2011" in found.source
    assert [witness.name for witness in language_theory.witnesses] == ["SL"]
    assert language_theory.witnesses[0].inside == ("c", "acb")
    assert language_theory.witnesses[0].outside == ("ac",)
    assert theory("majority").classes == () == theory("copy").witnesses


def accepts(made: Table, word: Letters) -> bool:
    state = made.start
    for letter in word:
        state = made.table[state, letter]
    return bool(made.accepting[state])


def assert_refutes(made: Table, witness: Witness, tier: Letters) -> None:
    """Asserts that the strings have their labels, and that the class cannot distinguish them."""
    assert all(accepts(made, word) for word in witness.inside)
    assert not any(accepts(made, word) for word in witness.outside)
    base = witness.name.removeprefix("T")
    words = [*witness.inside, *witness.outside]
    if base != witness.name:
        words = [tuple(x for x in word if x in tier) for word in words]
    seen = [occurring(word, witness.k) for word in words]
    if base == "SL":
        assert seen[2].keys() <= seen[0].keys() | seen[1].keys()
    elif base == "coSL":
        assert seen[0].keys() <= seen[1].keys() | seen[2].keys()
    elif base == "LT":
        assert seen[0].keys() == seen[1].keys()
    elif base == "LTT":
        assert seen[0] == seen[1]
    elif base == "PT":
        assert short(words[0], witness.k) == short(words[1], witness.k)
    elif base in {"SP", "coSP"}:
        one, other = words if base == "SP" else words[::-1]
        letters = iter(one)
        assert all(letter in letters for letter in other)
    elif base == "definite":
        assert words[0][-witness.k :] == words[1][-witness.k :]
    elif base in {"finite", "cofinite"}:
        assert bool(witness.inside) == (base == "finite")
        (one, other), more = words, len(words[1]) - len(words[0])
        # The second has some letters of the first once more.
        assert any(
            one[:x] + one[x - more : x] + one[x:] == other for x in range(more, len(one) + 1)
        )
    elif base == "quasi-aperiodic":
        assert len(words[0]) == len(words[1])
    elif base == "Zp":
        times = [Counter(word) for word in words]
        assert all((times[0][x] - times[1][x]) % witness.k == 0 for x in times[0] | times[1])
    elif base == "PLT":
        assert in_order(words[0], witness.k) == in_order(words[1], witness.k)
    else:
        assert base == "SF"
        assert set(words[0]) == set(words[1])


def occurring(word: Letters, k: int) -> Counter[Hashable]:
    """Factors of width k; those of a shorter string are the string."""
    ends = ("⋊", *word, "⋉")
    return Counter(ends[x : x + k] for x in range(len(ends) - k + 1)) or Counter([ends])


def short(word: Letters, k: int) -> set[Letters]:
    """Subsequences of up to k letters."""
    found: set[Letters] = {()}
    for letter in word:
        found |= {(*x, letter) for x in found if len(x) < k}
    return found


def in_order(word: Letters, k: int) -> set[Hashable]:
    """Pairs of factors of width k of which one begins after the other does."""
    ends = ("⋊", *word, "⋉")
    found = [ends[x : x + k] for x in range(len(ends) - k + 1)]
    return set(itertools.combinations(found, 2)) | set(found)


class Factors:
    """The features of LT and LTT: beginning, end, and factors counted up to t."""

    def __init__(self, k: int, t: int) -> None:
        self.k, self.t = k, t
        self.first: tuple[Letters, Letters, frozenset[tuple[Letters, int]]] = ((), (), frozenset())

    def more(
        self, seen: tuple[Letters, Letters, frozenset[tuple[Letters, int]]], letter: int
    ) -> tuple[Letters, Letters, frozenset[tuple[Letters, int]]]:
        beginning, end, counted = seen
        if len(beginning) < self.k - 1:
            beginning = (*beginning, letter)
        end = (*end, letter)
        if len(end) >= self.k:
            numbers = dict(counted)
            numbers[end] = min(self.t, numbers.get(end, 0) + 1)
            counted, end = frozenset(numbers.items()), end[1:]
        return beginning, end, counted


class Subsequences:
    """The features of PT: subsequences of up to k letters."""

    def __init__(self, k: int) -> None:
        self.k = k
        self.first: frozenset[Letters] = frozenset([()])

    def more(self, seen: frozenset[Letters], letter: int) -> frozenset[Letters]:
        return seen | {(*x, letter) for x in seen if len(x) < self.k}


def decides(made: Table, looks: Factors | Subsequences) -> bool:
    """True if all strings with equal features lead to one state."""
    states: dict[Hashable, int] = {looks.first: made.start}
    queue: list[Any] = [looks.first]
    for seen in queue:
        for letter, after in enumerate(made.table[states[seen]].tolist()):
            more = looks.more(seen, letter)
            if more not in states:
                queue.append(more)
            if states.setdefault(more, after) != after:
                return False
    return True


def allows_what_it_has(made: Table, k: int, accepting: bool) -> bool:
    """True if every string whose subsequences occur in strings of a label has that label."""
    looks = Subsequences(k)
    reached = {(looks.first, made.start)}
    queue = list(reached)
    for seen, state in queue:
        for letter, after in enumerate(made.table[state].tolist()):
            if (more := (looks.more(seen, letter), after)) not in reached:
                reached.add(more)
                queue.append(more)
    labels = made.accepting == accepting
    occur = {word for seen, state in reached if labels[state] for word in seen}
    return all(labels[state] for seen, state in reached if seen <= occur)


def keeps_knasts_identity(decided: Subregular) -> bool:
    """True if all idempotents and elements of the semigroup satisfy Knast's identity."""
    products = decided.monoid.products
    elements = np.arange(len(products))
    powers = elements
    for _ in elements:
        powers = products[powers, elements]
    own = elements[not decided.neutral.any() :]
    idempotents = own[products[own, own] == own]
    for e, f in itertools.product(idempotents, repeat=2):
        there = np.unique(products[products[e, own], f])[:, None]
        back = np.unique(products[products[f, own], e])
        turns = powers[products[there, back]]
        left = products[turns, there].ravel()[:, None], turns.ravel()[:, None]
        right = products[back, turns].ravel(), turns.ravel()
        if (products[left[0], right[0]] != products[left[1], right[1]]).any():
            return False
    return True


def one_state_after(made: Table, length: int, accepting: bool) -> bool:
    """True if each string of a length leads to at most one state from which a label is reached."""
    live = made.accepting == accepting
    for _ in live:
        live = live | live[made.table].any(axis=1)
    for word in itertools.product(range(made.table.shape[1]), repeat=length):
        states = np.arange(len(live))
        for letter in word:
            states = np.unique(made.table[states, letter])
        if np.count_nonzero(live[states]) > 1:
            return False
    return True


def random_automata(seed: int, number: int) -> Iterator[Automaton]:
    """Automata of three to five states and two letters, many of which lead on and never back."""
    rng = random.Random(seed)
    while number:
        states = rng.randint(3, 5)
        table = [[rng.randrange(states) for _ in range(2)] for _ in range(states)]
        if rng.random() < 0.6:
            table = [[max(state, x) for x in row] for state, row in enumerate(table)]
        made = minimize(np.array(table), np.array([rng.random() < 0.5 for _ in range(states)]))
        if len(made.table) > 2:
            number -= 1
            yield made
