"""The contract of every language, of plugins too, against labeled strings and enumeration."""

import gzip
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqcls import fields as of_configs
from seqcls.problem import configuration, resolve
from seqcls.sampling.streams import stream
from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks import CountTask, LanguageTask
from seqcls.tasks.base import texts
from seqcls.tasks.drawing import draw_many
from seqcls.tasks.flip_flop import IGNORE
from tests.conftest import ASSETS
from tests.tasks import LANGUAGES, every_string, language, positives, small, strings_of
from tests.world import parts_from_outside

FROM_OUTSIDE = ["ends_with_b", "more_pushes", "safe_pops"]
NOT_UNIFORM = {"binary_multiplication", "flip_flop", "safe_pops"}
"""Languages whose positive strings are not drawn uniformly."""


@pytest.fixture(scope="module", autouse=True)
def _from_outside() -> Iterator[None]:
    with parts_from_outside():
        yield


@pytest.mark.parametrize("name", [*LANGUAGES, *FROM_OUTSIDE])
def test_language_keeps_its_contract(name: str) -> None:
    """It describes itself, knows which lengths have strings, and draws them with their labels."""
    task = small(name)
    size, words = len(task.alphabet), task.describe()
    assert words[0].isupper()
    assert words.endswith(".")
    assert not set(task.alphabet) & set("<>{}")
    assert hash(task) == hash(small(name))

    longest = 8 if size <= 3 else 5
    tokens, lengths = range(size), range(longest + 1)
    rows = [row for length in lengths for row in itertools.product(tokens, repeat=length)]
    strings = TokenStrings.of_lists(size, rows)
    labels, features = task.labels(strings), task.features(strings)
    assert features
    assert name in FROM_OUTSIDE or {f"{letter}'s" for letter in task.alphabet} <= set(features)
    # Order matters only in order-sensitive languages.
    assert isinstance(task, CountTask) != task.order_sensitive
    if isinstance(task, CountTask):
        assert (task.labels_of_counts(strings.counts) == labels).all()
    for length in lengths:
        at = strings.lengths == length
        there = bool(labels[at].any()), not bool(labels[at].all())
        assert (task.has(length, True), task.has(length, False)) == there, length
        if length > 1 and there[0] and name not in NOT_UNIFORM:
            assert_uniform(task, length, strings.take(np.flatnonzero(at & labels)))

    rng = np.random.default_rng(5)
    for length, positive in itertools.product([*range(12), 60, 61, 500, 501], [True, False]):
        if task.has(length, positive):
            letters = np.stack([task.draw(rng, length, positive) for _ in range(5)])
            # An empty string is one of several, as in a test set.
            drawn = TokenStrings.of_lists(size, [*letters.tolist(), [0]])
            assert task.labels(drawn).tolist()[:-1] == [positive] * 5, (length, positive)
            assert drawn.lengths.tolist()[:-1] == [length] * 5


def assert_uniform(task: LanguageTask, length: int, positive: TokenStrings) -> None:
    """Positive strings of a length are drawn alike often."""
    members = texts(task.alphabet, positive)
    size = min(30 * len(members), 6_000)
    drawn = draw_many(task, np.random.default_rng(length), np.full(size, length), positive=True)
    found, expected = Counter(texts(task.alphabet, drawn)), size / len(members)
    statistic = sum((found[text] - expected) ** 2 / expected for text in members)
    freedom = len(members) - 1
    # Six standard deviations: such a seed would be found once in a billion.
    assert statistic <= freedom + 6 * (2 * freedom) ** 0.5, (length, statistic)
    assert set(found) <= set(members)


@pytest.mark.parametrize("name", LANGUAGES)
def test_docstring_examples_of_a_language_are_true(name: str) -> None:
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
        found = task.labels(strings_of(task, known)).tolist()
        assert dict(zip(known, found, strict=True)) == dict.fromkeys(known, label)


DYCK_2_3: dict[str, Any] = {"task": "dyck", "bracket_types": 2, "max_depth": 3}
TOKENS = {
    "binary-multiplication": {"\N{MULTIPLICATION SIGN}": "*"},
    "cycle-navigation": {">": "+", "<": "-"},
    "dyck-2-3": {"(0": "(", ")0": ")", "(1": "[", ")1": "]"},
    "stack-manipulation": {"PUSH": "+", "POP": "-"},
}
NAMES: dict[str, dict[str, Any]] = {
    "dyck-2-3": DYCK_2_3, "missing-duplicate-string": {"task": "missing_duplicate"},
    "modular-arithmetic-simple": {"task": "modular_arithmetic"},
}  # fmt: skip


@pytest.mark.parametrize(
    "path", sorted((ASSETS / "languages").glob("*.gz")), ids=lambda path: path.stem[:-6]
)
def test_reference_strings_get_their_labels(path: Path) -> None:
    name = path.name.removesuffix(".jsonl.gz")
    task = language(**NAMES.get(name, {"task": name.replace("-", "_")}))
    with gzip.open(path, "rt") as file:
        rows = [json.loads(line) for line in file]
    mapped = TOKENS.get(name, {})
    strings = ["".join(mapped.get(token, token) for token in row["tokens"].split()) for row in rows]
    labels = task.labels(strings_of(task, strings))
    labeled = zip(strings, rows, labels, strict=True)
    assert [text for text, row, label in labeled if label != row["label"]] == []


REGULAR = {"task": "regular", "alphabet": "abc"}
DEFECTS: list[dict[str, Any]] = [
    {"task": "dyck"}, {"task": "dyck", "max_depth": 2}, {**DYCK_2_3, "max_depth": 1},
    {"task": "repeat_01"}, {**REGULAR, "alphabet": "ab", "pattern": "(ab)*"},
    {**REGULAR, "pattern": "(a|bb)*c"},
]  # fmt: skip


@pytest.mark.parametrize("fields", DEFECTS)
def test_length_before_the_first_defect_is_the_longest_valid_prefix(fields: Any) -> None:
    task = language(**fields)
    longest = 3 if len(task.alphabet) == 4 else 5
    long = positives(task, *range(2 * longest + 1))
    rows = every_string(task, *range(longest + 1))
    found = task.features(strings_of(task, rows))["length before the first defect"]
    for text, sound in zip(rows, found, strict=True):
        ends = range(len(text), -1, -1)
        assert sound == next(n for n in ends if any(own.startswith(text[:n]) for own in long))


def test_flip_flops_have_the_documented_distribution() -> None:
    task = language("flip_flop", ignore_share=0.9)
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
def test_tests_may_ignore_more_than_training(own: dict[str, Any]) -> None:
    sizes = {"train_size": 300, "test_size": 300, "test_min_length": 41, "test_max_length": 42}
    shares: tuple[dict[str, float], ...] = ({}, {"test_ignore_share": 0.98}, {"ignore_share": 0.98})
    made = [resolve(configuration({**own, **sizes, **share})) for share in shares]
    trained, tested = (
        [stream(x.sampler(part)).epoch(0).strings.letters for x in made]
        for part in ("train", "test")
    )
    assert trained[1].tolist() == trained[0].tolist()
    assert tested[1].tolist() == tested[2].tolist()
    assert ignored_between(tested[1]) > 0.95
    assert ignored_between(tested[0]) < 0.85
    assert (made[1].task, made[1].test.lengths) == (made[0].task, made[0].test.lengths)
    # As if written with that share: the same strings are one test.
    keys = [of_configs.test_set_key(x.config) for x in made]
    assert keys[1] == keys[2] != keys[0]


def ignored_between(letters: np.ndarray) -> float:
    """The share of ignored instructions between the first and the last of strings of one length."""
    return float((letters[:, 2:39:2] == IGNORE).mean())
