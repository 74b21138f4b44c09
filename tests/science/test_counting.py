"""Counting against published labels, automata, and a search that knows nothing of potentials."""

import csv
import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from sympy import Matrix

from seqcls.counting import Counting, _potentials, decide_counting
from seqcls.errors import ConfigError
from seqcls.tasks.automaton import Automaton, language_automaton, minimize
from seqcls.tasks.regular import Regular
from seqcls.theory.classes import class_of, counting_program
from sweeps.api.task_theory import theory
from sweeps.datasets.automata import read_automaton
from tests.conftest import ASSETS
from tests.tasks import LANGUAGES, language, small


def published() -> Iterator[tuple[Regular, bool, bool]]:
    """Yields languages with two labels: R-trivial, and in C-RASP."""
    with (ASSETS / "counting" / "languages.csv").open() as file:
        for row in csv.DictReader(file):
            letters = "".join(sorted({x for x in row["regex"] if x.isalpha()}))
            yield Regular(letters, row["regex"]), row["R"] == "True", row["CRasp"] == "True"


@cache
def decided(task: Any) -> Counting:
    found = class_of(task).counting
    assert found is not None
    return found


def test_counting_levels_equal_the_published_labels() -> None:
    levels = Counter[int | None]()
    for task, r_trivial, inside in published():
        level = decided(task).level
        assert (level == 0) == r_trivial, task.pattern
        assert (level is not None) == inside, task.pattern
        levels[level] += 1
    assert levels == {0: 23, 1: 21, 2: 1, None: 38}


def test_counting_program_tracks_the_automaton_state() -> None:
    rng = np.random.default_rng(0)
    inside: list[Any] = [task for task, _, is_inside in published() if is_inside]
    inside += [small(name) for name in ("first", "repeat_01", "contains_all")]
    inside.append(language("dyck", max_depth=5))
    for task in inside:
        program, automaton = counting_program(task), language_automaton(task)
        assert automaton is not None
        # Pairs of what the program knows and the state: as they are finitely many, all strings.
        pairs = [(program.readings[program.start], automaton.start)]
        for reading, state in pairs:
            assert [x for x, y in program.readings.items() if y == reading] == [state]
            for letter in range(len(task.alphabet)):
                pair = program.read(reading, letter), int(automaton.table[state, letter])
                if pair not in pairs:
                    pairs.append(pair)
        assert len(pairs) == len(automaton.table)
        for letters in rng.integers(len(task.alphabet), size=(20, 200)).tolist():
            assert program.state(letters) == automaton.path(letters)[-1]
            assert program.accepts(letters) == automaton.accepting[automaton.path(letters)[-1]]


class ByCycles:
    """States of a strongly connected component that no counting distinguishes, by simple cycles.

    A path has weight zero for all weights for which every cycle has, if and only if its counts of
    labels are a linear combination of theirs.
    """

    def __init__(self, table: np.ndarray, part: set[int]) -> None:
        self.part = sorted(part)
        self.edges = {
            state: [(x, int(y)) for x, y in enumerate(table[state]) if y in part] for state in part
        }

    def cycles(self) -> Iterator[list[tuple[int, int]]]:
        for first in self.part:
            ways: list[tuple[int, list[tuple[int, int]], set[int]]] = [(first, [], {first})]
            for state, way, seen in ways:
                for letter, after in self.edges[state]:
                    if after == first:
                        yield [*way, (state, letter)]
                    elif after > first and after not in seen:
                        ways.append((after, [*way, (state, letter)], seen | {after}))

    def way(self, start: int, end: int) -> list[tuple[int, int]]:
        ways: dict[int, list[tuple[int, int]]] = {start: []}
        for state in (queue := [start]):
            for letter, after in self.edges[state]:
                if after not in ways:
                    ways[after] = [*ways[state], (state, letter)]
                    queue.append(after)
        return ways[end]

    def classes(self) -> tuple[int, dict[int, int]]:
        """Number of levels that refine the classes, and the class of each state."""
        cycles = list(self.cycles())
        classes, found, level = dict.fromkeys(self.part, 0), 1, 0
        while True:
            labels = sorted({(classes[s], x) for s in self.part for x, _ in self.edges[s]})
            place = {label: number for number, label in enumerate(labels)}
            span = Matrix([_counts(way, classes, place) for way in cycles])
            rank, finer = span.rank(), dict[int, int]()
            for state in self.part:
                for other in finer:
                    row = _counts(self.way(other, state), classes, place)
                    if span.col_join(Matrix([row])).rank() == rank:
                        finer[state] = finer[other]
                        break
                else:
                    finer[state] = state
            if len(set(finer.values())) == found:
                return level, classes
            classes, found, level = finer, len(set(finer.values())), level + 1


def _counts(
    way: list[tuple[int, int]], classes: dict[int, int], place: dict[tuple[int, int], int]
) -> list[int]:
    row = [0] * len(place)
    for state, letter in way:
        row[place[classes[state], letter]] += 1
    return row


def test_levels_and_witnesses_equal_a_search_over_cycles() -> None:
    for task, _, _ in published():
        table, counting = task.automaton.table, decided(task)
        reach = np.linalg.matrix_power(np.eye(len(table), dtype=int) + sum(
            np.eye(len(table), dtype=int)[table[:, x]] for x in range(table.shape[1])
        ), len(table)) > 0  # fmt: skip
        levels, alike = [], dict[int, tuple[int, int]]()
        for state in range(len(table)):
            part = set(np.flatnonzero(reach[state] & reach[:, state]).tolist())
            if state == min(part) and len(part) > 1:
                level, classes = ByCycles(table, part).classes()
                levels.append(level)
                alike |= {x: (state, number) for x, number in classes.items()}
        groups = Counter(alike.values())
        if counting.states is None:
            assert counting.level == max(levels, default=0), task.pattern
            assert all(size == 1 for size in groups.values()), task.pattern
            continue
        one, other = counting.states
        assert one != other
        assert alike[one] == alike[other], task.pattern
        for state in counting.states:
            assert task.automaton.path(counting.words[state])[-1] == state


def test_potentials_of_any_size_are_exact() -> None:
    # Each label weighs twice the one before: potentials are powers of two.
    labels = [[(0, state), (state, state + 1)] for state in range(1, 100)]
    assert _potentials(101, labels).tolist() == [[0, *(2**x for x in range(100))]]


def test_nonregular_or_large_language_has_no_counting_program() -> None:
    for task in (small("majority"), language("dyck", bracket_types=2, max_depth=11)):
        assert class_of(task).counting is None
        with pytest.raises(ConfigError, match=r"^no program of counters: [^\n]+$"):
            counting_program(task)
    with pytest.raises(ConfigError, match="the states after the empty string and 1 apart"):
        counting_program(language("parity"))
    # Its monoid is too large, its counting is not.
    assert class_of(language("dyck", bracket_types=2, max_depth=8)).name == "not decided"
    assert decided(language("dyck", bracket_types=1, max_depth=8)).level == 1


def test_mlregtest_automata_have_the_level_of_their_class() -> None:
    for path in sorted((ASSETS / "automata").glob("*.att")):
        automaton = read_automaton(path, path.name)
        found = decide_counting(minimize(automaton.table, automaton.accepting), automaton.alphabet)
        inside = path.name.split(".")[2] in ("SP", "PT")
        assert found.level == (0 if inside else None), path.name


def test_every_regular_task_has_a_counting_level() -> None:
    for name in LANGUAGES:
        if language_automaton(task := small(name)) is not None:
            assert decided(task).describe(), name


def test_theory_reports_counting_in_words_and_as_json() -> None:
    language_theory = theory("regular", alphabet="ab", pattern="(ab|bbaa)*")
    lines = list(language_theory.describe())
    assert "counting, level 2: the state is a function of counts" in lines
    assert any(
        x.startswith(
            "  keep x = #a - #b and y = #(b at x = 0) - #(b at x = -1); the state is x, y:"
        )
        for x in lines
    )
    record = json.loads(json.dumps(language_theory.record()))["counting"]
    assert (record["level"], record["witness"]) == (2, None)
    assert [len(x["levels"]) for x in record["program"]["parts"]] == [2, 0]
    outside = theory("parity").record()["counting"]
    assert (outside["level"], outside["program"]) == (None, None)
    assert outside["witness"] == {"states": [0, 1], "strings": ["", "1"]}
    assert theory("majority").record()["counting"] is None


def test_large_components_have_a_counting_level() -> None:
    # a goes round: states are distinguished only where no state repeats.
    states = 200
    around = (np.arange(states) + 1) % states
    sink = np.full(states, states)
    table = np.vstack([np.column_stack([around, sink]), [states, states]])

    accepting = np.arange(len(table)) == 0
    assert decide_counting(Automaton(table, accepting), "ab").level is None
    table[-2] = [states, 0]
    table[:-1, 0][states - 1] = states
    assert decide_counting(Automaton(table, accepting), "ab").level == 1
