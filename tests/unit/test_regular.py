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
from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks.regular import Regular, minimal_automaton
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
    "a+?b",
    "(ab){2,3}?",
    "a??b*?",
    "(a|)b",
    "|ab|",
    "(?:ab)+|(?P<name>b)",
    r"\x61[\142]",
    r"[\d]*b",
    "a{,}b(?#so many)",
    "(()|a*)*b",
    "((a|){2}){2}b",
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
        ("a&", r"a\&|[&]", "&", "a"),
        ("a$", r"a\$", "a$", "a"),
        ("ab]", "[]a]*b", "]ab", "bb"),
        ("a-b", "[a-]+", "-a-", "b"),
        ("ab", "(a|b)*a&(.{3}|.)&(b.*|a)", "bba", "aba"),
        ("ab", "(.a|.b&a.)b", "aab", "bab"),
        ("0٣", r"\d0", "٣0", "0٣"),
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
        ({"alphabet": "ab", "pattern": "^(ab)*$"}, r"leave out \$ .* the whole string is matched"),
        ({"alphabet": "ab", "pattern": "(ab"}, "a parenthesis is not closed"),
        ({"alphabet": "ab", "pattern": "*"}, "nothing stands before"),
        ({"alphabet": "ab", "pattern": "a|+"}, "nothing stands before"),
        ({"alphabet": "ab", "pattern": "a**"}, "put parentheses around it"),
        ({"alphabet": "ab", "pattern": "a{2}{3}"}, "put parentheses around it"),
        ({"alphabet": "ab", "pattern": "a*+a"}, r"leave out the \+ behind a repetition"),
        ({"alphabet": "ab", "pattern": "(?>a*)a"}, r"write \(\?:...\) for \(\?>...\)"),
        ({"alphabet": "ab", "pattern": "[b-a]|a"}, "b-a is no range"),
        ({"alphabet": "ab", "pattern": r"(a)\1"}, r"leave out \\1: what a group held"),
        ({"alphabet": "ab1", "pattern": r"a\1"}, r"leave out \\1: what a group held"),
        ({"alphabet": "ab", "pattern": "(?P<x>a)(?P=x)"}, r"what a group held"),
        ({"alphabet": "ab", "pattern": "(a)(?(1)b|a)"}, r"what a group held"),
        ({"alphabet": "ab", "pattern": "a(?=b)b"}, "nothing may look around"),
        ({"alphabet": "ab", "pattern": "(?<!a)b"}, "nothing may look around"),
        ({"alphabet": "ab", "pattern": r"\bab"}, r"leave out \\b"),
        ({"alphabet": "ab", "pattern": r"\Aa&."}, r"leave out \\A"),
        ({"alphabet": "a&", "pattern": r"\&\Z"}, r"leave out \\Z"),
        ({"alphabet": "ab", "pattern": "(?i)a"}, "leave out flags"),
        ({"alphabet": "ab", "pattern": "(?i:A)"}, "leave out flags"),
        ({"alphabet": "ab", "pattern": r"\a"}, "outside the alphabet"),
        ({"alphabet": "ab", "pattern": r"\q"}, r"\\q means nothing"),
        ({"alphabet": "ab", "pattern": "a\\"}, "ends in a backslash"),
        ({"alphabet": "ab", "pattern": "a{3"}, "a { begins bounds"),
        ({"alphabet": "ab", "pattern": "a{}"}, "a { begins bounds"),
        ({"alphabet": "ab", "pattern": "[ab"}, r"a \[ is not closed"),
        ({"alphabet": "ab", "pattern": "[[:alpha:]]"}, r"written \\\["),
        ({"alphabet": "ab", "pattern": "a b"}, "' ' is outside the alphabet"),
        ({"alphabet": "a$", "pattern": "a$"}, r"a token \$ is \\\$"),
        ({"alphabet": "a&", "pattern": "a&a"}, r"a token & is written \\&"),
        ({"alphabet": "ab", "pattern": "(a&)b"}, "nothing stands on one side of an &"),
        ({"alphabet": "ab", "pattern": "a{1000000}"}, "more than 3,000 pieces"),
        ({"alphabet": "ab", "pattern": "a{" + "9" * 900 + "}"}, "repetitions is too large"),
        ({"alphabet": "ab", "pattern": "((((){999}){999}){999}){999}a{3001}"}, "3,000 pieces"),
        ({"alphabet": "ab", "pattern": "(" * 150 + "a" + ")" * 150}, "nested"),
        ({"alphabet": "ab", "pattern": "(" * 499 + "a" + ")" * 499}, "nested"),
        ({"alphabet": "ab", "pattern": "a{3,2}"}, "at least more than at most"),
        ({"alphabet": "ab", "pattern": "a{0}"}, "repeats nothing"),
        ({"alphabet": "ab", "pattern": "(a|b)*a(a|b){20}"}, "more than 10,000 states"),
        ({"alphabet": "ab", "pattern": "((a{100}){100}){100}"}, "more than 3,000 pieces"),
        ({"alphabet": "ab", "pattern": "(" * 300 + "a+" + ")+" * 300}, "nested"),
        ({"alphabet": "ab", "pattern": "(" * 50 + "a{9}" + "){9}" * 50}, "pieces"),
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


def test_no_pattern_at_all_is_refused_as_empty() -> None:
    with pytest.raises(ConfigError, match="it is empty"):
        minimal_automaton("", "ab")


PIECES = [
    "a", "b", "|", "(", ")", "(?:", "(?P<x>", "(?=", "(?!", "(?<=", "(?>", "(?i)", "(?i:", "[",
    "[^", "]", "-", "*", "+", "?", "{2}", "{1,2}", "{,2}", "{2,1}", "{,}", "{2", "{", ".", "^",
    "$", "&", "!", "~", "@", "\\", r"\1", r"\b", r"\B", r"\d", r"\D", r"\w", r"\W", r"\s", r"\A",
    r"\Z", r"\n", r"\x61", r"\*", r"\+", r"\.", r"\&", r"\[", r"\]", r"\(", "(?#a)", "()", "#",
    "c", "0",
    " ",
]  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from(
        ["ab", "a+", "(a", ".a", "&b", "^a", "$b", "-a", "]a", "[b", "\\a", "0a", "|a"]
    ),
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=8).map("".join),
)
def test_any_pattern_means_what_pythons_mean_or_is_refused_in_one_line(
    alphabet: str, pattern: str
) -> None:
    message = refusal({"task": "regular", "alphabet": alphabet, "pattern": pattern})
    assert "\n" not in message
    if message and "no string of" not in message:
        return
    task = Regular(alphabet, pattern)
    rows = [text for length in range(5) for text in every_string(task, length)]
    if "&" in pattern and "&" not in alphabet:
        return  # The one sign that Python does not have.
    wanted = [re.fullmatch(pattern, text) is not None for text in rows]
    assert task.labels(strings_of(task, rows)).tolist() == wanted


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.sampled_from(["a*", "b*", "(ab)*", ".b", "a?b", "(a|b)*b", "a.*"]),
        min_size=2,
        max_size=4,
    ),
    st.lists(st.sampled_from("&|"), min_size=3, max_size=3),
)
def test_both_sides_of_an_and_match_and_signs_bind_from_the_left(
    sides: list[str], signs: list[str]
) -> None:
    task = Regular(
        "ab", "a*(" + "".join(map("".join, zip(["", *signs], sides, strict=False))) + ")b?"
    )
    rows = [text for length in range(6) for text in every_string(task, length)]

    def inside(text: str) -> bool:
        found = [re.fullmatch(side, text) is not None for side in sides]
        result = found[0]
        for sign, other in zip(signs, found[1:], strict=False):
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
