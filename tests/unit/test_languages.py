"""Every language against labelled strings, against enumeration, and against its own words."""

import gzip
import itertools
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqcls import fields as of_configs
from seqcls.config import RunConfig
from seqcls.errors import ConfigError
from seqcls.problem import configuration, resolve
from seqcls.sampling.streams import stream
from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks import CountTask, LanguageTask
from seqcls.tasks.base import texts
from seqcls.tasks.drawing import draw_many
from seqcls.tasks.memory import IGNORE
from tests.tasks import LANGUAGES

LABELLED = Path(__file__).parents[1] / "assets" / "languages"

DYCK_2_3: dict[str, Any] = {"task": "dyck", "bracket_types": 2, "max_depth": 3}
TOKENS = {
    "binary-multiplication": {"\N{MULTIPLICATION SIGN}": "*"},
    "cycle-navigation": {">": "+", "<": "-"},
    "dyck-2-3": {"(0": "(", ")0": ")", "(1": "[", ")1": "]"},
    "stack-manipulation": {"PUSH": "+", "POP": "-"},
}
NAMES: dict[str, dict[str, Any]] = {
    "dyck-2-3": DYCK_2_3,
    "missing-duplicate-string": {"task": "missing_duplicate"},
    "modular-arithmetic-simple": {"task": "modular_arithmetic"},
}
SMALL: dict[str, dict[str, Any]] = {
    "dyck": {"bracket_types": 2},
    "word_problem": {"group": "Z5"},
    "regular": {"alphabet": "ab", "pattern": "(ab)*"},
    "counting": {"alphabet": "abc", "formula": "a == b and c <= 3"},
}
"""Settings of the tasks that need some."""


def language(**fields: Any) -> LanguageTask:
    return resolve(RunConfig.from_mapping(fields)).language


def refusal(fields: dict[str, Any]) -> str:
    """Why a language is refused; nothing where it is not."""
    try:
        language(**fields)
    except ConfigError as error:
        return str(error)
    return ""


def every_string(task: LanguageTask, length: int) -> list[str]:
    return ["".join(letters) for letters in itertools.product(task.alphabet, repeat=length)]


def strings_of(task: LanguageTask, rows: list[str]) -> TokenStrings:
    letters = [[task.alphabet.index(token) for token in text] for text in rows]
    return TokenStrings.of_lists(len(task.alphabet), letters)


def positives(task: LanguageTask, length: int) -> list[str]:
    rows = every_string(task, length)
    return list(itertools.compress(rows, task.labels(strings_of(task, rows)).tolist()))


def small(name: str) -> LanguageTask:
    return language(task=name, **SMALL.get(name, {}))


@pytest.mark.parametrize(
    "fields",
    [
        {"task": "dyck"},
        {"task": "dyck", "max_depth": 2},
        DYCK_2_3 | {"max_depth": 1},
        {"task": "repeat_01"},
        {"task": "regular", "alphabet": "ab", "pattern": "(ab)*"},
        {"task": "regular", "alphabet": "abc", "pattern": "(a|bb)*c"},
    ],
)
def test_before_the_first_defect_lies_what_a_positive_string_begins_with(
    fields: dict[str, Any],
) -> None:
    task = language(**fields)
    longest = 3 if len(task.alphabet) == 4 else 5
    long = [text for length in range(2 * longest + 1) for text in positives(task, length)]
    rows = [text for length in range(longest + 1) for text in every_string(task, length)]
    found = task.features(strings_of(task, rows))["length before the first defect"]
    for text, sound in zip(rows, found, strict=True):
        ends = range(len(text), -1, -1)
        assert sound == next(n for n in ends if any(own.startswith(text[:n]) for own in long))


@pytest.mark.parametrize("path", sorted(LABELLED.glob("*.gz")), ids=lambda path: path.stem[:-6])
def test_every_labelled_string_gets_its_label(path: Path) -> None:
    name = path.name.removesuffix(".jsonl.gz")
    task = language(**NAMES.get(name, {"task": name.replace("-", "_")}))
    with gzip.open(path, "rt") as file:
        rows = [json.loads(line) for line in file]
    mapped = TOKENS.get(name, {})
    strings = ["".join(mapped.get(token, token) for token in row["tokens"].split()) for row in rows]
    labels = task.labels(strings_of(task, strings))
    wrong = [
        text
        for text, row, label in zip(strings, rows, labels, strict=True)
        if label != row["label"]
    ]
    assert wrong == []


@pytest.mark.parametrize("name", LANGUAGES)
def test_the_examples_in_a_languages_own_words_are_true(name: str) -> None:
    task = small(name)
    words = (type(task).__doc__ or "").replace("the empty string", "``")
    examples = words.strip().split("\n\n")[-1].rpartition(": ")[2]
    claims = [part for part in examples.split(";") if "`" in part]
    assert len(claims) == 2
    for claim, label in zip(claims, (True, False), strict=True):
        assert ("positive" if label else "negative") in claim
        rows = [
            re.sub(r"(.)\{(\d+)\}", lambda run: run[1] * int(run[2]), text)
            for text in re.findall(r"`([^`]*)`", claim)
        ]
        # An example may be of the language with other settings.
        known = [text for text in rows if set(text) <= set(task.alphabet)]
        assert known
        wanted = dict.fromkeys(known, label)
        found = task.labels(strings_of(task, known)).tolist()
        assert dict(zip(known, found, strict=True)) == wanted


@pytest.mark.parametrize("name", LANGUAGES)
def test_whether_any_string_is_there_is_known_of_each_length_and_label(name: str) -> None:
    task = small(name)
    for length in range(8 if len(task.alphabet) <= 3 else 5):
        rows = every_string(task, length)
        labels = task.labels(strings_of(task, rows))
        assert (task.has(length, True), task.has(length, False)) == (
            bool(labels.any()),
            not bool(labels.all()),
        ), length


@pytest.mark.parametrize("positive", [True, False])
@pytest.mark.parametrize("name", LANGUAGES)
def test_strings_are_drawn_with_the_length_and_label_that_were_asked_for(
    name: str, positive: bool
) -> None:
    task = small(name)
    rng = np.random.default_rng(5)
    for length in [*range(12), 60, 61, 500, 501]:
        if not task.has(length, positive):
            continue
        drawn = TokenStrings.of_letters(
            len(task.alphabet), np.stack([task.draw(rng, length, positive) for _ in range(5)])
        )
        assert drawn.lengths.tolist() == [length] * 5
        assert task.labels(drawn).tolist() == [positive] * 5


@pytest.mark.parametrize("name", sorted(set(LANGUAGES) - {"binary_multiplication", "flip_flop"}))
def test_positive_strings_of_a_length_are_drawn_uniformly(name: str) -> None:
    task = small(name)
    lengths = range(2, 9 if len(task.alphabet) <= 3 else 6)
    for length in lengths:
        if not task.has(length, True):
            continue
        members = positives(task, length)
        rng = np.random.default_rng(length)
        size = min(30 * len(members), 6_000)
        drawn = draw_many(task, rng, np.full(size, length), positive=True)
        found = Counter(texts(task.alphabet, drawn))
        expected = size / len(members)
        statistic = sum((found[text] - expected) ** 2 / expected for text in members)
        freedom = len(members) - 1
        # Six standard deviations: such a seed would be found once in a billion.
        assert statistic <= freedom + 6 * (2 * freedom) ** 0.5, (length, statistic)
        assert set(found) <= set(members)


def test_flip_flops_write_first_read_last_and_ignore_as_much_as_they_say() -> None:
    task = language(task="flip_flop", ignore_share=0.9)
    drawn = texts(task.alphabet, draw_many(task, np.random.default_rng(0), np.full(500, 80), True))
    between = Counter("".join(text[2:-2:2] for text in drawn))
    shares = {name: number / between.total() for name, number in between.items()}
    assert shares == pytest.approx({"i": 0.9, "w": 0.05, "r": 0.05}, abs=0.005)
    assert {text[0] + text[-2] for text in drawn} == {"wr"}
    read = Counter(text[-1] for text in drawn)
    assert abs(read["0"] - read["1"]) < 100
    ignored = [text[text.rindex("i") + 1] == text[text.rindex("w") + 1] for text in drawn]
    assert 0.4 < np.mean(ignored) < 0.6


@pytest.mark.parametrize(
    "own", [{"task": "flip_flop", "answers": "next_symbols"}, {"task": "write_flip_flop"}], ids=str
)
def test_tests_may_ignore_more_than_is_trained_on(own: dict[str, Any]) -> None:
    sizes = {"train_size": 300, "test_size": 300, "test_min_length": 41, "test_max_length": 42}
    plain, sparse, all_sparse = (
        resolve(configuration({**own, **sizes, **shares}))
        for shares in ({}, {"test_ignore_share": 0.98}, {"ignore_share": 0.98})
    )
    assert stream(sparse.train).epoch(0).strings.letters.tolist() == (
        stream(plain.train).epoch(0).strings.letters.tolist()
    )
    tested = stream(sparse.test).epoch(0)
    assert tested.strings.letters.tolist() == (
        stream(all_sparse.test).epoch(0).strings.letters.tolist()
    )
    assert ignored_between(tested.strings.letters) > 0.95
    assert ignored_between(stream(plain.test).epoch(0).strings.letters) < 0.85
    assert (sparse.task, sparse.test.lengths) == (plain.task, plain.test.lengths)
    # As if written with that share: the same strings are one test.
    keys = [of_configs.test_set_key(x.config) for x in (plain, sparse, all_sparse)]
    assert keys[1] == keys[2] != keys[0]


def ignored_between(letters: np.ndarray) -> float:
    """The share of ignored instructions between the first and the last of strings of one length."""
    return float((letters[:, 2:39:2] == IGNORE).mean())


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"task": "parity", "test_ignore_share": 0.5}, "test_ignore_share=0.5: not read by task"),
        ({"task": "flip_flop", "ignore_share": 1.0}, "ignore_share.*less than 1"),
        ({"task": "consistent_pairs", "num_tokens": 126}, "num_tokens=126: expected 2 to 125"),
        ({"task": "associative_recall", "num_tokens": 1}, "num_tokens=1: expected 2 to 125 keys"),
        ({"task": "retrieval", "num_tokens": 1}, "num_tokens=1: expected at least 2"),
        ({"task": "retrieval", "neighbor": "up"}, "neighbor.*'right' or 'left'"),
        ({"task": "selective_copy", "data_tokens": 0}, "data_tokens"),
        ({"task": "selective_copy", "data_tokens": 300}, "no input has 0 to 10 tokens"),
        ({"task": "retrieval", "ignore_share": 0.5}, "ignore_share.*not read"),
        (
            {"task": "consistent_pairs", "num_tokens": 9, "answers": "states"},
            "no minimal automaton",
        ),
    ],
    ids=str,
)
def test_memory_tasks_say_in_one_line_what_they_cannot_be(
    fields: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said) as refused:
        configuration(fields)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", LANGUAGES)
def test_order_matters_only_where_a_language_says_so(name: str) -> None:
    task = small(name)
    rows = every_string(task, 4)
    strings = strings_of(task, rows)
    labels = task.labels(strings)
    by_counts: dict[tuple[int, ...], set[bool]] = {}
    for counts, label in zip(strings.counts.tolist(), labels.tolist(), strict=True):
        by_counts.setdefault(tuple(counts), set()).add(label)
    if not task.order_sensitive:
        assert isinstance(task, CountTask)
        assert all(len(found) == 1 for found in by_counts.values())
        assert (task.labels_of_counts(strings.counts) == labels).all()
    else:
        assert not isinstance(task, CountTask)


@pytest.mark.parametrize("name", LANGUAGES)
def test_a_language_describes_itself_in_one_sentence(name: str) -> None:
    task = small(name)
    words = task.describe()
    assert words[0].isupper()
    assert words.endswith(".")
    assert not set(task.alphabet) & set("<>{}")
    hash(task)
    assert set(task.features(strings_of(task, every_string(task, 2)))) >= {
        f"{letter}'s" for letter in task.alphabet
    }
