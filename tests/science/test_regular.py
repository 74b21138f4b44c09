"""`regular`: patterns against Python's `re`, exact counts, and uniform draws of long strings."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqcls.errors import ConfigError
from seqcls.problem import configuration
from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks.regular import Regular, minimal_automaton
from tests.tasks import every_string, strings_of

PATTERNS = [
    "a", "()", "(ab)*", "a*b*a*b*", "(b|ab)*", "(a|b)*abb", "a{2,3}b?", "[ab]+", ".", "a.b",
    "[^a]*", "(a|b){,3}", "((a+)+)+", "(a?b?)*", "a{2,}|b", "(aa|b(ab)*b)*", "a+?b", "(ab){2,3}?",
    "a??b*?", "(a|)b", "|ab|", "(?:ab)+|(?P<name>b)", r"\x61[\142]", r"[\d]*b",
    "a{,}b(?#so many)", "(()|a*)*b", "((a|){2}){2}b",
]  # fmt: skip
SIGNS = [
    ("+-=", r"\+*[-=]", "++-", "+"),
    ("()", r"(\(\))*", "()()", ")("),
    ("01", "1*", "11", "10"),
    ("ab", "(a|b)*a&.{3}", "bba", "ba"),
    ("a^", r"\^a", "^a", "a^"),
    ("äß", "(äß)*", "äßäß", "ä"),
    ("a&", r"a\&|[&]", "&", "a"),
    ("a$", r"a\$", "a$", "a"),
    ("ab]", "[]a]*b", "]ab", "bb"),
    ("a-b", "[a-]+", "-a-", "b"),
    ("ab", "(a|b)*a&(.{3}|.)&(b.*|a)", "bba", "aba"),
    ("ab", "(.a|.b&a.)b", "aab", "bab"),
    ("0٣", r"\d0", "٣0", "0٣"),
]
"""An alphabet, a pattern, a positive string and a negative one."""


def assert_means_what_python_does(task: Regular, pattern: str, longest: int) -> None:
    rows = every_string(task, *range(longest + 1))
    expected = [re.fullmatch(pattern, text) is not None for text in rows]
    assert task.labels(strings_of(task, rows)).tolist() == expected, pattern
    for length in range(longest + 1):
        own = {label for text, label in zip(rows, expected, strict=True) if len(text) == length}
        assert {x for x in (True, False) if task.has(length, x)} == own, pattern


def test_patterns_mean_what_python_re_means() -> None:
    for pattern in PATTERNS:
        assert_means_what_python_does(Regular("ab", pattern), pattern, 7)


def test_patterns_take_special_characters_as_tokens() -> None:
    for alphabet, pattern, positive, negative in SIGNS:
        task = Regular(alphabet, pattern)
        found = task.labels(strings_of(task, [positive, negative])).tolist()
        assert found == [True, False], pattern


def test_automaton_of_a_pattern_is_minimal() -> None:
    sizes = {"(ab)*": 3, "(a|b)*": 1, "(a|b)*a(a|b){9}": 1024, "a*b*a*b*": 5, "(a|aa)*": 2}
    for pattern, states in sizes.items():
        assert len(Regular("ab", pattern).automaton.table) == states
    with pytest.raises(ConfigError, match="it is empty"):
        minimal_automaton("", "ab")


@pytest.mark.parametrize("pattern", ["(b|ab)*", "a*b*a*b*", "(a|b)*abb(a|b)*"])
@pytest.mark.parametrize("positive", [True, False])
def test_long_strings_are_drawn_uniformly(pattern: str, positive: bool) -> None:
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
    assert (task.labels(TokenStrings.of_letters(2, drawn)) == positive).all()
    found = np.array(
        [[((drawn[:, 0] == x) & (drawn[:, 1] == y)).mean() for y in (0, 1)] for x in (0, 1)]
    )
    assert (np.abs(found - shares) <= 5 * np.sqrt(shares * (1 - shares) / size) + 1e-12).all()


def test_strings_are_drawn_where_their_number_exceeds_floats() -> None:
    task = Regular("abcdefghijklmnopqrstuvwxyz", "(a|b)*|.*z")
    letters = task.draw(np.random.default_rng(0), 2_000, True)
    assert letters[-1] == 25
    assert task.has(2_000, False)


SIDES = ["a*", "b*", "(ab)*", ".b", "a?b", "(a|b)*b", "a.*"]
PIECES = [
    "a", "b", "|", "(", ")", "(?:", "(?P<x>", "(?=", "(?!", "(?<=", "(?>", "(?i)", "(?i:", "[",
    "[^", "]", "-", "*", "+", "?", "{2}", "{1,2}", "{,2}", "{2,1}", "{,}", "{2", "{", ".", "^",
    "$", "&", "!", "~", "@", "\\", r"\1", r"\b", r"\B", r"\d", r"\D", r"\w", r"\W", r"\s", r"\A",
    r"\Z", r"\n", r"\x61", r"\*", r"\+", r"\.", r"\&", r"\[", r"\]", r"\(", "(?#a)", "()", "#",
    "c", "0", " ", "é",
]  # fmt: skip


@given(
    st.sampled_from(["ab", "a+", "(a", ".a", "&b", "^a", "$b", "-a", "]a", "[b", "\\a", "0a"]),
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=8).map("".join),
)
def test_any_pattern_means_what_python_re_means_or_is_refused(alphabet: str, pattern: str) -> None:
    message = ""
    try:
        configuration({"task": "regular", "alphabet": alphabet, "pattern": pattern})
    except ConfigError as error:
        message = str(error)
    assert "\n" not in message
    # An & that is no token is the one sign that Python does not have.
    is_read = not message or "no string of" in message
    if is_read and ("&" not in pattern or "&" in alphabet):
        assert_means_what_python_does(Regular(alphabet, pattern), pattern, 4)


@given(
    st.lists(st.sampled_from(SIDES), min_size=2, max_size=4),
    st.lists(st.sampled_from("&|"), min_size=3, max_size=3),
)
def test_and_matches_both_sides_and_binds_from_the_left(sides: list[str], signs: list[str]) -> None:
    inner = "".join(map("".join, zip(["", *signs], sides, strict=False)))
    task = Regular("ab", f"a*({inner})b?")
    rows = every_string(task, *range(6))

    def inside(text: str) -> bool:
        result, *found = (re.fullmatch(side, text) is not None for side in sides)
        for sign, other in zip(signs, found, strict=False):
            result = result and other if sign == "&" else result or other
        return result

    def whole(text: str) -> bool:
        return any(
            inside(text[start:end])
            for start in range(len(text) + 1)
            if set(text[:start]) <= {"a"}
            for end in range(start, len(text) + 1)
            if text[end:] in ("", "b")
        )

    assert task.labels(strings_of(task, rows)).tolist() == [whole(text) for text in rows]
