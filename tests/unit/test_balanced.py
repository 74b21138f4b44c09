"""`balanced_strings`: half positive, of uniform lengths, never mislabelled, reproducible."""

from itertools import islice
from typing import Any

import numpy as np
import pytest

from seqcls.config import RunConfig
from seqcls.errors import ConfigError
from seqcls.kinds import Examples, examples_of
from seqcls.problem import configuration, resolve
from seqcls.sampling import Sampler
from seqcls.sampling.balanced import edit
from seqcls.sampling.distinct import fingerprints
from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks.base import texts
from tests.tasks import LANGUAGES
from tests.unit.test_languages import SMALL


def sampler(part: str = "train", **fields: Any) -> Sampler:
    return resolve(RunConfig.from_mapping({"task": "parity", **fields})).sampler(part)


def epochs(drawn: Sampler, number: int = 1) -> list[Examples]:
    return list(islice(drawn.epochs(), number))


def spelled(drawn: Examples) -> list[str]:
    return texts("0123456789+="[: drawn.strings.num_letters], drawn.strings)


@pytest.mark.parametrize("negatives", ["uniform", "edits", "mixed"])
@pytest.mark.parametrize("name", LANGUAGES)
def test_strings_of_every_language_are_balanced_and_rightly_labelled(
    name: str, negatives: str
) -> None:
    fields: dict[str, Any] = {
        "task": name,
        **SMALL.get(name, {}),
        "train_sampler": "balanced_strings",
    }
    drawn = sampler(
        **fields, negatives=negatives, train_min_length=3, train_max_length=30, train_size=1_000
    )
    (epoch,) = epochs(drawn)
    assert (examples_of(drawn.task, epoch.strings).labels == epoch.labels).all()
    assert abs(epoch.labels.mean() - 0.5) < 0.1
    assert epoch.strings.lengths.min() >= 3
    assert epoch.strings.lengths.max() <= 30


def test_positive_lengths_are_uniform_among_those_that_have_a_positive_string() -> None:
    (epoch,) = epochs(sampler(task="repeat_01", train_max_length=9, train_size=20_000))
    lengths = np.bincount(epoch.strings.lengths[epoch.labels], minlength=10)
    assert (lengths[1::2] == 0).all()
    expected = lengths.sum() / 5
    assert (np.abs(lengths[0::2] - expected) < 6 * expected**0.5).all()


def test_negatives_by_edits_are_near_a_positive_string() -> None:
    fields: dict[str, Any] = {"task": "repeat_01", "train_min_length": 20, "train_max_length": 20}
    near, far = (
        epochs(sampler(**fields, negatives=negatives, train_size=400))[0]
        for negatives in ("edits", "uniform")
    )
    distances = [
        np.mean(
            [
                sum(x != y for x, y in zip(text, "01" * 10, strict=True))
                for text, label in zip(spelled(drawn), drawn.labels, strict=True)
                if not label
            ]
        )
        for drawn in (near, far)
    ]
    assert distances[0] < 0.8 * distances[1]


RARELY_NEGATIVE: dict[str, Any] = {
    "task": "regular",
    "alphabet": "ab",
    "pattern": "(a|b)*a(a|b)*",
}


def negative_lengths(**fields: Any) -> np.ndarray:
    """How many negative strings of an epoch have each length from 0 on."""
    drawn = sampler(**fields)
    (epoch,) = epochs(drawn)
    assert (examples_of(drawn.task, epoch.strings).labels == epoch.labels).all()
    return np.bincount(epoch.strings.lengths[~epoch.labels], minlength=drawn.lengths[-1] + 1)


def test_negatives_that_are_drawn_again_length_and_all_are_mostly_short() -> None:
    fields: dict[str, Any] = {**RARELY_NEGATIVE, "negatives": "uniform", "train_max_length": 40}
    lengths = negative_lengths(**fields, train_size=8_000)
    assert abs(lengths[0] / lengths.sum() - 0.5) < 0.05
    assert lengths[12:].sum() < 10


@pytest.mark.parametrize("negatives", ["uniform", "edits", "mixed"])
@pytest.mark.parametrize("part", ["train", "validation", "test"])
def test_lengths_of_negatives_are_uniform_among_those_that_have_one(
    part: str, negatives: str
) -> None:
    drawn = sampler(
        part,
        **{**RARELY_NEGATIVE, f"{part}_size": 8_000, f"{part}_max_length": 19},
        negatives=negatives,
        negative_lengths="uniform",
    )
    (epoch,) = epochs(drawn)
    lengths = np.bincount(epoch.strings.lengths[~epoch.labels], minlength=20)
    expected = lengths.sum() / 20
    assert (np.abs(lengths - expected) < 5 * expected**0.5).all()
    negative = epoch.take(np.flatnonzero(~epoch.labels))
    assert all(set(text) <= {"1"} for text in spelled(negative))


@pytest.mark.parametrize("negatives", ["uniform", "edits", "mixed"])
@pytest.mark.parametrize(
    ("fields", "have_one"),
    [
        ({"task": "regular", "alphabet": "a", "pattern": "(aa)*"}, {1, 3, 5, 7, 9}),
        # No length but 3 has a positive string, so most lengths are out of the reach of edits.
        ({"task": "regular", "alphabet": "ab", "pattern": "aba"}, set(range(10))),
        ({"task": "counting", "alphabet": "ab", "formula": "a + b <= 4 or a > 2"}, {5, 6, 7, 8, 9}),
        ({"task": "even_pairs"}, set(range(2, 10))),
    ],
)
def test_no_negative_is_sought_at_a_length_that_has_none(
    negatives: str, fields: dict[str, Any], have_one: set[int]
) -> None:
    lengths = negative_lengths(
        **fields,
        negatives=negatives,
        negative_lengths="uniform",
        train_max_length=9,
        train_size=1_000,
    )
    assert set(np.flatnonzero(lengths).tolist()) == have_one
    assert lengths[sorted(have_one)].min() > 250 / len(have_one)


def test_negatives_by_edits_of_kept_lengths_are_near_a_positive_string() -> None:
    fields: dict[str, Any] = {"task": "repeat_01", "train_min_length": 19, "train_max_length": 20}
    drawn = sampler(**fields, negatives="edits", negative_lengths="uniform", train_size=2_000)
    (epoch,) = epochs(drawn)
    odd = epoch.take(np.flatnonzero(~epoch.labels & (epoch.strings.lengths == 19)))
    assert 400 < len(odd) < 600
    # By one edit (01)^9 and (01)^10 become the same strings of 19 tokens; else it takes three.
    once = {("01" * 10)[:place] + ("01" * 10)[place + 1 :] for place in range(20)}
    assert np.mean([text in once for text in spelled(odd)]) > 0.5


def test_one_seed_gives_one_stream_and_the_parts_have_streams_of_their_own() -> None:
    once, again = epochs(sampler(train_size=300), 2), epochs(sampler(train_size=300), 2)
    assert [spelled(epoch) for epoch in once] == [spelled(epoch) for epoch in again]
    assert spelled(once[0]) != spelled(once[1])
    same: dict[str, Any] = {
        "train_size": 100,
        "validation_size": 100,
        "test_size": 100,
        "test_seed": 0,
    }
    same |= {f"{part}_max_length": 12 for part in ("train", "validation", "test")}
    parts = [
        tuple(spelled(epochs(sampler(part, **same))[0])) for part in ("train", "validation", "test")
    ]
    assert len(set(parts)) == 3
    assert spelled(epochs(sampler(train_seed=1, train_size=300))[0]) != spelled(once[0])


def test_a_stream_is_what_it_was_when_it_was_first_written() -> None:
    (epoch,) = epochs(sampler(task="dyck", train_max_length=6, train_size=8))
    assert texts("()", epoch.strings) == ["", "()(())", "()()", "((", "))()", "(", "()((()", "))"]


def test_a_fixed_training_set_is_shuffled() -> None:
    first, second, third = (
        spelled(x) for x in epochs(sampler(train_set="fixed", train_size=300), 3)
    )
    assert first != second != third
    assert sorted(first) == sorted(second) == sorted(third)


def test_disjoint_test_strings_occur_in_no_epoch_of_training() -> None:
    fields: dict[str, Any] = {
        "train_max_length": 12,
        "train_size": 500,
        "max_num_epochs": 3,
        "test_max_length": 14,
        "test_size": 500,
    }
    trained = {text for epoch in epochs(sampler(**fields), 3) for text in spelled(epoch)}
    (plain,) = epochs(sampler("test", **fields))
    (disjoint,) = epochs(sampler("test", **fields, disjoint=True))
    assert set(spelled(plain)) & trained
    assert not set(spelled(disjoint)) & trained
    assert (disjoint.labels == plain.labels).all()


@pytest.mark.parametrize(
    "task",
    [
        {"task": "addition", "base": 10, "digit_order": "least_first"},
        {"task": "copy", "num_tokens": 2},
        {"task": "modular_sum"},
    ],
)
@pytest.mark.parametrize("train_set", ["fresh", "fixed"])
def test_disjoint_inputs_of_transductions_occur_in_no_epoch_of_training(
    task: dict[str, Any], train_set: str
) -> None:
    lengths = {"train_max_length": 8, "validation_max_length": 8, "test_max_length": 14}
    sizes = {"train_size": 400, "test_size": 300, "max_num_epochs": 3, "train_set": train_set}
    plain = resolve(configuration({**task, **lengths, **sizes}))
    disjoint = resolve(configuration({**task, **lengths, **sizes, "disjoint": True}))
    trained = {text for epoch in epochs(plain.train, 3) for text in spelled(epoch)}
    (tested,) = epochs(disjoint.test)
    assert {text for epoch in epochs(plain.test) for text in spelled(epoch)} & trained
    assert not set(spelled(tested)) & trained
    assert len(tested) == 300
    targets = disjoint.kind.targets(disjoint.task, tested.strings)
    assert (tested.targets == targets).all()
    # Runs whose tests are not kept apart are what they were.
    assert "disjoint" not in plain.config.changed
    assert plain.config.key != disjoint.config.key


@pytest.mark.parametrize("task", ["parity", "copy"])
def test_tests_that_cannot_be_disjoint_end_in_one_line(task: str) -> None:
    few = {"train_max_length": 3, "validation_max_length": 3, "test_max_length": 3}
    fields = {"task": task, **few, "train_size": 200, "test_size": 50, "disjoint": True}
    drawn = resolve(configuration(fields)).test
    with pytest.raises(ConfigError, match=r"disjoint=True.*raise test_max_length") as caught:
        next(drawn.epochs())
    assert "\n" not in str(caught.value)


def test_more_strings_than_tests_can_be_kept_disjoint_from_are_refused_by_name() -> None:
    fields = {"task": "parity", "max_num_epochs": 100_000, "train_size": 1_000_000}
    assert configuration({**fields, "disjoint": False})
    assert configuration({**fields, "disjoint": True, "train_set": "fixed"})
    with pytest.raises(ConfigError, match=r"^max_num_epochs=100000: with disjoint=True.*lower"):
        configuration({**fields, "disjoint": True})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"task": "repeat_01", "train_min_length": 3, "train_max_length": 3}, "is positive"),
        ({"task": "even_pairs", "test_max_length": 1}, "test_max_length=1.*is negative"),
        ({"train_min_length": 11}, "train_min_length=11: expected at most train_max_length=10"),
        ({"train_size": 1_000_000, "train_max_length": 10_000}, "train_size"),
    ],
)
def test_what_cannot_be_drawn_is_refused_by_name(fields: dict[str, Any], message: str) -> None:
    fields = {"task": "parity", **fields}
    with pytest.raises(ConfigError, match=message) as caught:
        configuration(fields)
    assert str(caught.value).startswith(f"task={fields['task']!r}, ")


@pytest.mark.parametrize(
    "fields",
    [
        {"task": "parity", "bracket_types": 2},
        {"task": "parity", "pattern": "a*"},
        {"negatives": "edits"},
        {"negative_lengths": "uniform"},
        {"train_sampler": "variable_length", "negative_lengths": "uniform"},
        {"disjoint": True},
        {"train_set": "fixed"},
        {"test_min_length": 3},
        {"task": "parity", "train_sampler": "fixed_length", "train_min_length": 3},
    ],
)
def test_a_setting_that_changes_nothing_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"not read by .*leave it out"):
        configuration(fields)


def test_edits_change_lengths_and_tokens_alike_often() -> None:
    strings = TokenStrings.of_letters(3, np.zeros((6_000, 10), dtype=np.uint8))
    once = edit(np.random.default_rng(1), strings, np.ones(6_000, dtype=np.int64))
    sizes = np.bincount(once.lengths, minlength=12)
    assert sizes[[9, 10, 11]].sum() == 6_000
    assert (np.abs(sizes[[9, 10, 11]] - 2_000) < 200).all()
    replaced = once.take(np.flatnonzero(once.lengths == 10))
    # A replacement puts another letter there.
    assert ((replaced.letters[:, :10] != 0).sum(axis=1) == 1).all()
    assert (replaced.letters[:, :10] < 3).all()


def test_the_empty_string_grows_by_insertions_alone() -> None:
    empty = TokenStrings.of_lists(2, [[]] * 300)
    once = edit(np.random.default_rng(1), empty, np.ones(300, dtype=np.int64))
    assert set(once.lengths.tolist()) == {0, 1}


def test_fingerprints_tell_strings_apart_whatever_the_arrays_width() -> None:
    rows = [[], [0], [1], [0, 0], [0, 1], [1, 0], [0, 0, 0]]
    narrow = TokenStrings.of_lists(2, rows)
    wide = TokenStrings.of_lists(2, [*rows, [0] * 50])
    assert len(set(fingerprints(narrow.letters).tolist())) == len(rows)
    assert (fingerprints(wide.letters)[:-1] == fingerprints(narrow.letters)).all()
