"""Border pairs, counted and drawn, against all strings of up to a length."""

from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from seqcls.errors import ConfigError
from seqcls.problem import configuration, resolve
from seqcls.sampling.border import BorderPairs
from seqcls.sampling.streams import stream
from seqcls.strings.token_strings import NO_LETTER
from seqcls.tasks.automaton import Automaton
from sweeps.api.strings import drawn_strings
from tests.science.test_subregular import accepts

String = tuple[int, ...]
EVERY_LENGTH = range(12)


def neighbors_of(string: String, num_letters: int) -> set[String]:
    """All strings at edit distance 1."""
    places = [(string[:i], string[i:]) for i in range(len(string) + 1)]
    letters = [(letter,) for letter in range(num_letters)]
    inserted = {before + x + after for before, after in places for x in letters}
    replaced = {before + x + after[1:] for before, after in places if after for x in letters}
    return (
        inserted | replaced - {string} | {before + after[1:] for before, after in places if after}
    )


def all_pairs(automaton: Automaton, length: int) -> list[tuple[String, String]]:
    num_letters = automaton.table.shape[1]
    return [
        (string, other)
        for string in product(range(num_letters), repeat=length)
        if accepts(automaton, string)
        for other in neighbors_of(string, num_letters)
        if not accepts(automaton, other)
    ]


def random_automata(number: int) -> list[Automaton]:
    rng = np.random.default_rng(3)
    sizes = [(int(rng.integers(2, 9)), int(rng.integers(2, 4))) for _ in range(number)]
    return [Automaton(rng.integers(n, size=(n, k)), rng.random(n) < 0.4) for n, k in sizes]


def strings_of(letters: np.ndarray) -> list[String]:
    return [tuple(x for x in row if x != NO_LETTER) for row in letters.tolist()]


def p_value(drawn: Counter[Any], population: Sequence[Any]) -> float:
    """The p-value of a chi-squared test of uniform draws, all of which are from the population."""
    assert set(drawn) <= set(population)
    expected = drawn.total() / len(population)
    distance = sum((drawn[x] - expected) ** 2 for x in population) / expected
    return float(chi2.sf(distance, len(population) - 1)) if len(population) > 1 else 1.0


def test_random_strings_and_border_pairs_are_uniform() -> None:
    fits = []
    rng = np.random.default_rng(0)
    for automaton in random_automata(12):
        border = BorderPairs(automaton)
        for length in range(9 if automaton.table.shape[1] == 2 else 6):
            if pairs := all_pairs(automaton, length):
                lengths = np.full(5 * len(pairs) + 100, length)
                first, second = border.draw(rng, lengths, EVERY_LENGTH)
                fits.append(
                    p_value(Counter(zip(strings_of(first), strings_of(second), strict=True)), pairs)
                )
            for label in (False, True):
                if automaton.has(length, label):
                    strings = product(range(automaton.table.shape[1]), repeat=length)
                    population = [x for x in strings if accepts(automaton, x) == label]
                    lengths = np.full(5 * len(population) + 100, length)
                    drawn = Counter(strings_of(automaton.draw(rng, lengths, label)))
                    fits.append(p_value(drawn, population))
    assert len(fits) > 100
    # Each has one chance in a thousand.
    assert sum(p < 0.001 for p in fits) <= 3
    assert min(fits) > 1e-6
    assert 0.4 < np.mean([p for p in fits if p < 1]) < 0.6


def test_border_pairs_of_rare_strings_are_uniform() -> None:
    table = np.full((2, 16), 1)
    table[0, 0] = 0
    only_a = BorderPairs(Automaton(table, np.array([True, False])))
    rng = np.random.default_rng(0)
    first, second = only_a.draw(rng, np.full(1_000, 400), range(400, 401))
    assert (first[:, :400] == 0).all()
    replaced = second[:, :400] != 0
    assert (replaced.sum(axis=1) == 1).all()
    assert 180 < replaced.argmax(axis=1).mean() < 220


SPEC: dict[str, Any] = {
    "task": "regular", "pattern": "(ab|ba)*", "alphabet": "ab", "train_max_length": 10,
    "test_strings": "random_and_border", "test_max_length": 20, "test_size": 1_000,
}  # fmt: skip


@pytest.mark.parametrize("lengths", ["redrawn", "uniform"])
def test_border_negatives_are_neighbors_of_positives(lengths: str) -> None:
    more = {"test_strings": "random", "negatives": "border", "negative_lengths": lengths}
    problem = resolve(configuration({**SPEC, **more}))
    task: Any = problem.task
    drawn = stream(problem.train).epoch(0)
    negative = drawn.strings.take(np.flatnonzero(~drawn.labels))
    assert not task.labels(negative).any()
    for string in strings_of(negative.letters[:50]):
        assert any(accepts(task.automaton, other) for other in neighbors_of(string, 2))


@pytest.mark.parametrize("disjoint", [False, True])
def test_half_of_a_border_test_is_pairs(
    disjoint: bool,
) -> None:
    problem = resolve(configuration({**SPEC, "disjoint": disjoint}))
    drawn = drawn_strings(problem, "test")
    kinds = [("positive", 1), ("uniform", 0), ("border", 1), ("border", 0)]
    assert Counter(zip(drawn["kind"], drawn["label"], strict=True)) == dict.fromkeys(kinds, 250)
    pairs = drawn[drawn["kind"] == "border"]["string"].tolist()
    of_numbers = [tuple("ab".index(x) for x in string) for string in pairs]
    for one, other in zip(of_numbers[::2], of_numbers[1::2], strict=True):
        assert other in neighbors_of(one, 2)
    assert drawn["length"].max() <= 20
    trained = set(drawn_strings(problem, "train")["string"]) if disjoint else set()
    assert trained.isdisjoint(drawn["string"])
    if not disjoint:
        members = drawn[(drawn["label"] == 1) & (drawn["kind"] == "border")]
        by_length = members["length"].value_counts()
        assert by_length.index.isin(range(0, 21, 2)).all()
        assert by_length.max() - by_length.min() <= 1


def test_border_pairs_too_long_for_memory_are_refused() -> None:
    rng = np.random.default_rng(0)
    large = BorderPairs(Automaton(rng.integers(300, size=(300, 2)), rng.random(300) < 0.5))
    with pytest.raises(ConfigError, match=r"10,000 tokens .* 300 states.* lower max_length") as e:
        large.check_length(10_000)
    longest = int(str(e.value).split("lower max_length to ")[1].split()[0].replace(",", ""))
    large.check_length(longest)
    with pytest.raises(ConfigError):
        large.check_length(longest + 1)
    chain = np.minimum(np.arange(6_000)[:, None] + np.ones((1, 2), dtype=int), 5_999)
    with pytest.raises(ConfigError, match="36,000,000 pairs of states"):
        BorderPairs(Automaton(chain, np.arange(6_000) == 10)).check_length(10)
