"""Shortcut readers: what they are right on, how far models agree with them, what they decide."""

import os
import subprocess
import sys
from collections import Counter
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from seqcls import shortcuts
from seqcls.errors import ConfigError
from seqcls.evaluation import distinct_test_strings
from seqcls.kinds import KINDS
from seqcls.problem import Problem, configuration, resolve
from seqcls.sampling.streams import stream
from seqcls.shortcuts import (
    OF_CLASS,
    READERS,
    Agreement,
    Shortcut,
    agreement_of,
    decided_by,
    is_local,
    read_test,
    training_key,
)
from seqcls.strings.datasets import remember
from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks.automaton import Automaton, language_automaton
from seqcls.tasks.base import texts
from seqcls.tasks.regular import Regular
from sweeps.datasets import read_dataset
from tests.conftest import ROOT
from tests.unit.asked import LSTM

SHORT: dict[str, Any] = {
    "train_max_length": 10,
    "train_size": 1_000,
    "max_num_epochs": 1,
    "validation_max_length": 10,
    "test_max_length": 16,
    "test_size": 400,
}
REGULAR: dict[str, Any] = {"task": "regular", "alphabet": "ab"}
WANTED: dict[str, Any] = {"num_letters": 4, "required_letters": "abc"}
NO_THREE: dict[str, Any] = {**REGULAR, "pattern": "(b|ab|aab)*(a|aa)?"}
"""No three a stand side by side."""


def problem_of(**fields: Any) -> Problem:
    return resolve(configuration({"task": "parity", **SHORT, **fields}))


def readers_of(problem: Problem) -> dict[str, Shortcut]:
    return {own.reader: own for own in read_test(problem)}


def right(problem: Problem, reader: str) -> np.ndarray:
    return right_of(readers_of(problem)[reader])


def right_of(own: Shortcut) -> np.ndarray:
    assert own.obstacle is None
    assert own.right is not None
    return own.right


def trained_and_tested(problem: Problem) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]]:
    """Strings and labels: those of training, and those of the test by their numbers."""
    alphabet = problem.task.alphabet
    trained = stream(problem.train).epoch(0)
    drawn = distinct_test_strings(problem.test)
    order = np.argsort(drawn.numbers)
    tested = texts(alphabet, drawn.strings.take(order)), drawn.targets[order].astype(bool)
    spelled = texts(alphabet, trained.strings), trained.labels
    return (
        list(zip(spelled[0], spelled[1].tolist(), strict=True)),
        list(zip(tested[0], tested[1].tolist(), strict=True)),
    )


@pytest.mark.parametrize(
    ("fields", "reader"),
    [
        ({"task": "repeat_01"}, "bigrams"),
        ({"task": "first"}, "bigrams"),
        ({"task": "first"}, "ends"),
        ({"task": "even_pairs"}, "ends"),
        ({**REGULAR, "pattern": "(ab)*"}, "bigrams"),
        (NO_THREE, "trigrams"),
        ({**REGULAR, "pattern": "((a|b)(a|b))*", "test_max_length": 10}, "length"),
    ],
)
def test_a_reader_is_right_wherever_the_language_is_of_its_class(
    fields: dict[str, Any], reader: str
) -> None:
    assert right(problem_of(**fields), reader).all()


def test_readers_of_counts_know_which_letter_is_in_the_majority() -> None:
    problem = problem_of(task="majority", test_max_length=10)
    assert right(problem, "counts").mean() > 0.97
    assert right(problem, "counts_trees").mean() > 0.97
    assert right(problem, "bigrams").mean() < 0.95


def test_a_reader_of_pairs_misses_what_takes_three_tokens() -> None:
    problem = problem_of(**NO_THREE, negatives="near")
    assert right(problem, "bigrams").mean() < 0.9


@pytest.mark.parametrize(
    ("reader", "key"),
    [("length", len), ("ends", lambda text: (text[:1], text[-1:]))],
)
def test_majority_labels_are_those_of_the_training_strings(reader: str, key: Any) -> None:
    problem = problem_of(task="dyck", test_max_length=14)
    trained, tested = trained_and_tested(problem)
    balance: Counter[Any] = Counter()
    for text, label in trained:
        balance[key(text)] += 1 if label else -1
    most = 2 * sum(label for _, label in trained) >= len(trained)
    wanted = [(balance[key(text)] > 0 if balance[key(text)] else most) for text, _ in tested]
    labels = [label for _, label in tested]
    assert right(problem, reader).tolist() == [
        x == label for x, label in zip(wanted, labels, strict=True)
    ]


def test_the_reader_of_pairs_sees_pairs_alone() -> None:
    problem = problem_of(task="dyck", negatives="near", test_max_length=8)
    _, tested = trained_and_tested(problem)
    said: dict[Any, set[bool]] = {}
    for (text, label), is_right in zip(tested, right(problem, "bigrams").tolist(), strict=True):
        seen = (len(text), frozenset(pairwise(f"^{text}$")))
        said.setdefault(seen, set()).add(label == is_right)
    assert len(said) < len(tested)
    assert all(len(answers) == 1 for answers in said.values())


def test_long_strings_are_read_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problem_of(task="dyck", negatives="near")
    whole = {name: right(problem, name).tolist() for name in ("bigrams", "trigrams")}
    monkeypatch.setattr(shortcuts, "BLOCK_TOKENS", 100)
    shortcuts._read.cache_clear()
    assert {name: right(problem, name).tolist() for name in whole} == whole


def test_copies_are_the_identity_and_reversals_are_where_they_are_palindromes() -> None:
    small = {"num_tokens": 2, "test_max_length": 8, "train_max_length": 6}
    copy = problem_of(task="copy", **small)
    assert right(copy, "identity").all()
    assert right(copy, "aligned").all()
    reverse = problem_of(task="reverse", **small)
    drawn = distinct_test_strings(reverse.test)
    rows = texts(reverse.task.alphabet, drawn.strings.take(np.argsort(drawn.numbers)))
    assert right(reverse, "identity").tolist() == [text == text[::-1] for text in rows]
    assert 0 < right(reverse, "identity").mean() < 0.5
    assert right(reverse, "aligned").mean() < 0.6


def test_the_most_frequent_output_is_that_of_training() -> None:
    problem = problem_of(task="modular_sum", train_max_length=4, test_max_length=6)
    trained = stream(problem.train).epoch(0)
    drawn = distinct_test_strings(problem.test)
    most = Counter(map(bytes, trained.targets)).most_common(1)[0][0]
    targets = drawn.targets[np.argsort(drawn.numbers)]
    width = trained.targets.shape[1]
    assert targets.shape[1] == width
    assert right(problem, "most_frequent").tolist() == [bytes(x) == most for x in targets]


def test_a_reader_of_a_place_and_its_neighbors_rewrites_what_stands_beside_it() -> None:
    fields = {"alphabet": "abc", "pattern": "ab", "replacement": "ac"}
    assert right(problem_of(task="rewrite", **fields), "aligned").mean() > 0.95


def test_training_strings_of_one_label_are_a_reason() -> None:
    # Three letters are required.
    one = resolve(configuration({"train_sampler": "fixed_length", "sequence_length": 2, **WANTED}))
    for reader in ("counts", "counts_trees"):
        own = readers_of(one)[reader]
        assert own.right is None
        assert own.obstacle == "the training strings all have one label"
    assert readers_of(one)["length"].right is not None


def test_strings_that_are_counted_have_no_neighbors() -> None:
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


@pytest.mark.parametrize("fields", [{"task": "dyck"}, {"task": "reverse"}])
def test_readers_are_the_same_each_time(fields: dict[str, Any]) -> None:
    problem = problem_of(**fields)
    once = read_test(problem)
    shortcuts._read.cache_clear()
    again = read_test(problem)
    assert once is not again
    assert [own.reader for own in again] == [*problem.kind.shortcut_readers]
    for one, other in zip(once, again, strict=True):
        assert one.reader == other.reader
        assert right_of(one).tolist() == right_of(other).tolist()
        assert len(right_of(one)) == len(distinct_test_strings(problem.test).texts)


ON_HOW_MANY_THREADS = """
from threadpoolctl import threadpool_info
from seqcls import shortcuts
from seqcls.problem import configuration, resolve

fields = {"train_size": 300, "max_num_epochs": 1, "test_size": 300, "train_max_length": 8}
problem = resolve(configuration({"task": "dyck", **fields, "test_max_length": 9}))
for name in problem.kind.shortcut_readers:
    def read(reading, read=shortcuts._READ[name]):
        found = read(reading)
        print(*(pool["num_threads"] for pool in threadpool_info()))
        return found
    shortcuts._READ[name] = read
shortcuts.read_test(problem)
"""


def test_readers_are_fitted_on_one_thread_also_the_first_time() -> None:
    many = {**os.environ, "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
    command = [sys.executable, "-c", ON_HOW_MANY_THREADS]
    run = subprocess.run(command, capture_output=True, text=True, env=many, cwd=ROOT, timeout=200)
    assert run.returncode == 0, run.stderr
    assert set(run.stdout.split()) == {"1"}


def test_every_reader_of_every_kind_has_words_and_is_fitted() -> None:
    named = {name for kind in KINDS.values() for name in kind.shortcut_readers}
    assert named == set(READERS) == set(shortcuts._READ)


def test_readers_are_known_by_the_strings_that_they_are_fitted_on() -> None:
    own = training_key(problem_of())
    for same in (LSTM, {"test_size": 10}, {"learning_rate": 0.1}, {"test_negatives": "near"}):
        assert training_key(problem_of(**same)) == own
    for other in ({"train_seed": 7}, {"negatives": "near"}, {"train_max_length": 9}):
        assert training_key(problem_of(**other)) != own
    # Of 1,000 strings an epoch the first 20,000 take twenty epochs.
    assert training_key(problem_of(max_num_epochs=2)) != own
    assert training_key(problem_of(max_num_epochs=20)) == training_key(
        problem_of(max_num_epochs=50)
    )


def agreement(
    labels: list[int], model: list[int], reader: list[int], times: list[int] | None = None
) -> Agreement:
    errs = np.array(model, dtype=bool), np.array(reader, dtype=bool)
    counted = np.array(times or [1] * len(labels))
    return agreement_of(np.array(labels, dtype=bool), *errs, counted)


def test_the_agreement_on_strings_of_one_label_is_cohens() -> None:
    rng = np.random.default_rng(0)
    for share in (0.1, 0.5, 0.9):
        model = rng.random(200) < 0.3
        reader = np.where(rng.random(200) < share, model, rng.random(200) < 0.4)
        found = agreement([1] * 200, [*model], [*reader])
        assert found.kappa == pytest.approx(cohen_kappa_score(model, reader))
        assert found.share == pytest.approx((model == reader).mean())
        assert found.low <= found.kappa <= found.high


def test_the_agreement_on_strings_of_two_labels_is_beyond_that_within_each() -> None:
    # Right on all 4 positive strings, wrong on all 4 negative ones: both do what labels explain.
    labels, errs = [1] * 4 + [0] * 4, [0] * 4 + [1] * 4
    assert agreement(labels, errs, errs).share == 1
    assert agreement(labels, errs, errs).kappa == 0
    assert cohen_kappa_score(errs, errs) == 1
    # Positive: both wrong on one half, the same. Negative: as chance would have it.
    model = [1, 1, 0, 0, 1, 1, 0, 0]
    reader = [1, 1, 0, 0, 1, 0, 1, 0]
    found = agreement(labels, model, reader)
    # Six of eight agree, and four would by chance.
    assert (found.share, found.kappa) == (6 / 8, (6 - 4) / (8 - 4))


def test_strings_are_counted_as_often_as_they_are_tested() -> None:
    labels, model, reader = [1, 1, 1, 0, 0], [1, 1, 0, 0, 1], [1, 0, 0, 0, 1]
    times = [3, 1, 4, 6, 2]
    every = (np.repeat(x, times).tolist() for x in (labels, model, reader))
    assert agreement(labels, model, reader, times) == agreement(*every)


def test_who_never_errs_agrees_beyond_nothing() -> None:
    found = agreement([1, 0, 1, 0], [0] * 4, [0] * 4)
    assert (found.share, found.kappa, found.low, found.high) == (1, 0, 0, 0)


def drawn_automaton(rng: np.random.Generator) -> Automaton:
    states = int(rng.integers(1, 4))
    table = rng.integers(states, size=(states, 2))
    return Automaton(table, rng.random(states) < 0.5)


EVERY = [letters for length in range(11) for letters in product(range(2), repeat=length)]
STRINGS = TokenStrings.of_lists(2, [[*letters] for letters in EVERY])
PAIRS = np.zeros((len(EVERY), 3, 3), dtype=bool)
"""The pairs of neighbors of every string of up to ten letters; the third is its end."""
for _row, _letters in enumerate(EVERY):
    for _pair in pairwise((2, *_letters, 2)):
        PAIRS[_row][_pair] = True


def test_neighbors_are_those_of_all_accepted_strings() -> None:
    rng = np.random.default_rng(0)
    for _ in range(100):
        automaton = drawn_automaton(rng)
        accepted = automaton.accepting[automaton.states(STRINGS)]
        assert (automaton.neighbors() == PAIRS[accepted].any(axis=0)).all()


PATTERNS = [
    *("(ab)*", "a*", "a*b*", "a(a|b)*", "(a|b)*", "(a|b)*a", "a?b?", "ab|ba", "(aa)*", "a(ab)*b"),
    *("(b|ab|aab)*(a|aa)?", "(a|b)*aa(a|b)*", "((a|b)(a|b))*", "b*ab*", "(a|bb)*", "(ba*)*", "aba"),
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_language_is_local_if_all_strings_of_its_pairs_are_its_own(pattern: str) -> None:
    task = Regular("ab", pattern)
    automaton = language_automaton(task)
    assert automaton is not None
    positive = task.labels(STRINGS)
    occur = PAIRS[positive].any(axis=0)
    of_such_pairs = ~(PAIRS & ~occur).any(axis=(1, 2))
    assert is_local(task) == (positive == of_such_pairs).all()
    assert (positive <= of_such_pairs).all()


def test_what_decides_a_language_is_said_of_those_alone_that_it_decides() -> None:
    pairs = "pairs of neighboring tokens"
    for fields, by in (
        ({"task": "repeat_01"}, pairs),
        ({"task": "first"}, pairs),
        ({**REGULAR, "pattern": "(aab)*"}, "runs of three tokens"),
        ({"task": "majority"}, "letter counts"),
        ({"task": "even_pairs"}, None),
        ({"task": "dyck"}, None),
        ({"task": "modular_arithmetic"}, None),
        ({"task": "copy"}, None),
    ):
        assert decided_by(problem_of(**fields)) == by, fields
        assert by is None or set(OF_CLASS[by]) <= set(READERS)
