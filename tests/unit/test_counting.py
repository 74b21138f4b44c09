"""`counting`: formulas against Python's own arithmetic, uniform draws, and what is refused."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqcls.config import RunConfig
from seqcls.errors import ConfigError
from seqcls.problem import configuration, resolve
from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks.base import texts
from seqcls.tasks.counting import Counting
from seqcls.tasks.drawing import draw_many
from tests.unit.test_languages import every_string, refusal, strings_of

FORMULAS = [
    "a > b", "a % 2 == 1", "a == b and c <= 3", "a >= 1 and b >= 1", "not (a < b or c == 2)",
    "1 <= a <= 2 <= b", "2*a - b + 3 > c * c", "(a - b) % 3 != 1", "-a + +b >= -2", "a == b == c",
    "-a % 3 == 2", "a - b - c > -1", "a != b != a", "1_0 * a > 0x0b * b",
    "not a > b > c", "not a == b and c > 0 or a < 1", "a * b % 2 == 1", "a > b # as Python has it",
]  # fmt: skip


def counts_of(rows: list[list[int]]) -> np.ndarray:
    return np.array(rows, dtype=np.int64)


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_formula_means_what_it_means_in_arithmetic(formula: str) -> None:
    task = Counting("abc", formula)
    for length in range(7):
        rows = every_string(task, length)
        wanted = [bool(eval(formula, {x: text.count(x) for x in "abc"})) for text in rows]
        assert task.labels(strings_of(task, rows)).tolist() == wanted
        assert (task.has(length, True), task.has(length, False)) == (any(wanted), not all(wanted))


@pytest.mark.parametrize(
    ("alphabet", "formula"),
    [("ab", "a == b"), ("abc", "a == b and c <= 1"), ("abcd", "a % 3 == 2"), ("abcd", "a == 0")],
)
@pytest.mark.parametrize("positive", [True, False])
def test_strings_of_a_length_are_drawn_uniformly(
    alphabet: str, formula: str, positive: bool
) -> None:
    task = Counting(alphabet, formula)
    length = 6 if len(alphabet) < 4 else 4
    rows = every_string(task, length)
    labels = task.labels(strings_of(task, rows))
    members = [text for text, label in zip(rows, labels, strict=True) if label == positive]
    size = 40 * len(members)
    drawn = draw_many(task, np.random.default_rng(2), np.full(size, length), positive)
    found = Counter(texts(alphabet, drawn))
    statistic = sum((found[text] - 40) ** 2 / 40 for text in members)
    freedom = len(members) - 1
    assert statistic <= freedom + 6 * (2 * freedom) ** 0.5
    assert set(found) <= set(members)


def test_rare_strings_of_great_length_are_drawn() -> None:
    rng = np.random.default_rng(3)
    halves = Counting("ab", "a == b").draw(rng, 500, True)
    assert np.bincount(halves).tolist() == [250, 250]
    few = Counting("abc", "a == b and c <= 3")
    # 21! / (10! 10! 1!) strings have one c, 21! / (9! 9! 3!) three.
    drawn = few.draw_many(rng, np.full(4_000, 21), True)
    threes = (TokenStrings.of_letters(3, drawn).counts[:, 2] == 3).mean()
    assert abs(threes - 100 / 106) < 5 * (0.06 * 0.94 / 4_000) ** 0.5
    rare = TokenStrings.of_letters(3, few.draw_many(rng, np.full(20, 499), True))
    assert few.labels(rare).all()
    assert Counting("ab", "a * b == 0").draw(rng, 400, True).sum() in (0, 400)
    assert Counting("ab", "a * b == 0").has(400, False)


def test_numbers_that_a_machine_word_cannot_hold_are_exact() -> None:
    task = Counting("ab", "a*a*a*a*a > b*b*b*b*b + 1")
    large = 10**9
    assert task.labels_of_counts(
        counts_of([[large, large], [large, large - 1], [large - 1, large]])
    ).tolist() == [False, True, False]


def test_tokens_that_are_no_letters_are_written_with_a_sign() -> None:
    task = Counting("01", "#0 % 3 == #1 % 3")
    assert task.labels(strings_of(task, ["01", "0001", "1"])).tolist() == [True, False, False]
    assert Counting("()", "#( == #)").labels_of_counts(counts_of([[2, 2], [1, 2]])).tolist() == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    "alphabet", ["aªb", "ªab", "a\uff41", "s\u017f", "\u017fs", "µμ", "ﬁf", "℘_", "א\u202eb"]
)
def test_tokens_that_python_takes_for_the_same_are_told_apart(alphabet: str) -> None:
    counts = np.arange(1, len(alphabet) + 1)[None]
    for number, token in enumerate(alphabet):
        for written in {token if token.isidentifier() else f"#{token}", f"#{token}"}:
            task = Counting(alphabet, f"{written} == {number + 1}")
            assert task.labels_of_counts(counts).tolist() == [True], written


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("", "expects a condition"),
        ("a >", "cannot be read"),
        ("a % 2 = 0", "for equality write =="),
        ("a", "'a' is no comparison"),
        ("a and b", "is no comparison"),
        ("a =< b", "write <= or >="),
        ("a => b", "write <= or >="),
        ("a ≤ b", "write <= or >="),
        ("a <> b", "for inequality write !="),
        ("a > b && b > c", "write 'and' or 'or'"),
        ("a > b || b > c", "write 'and' or 'or'"),
        ("!(a > b)", "write 'not'"),
        ("2 a > b", "for a product write"),
        ("2a > b", "cannot be read"),
        ("a^2 > b", "'a.2' is no whole number"),
        ("a > 1 & b > 2", "'1 & b' is no whole number"),
        ("~a > b", "'~a' is no whole number"),
        ("a > b, b > c", "is no comparison"),
        ("(a := b) > c", "no whole number"),
        ("(a > b) == (b > c)", "no whole number"),
        ("a > '1'", "a text is no whole number"),
        ("a > d", "'d' is outside the alphabet 'abc'"),
        ("a / b > 1", "no whole number, letter, or sum"),
        ("a ** 9 > 1", "no whole number, letter, or sum"),
        ("a > 1.5", "no whole number"),
        ("a % b == 0", "whole number of at least 1"),
        ("a % 0 == 0", "whole number of at least 1"),
        ("a is b", "compared by"),
        ("a > 10000000000", "more than 1,000,000,000"),
        ("__import__('os') > 1", "a text is no whole number"),
        ("__import__(a) > 1", "no whole number"),
        ("a.b > 1", "no whole number"),
        ("(lambda: a)() > 1", "no whole number"),
        ("(a > b) > c", "no whole number"),
        ("True > a", "no whole number"),
        ("a" + " + a" * 200 + " > 1", "nested more than"),
        ("(" * 400 + "a" + ")" * 400 + " > 1", "cannot be read"),
        ("_token_97 > 1", "'_token_97' is outside the alphabet"),
        ("_token_99999999999 > 1", "'_token_99999999999' is outside the alphabet"),
        ("_0 > 1", "'_0' is outside the alphabet"),
        ("ª > 1", "'ª' is outside the alphabet"),
        ("\ufeffa > 1", "is outside the alphabet"),
        ("a\u0301 > 1", "is outside the alphabet"),
        ("a > \uff13", "cannot be read"),
        ("a" + ".b" * 450, "'a.b.b.*is no comparison"),
        ("a" + "()" * 450 + " > 1", "no whole number"),
        ("~" * 900 + "a > 1", "no whole number"),
        ("a > \ud800", "cannot be read|unicode|database"),
        ("a >= 0", "no string of 0 to 10 tokens is negative"),
        ("a > 10", "no string of 0 to 10 tokens is positive"),
    ],
)
def test_what_is_no_condition_is_refused_in_one_line(formula: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        configuration({"task": "counting", "alphabet": "abc", "formula": formula})
    assert "\n" not in str(caught.value)


def test_too_many_counts_to_look_through_are_refused_in_one_line() -> None:
    with pytest.raises(ConfigError, match=r"more than 300,000 different counts.*lower test_max"):
        configuration({"task": "counting", "alphabet": "abcd", "formula": "a == b == c == d + 1"})


def test_what_is_too_large_is_refused_before_shorter_strings_are_looked_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listed: list[int] = []
    monkeypatch.setattr("seqcls.tasks.counting.vectors", lambda length, _: listed.append(length))
    # No string of 9,996 tokens is positive, which none of the few that are drawn can show.
    fields = {"task": "counting", "alphabet": "abc", "formula": "a*b*c % 7 == 3"}
    with pytest.raises(ConfigError, match=r"strings of 9,996 tokens have more than 300,000"):
        configuration({**fields, "test_max_length": 10_000, "train_max_length": 10_000})
    assert not listed


def test_lengths_of_rare_and_of_missing_strings_are_found_exactly() -> None:
    own = Counting("abc", "a == b and c <= 3")
    assert all(own.has(length, label) for length in range(300, 200, -1) for label in (True, False))
    halves = Counting("ab", "a == b")
    assert [length for length in range(3_000, 2_900, -1) if halves.has(length, True)] == list(
        range(3_000, 2_900, -2)
    )


@settings(max_examples=400, deadline=None)
@given(
    st.text(
        alphabet="abcd0129 +-*%<>=!()#andornt,.[]'\"\n\0éª\uff41_~\u0301\u202e\ufeff\uff13",
        max_size=40,
    )
)
def test_any_text_is_a_formula_or_refused_in_one_line(text: str) -> None:
    fields: dict[str, Any] = {"task": "counting", "alphabet": "abc", "formula": text}
    message = refusal(fields)
    assert "\n" not in message
    if not message:
        task = resolve(RunConfig.from_mapping(fields)).language
        assert task.has(2, True) or task.has(2, False)


def test_letters_may_spell_what_no_name_may_be() -> None:
    fields = {"task": "counting", "alphabet": "CLS", "formula": "C > L"}
    assert configuration(fields).alphabet == "CLS"


def test_a_formula_counts_tokens_with_names() -> None:
    fields = {"task": "counting", "alphabet": "push pop 10", "formula": "push >= 2*pop and #10<1"}
    task = resolve(configuration(fields)).task
    assert isinstance(task, Counting)
    assert task.alphabet == ("push", "pop", "10")
    assert task.labels_of_counts(np.array([[2, 1, 0], [1, 1, 0], [2, 1, 1]])).tolist() == [
        *(True, False, False)
    ]
    assert task.describe().startswith("Strings of push pop 10 with push >= 2*pop")
    assert task == Counting(("push", "pop", "10"), fields["formula"])


@pytest.mark.parametrize(
    ("alphabet", "says"),
    [
        ("a b", "expected no spaces between tokens of one character"),
        ("push  pop", "expected visible tokens with one space between"),
        (" push pop", "expected visible tokens with one space between"),
        ("push push", "expected distinct tokens"),
        ("push p{", "expected no token 'p{'"),
        ("push poop", "'pop' is outside the alphabet ('push', 'poop')"),
    ],
)
def test_names_that_cannot_be_tokens_are_refused_in_one_line(alphabet: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        configuration({"task": "counting", "alphabet": alphabet, "formula": "push > pop"})
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
