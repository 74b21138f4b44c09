"""`regular`: patterns against Python's `re`, exact counts, and what is refused."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqcls.config import RunConfig
from seqcls.errors import ConfigError
from seqcls.problem import configuration, resolve
from seqcls.tasks.finite_state.regular import Regular
from seqcls.tokens.strings import TokenStrings
from tests.unit.test_languages import every_string, refusal, strings_of

PATTERNS = [
    "a",
    "()",
    "(ab)*",
    "a*b*a*b*",
    "(b|ab)*",
    "(a|b)*abb",
    "a{2,3}b?",
    "[ab]+",
    ".",
    "a.b",
    "[^a]*",
    "(a|b){,3}",
    "((a+)+)+",
    "(a?b?)*",
    "a{2,}|b",
    "(aa|b(ab)*b)*",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_means_what_pythons_regular_expressions_mean(pattern: str) -> None:
    task = Regular("ab", pattern)
    for length in range(9):
        rows = every_string(task, length)
        wanted = [re.fullmatch(pattern, text) is not None for text in rows]
        assert task.labels(strings_of(task, rows)).tolist() == wanted
        assert (task.has(length, True), task.has(length, False)) == (any(wanted), not all(wanted))


@pytest.mark.parametrize(
    ("alphabet", "pattern", "positive", "negative"),
    [
        ("+-=", r"\+*[-=]", "++-", "+"),
        ("()", r"(\(\))*", "()()", ")("),
        ("01", "1*", "11", "10"),
        ("ab", "(a|b)*a&.{3}", "bba", "ba"),
        ("a^", r"\^a", "^a", "a^"),
        ("äß", "(äß)*", "äßäß", "ä"),
    ],
)
def test_tokens_may_be_signs(alphabet: str, pattern: str, positive: str, negative: str) -> None:
    task = Regular(alphabet, pattern)
    assert task.labels(strings_of(task, [positive, negative])).tolist() == [True, False]


def test_the_automaton_is_minimal() -> None:
    sizes = {"(ab)*": 3, "(a|b)*": 1, "(a|b)*a(a|b){9}": 1024, "a*b*a*b*": 5, "(a|aa)*": 2}
    for pattern, states in sizes.items():
        assert len(Regular("ab", pattern).automaton.table) == states


@pytest.mark.parametrize("pattern", ["(b|ab)*", "a*b*a*b*", "(a|b)*abb(a|b)*", "(aab|b)*"])
@pytest.mark.parametrize("positive", [True, False])
def test_strings_are_drawn_uniformly_at_lengths_that_no_list_holds(
    pattern: str, positive: bool
) -> None:
    """Against exact numbers of strings: the share of draws that begin with each two tokens."""
    task = Regular("ab", pattern)
    length, size = 300, 4_000
    table = task.automaton.table.tolist()
    ways = [int(accepts == positive) for accepts in task.automaton.accepting.tolist()]
    for _ in range(length - 2):
        ways = [sum(ways[following] for following in row) for row in table]
    exact = np.array([[ways[table[table[0][x]][y]] for y in (0, 1)] for x in (0, 1)], dtype=object)
    shares = np.array(exact / exact.sum(), dtype=float)
    drawn = task.draw_many(np.random.default_rng(1), np.full(size, length), positive)
    assert (task.labels(strings_of_letters(task, drawn)) == positive).all()
    found = np.array(
        [[((drawn[:, 0] == x) & (drawn[:, 1] == y)).mean() for y in (0, 1)] for x in (0, 1)]
    )
    assert (np.abs(found - shares) <= 5 * np.sqrt(shares * (1 - shares) / size) + 1e-12).all()


def strings_of_letters(task: Regular, letters: np.ndarray) -> TokenStrings:
    return TokenStrings.of_letters(len(task.alphabet), letters)


def test_numbers_of_strings_beyond_what_a_float_holds_are_drawn_from() -> None:
    task = Regular("abcdefghijklmnopqrstuvwxyz", "(a|b)*|.*z")
    letters = task.draw(np.random.default_rng(0), 2_000, True)
    assert letters[-1] == 25
    assert task.has(2_000, False)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"pattern": "a"}, "alphabet='': task 'regular' expects its tokens"),
        ({"alphabet": "ab"}, "pattern='': task 'regular' expects a regular expression"),
        ({"alphabet": "ab", "pattern": "(ac)*"}, "'c' is outside the alphabet 'ab'"),
        ({"alphabet": "ab", "pattern": "[a-z]*"}, "'c' is outside the alphabet"),
        ({"alphabet": "ab", "pattern": "^(ab)*$"}, "leave out"),
        ({"alphabet": "ab", "pattern": "(ab"}, "a parenthesis is not closed"),
        ({"alphabet": "ab", "pattern": "*"}, "cannot appear"),
        ({"alphabet": "ab", "pattern": "a{3,2}"}, "at least more than at most"),
        ({"alphabet": "ab", "pattern": "a{0}"}, "repeats nothing"),
        ({"alphabet": "ab", "pattern": "(a|b)*a(a|b){20}"}, "more than 10,000 states"),
        ({"alphabet": "ab", "pattern": "((a{100}){100}){100}"}, "more than 3,000 pieces"),
        ({"alphabet": "ab", "pattern": "(" * 300 + "a+" + ")+" * 300}, "pieces"),
        ({"alphabet": "aa", "pattern": "a"}, "distinct"),
        ({"alphabet": "up down", "pattern": "u"}, "reads patterns one character a token"),
        ({"alphabet": "a<", "pattern": "a"}, "<>{}"),
        ({"alphabet": "a ", "pattern": "a"}, "visible"),
        ({"alphabet": "ab", "pattern": "(a|b)*"}, "no string of 0 to 10 tokens is negative"),
        ({"alphabet": "ab", "pattern": "a{11}"}, "no string of 0 to 10 tokens is positive"),
    ],
)
def test_what_is_no_language_is_refused_in_one_line(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        configuration({"task": "regular", **fields})
    assert "\n" not in str(caught.value)


def test_half_a_character_is_refused_in_a_line_that_can_be_printed() -> None:
    with pytest.raises(ConfigError, match=r"ud800") as caught:
        Regular("ab", "a\ud800")
    assert str(caught.value).encode()


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab()[]{}|*+?.,^&$\\-0123456789 dwé", max_size=30))
def test_any_pattern_is_a_language_or_refused_in_one_line(pattern: str) -> None:
    fields = {"task": "regular", "alphabet": "ab", "pattern": pattern}
    message = refusal(fields)
    assert "\n" not in message
    if not message:
        task = resolve(RunConfig.from_mapping(fields)).language
        assert all(task.has(length, True) or task.has(length, False) for length in range(4))


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(
        st.sampled_from(["a", "b", "."]),
        lambda inner: st.one_of(
            st.tuples(inner, inner).map("".join),
            st.tuples(inner, inner).map(lambda pair: f"({pair[0]}|{pair[1]})"),
            st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}"])).map(
                lambda pair: f"({pair[0]}){pair[1]}"
            ),
        ),
        max_leaves=6,
    )
)
def test_any_well_formed_pattern_means_what_pythons_mean(pattern: str) -> None:
    task = Regular("ab", pattern)
    rows = [text for length in range(7) for text in every_string(task, length)]
    wanted = [re.fullmatch(pattern, text) is not None for text in rows]
    assert task.labels(strings_of(task, rows)).tolist() == wanted
