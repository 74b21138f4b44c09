"""`counting`: formulas against Python's own arithmetic, and uniform draws."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks.base import texts
from seqcls.tasks.counting import Counting
from seqcls.tasks.drawing import draw_many
from tests.contracts.test_refused_tasks import refusal
from tests.tasks import every_string, language, strings_of

FORMULAS = [
    "a > b", "a % 2 == 1", "a == b and c <= 3", "a >= 1 and b >= 1", "not (a < b or c == 2)",
    "1 <= a <= 2 <= b", "2*a - b + 3 > c * c", "(a - b) % 3 != 1", "-a + +b >= -2", "a == b == c",
    "-a % 3 == 2", "a - b - c > -1", "a != b != a", "1_0 * a > 0x0b * b",
    "not a > b > c", "not a == b and c > 0 or a < 1", "a * b % 2 == 1", "a > b # as Python has it",
]  # fmt: skip


def test_a_formula_means_what_it_means_in_arithmetic() -> None:
    for formula in FORMULAS:
        task = Counting("abc", formula)
        for length in range(6):
            rows = every_string(task, length)
            wanted = [bool(eval(formula, {x: text.count(x) for x in "abc"})) for text in rows]
            assert task.labels(strings_of(task, rows)).tolist() == wanted, formula
            there = task.has(length, True), task.has(length, False)
            assert there == (any(wanted), not all(wanted)), formula


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
    size = np.full(40 * len(members), length)
    found = Counter(texts(alphabet, draw_many(task, np.random.default_rng(2), size, positive)))
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


def test_lengths_of_rare_and_of_missing_strings_are_found_exactly() -> None:
    own, halves = Counting("abc", "a == b and c <= 3"), Counting("ab", "a == b")
    assert all(own.has(length, label) for length in range(300, 200, -1) for label in (True, False))
    assert all(halves.has(length, True) == (length % 2 == 0) for length in range(3_000, 2_900, -1))


def labels(alphabet: str, formula: str, *counts: list[int]) -> list[bool]:
    found: list[bool] = Counting(alphabet, formula).labels_of_counts(np.array(counts)).tolist()
    return found


def test_numbers_that_a_machine_word_cannot_hold_are_exact() -> None:
    large = 10**9
    counts = [large, large], [large, large - 1], [large - 1, large]
    assert labels("ab", "a*a*a*a*a > b*b*b*b*b + 1", *counts) == [False, True, False]


def test_tokens_are_told_apart_whatever_they_are() -> None:
    """Signs, letters that Python takes for the same, and names."""
    assert labels("01", "#0 % 3 == #1 % 3", [1, 1], [3, 1], [0, 1]) == [True, False, False]
    assert labels("()", "#( == #)", [2, 2], [1, 2]) == [True, False]
    for alphabet in ("aªb", "ªab", "a\uff41", "s\u017f", "\u017fs", "µμ", "ﬁf", "℘_", "א\u202eb"):
        counts = [*range(1, len(alphabet) + 1)]
        for number, token in enumerate(alphabet, start=1):
            for written in {token if token.isidentifier() else f"#{token}", f"#{token}"}:
                assert labels(alphabet, f"{written} == {number}", counts) == [True], written
    formula = "push >= 2*pop and #10<1"
    task: Any = language("counting", alphabet="push pop 10", formula=formula)
    assert task == Counting(("push", "pop", "10"), formula)
    several = np.array([[2, 1, 0], [1, 1, 0], [2, 1, 1]])
    assert task.labels_of_counts(several).tolist() == [True, False, False]
    assert "push pop 10" in task.describe()


@given(
    st.text(
        alphabet="abcd0129 +-*%<>=!()#andornt,.[]'\"\n\0éª\uff41_~\u0301\u202e\ufeff\uff13",
        max_size=40,
    )
)
def test_any_text_is_a_formula_or_refused_in_one_line(text: str) -> None:
    message = refusal({"task": "counting", "alphabet": "abc", "formula": text})
    assert "\n" not in message
    if not message:
        task = language("counting", alphabet="abc", formula=text)
        assert task.has(2, True) or task.has(2, False)
