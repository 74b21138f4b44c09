"""The contract of every transduction: a reference, enumeration, and the language of its pairs."""

import itertools
import math
import operator
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from seqcls.errors import InvalidStringError
from seqcls.plugin_checks import check_inputs
from seqcls.strings.token_strings import NO_LETTER, TokenStrings
from seqcls.strings.tokenizer import Tokenizer
from seqcls.tasks import TASKS, LanguageTask
from seqcls.tasks.base import BulkInputs
from seqcls.tasks.flip_flop import WriteFlipFlop
from seqcls.tasks.transductions import Transduction
from tests.tasks import TRANSDUCTIONS

REWRITE = {"alphabet": "abc", "pattern": "a(b|c)+", "replacement": r"\1c"}


def most_frequent(text: str) -> str:
    return max(set(text), key=text.count)


def stack(text: str) -> str:
    left: list[str] = []
    for token in text:
        if token == "-":
            left.pop()
        elif token != "+":
            left.append(token)
    return "".join(left)[::-1]


def calculated(text: str) -> str:
    """Python works from left to right where each operation has its own parentheses."""
    operators = (len(text) - 1) // 2
    return str(eval("(" * operators + re.sub(r"([-+*]\d)", r"\1)", text)) % 5)


def binary(function: Callable[..., int]) -> Callable[[str], str]:
    return lambda text: f"{function(*(int(x, 2) for x in re.split('[+*]', text[:-1]))):b}"


def decimal(function: Callable[..., int]) -> Callable[[str], str]:
    return lambda text: str(function(*map(int, re.split("[+*]", text[:-1]))))


def backwards(function: Callable[[str], str]) -> Callable[[str], str]:
    """The same of numbers whose digits are written the other way."""
    return lambda text: function("".join(x[::-1] for x in re.split("([+*=])", text)))[::-1]


def sums(text: str) -> str:
    return "".join(str(sum(map(int, text[:end])) % 5) for end in range(1, len(text) + 1))


def recalled(text: str) -> str:
    return dict(zip(text[:-1:2], text[1::2], strict=True))[text[-1]]


def left_of_first(text: str) -> str:
    return text[text.index(text[-1]) - 1]


LEAST_FIRST = {"digit_order": "least_first"}
EQUAL = {"operand_lengths": "equal"}
CASES: list[tuple[str, dict[str, Any], Callable[[str], str]]] = [
    ("copy", {"num_tokens": 3}, str),
    ("copy", {"num_tokens": 4, "distinct": True}, str),
    ("reverse", {}, lambda text: "".join(reversed(text))),
    ("reverse", {"num_tokens": 4, "distinct": True}, lambda text: "".join(reversed(text))),
    ("duplicate", {}, lambda text: 2 * text),
    ("sort", {"num_tokens": 3}, lambda text: "".join(c * text.count(c) for c in "abc")),
    ("write_odds_first", {"num_tokens": 3}, lambda text: text[::2] + text[1::2]),
    ("write_stack", {}, stack),
    ("write_place", {}, lambda text: str(sum((c == "+") - (c == "-") for c in text) % 5)),
    ("write_value", {}, calculated),
    ("write_products", {"group": "Z5"}, sums),
    ("most_frequent", {}, most_frequent),
    ("binary_majority", {}, most_frequent),
    ("interleaved_majority", {}, lambda text: "".join(most_frequent(text[x::3]) for x in range(3))),
    ("parity_word", {}, lambda text: str(text.count("1") % 2)),
    ("addition", {}, binary(operator.add)),
    ("addition", {"base": 10}, decimal(operator.add)),
    ("addition", {**EQUAL}, binary(operator.add)),
    ("addition", {"base": 10, **LEAST_FIRST, **EQUAL}, backwards(decimal(operator.add))),
    ("multiplication", {}, binary(operator.mul)),
    ("multiplication", {"base": 10, **LEAST_FIRST}, backwards(decimal(operator.mul))),
    ("multiplication", {**EQUAL}, binary(operator.mul)),
    ("square_root", {}, binary(math.isqrt)),
    ("square_root", {"base": 10, **LEAST_FIRST}, backwards(decimal(math.isqrt))),
    ("modular_sum", {"base": 10}, lambda text: str(sum(map(int, text)))[-1]),
    ("modular_sum", {}, lambda text: f"{text.count('1'):b}"[-1]),
    ("paragraph", {"alphabet": "abc", "line_length": 9, "max_lines": 1}, str),
    ("rewrite", REWRITE, lambda text: re.sub(r"a(b|c)+", r"\1c", text)),
    ("associative_recall", {}, recalled),
    ("associative_recall", {"num_tokens": 3, "distinct": True}, recalled),
    ("write_flip_flop", {"ignore_share": 1 / 3}, lambda text: text[text.rindex("w") + 1]),
    ("selective_copy", {"data_tokens": 2}, lambda text: text.replace("_", "")),
    ("retrieval", {"num_tokens": 3}, lambda text: text[text[:-1].rindex(text[-1]) + 1]),
    ("retrieval", {"num_tokens": 3, "neighbor": "left", "occurrence": "first"}, left_of_first),
    ("retrieval", {"num_tokens": 3, "neighbor": "left", "occurrence": "unique"}, left_of_first),
    ("retrieval", {"occurrence": "unique"}, lambda text: text[text.index(text[-1]) + 1]),
]
"""Tasks with settings, and the target of an input in plain Python."""

NAMED = [f"{name} {', '.join(map(str, fields.values()))}" for name, fields, _ in CASES]


def task_of(name: str, fields: dict[str, Any]) -> Transduction:
    task: Any = TASKS[name]
    made = task(**fields)
    assert isinstance(made, Transduction)
    return made


def encoded(task: Any, text: str) -> np.ndarray:
    return np.array([task.alphabet.index(token) for token in text], dtype=np.uint8)


def answer(task: Transduction, text: str) -> str:
    return Tokenizer(task.alphabet).spell(task.target(encoded(task, text)).tolist())


def is_input(task: Transduction, letters: np.ndarray) -> bool:
    try:
        task.target(letters)
    except InvalidStringError:
        return False
    return True


def every_input(task: Transduction, length: int) -> list[np.ndarray]:
    rows = itertools.product(range(len(task.alphabet)), repeat=length)
    arrays = [np.array(row, dtype=np.uint8) for row in rows]
    return [row for row in arrays if is_input(task, row)]


def test_every_transduction_has_a_reference() -> None:
    assert {name for name, _, _ in CASES} == set(TRANSDUCTIONS)


@pytest.mark.parametrize(("name", "fields", "right"), CASES, ids=NAMED)
def test_transduction_keeps_its_contract(
    name: str, fields: dict[str, Any], right: Callable[[str], str]
) -> None:
    """It describes itself, knows its inputs, draws them, and gives the targets of plain Python."""
    task = task_of(name, fields)
    words = task.describe()
    assert words[0].isupper()
    assert words.endswith(".")
    assert "\n" not in words
    assert hash(task) == hash(task_of(name, fields))
    assert TASKS[name].reads >= set(fields)
    lengths = [length for length in range(1, 13) if task.has_input(length)]
    check_inputs(task, range(lengths[0], lengths[-1] + 1))

    longest, size = 0, len(task.alphabet)
    # Numbers in base 10 have no two operands below 4 tokens.
    for length in range(int(math.log(21_000 if size > 10 else 2_000, size)) + 1):
        inputs = every_input(task, length)
        assert task.has_input(length) == bool(inputs), length
        longest = max(longest, *(len(task.target(row)) for row in inputs), 0)
        bound = task.longest_target(length)
        # What repeats of groups become is not counted exactly.
        assert longest == bound or (name == "rewrite" and longest < bound <= 4 * length)
        if 0 < len(inputs) <= 200:
            assert_uniform(task, length, inputs)

    rng, answers = np.random.default_rng(1), dict[str, set[str]]()
    for length in (x for x in [*range(30), 98, 99, 301] if task.has_input(x)):
        for _ in range(100 if length < 8 else 5):
            text = "".join(task.alphabet[x] for x in task.draw_input(rng, length).tolist())
            assert len(text) == length
            given = answer(task, text)
            assert given == right(text)
            answers.setdefault("".join(sorted(text)), set()).add(given)
    # Order matters only in order-sensitive tasks.
    assert task.order_sensitive == any(len(found) > 1 for found in answers.values())
    if isinstance(task, BulkInputs):
        assert_alike_at_once(task)


def assert_uniform(task: Transduction, length: int, inputs: list[np.ndarray]) -> None:
    """Asserts that inputs of a length are drawn uniformly."""
    weights = Counter(split_of(task, row) for row in inputs)
    rng, size = np.random.default_rng(length), 20 * len(inputs)
    found = Counter(task.draw_input(rng, length).tobytes() for _ in range(size))
    expected = {row.tobytes(): size / len(weights) / weights[split_of(task, row)] for row in inputs}
    assert set(found) <= set(expected)
    statistic = sum((found[row] - count) ** 2 / count for row, count in expected.items())
    freedom = len(inputs) - 1
    # Six standard deviations: such a seed would be found once in a billion.
    assert statistic <= freedom + 6 * (2 * freedom) ** 0.5, (length, statistic)


def assert_alike_at_once(task: Any) -> None:
    """Asserts that inputs drawn together have the targets of each alone."""
    rng = np.random.default_rng(5)
    lengths = rng.choice([x for x in range(1, 12) if task.has_input(x)], size=50)
    letters = task.draw_inputs(rng, lengths)
    strings = TokenStrings.of_letters(len(task.alphabet), letters, lengths)
    targets = [task.target(row[:end]) for row, end in zip(strings.letters, lengths, strict=True)]
    for target, alone in zip(task.targets(strings), targets, strict=True):
        assert target[: len(alone)].tolist() == alone.tolist()
        assert (target[len(alone) :] == NO_LETTER).all()


def split_of(task: Transduction, letters: np.ndarray) -> int:
    """The length of the first operand, which is drawn before the numbers, or the instructions that
    are drawn before their bits; else nothing.
    """
    if isinstance(task, WriteFlipFlop):
        return int("".join(map(str, letters[::2])))
    marks = [x for x, token in enumerate(task.alphabet) if token in "+*"]
    if task.alphabet[-1] != "=" or not marks:
        return 0
    return int(np.flatnonzero(letters == marks[0])[0])


def test_targets_of_many_inputs_are_padded() -> None:
    task = task_of("duplicate", {})
    strings = TokenStrings.of_lists(2, [[0], [1, 0]])
    none = NO_LETTER
    assert task.targets(strings).tolist() == [[0, 0, none, none], [1, 0, 1, 0]]
    with pytest.raises(InvalidStringError, match="input '0': expected"):
        task_of("addition", {}).targets(TokenStrings.of_lists(4, [[0]]))


NO_INPUTS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("copy", {}, [""]),
    ("copy", {"num_tokens": 3, "distinct": True}, ["aba"]),
    ("addition", {"base": 10}, ["3+=", "3+4"]),
    ("addition", {"base": 10, **LEAST_FIRST}, ["30+4="]),
    ("addition", {"base": 10, **EQUAL}, ["30+4="]),
    ("multiplication", {}, ["1*1*1="]),
    ("square_root", {}, ["01=", "1" * 4_000 + "="]),
    ("most_frequent", {}, ["abab"]),
    ("binary_majority", {}, ["01"]),
    ("interleaved_majority", {}, ["000111"]),
    ("write_stack", {}, ["0--"]),
    ("write_place", {}, ["+1"]),
    ("write_value", {}, ["1+"]),
    ("modular_sum", {}, [""]),
    ("rewrite", REWRITE, [""]),
    ("associative_recall", {}, ["a1b", "a1b0"]),
    ("associative_recall", {"distinct": True}, ["a1a0a"]),
    ("write_flip_flop", {}, ["w1r0r", "w1i"]),
    ("selective_copy", {}, ["a_b"]),
    ("retrieval", {}, ["aa"]),
    ("retrieval", {"neighbor": "left"}, ["aba"]),
    ("retrieval", {"occurrence": "unique"}, ["abaa"]),
]


def test_invalid_input_of_a_transduction_is_refused() -> None:
    for name, fields, texts in NO_INPUTS:
        task = task_of(name, fields)
        for text in texts:
            with pytest.raises(InvalidStringError, match=r"\Aexpected [^\n]+\Z"):
                task.target(encoded(task, text))


def test_alphabet_may_have_many_or_named_tokens() -> None:
    names = task_of("copy", {"num_tokens": 150, "distinct": True})
    assert names.alphabet == tuple(map(str, range(150)))
    assert not names.has_input(151)
    assert names.target(np.array([149, 0], dtype=np.uint8)).tolist() == [149, 0]
    assert (names.longest_target(50), names.longest_target(151)) == (50, 150)
    fields = {"alphabet": "push pop a a1", "pattern": "push (a|a1){1,2} pop"}
    task: Any = task_of("rewrite", {**fields, "replacement": r"pop \1 a"})
    letters = [task.alphabet.index(token) for token in ["pop", "push", "a", "a1", "pop", "push"]]
    target = task.target(np.array(letters, dtype=np.uint8)).tolist()
    assert [task.alphabet[x] for x in target] == ["pop", "pop", "a1", "a", "push"]


LANGUAGES: list[tuple[str, str, dict[str, Any], str, dict[str, str]]] = [
    ("marked_copy", "copy", {}, "#", {"a": "0", "b": "1"}),
    ("marked_reversal", "reverse", {}, "#", {"a": "0", "b": "1"}),
    ("odds_first", "write_odds_first", {}, "#", {"a": "0", "b": "1"}),
    ("bucket_sort", "sort", {"num_tokens": 5}, "#", dict(zip("abcde", "12345", strict=True))),
    ("stack_manipulation", "write_stack", {}, "#", {}),
    ("cycle_navigation", "write_place", {}, "", {}),
    ("modular_arithmetic", "write_value", {}, "=", {}),
    ("binary_addition", "addition", LEAST_FIRST, "", {}),
    ("binary_multiplication", "multiplication", LEAST_FIRST, "", {}),
    ("compute_sqrt", "square_root", LEAST_FIRST, "", {}),
]


@pytest.mark.parametrize(
    ("language", "name", "fields", "mark", "tokens"), LANGUAGES, ids=[x[0] for x in LANGUAGES]
)
def test_language_of_pairs_accepts_only_the_target(
    language: str, name: str, fields: dict[str, Any], mark: str, tokens: dict[str, str]
) -> None:
    task, accepting = task_of(name, fields), TASKS[language]()
    assert isinstance(accepting, LanguageTask)

    def label(text: str) -> bool:
        row = encoded(accepting, text).tolist()
        strings = TokenStrings.of_lists(len(accepting.alphabet), [row])
        return bool(accepting.labels(strings)[0])

    def spelled(letters: np.ndarray) -> str:
        own = [task.alphabet[letter] for letter in letters.tolist()]
        return "".join([tokens.get(token, token) for token in own])

    rng = np.random.default_rng(2)
    for length in (x for x in range(1, 24) if task.has_input(x)):
        letters = task.draw_input(rng, length)
        before, after = spelled(letters) + mark, spelled(task.target(letters))
        assert label(before + after), before + after
        for position, token in enumerate(after):
            for other in set(accepting.alphabet) - {token}:
                changed = after[:position] + other + after[position + 1 :]
                assert not label(before + changed), before + changed


@pytest.mark.parametrize("name", ["copy", "reverse", "duplicate", "write_odds_first"])
def test_token_is_coupled_with_its_copies_alone(name: str) -> None:
    task = task_of(name, {"num_tokens": 9, "distinct": True})
    assert task.coupling_obstacle() is None
    letters = np.random.default_rng(0).permutation(9)[:7].astype(np.uint8)
    target = task.target(letters)
    found = task.couples(letters, target)
    assert found is not None
    token_of = dict(zip(found[0].tolist(), letters.tolist(), strict=True))
    assert min(token_of) == 1
    assert [token_of[position] for position in found[1].tolist()] == target.tolist()
    # Places are known before the tokens, and there are none beyond the last.
    every = [*found[1].tolist(), 0, 0]
    for size in (3, len(every)):
        other = task.couples(letters, np.zeros(size, dtype=np.uint8))
        assert other is not None
        assert other[1].tolist() == every[:size]


def test_digits_of_equal_weight_are_coupled() -> None:
    for fields, text, size, expected in (
        ({"base": 10, **LEAST_FIRST}, "59+7=", 3, ([1, 2, 0, 1, 0], [1, 2, 3])),
        ({**LEAST_FIRST, **EQUAL}, "110+101=", 2, ([1, 2, 3, 0, 1, 2, 3, 0], [1, 2])),
    ):
        task = task_of("addition", fields)
        found = task.couples(encoded(task, text), np.zeros(size, dtype=np.uint8))
        assert found is not None
        assert (found[0].tolist(), found[1].tolist()) == expected
    for task in (
        task_of("sort", {}),
        task_of("addition", {}),
        task_of("multiplication", LEAST_FIRST),
    ):
        assert task.couples(encoded(task, "")[:0], encoded(task, "")[:0]) is None
        assert re.fullmatch(r"[^\n]+", task.coupling_obstacle() or "")
    assert "least_first" in (task_of("addition", {}).coupling_obstacle() or "")


def test_features_describe_inputs() -> None:
    digits = ["digits of the longer operand", "digits of the shorter operand", "carries"]
    cases: list[tuple[str, dict[str, Any], str, dict[str, int]]] = [
        ("copy", {}, "aab", {"a's": 2, "b's": 1}),
        ("copy", {"num_tokens": 20}, "aabbbcb", {"distinct tokens": 3, "longest run": 3}),
        ("copy", {"num_tokens": 20}, "", {"distinct tokens": 0, "longest run": 0}),
        ("addition", {"base": 10}, "995+15=", dict(zip(digits, [3, 2, 3], strict=True))),
        ("addition", {"base": 10}, "3+=", dict.fromkeys(digits, 0)),
        ("rewrite", REWRITE, "abcaab", {"matches": 2}),
    ]
    for name, fields, text, expected in cases:
        task = task_of(name, fields)
        strings = TokenStrings.of_lists(len(task.alphabet), [encoded(task, text).tolist()])
        found = {feature: int(values[0]) for feature, values in task.features(strings).items()}
        assert expected.items() <= found.items(), text
        assert len(found) < 6


RULES = [
    ("(a|b)+?c", r"c\1"), ("a(b*)c", r"\g<1>"), ("(?P<x>a|bb)(c?)", r"\2\g<x>"),
    ("[^a]{2,3}", "a"), ("a{2}b{0,1}|b{1,}?c", "ac"), ("^ab|c$|b", ""),
    ("a.c", r"\g<0>b"), ("((a)|b)+", r"\2\1"), (r"(a|a)(a|aa)*[a-b]", "b"),
]  # fmt: skip


def test_rewriting_equals_python_re_sub() -> None:
    for pattern, replacement in RULES:
        fields = {"alphabet": "abc", "pattern": pattern, "replacement": replacement}
        task = task_of("rewrite", fields)
        for letters in itertools.chain(*(itertools.product("abc", repeat=n) for n in range(1, 7))):
            text = "".join(letters)
            found = answer(task, text)
            assert found == re.sub(pattern, replacement, text), (pattern, text)
            assert len(found) <= task.longest_target(len(text)) <= 4 * len(text)


def test_rewriting_takes_linear_time() -> None:
    for pattern in ("(a|a)*c", "(a+)+c", "(a|aa)+c", "(.*)(.*)(.*)(.*)c", 20 * "a?" + "c"):
        task = task_of("rewrite", {"alphabet": "abc", "pattern": pattern, "replacement": "c"})
        # Python's own matcher would not be done with this in a year.
        assert answer(task, 300 * "a") == 300 * "a"
