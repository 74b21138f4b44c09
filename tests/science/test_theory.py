"""Classes of languages against brute force, and what is predicted against known cases."""

import itertools
import math
import random
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Any, get_args

import numpy as np
import pytest

from seqcls.config import NetworkConfig
from seqcls.errors import ConfigError
from seqcls.models import MODELS
from seqcls.models.positions import POSITIONS
from seqcls.monoids import MAX_STATES
from seqcls.tasks.regular import Regular as Pattern
from seqcls.theory import table
from seqcls.theory.classes import RegularClass, Stated, Undecided, class_of
from seqcls.theory.predictions import NETWORK_FIELDS, order_pair, theory_of
from sweeps.api.task_theory import theory
from tests.tasks import LANGUAGES, every_string, language, small, strings_of

STAR_FREE, QUASI, SOLVABLE = "star-free", "quasi-aperiodic", "solvable groups"


def pattern(text: str, alphabet: str = "ab") -> dict[str, Any]:
    return {"task": "regular", "alphabet": alphabet, "pattern": text}


def tomita(*languages: str) -> list[dict[str, Any]]:
    return [pattern(x, "01") for x in languages]


NAMED: dict[str, list[dict[str, Any]]] = {
    STAR_FREE: [
        *({"task": x} for x in ("first", "even_pairs", "repeat_01", "contains_all", "flip_flop")),
        {"task": "consistent_pairs"},
        {"task": "consistent_pairs", "num_tokens": 3},
        *({"task": "dyck", "max_depth": x} for x in (1, 4)),
        {"task": "dyck", "bracket_types": 2, "max_depth": 3},
        *map(pattern, ("(ab)*", "a*b*", "b*ab*ab*")),
        *tomita("1*", "(10)*", "(1|01|001)*(()|0|00)", "0*1*0*1*"),
    ],
    QUASI: [
        pattern("(aa)*", "a"),
        *map(pattern, ("(aa)*", "((a|b)(a|b))*")),
        *tomita("0*((11)+0+|1(11)*(00)+)*1*"),
    ],
    SOLVABLE: [
        *({"task": x} for x in ("parity", "cycle_navigation", "modular_arithmetic")),
        *({"task": "word_problem", "group": x} for x in ("Z2", "Z5", "S3", "A4", "S4")),
        pattern("(b*ab*a)*b*"),
        *tomita("(00|11|(01|10)(00|11)*(01|10))*", "(01|(1|00)(10)*(0|11))*"),
    ],
    "a group that is not solvable": [{"task": "word_problem", "group": x} for x in ("A5", "S5")],
}
"""Languages by their class; among them Tomita's seven."""


@cache
def known(task: str, **fields: Any) -> Any:
    """The class of a language, decided once."""
    return class_of(language(task, **fields))


def test_languages_have_their_known_class() -> None:
    for name, languages in NAMED.items():
        for fields in languages:
            assert known(**fields).name == name, fields


def test_every_language_but_formulas_has_a_class() -> None:
    found = {name: class_of(small(name)) for name in LANGUAGES}
    assert [name for name, x in found.items() if isinstance(x, Undecided)] == ["counting"]
    stated = [x for x in found.values() if isinstance(x, Stated)]
    assert len(stated) >= 11
    assert all(re.search(r"(19|20)\d\d", x.hierarchy.source) for x in stated)


def test_task_automata_are_minimal_and_label_strings() -> None:
    for fields in (*NAMED[STAR_FREE][:10], *NAMED[SOLVABLE][:4]):
        task: Any = language(**fields)
        automaton = task.automaton
        rows = strings_of(task, every_string(task, *range(7 if len(task.alphabet) <= 4 else 4)))
        assert (automaton.accepting[automaton.states(rows)] == task.labels(rows)).all(), fields
        apart = automaton.accepting.astype(np.int64)
        for _ in automaton.table:
            after = np.column_stack([apart, apart[automaton.table]])
            apart = np.unique(after, axis=0, return_inverse=True)[1].ravel()
        assert len(np.unique(apart)) == len(automaton.table), fields


def random_patterns() -> Iterator[tuple[str, str]]:
    """Expressions over two or three letters, some of which repeat what they count."""
    rng = random.Random(20)

    def expression(depth: int, letters: str) -> str:
        if depth == 0:
            return rng.choice(letters)
        inner = [expression(depth - 1, letters) for _ in range(2)]
        forms = ["{0}{1}", "({0}|{1})", "({0}{1})*", "({0}|{1})*", "(({0}){{2}})*"]
        return rng.choice([*forms, "(({1})*{0}({1})*{0})*({1})*"]).format(*inner)

    while True:
        letters = rng.choice(["ab", "abc"])
        yield letters, expression(rng.choice([1, 2, 3, 3]), letters)


class ByWords:
    """The same properties by brute force: maps as tuples, all words, every pair of elements."""

    def __init__(self, rows: list[list[int]]) -> None:
        self.tokens = [tuple(row[token] for row in rows) for token in range(len(rows[0]))]
        self.elements = [tuple(range(len(rows)))]
        for element in self.elements:
            for token in self.tokens:
                if (made := self.times(element, token)) not in self.elements:
                    self.elements.append(made)

    def times(self, first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(second[x] for x in first)

    def powers(self, x: tuple[int, ...]) -> list[tuple[int, ...]]:
        found = [x]
        while (following := self.times(found[-1], x)) not in found:
            found.append(following)
        return found

    def is_star_free(self) -> bool:
        return all(self.times(self.powers(x)[-1], x) == self.powers(x)[-1] for x in self.elements)

    def is_commutative(self) -> bool:
        pairs = itertools.product(self.elements, repeat=2)
        return all(self.times(x, y) == self.times(y, x) for x, y in pairs)

    def is_quasi_aperiodic(self) -> bool:
        made, seen = {self.elements[0]}, []
        while made not in seen:
            seen.append(made)
            for x in made:
                powers = self.powers(x)
                is_group = self.times(powers[-1], x) == x
                if is_group and len(powers) > 1 and made.issuperset(powers):
                    return False
            made = {self.times(x, token) for x in made for token in self.tokens}
        return True

    def groups(self) -> Iterator[set[tuple[int, ...]]]:
        for e in self.elements:
            if self.times(e, e) == e:
                local = {x for x in self.elements if self.times(e, x) == x == self.times(x, e)}
                yield {x for x in local if any(self.times(x, y) == e for y in local)}

    def is_solvable(self) -> bool:
        return all(map(self._ends_in_one, self.groups()))

    def _ends_in_one(self, group: set[tuple[int, ...]]) -> bool:
        while len(group) > 1:
            inverse = {x: self.powers(x)[-2] if len(self.powers(x)) > 1 else x for x in group}
            derived = {
                self.times(self.times(inverse[x], inverse[y]), self.times(x, y))
                for x, y in itertools.product(group, repeat=2)
            }
            while more := {self.times(x, y) for x in derived for y in derived} - derived:
                derived |= more
            if len(derived) == len(group):
                return False
            group = derived
        return True


def test_class_of_random_patterns_equals_brute_force() -> None:
    seen: dict[str, RegularClass] = {}
    for alphabet, pattern in random_patterns():
        if len(seen) == 100:
            break
        task = Pattern(alphabet, pattern)
        found = class_of(task)
        assert isinstance(found, RegularClass)
        if pattern in seen or found.size > 60:
            continue
        seen[pattern] = found
        words = ByWords(task.automaton.table.tolist())
        assert len(words.elements) == found.size
        assert words.is_commutative() == found.is_commutative, pattern
        assert words.is_star_free() == found.is_star_free, pattern
        assert words.is_quasi_aperiodic() == found.is_quasi_aperiodic, pattern
        assert words.is_solvable() == found.is_solvable, pattern
    names = {found.name for found in seen.values()}
    assert names >= {STAR_FREE, QUASI, SOLVABLE}


def test_large_language_is_undecided_with_the_reason() -> None:
    for depth, types, reason in (
        (8, 2, "its syntactic monoid has more than"),
        (11, 2, f"4,096 states, more than {MAX_STATES:,}"),
        (99, 2, "its automaton has more than 10,000 states"),
    ):
        found = known("dyck", bracket_types=types, max_depth=depth)
        assert isinstance(found, Undecided)
        assert reason in found.reason
        assert "\n" not in found.describe()


def test_order_pair_is_the_first_with_different_labels() -> None:
    assert order_pair(Pattern("ab", "(ab)*")) == ("ab", "ba")
    assert order_pair(Pattern("ab", "(a|b)*a(a|b)*")) is None
    first = theory_of(PAIRS["(ab)*"]).first
    assert first.verdict == "cannot"
    assert "ab and ba" in first.sentence
    # Of a language without an automaton, too.
    assert "00# and 0#0" in theory_of({"task": "marked_copy"}).first.sentence
    with_places = theory_of({"task": "marked_copy", "positions": "sinusoidal"}).first
    assert with_places.verdict == "not known"
    for name in LANGUAGES:
        task = small(name)
        if (pair := order_pair(task)) is not None:
            rows = strings_of(task, list(pair))
            assert (rows.counts[0] == rows.counts[1]).all()
            assert task.labels(rows)[0] != task.labels(rows)[1]


PAIRS: dict[str, dict[str, Any]] = {
    "(ab)*": pattern("(ab)*"),
    "(aa)*": pattern("(aa)*", "a"),
    **{x: {"task": x} for x in ("parity", "first", "even_pairs", "majority")},
    "copy": {"task": "marked_copy"},
    "dyck": {"task": "dyck", "max_depth": 3},
    "dyck 1": {"task": "dyck"},
    "dyck 2": {"task": "dyck", "bracket_types": 2},
    **{x: {"task": "word_problem", "group": x} for x in ("Z2", "Z5", "S3", "A5")},
}
NETWORKS: dict[str, dict[str, Any]] = {
    "order-free": {},
    "places": {"positions": "sinusoidal"},
    "causal": {"attention_mask": "causal", "readout": "last"},
    "causal places": {"attention_mask": "causal", "readout": "last_letter"},
    "shifted": {
        "attention_mask": "causal",
        "readout": "last_letter",
        "positions": "learned",
        "position_draw": "shifted",
    },
    "deep": {"architecture": "deltanet", "readout": "last", "num_blocks": 2},
    "deep product": {"architecture": "deltaproduct", "readout": "last", "num_blocks": 2},
    **{x: {"architecture": x, "readout": "last"} for x in sorted(table.FINITE_STATE)},
    "mean": {"readout": "mean"},
    "causal mean": {"attention_mask": "causal", "readout": "mean"},
    **{f"{x} mean": {"architecture": x, "readout": "mean"} for x in sorted(table.FINITE_STATE)},
}
CASES: dict[str, list[str]] = {
    "order_free": ["(ab)*, order-free: cannot", "first, order-free: cannot"],
    "transformer_tc0": ["A5, places: cannot", "A5, causal mean: cannot"],
    "mamba_tc0": ["A5, mamba, signed: cannot"],
    "transformer_ac0": [
        "parity, places: cannot", "S3, causal: cannot", "parity, causal mean: cannot",
    ],
    "masked_star_free": ["(aa)*, causal: cannot", "(aa)*, causal mean: cannot"],
    "masked_r_trivial": ["(ab)*, causal: cannot"],
    "counting_attention": ["majority, causal: can", "dyck 1, causal: can"],
    "state_by_counting": [
        "(ab)*, causal: can", "first, causal: can", "dyck, causal: can",
        "(ab)*, causal places: can",
    ],
    "state_by_counting_shifted": ["(ab)*, shifted: can", "dyck, shifted: can"],
    "recurrent_automaton": ["A5, rnn: can", "dyck, gru: can"],
    "lstm_counter": ["majority, lstm: can"],
    "finite_memory": ["majority, rnn: cannot", "dyck 2, lstm: cannot", "copy, slstm: cannot"],
    "nonnegative_gates": [
        "parity, mamba: cannot", "(aa)*, linear_attention: cannot", "parity, mamba mean: cannot",
    ],
    "star_free_recurrence": ["(ab)*, mamba: can", "dyck, mamba: can"],
    "positive_eigenvalues": [
        "parity, deltanet: cannot", "parity, gated_deltanet: cannot",
        "parity, deltanet mean: cannot",
    ],
    "real_eigenvalues": ["Z5, mamba, signed: cannot", "Z5, mamba mean, signed: cannot"],
    "signed_parity": [
        "parity, deltaproduct, signed: can", "parity, mamba, signed: can",
        "Z2, deltanet, signed: can",
    ],
    "signed_counting": ["Z5, deep product, signed: can", "Z5, deep, signed: can"],
    "automaton_by_mean": ["parity, rnn mean: can", "A5, lstm mean: can"],
    "share_by_mean": [
        *(f"majority, {x} mean: can" for x in sorted(table.FINITE_STATE)),
        "majority, mean: can", "majority, causal mean: can",
    ],
}  # fmt: skip
"""By row of the table: languages, networks, and the verdict."""

UNKNOWN = [
    "(ab)*, places", "even_pairs, causal places", "(ab)*, causal mean", "(aa)*, places",
    "(aa)*, shifted", "even_pairs, causal",
    "majority, order-free", "(ab)*, deltanet", "parity, slstm", "parity, deltaproduct",
    "copy, places", "dyck 1, lstm mean", "dyck 1, causal mean", "copy, rnn mean",
    "(ab)*, mamba mean",
]  # fmt: skip


def rows(name: str, network: str, signed: str) -> list[table.Statement]:
    made, own = NetworkConfig(**NETWORKS[network]), known(**PAIRS[name])
    # Set afterwards, since only some architectures read it.
    made = made.model_copy(update={"eigenvalue_range": signed})
    return [row for row in table.STATEMENTS if row.holds(own, made)]


def test_table_rows_hold_for_known_cases() -> None:
    assert {*CASES} == {row.name for row in table.STATEMENTS}
    assert all(row.source for row in table.STATEMENTS)
    for row, cases in CASES.items():
        for case in cases:
            about, _, verdict = case.partition(": ")
            name, network, *signed = about.split(", ")
            found = rows(name, network, "signed" if signed else "positive")
            assert {x.name: x.verdict for x in found}[row] == verdict, (row, case)


def test_cases_without_a_source_are_not_known() -> None:
    for case in UNKNOWN:
        name, network = case.split(", ")
        assert rows(name, network, "positive") == [], case


def test_table_rows_do_not_contradict() -> None:
    for name, network, signed in itertools.product(PAIRS, NETWORKS, ("positive", "signed")):
        found = rows(name, network, signed)
        verdicts = {row.verdict: row for row in found}
        if len(verdicts) > 1:
            # Numbers of fixed precision cannot count further and further, those that grow can.
            assert {row.name for row in found} == {"masked_r_trivial", "state_by_counting"}
            assert table.FIXED_BITS in verdicts["cannot"].condition
            assert "bits that grow with the length" in verdicts["can"].condition


def test_contradicting_theorems_are_both_reported() -> None:
    fields = {"positions": "none", "attention_mask": "causal", "readout": "last"}
    language_theory = theory("regular", alphabet="ab", pattern="(ab)*", **fields)
    (network,) = language_theory.networks
    assert [x.verdict for x in network.predictions] == ["cannot", "can"]
    assert all(x.source and x.reading and x.condition for x in network.predictions)
    sentence = "positions=none, attention_mask=causal, readout=last: cannot · can"
    assert sentence in language_theory.describe()


def test_theory_lists_each_readout_of_a_recurrent_network() -> None:
    networks = theory("majority", architecture="rnn").networks
    assert [(x.network["readout"], x.predictions[0].verdict) for x in networks] == [
        ("last", "cannot"),
        ("mean", "can"),
    ]
    with pytest.raises(ConfigError, match=r"readout='first' with architecture='rnn'"):
        theory("majority", architecture="rnn", readout="first")


@pytest.mark.parametrize("group", ["Z2", "Z5", "S3", "A4", "S4", "A5", "S5"])
def test_word_problems_are_products_of_permutations(group: str) -> None:
    task = language("word_problem", group=group)
    size = int(group[1:])
    orders = {"Z": size, "S": math.factorial(size), "A": math.factorial(size) // 2}
    assert len(task.alphabet) == orders[group[0]]
    rng = np.random.default_rng(3)
    for positive in (True, False):
        drawn = task.draw(rng, 9, positive).tolist()
        tokens = [task.alphabet[letter] for letter in drawn]
        if group[0] == "Z":
            assert (sum(map(int, tokens)) % size == 0) == positive
            continue
        places = list(range(1, size + 1))
        for token in tokens:
            places = [int(token[place - 1]) for place in places]
        assert (places == sorted(places)) == positive


def test_theory_answers_or_names_the_unknown_field() -> None:
    language_theory = theory("parity", positions="rotary")
    assert language_theory.language.startswith("regular, solvable groups")
    assert [network.predictions[0].verdict for network in language_theory.networks] == ["cannot"]
    verdicts = {network.predictions[0].verdict for network in theory("first").networks}
    assert verdicts >= {"can", "cannot"}
    assert theory("copy").networks == ()
    assert theory("(ab)*", alphabet="abc") == theory("regular", pattern="(ab)*", alphabet="abc")
    prediction = theory_of({"task": "marked_copy", "architecture": "rnn", "readout": "mean"}).first
    assert prediction.verdict == "not known"
    for task, fields, word in (
        ("parrity", {}, "'parity'"),
        ("parity, (ab)*", {}, "2 tasks; name one"),
        ("parity", {"hidden_size": 4}, "hidden_size=4"),
        ("parity", {"architecture": "lstn"}, "'lstm'"),
    ):
        with pytest.raises(ConfigError, match=f"{word}[^\n]*$"):
            theory(task, **fields)


CHOICES = {name: get_args(NetworkConfig.model_fields[name].annotation) for name in NETWORK_FIELDS}
CHOICES |= {"architecture": (*MODELS,), "positions": (*POSITIONS,), "num_blocks": (1, 3)}


@pytest.mark.parametrize("first", CHOICES)
def test_theory_answers_or_refuses_every_choice_of_a_network(first: str) -> None:
    answered = 0
    for name, other in itertools.product(CHOICES[first], CHOICES):
        for value in CHOICES[other] if other != first else ():
            fields = {first: name, other: value}
            with suppress(ConfigError):
                networks = theory("parity", **fields).networks
                answered += 1
                assert networks, fields
                assert all(fields.items() <= x.network.items() for x in networks), fields
    assert answered or not CHOICES[first]
