"""Shortcut readers: their accuracy, agreement with models, and what they decide."""

from collections import Counter
from collections.abc import Callable
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from benchmarks.shortcuts import LANGUAGES
from seqcls import shortcuts
from seqcls.deciding import decided_by
from seqcls.errors import ConfigError
from seqcls.evaluation import distinct_test_strings
from seqcls.problem import Problem, configuration, resolve
from seqcls.sampling.streams import stream
from seqcls.shortcuts import (
    READERS,
    Agreement,
    Shortcut,
    agreement_of,
    read_test,
    training_key,
)
from seqcls.strings.datasets import remember
from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks.automaton import Automaton
from seqcls.tasks.base import LanguageTask, texts
from seqcls.tasks.transductions import Transduction
from sweeps.datasets import read_dataset
from tests.zoo import LSTM

SHORT: dict[str, Any] = {
    "train_max_length": 10, "train_size": 1_000, "max_num_epochs": 1, "validation_max_length": 10,
    "test_max_length": 16, "test_size": 400,
}  # fmt: skip
REGULAR: dict[str, Any] = {"task": "regular", "alphabet": "ab"}
THREE_REQUIRED: dict[str, Any] = {"num_letters": 4, "required_letters": "abc"}
REWRITE: dict[str, Any] = {"task": "rewrite", "alphabet": "abc"}
AT_PLACES = "the token at the same place and its neighbors"
NO_THREE: dict[str, Any] = {**REGULAR, "pattern": "(b|ab|aab)*(a|aa)?"}
"""Strings without three consecutive a."""


def problem_of(**fields: Any) -> Problem:
    return resolve(configuration({"task": "parity", **SHORT, **fields}))


def readers_of(problem: Problem) -> dict[str, Shortcut]:
    return {own.reader: own for own in read_test(problem)}


def right(problem: Problem, reader: str) -> np.ndarray:
    own = readers_of(problem)[reader]
    assert own.obstacle is None
    assert own.right is not None
    return own.right


def drawn_test(problem: Problem) -> tuple[list[str], list[bool]]:
    """Strings and labels of the test, by their numbers."""
    drawn = distinct_test_strings(problem.test)
    order = np.argsort(drawn.numbers)
    rows = texts(problem.task.alphabet, drawn.strings.take(order))
    return rows, drawn.targets[order].astype(bool).tolist()


OF_ITS_CLASS: list[tuple[dict[str, Any], str]] = [
    ({"task": "repeat_01"}, "bigrams"),
    ({"task": "first"}, "bigrams"),
    ({"task": "first"}, "ends"),
    ({"task": "even_pairs"}, "ends"),
    ({**REGULAR, "pattern": "(ab)*"}, "bigrams"),
    (NO_THREE, "trigrams"),
    ({**REGULAR, "pattern": "((a|b)(a|b))*", "test_max_length": 10}, "length"),
    # The empty string, and those of one or two tokens, as well.
    *(
        ({**REGULAR, "pattern": x, "test_min_length": 0}, "trigrams")
        for x in ("(aab)*", "aa(a|b)*", "(a|b)*bb")
    ),
]


def test_reader_is_right_on_languages_of_its_class() -> None:
    for fields, reader in OF_ITS_CLASS:
        assert right(problem_of(**fields), reader).all(), (fields, reader)
    majority = problem_of(task="majority", test_max_length=10)
    assert right(majority, "counts").mean() > 0.97
    assert right(majority, "counts_trees").mean() > 0.97
    # And not where it takes more than the reader sees.
    assert right(majority, "bigrams").mean() < 0.95
    assert right(problem_of(**NO_THREE, negatives="near"), "bigrams").mean() < 0.9


KEYS: list[tuple[str, Any]] = [("length", len), ("ends", lambda text: (text[:1], text[-1:]))]


@pytest.mark.parametrize(("reader", "key"), KEYS)
def test_majority_reader_uses_training_labels(reader: str, key: Any) -> None:
    problem = problem_of(task="dyck", test_max_length=14)
    trained = stream(problem.train).epoch(0)
    balance: Counter[Any] = Counter()
    for text, label in zip(texts("()", trained.strings), trained.labels, strict=True):
        balance[key(text)] += 1 if label else -1
    most = trained.labels.mean() >= 0.5
    tested, labels = drawn_test(problem)
    expected = [balance[key(text)] > 0 if balance[key(text)] else most for text in tested]
    assert (right(problem, reader) == (np.array(expected) == labels)).all()


def test_bigram_reader_depends_on_bigrams_alone() -> None:
    problem = problem_of(task="dyck", negatives="near", test_max_length=8)
    tested = drawn_test(problem)
    answers_by_pairs: dict[Any, set[bool]] = {}
    rows = zip(*tested, right(problem, "bigrams").tolist(), strict=True)
    for text, label, is_right in rows:
        seen = (len(text), frozenset(pairwise(f"^{text}$")))
        answers_by_pairs.setdefault(seen, set()).add(label == is_right)
    assert len(answers_by_pairs) < len(tested[0])
    assert all(len(answers) == 1 for answers in answers_by_pairs.values())


def test_identity_reader_copies_its_input() -> None:
    small = {"num_tokens": 2, "test_max_length": 8, "train_max_length": 6}
    copy = problem_of(task="copy", **small)
    assert right(copy, "identity").all()
    assert right(copy, "aligned").all()
    reverse = problem_of(task="reverse", **small)
    rows, _ = drawn_test(reverse)
    assert right(reverse, "identity").tolist() == [text == text[::-1] for text in rows]
    assert 0 < right(reverse, "identity").mean() < 0.5
    assert right(reverse, "aligned").mean() < 0.6
    fields = {"alphabet": "abc", "pattern": "ab", "replacement": "ac"}
    assert right(problem_of(task="rewrite", **fields), "aligned").mean() > 0.95


def test_most_frequent_reader_writes_the_most_frequent_training_target() -> None:
    problem = problem_of(task="modular_sum", train_max_length=4, test_max_length=6)
    trained = stream(problem.train).epoch(0)
    drawn = distinct_test_strings(problem.test)
    most = Counter(map(bytes, trained.targets)).most_common(1)[0][0]
    targets = drawn.targets[np.argsort(drawn.numbers)]
    width = trained.targets.shape[1]
    assert targets.shape[1] == width
    assert right(problem, "most_frequent").tolist() == [bytes(x) == most for x in targets]


def test_unfittable_reader_gives_the_reason() -> None:
    # Three letters are required.
    one = resolve(
        configuration({"train_sampler": "fixed_length", "sequence_length": 2, **THREE_REQUIRED})
    )
    found = readers_of(one)
    for reader in ("counts", "counts_trees"):
        assert found[reader].right is None
        assert "all have one label" in str(found[reader].obstacle)
    assert found["length"].right is not None
    # Strings that are counted have no neighbors.
    found = readers_of(resolve(configuration({"train_size": 256, "test_size": 256})))
    for reader in ("ends", "bigrams", "trigrams"):
        assert found[reader].right is None
        assert "have no order" in str(found[reader].obstacle)
    assert found["counts"].right is not None


def test_readers_of_a_file_are_fitted_on_its_training_strings(tmp_path: Path) -> None:
    def problem(name: str, trained: int) -> Problem:
        rows = [
            f"{''.join(letters)},{int('aa' in ''.join(letters)) & trained},{split}"
            for number, letters in enumerate(product("ab", repeat=6))
            for split in [("train", "train", "validation", "test")[number % 4]]
        ]
        (tmp_path / name).write_text("\n".join(["tokens,label,split", *rows]))
        digest = remember(read_dataset(tmp_path / name))
        return resolve(configuration({"task": "file", "dataset": digest}))

    own = problem("own.csv", trained=1)
    assert right(own, "bigrams").all()
    assert not right(own, "length").all()
    one = problem("one.csv", trained=0)
    assert readers_of(one)["bigrams"].obstacle == "the training strings all have one label"
    for field in ("negatives", "test_negatives"):
        with pytest.raises(ConfigError, match=f"^{field}='near': not read by"):
            configuration({**own.config.changed, field: "near"})


@pytest.mark.parametrize("task", ["dyck", "reverse"])
def test_readers_are_deterministic_and_independent_of_blocks(
    task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = problem_of(task=task)
    once = read_test(problem)
    shortcuts._read.cache_clear()
    monkeypatch.setattr(shortcuts, "BLOCK_TOKENS", 100)
    again = read_test(problem)
    assert once is not again
    assert [own.reader for own in once] == [*problem.kind.shortcut_readers]
    assert {own.reader for own in once} <= set(READERS)
    for one, other in zip(once, again, strict=True):
        assert one.right is not None
        assert other.right is not None
        assert (one.reader, one.right.tolist()) == (other.reader, other.right.tolist())
        assert len(one.right) == len(distinct_test_strings(problem.test).texts)


def test_reader_key_depends_on_training_strings_alone() -> None:
    own = training_key(problem_of())
    for same in (LSTM, {"test_size": 10}, {"learning_rate": 0.1}, {"test_negatives": "near"}):
        assert training_key(problem_of(**same)) == own
    for other in ({"train_seed": 7}, {"negatives": "near"}, {"train_max_length": 9}):
        assert training_key(problem_of(**other)) != own
    # Of 1,000 strings an epoch the first 20,000 take twenty epochs.
    assert training_key(problem_of(max_num_epochs=2)) != own
    twenty, fifty = (problem_of(max_num_epochs=x) for x in (20, 50))
    assert training_key(twenty) == training_key(fifty)


def agreement(
    labels: list[int], model: list[int], reader: list[int], times: list[int] | None = None
) -> Agreement:
    errs = np.array(model, dtype=bool), np.array(reader, dtype=bool)
    counted = np.array(times or [1] * len(labels))
    return agreement_of(np.array(labels, dtype=bool), *errs, counted)


def test_agreement_is_cohens_kappa_within_labels() -> None:
    rng = np.random.default_rng(0)
    for share in (0.1, 0.5, 0.9):
        errs = rng.random(200) < 0.3
        reads = np.where(rng.random(200) < share, errs, rng.random(200) < 0.4)
        found = agreement([1] * 200, [*errs], [*reads])
        assert found.kappa == pytest.approx(cohen_kappa_score(errs, reads))
        assert found.share == pytest.approx((errs == reads).mean())
        assert found.low <= found.kappa <= found.high
    # Right on all 4 negative strings, wrong on all 4 positive ones: both do what labels explain.
    labels = both = [0] * 4 + [1] * 4
    assert (agreement(labels, both, both).share, agreement(labels, both, both).kappa) == (1, 0)
    # Positive: both wrong on one half, the same. Negative: as chance would have it.
    found = agreement([1] * 4 + [0] * 4, [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 0, 0, 1, 0, 1, 0])
    # Six of eight agree, and four would by chance.
    assert (found.share, found.kappa) == (6 / 8, (6 - 4) / (8 - 4))
    # Who never errs agrees beyond nothing.
    none = agreement([1, 0, 1, 0], [0] * 4, [0] * 4)
    assert (none.share, none.kappa, none.low, none.high) == (1, 0, 0, 0)
    # Strings are counted as often as they are tested.
    one, times = ([1, 1, 1, 0, 0], [1, 1, 0, 0, 1], [1, 0, 0, 0, 1]), [3, 1, 4, 6, 2]
    every = (np.repeat(x, times).tolist() for x in one)
    assert agreement(*one, times) == agreement(*every)


def test_automaton_neighbors_are_those_of_accepted_strings() -> None:
    """The pairs of neighbors of every string of up to ten letters; the third is its end."""
    every = [letters for length in range(11) for letters in product(range(2), repeat=length)]
    strings = TokenStrings.of_lists(2, [[*letters] for letters in every])
    pairs = np.zeros((len(every), 3, 3), dtype=bool)
    for row, letters in enumerate(every):
        for pair in pairwise((2, *letters, 2)):
            pairs[row][pair] = True
    rng = np.random.default_rng(0)
    for _ in range(50):
        states = int(rng.integers(1, 4))
        table = rng.integers(states, size=(states, 2))
        automaton = Automaton(table, rng.random(states) < 0.5)
        accepted = automaton.accepting[automaton.states(strings)]
        assert (automaton.neighbors() == pairs[accepted].any(axis=0)).all()


PATTERNS = [
    *("(ab)*", "a*", "a*b*", "a(a|b)*", "(a|b)*a", "a?b?", "ab|ba", "(aa)*", "a(ab)*b"),
    *("(b|ab|aab)*(a|aa)?", "(a|b)*aa(a|b)*", "((a|b)(a|b))*", "b*ab*", "(a|bb)*", "(ba*)*", "aba"),
    *("(ab|ba)*", "(a|b)*ab", "a(a|b)*a|b(a|b)*b", "a?(a(a|b)*b)?", "(a|b)*a(a|b)*a(a|b)*"),
    *("(a|b)*(aab|bba)(a|b)*", "(a|b){3}(a|b)*", "(a|b)*a(a|b)*b(a|b)*", "(a|b)*a(a|b)"),
]
LOOKS: dict[str, Callable[[tuple[int, ...]], Any]] = {
    "the length": len,
    "first and last letters": lambda letters: (letters[:1], letters[-1:]),
    "letter counts": lambda letters: tuple(sorted(letters)),
    "pairs of neighboring tokens": lambda letters: runs(letters, 2),
    "runs of three tokens": lambda letters: runs(letters, 3),
}


def runs(letters: tuple[int, ...], size: int) -> frozenset[tuple[int, ...]]:
    """The runs that occur, with a mark at each end; the string itself where it is shorter."""
    marked = (-1, *letters, -2)
    return frozenset(marked[x : x + size] for x in range(max(1, len(marked) - size + 1)))


def held_by(problem: Problem, longest: int) -> list[str]:
    """Features that differ between any two strings of up to so many tokens of unlike labels."""
    size = len(problem.task.alphabet)
    every = [x for length in range(longest + 1) for x in product(range(size), repeat=length)]
    strings = TokenStrings.of_lists(size, [[*letters] for letters in every])
    assert isinstance(problem.task, LanguageTask)
    labels = problem.task.labels(strings).tolist()
    pairs = list(zip(every, labels, strict=True))
    return [
        by
        for by, look in LOOKS.items()
        if len({(look(x), y) for x, y in pairs}) == len({look(x) for x in every})
    ]


def test_deciding_feature_separates_the_labels() -> None:
    for fields in LANGUAGES.values():
        problem = problem_of(**fields)
        size = len(problem.task.alphabet)
        most = 4_000 if size <= 3 else 1_000
        longest = max(x for x in range(3, 11) if x == 3 or size**x < most)
        held, by = held_by(problem, longest), decided_by(problem.task)
        assert by is None or by in held, fields
        if size <= 3:
            assert by == next(iter(held), None), "those of few letters show it in short strings"
    for pattern in PATTERNS:
        problem = problem_of(**REGULAR, pattern=pattern)
        assert decided_by(problem.task) == next(iter(held_by(problem, 9)), None), pattern


DECIDED: list[tuple[dict[str, Any], str | None]] = [
    ({"task": "copy"}, "the input itself"),
    ({"task": "paragraph", "architecture": "paragraph_reader"}, "the input itself"),
    ({"task": "reverse"}, None),
    ({**REWRITE, "pattern": "a", "replacement": "b"}, AT_PLACES),
    ({**REWRITE, "pattern": "^a|b$", "replacement": "c"}, AT_PLACES),
    ({**REWRITE, "pattern": "[ab]", "replacement": r"\g<0>"}, "the input itself"),
    ({**REWRITE, "pattern": "a", "replacement": ""}, None),
    ({**REWRITE, "pattern": "(a)|b", "replacement": r"\1"}, None),
    ({**REWRITE, "pattern": "aa", "replacement": "bb"}, None),
]


@pytest.mark.parametrize(("fields", "by"), DECIDED)
def test_deciding_feature_gives_every_short_output(fields: Any, by: str | None) -> None:
    task = resolve(configuration(fields)).task
    assert isinstance(task, Transduction)
    assert task.decided_by == by
    if by is None or fields["task"] == "paragraph":
        return
    letters = range(min(3, len(task.alphabet)))
    written: dict[Any, int] = {}
    for row in (x for length in range(1, 6) for x in product(letters, repeat=length)):
        output = task.target(np.array(row, dtype=np.uint8)).tolist()
        assert output == [*row] or by == AT_PLACES
        around = zip((-1, *row[:-1]), row, (*row[1:], -1), strict=True)
        for token, place in zip(output, around, strict=True):
            assert written.setdefault(place, token) == token
