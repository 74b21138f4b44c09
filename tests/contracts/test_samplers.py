"""Samplers: their labels, lengths, streams and epochs; negatives by every way to draw them."""

import hashlib
from dataclasses import replace
from itertools import combinations, islice, pairwise, product
from typing import Any

import numpy as np
import pytest

from seqcls.config import RunConfig
from seqcls.errors import ConfigError
from seqcls.kinds import Examples, examples_of
from seqcls.problem import configuration, resolve
from seqcls.results import DRAWN
from seqcls.sampling import SAMPLERS, Sampler, balanced, near
from seqcls.sampling.balanced import BalancedStrings
from seqcls.sampling.edits import edit
from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks.base import LanguageTask, texts
from tests.tasks import LANGUAGES, SMALL, positives, strings_of


def sampler(part: str = "train", **fields: Any) -> Sampler:
    return resolve(RunConfig.from_mapping({"task": "parity", **fields})).sampler(part)


def epochs(drawn: Sampler, number: int = 1) -> list[Examples]:
    return list(islice(drawn.epochs(), number))


def spelled(drawn: Examples) -> list[str]:
    return texts("0123456789+="[: drawn.strings.num_letters], drawn.strings)


@pytest.mark.parametrize("name", LANGUAGES)
def test_balanced_strings_of_every_language_have_their_labels(name: str) -> None:
    """A third of `near` negatives are uniform and a third edited, as all of `mixed` are."""
    fields: dict[str, Any] = {"task": name, **SMALL.get(name, {}), "negatives": "near"}
    fields |= {"train_min_length": 3, "train_max_length": 30, "train_size": 1_000}
    drawn = sampler(train_sampler="balanced_strings", **fields)
    (epoch,) = epochs(drawn)
    assert (examples_of(drawn.task, epoch.strings).labels == epoch.labels).all()
    assert abs(epoch.labels.mean() - 0.5) < 0.1
    assert epoch.strings.lengths.min() >= 3
    assert epoch.strings.lengths.max() <= 30


@pytest.mark.parametrize("name", sorted({*SAMPLERS} - {"dataset_rows"}))
def test_sampler_keeps_its_contract(name: str) -> None:
    """Its strings have their labels or targets, one seed gives one stream, and another another."""
    task = {"uniform_inputs": "copy", "balanced_strings": "parity"}.get(name, "contains_all")
    fields: dict[str, Any] = {"train_size": 150, "sequence_length": 5, "task": task}
    fields |= {"negatives": "near"} if name == "balanced_strings" else {}
    drawn, again, other = (
        resolve(configuration({**fields, "train_sampler": name, **more})).train
        for more in ({}, {"hidden_size": 4}, {"train_seed": 7})
    )
    made = [epochs(x, 2) for x in (drawn, again, other)]
    assert [len(epoch) for epoch in made[0]] == [drawn.epoch_size] * 2
    for epoch in made[0]:
        assert {*epoch.strings.lengths.tolist()} <= {*drawn.lengths}
        expected = examples_of(drawn.task, epoch.strings)
        assert (expected.targets == epoch.targets).all()
    first, same, unlike = ([x.strings.counts.tolist() for x in own] for own in made)
    assert first == same
    assert [str(x.drawn) for x in made[0]] == [str(x.drawn) for x in made[1]]
    assert first[0] != first[1]
    assert name == "fixed_length" or first != unlike


def test_positive_lengths_are_uniform() -> None:
    (epoch,) = epochs(sampler(task="repeat_01", train_max_length=9, train_size=5_000))
    lengths = np.bincount(epoch.strings.lengths[epoch.labels], minlength=10)
    assert (lengths[1::2] == 0).all()
    expected = lengths.sum() / 5
    assert (np.abs(lengths[0::2] - expected) < 6 * expected**0.5).all()


RARELY_NEGATIVE = {"task": "regular", "alphabet": "ab", "pattern": "(a|b)*a(a|b)*"}


def negative_lengths(**fields: Any) -> np.ndarray:
    """Number of negative strings of an epoch by length, from 0 on."""
    drawn = sampler(**fields)
    (epoch,) = epochs(drawn)
    assert (examples_of(drawn.task, epoch.strings).labels == epoch.labels).all()
    return np.bincount(epoch.strings.lengths[~epoch.labels], minlength=drawn.lengths[-1] + 1)


def test_redrawn_negatives_are_mostly_short() -> None:
    fields: dict[str, Any] = {**RARELY_NEGATIVE, "negatives": "uniform", "train_max_length": 40}
    lengths = negative_lengths(**fields, train_size=3_000)
    assert abs(lengths[0] / lengths.sum() - 0.5) < 0.07
    assert lengths[12:].sum() < 5


@pytest.mark.parametrize("negatives", ["uniform", "edits", "near"])
def test_uniform_negative_lengths_are_uniform(negatives: str) -> None:
    fields: dict[str, Any] = {"negatives": negatives, "negative_lengths": "uniform"}
    lengths = negative_lengths(**RARELY_NEGATIVE, **fields, train_max_length=19, train_size=2_000)
    expected = lengths.sum() / 20
    assert (np.abs(lengths - expected) < 5 * expected**0.5).all()
    cases: list[tuple[dict[str, Any], set[int]]] = [
        ({"task": "regular", "alphabet": "a", "pattern": "(aa)*"}, {1, 3, 5, 7, 9}),
        # No length but 3 has a positive string, so most lengths are out of the reach of edits.
        ({"task": "regular", "alphabet": "ab", "pattern": "aba"}, set(range(10))),
        ({"task": "counting", "alphabet": "ab", "formula": "a + b <= 4 or a > 2"}, {5, 6, 7, 8, 9}),
        ({"task": "even_pairs"}, set(range(2, 10))),
    ]
    for language, have_one in cases:
        lengths = negative_lengths(**language, **fields, train_max_length=9, train_size=1_000)
        assert set(np.flatnonzero(lengths).tolist()) == have_one, language
        assert lengths[sorted(have_one)].min() > 250 / len(have_one), language


def test_edited_negatives_are_near_a_positive_string() -> None:
    fields: dict[str, Any] = {"task": "repeat_01", "train_min_length": 19, "train_max_length": 20}
    drawn = sampler(**fields, negatives="edits", negative_lengths="uniform", train_size=2_000)
    (epoch,) = epochs(drawn)
    odd = epoch.take(np.flatnonzero(~epoch.labels & (epoch.strings.lengths == 19)))
    assert 400 < len(odd) < 600
    # By one edit (01)^9 and (01)^10 become the same strings of 19 tokens; else it takes three.
    once = {("01" * 10)[:position] + ("01" * 10)[position + 1 :] for position in range(20)}
    assert np.mean([text in once for text in spelled(odd)]) > 0.5


def test_seed_gives_each_split_one_stream() -> None:
    names = ("train", "validation", "test")
    same: dict[str, Any] = {"test_seed": 0, **{f"{part}_size": 100 for part in names}}
    same |= {f"{part}_max_length": 12 for part in names}
    parts = [spelled(epochs(sampler(part, **same))[0]) for part in names]
    assert len({*map(tuple, parts)}) == 3
    once, again = (spelled(epochs(sampler(**same))[0]) for _ in range(2))
    assert once == again == parts[0]


PINNED = {
    "parity": ("5ca43c09b80da308", "986d56a877a2aef6"),
    "dyck": ("52f554305dd997cb", "bd1129bd6209c420"),
    "regular": ("4c68dcf45e6b32c8", "0ec370be1d26b74e"),
    "counting": ("1fb273162c902852", "e6751bb8714303a1"),
    "modular_arithmetic": ("cfcacbacdd23de84", "a595c18c7153cf8c"),
    "marked_reversal": ("6b01d0b34aff5910", "14cd055b44761c56"),
}
"""Digests of strings by the first three ways to draw negatives, of lengths redrawn and uniform."""


@pytest.mark.parametrize("task", PINNED)
def test_drawn_strings_have_pinned_digests(task: str) -> None:
    for lengths, digest in zip(("redrawn", "uniform"), PINNED[task], strict=True):
        fields: dict[str, Any] = {"task": task, **SMALL.get(task, {}), "negative_lengths": lengths}
        whole = hashlib.sha256()
        for negatives in ("uniform", "edits", "mixed"):
            drawn = sampler(**fields, negatives=negatives, train_max_length=12, train_size=200)
            (epoch,) = epochs(drawn)
            whole.update(epoch.strings.letters.tobytes() + epoch.labels.tobytes())
        assert whole.hexdigest()[:16] == digest, lengths


def test_fixed_training_set_is_shuffled() -> None:
    first, second, third = (
        spelled(x) for x in epochs(sampler(train_set="fixed", train_size=300), 3)
    )
    assert first != second != third
    assert sorted(first) == sorted(second) == sorted(third)


@pytest.mark.parametrize("train_set", ["fresh", "fixed"])
def test_disjoint_test_strings_occur_in_no_epoch_of_training(train_set: str) -> None:
    sizes = {"train_size": 400, "test_size": 300, "max_num_epochs": 3, "test_max_length": 14}
    sizes |= {"train_max_length": 8, "validation_max_length": 8}
    cases: list[dict[str, Any]] = [{"task": "parity"}, {"task": "copy", "num_tokens": 2}]
    cases += [{"task": "addition", "base": 10, "digit_order": "least_first"}]
    for task in cases:
        fields = {**task, **sizes, "train_set": train_set}
        plain, disjoint = (
            resolve(configuration({**fields, **x})) for x in ({}, {"disjoint": True})
        )
        trained = {text for epoch in epochs(plain.train, 3) for text in spelled(epoch)}
        (anyhow,), (tested,) = epochs(plain.test), epochs(disjoint.test)
        assert set(spelled(anyhow)) & trained
        assert not set(spelled(tested)) & trained
        assert len(tested) == 300
        assert (tested.targets == disjoint.kind.targets(disjoint.task, tested.strings)).all()
        assert disjoint.writes or (tested.labels == anyhow.labels).all()
        # Runs without disjoint tests keep their key.
        assert "disjoint" not in plain.config.changed
        assert plain.config.key != disjoint.config.key
    few = {f"{part}_max_length": 3 for part in ("train", "validation", "test")}
    for name in ("parity", "copy"):
        fields = {"task": name, **few, "train_size": 200, "test_size": 50, "disjoint": True}
        refused = r"\A[^\n]*disjoint=True[^\n]*raise test_max_length[^\n]*\Z"
        with pytest.raises(ConfigError, match=refused):
            next(resolve(configuration(fields)).test.epochs())


def test_edits_are_equally_likely() -> None:
    strings = TokenStrings.of_letters(3, np.zeros((6_000, 10), dtype=np.uint8))
    once = edit(np.random.default_rng(1), strings, np.ones(6_000, dtype=np.int64))
    sizes = np.bincount(once.lengths, minlength=12)
    assert sizes[[9, 10, 11]].sum() == 6_000
    assert (np.abs(sizes[[9, 10, 11]] - 2_000) < 200).all()
    replaced = once.take(np.flatnonzero(once.lengths == 10))
    # A replacement puts another letter there.
    assert ((replaced.letters[:, :10] != 0).sum(axis=1) == 1).all()
    assert (replaced.letters[:, :10] < 3).all()
    # The empty string grows by insertions alone, and nothing is near to it, or to none.
    empty = TokenStrings.of_lists(2, [[]] * 300)
    once = edit(np.random.default_rng(1), empty, np.ones(300, dtype=np.int64))
    assert set(once.lengths.tolist()) == {0, 1}
    for strings in (empty, empty.take(np.arange(0))):
        found, changed = near.change(
            np.random.default_rng(0), near_sampler(task="dyck").task, strings
        )
        assert len(found) == len(changed) == 0


POSITIVE, NEAR = 0, len(DRAWN) - 2


def ends_included(text: str) -> set[tuple[str, str]]:
    """The pairs of neighbors of a string; `^` begins it and `$` ends it."""
    return set(pairwise(f"^{text}$"))


def are_positive(task: LanguageTask, rows: list[str]) -> list[bool]:
    labels: list[bool] = task.labels(strings_of(task, rows)).tolist()
    return labels


def occurring(task: LanguageTask, longest: int) -> set[tuple[str, str]]:
    """The pairs of neighbors of all positive strings of up to so many tokens."""
    return set().union(*map(ends_included, positives(task, *range(longest + 1))))


def near_by_hand(task: LanguageTask, length: int, longest: int) -> set[str]:
    """All near negatives of a length: an exchange replaces two tokens, too."""
    allowed, found = occurring(task, longest), set()
    for text in positives(task, length):
        for positions in combinations(range(length), min(2, length)):
            for letters in product(task.alphabet, repeat=len(positions)):
                changed = list(text)
                for position, letter in zip(positions, letters, strict=True):
                    changed[position] = letter
                found.add("".join(changed))
    rows = sorted(row for row in found if ends_included(row) <= allowed)
    return {row for row, label in zip(rows, are_positive(task, rows), strict=True) if not label}


def strings_drawn(task: LanguageTask, epoch: Examples, way: int) -> list[str]:
    assert epoch.drawn is not None
    return texts(task.alphabet, epoch.strings.take(np.flatnonzero(epoch.drawn == way)))


def near_sampler(**fields: Any) -> BalancedStrings:
    small = {"task": "parity", "train_max_length": 8, "train_size": 4_000, "negatives": "near"}
    drawn = sampler(**{**small, **fields})
    assert isinstance(drawn, BalancedStrings)
    return drawn


@pytest.mark.parametrize(
    "fields",
    [
        *({"task": x} for x in ("parity", "even_pairs", "dyck", "unmarked_reversal")),
        {"task": "majority", "negative_lengths": "uniform"},
        {"task": "counting", "alphabet": "ab", "formula": "a == 2 * b"},
        {"task": "regular", "alphabet": "abc", "pattern": "a(b|c)*a(b|c)*", "train_max_length": 5},
        {"task": "dyck", "train_size": 2_000, "block": 64},
    ],
)
def test_near_negatives_equal_enumeration(
    fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(balanced, "BLOCK_TOKENS", fields.get("block", balanced.BLOCK_TOKENS))
    drawn = near_sampler(**{name: value for name, value in fields.items() if name != "block"})
    assert drawn.near_obstacle is None
    (epoch,) = epochs(drawn)
    found = strings_drawn(drawn.task, epoch, NEAR)
    longest = 8 if len(drawn.task.alphabet) > 2 else 10
    expected = [near_by_hand(drawn.task, x, longest) for x in range(drawn.max_length + 1)]
    assert set(found) <= set().union(*expected)
    # Of few strings every one is drawn; there may be none of some lengths.
    for length in range(5):
        assert {text for text in found if len(text) == length} == expected[length]
    assert (epoch.labels == (epoch.drawn == POSITIVE)).all()
    assert (
        are_positive(drawn.task, texts(drawn.task.alphabet, epoch.strings)) == epoch.labels.tolist()
    )


def test_ways_of_drawing_negatives_have_equal_shares() -> None:
    for negatives, expected in (
        ("uniform", [1 / 2, 1 / 2, 0, 0, 0]),
        ("edits", [1 / 2, 0, 1 / 2, 0, 0]),
        ("mixed", [1 / 2, 1 / 4, 1 / 4, 0, 0]),
        ("near", [1 / 2, 1 / 6, 1 / 6, 1 / 6, 0]),
    ):
        drawn = near_sampler(task="modular_arithmetic", train_max_length=20, negatives=negatives)
        (epoch,) = epochs(drawn)
        assert epoch.drawn is not None
        shares = np.bincount(epoch.drawn, minlength=len(DRAWN)) / len(epoch)
        assert shares == pytest.approx(expected, abs=0.03), negatives


def test_near_negatives_of_disjoint_tests_are_near_and_new() -> None:
    fields: dict[str, Any] = {"train_size": 100, "max_num_epochs": 2, "disjoint": True}
    fields |= {"test_size": 300, "test_max_length": 9}
    trained = {text for epoch in epochs(near_sampler(**fields), 2) for text in spelled(epoch)}
    tested = sampler("test", negatives="near", train_max_length=8, **fields)
    (epoch,) = epochs(tested)
    found = strings_drawn(tested.task, epoch, NEAR)  # type: ignore[arg-type]
    by_hand = set().union(*(near_by_hand(tested.task, x, 10) for x in range(10)))  # type: ignore[arg-type]
    assert len(found) > 20
    assert set(found) <= by_hand
    assert not set(spelled(epoch)) & trained
    assert (epoch.labels == (epoch.drawn == POSITIVE)).all()


def test_language_without_near_negatives_is_drawn_as_mixed() -> None:
    cases: list[dict[str, Any]] = [
        {"task": "first"},
        {"task": "repeat_01", "negative_lengths": "uniform"},
        {"task": "regular", "alphabet": "a", "pattern": "(aa)*", "negative_lengths": "uniform"},
        {"task": "regular", "alphabet": "ab", "pattern": "a?"},
    ]
    for fields in cases:
        drawn = near_sampler(**fields, train_size=300)
        assert str(drawn.near_obstacle).endswith("negatives are drawn as mixed")
        (own,), (other,) = epochs(drawn), epochs(replace(drawn, negatives="mixed"))
        assert np.array_equal(own.strings.letters, other.strings.letters), fields
        assert own.drawn is not None
        assert NEAR not in own.drawn


LONGER: dict[str, Any] = {"train_max_length": 24, "train_size": 2_000}
NO_ODD: list[dict[str, Any]] = [
    {"task": "dyck", "bracket_types": 2},
    {"task": "marked_copy"},
    {"task": "marked_reversal"},
    {"task": "modular_arithmetic"},
    {"task": "regular", "alphabet": "ab", "pattern": "(ab|ba)*"},
]
"""Languages whose positive strings all have even lengths, or all odd ones."""


@pytest.mark.parametrize("fields", NO_ODD)
def test_near_negatives_of_nearest_lengths_keep_their_share(fields: dict[str, Any]) -> None:
    shares = {}
    for lengths in ("uniform", "nearest"):
        drawn = near_sampler(**fields, **LONGER, negative_lengths=lengths)
        (epoch,) = epochs(drawn)
        assert not drawn.task.labels(epoch.strings.take(np.flatnonzero(~epoch.labels))).any()
        near_ones = epoch.strings.lengths[epoch.drawn == NEAR]
        shares[lengths] = len(near_ones) / (~epoch.labels).sum()
        assert {drawn.task.has(length, True) for length in set(near_ones.tolist())} == {True}
    assert 0.1 < shares["uniform"] < 0.22
    assert 0.28 < shares["nearest"] < 0.4


@pytest.mark.parametrize("lengths", ["redrawn", "uniform"])
def test_near_negatives_take_many_tokens(lengths: str) -> None:
    many = {"task": "word_problem", "group": "S5", "train_size": 300}
    drawn = near_sampler(**many, negative_lengths=lengths)
    (epoch,) = epochs(drawn)
    near_ones = epoch.take(np.flatnonzero(epoch.drawn == NEAR))
    assert len(near_ones) > 30
    assert not drawn.task.labels(near_ones.strings).any()
    assert len(np.unique(near_ones.strings.letters)) > 50
