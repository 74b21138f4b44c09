"""Configurations: what is refused, and what the key depends on."""

from typing import Any, Literal, get_args, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from seqcls.config import PARTS, RunConfig, default_fields
from seqcls.errors import ConfigError
from seqcls.fields import fields_unread, strings_read
from seqcls.fields import test_set_key as key_of_test
from seqcls.problem import configuration, resolve

# Keys are stored in databases: a change of these orphans every run that anybody has trained.
KEY_OF_THE_DEFAULTS = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
KEY_OF_THE_REPORT = "80b3222e31b7654ea7a90d22950515fe375141d7679b78d94887d0a7a61ad2ee"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"hiden_size": 2}, "unknown field 'hiden_size': did you mean 'hidden_size'?"),
        ({"hidden_size": 0}, "hidden_size=0: expected greater than or equal to 1"),
        ({"hidden_size": 2.5}, "hidden_size=2.5: expected a valid integer"),
        ({"hidden_size": "2"}, "hidden_size='2': expected a valid integer"),
        ({"hidden_size": True}, "hidden_size=True: expected a valid integer"),
        ({"hidden_size": 10**9}, "hidden_size=1000000000: expected less than or equal to 4096"),
        ({"num_attention_heads": -1}, "num_attention_heads=-1: expected greater than"),
        ({"attention_head_size": 0}, "attention_head_size=0: expected greater than"),
        ({"feed_forward_size": -1}, "feed_forward_size=-1: expected greater than"),
        ({"num_letters": 27}, "num_letters=27: expected less than or equal to 26"),
        ({"layer_norm": "batch"}, "layer_norm='batch': expected 'rms' or 'nn'"),
        ({"layer_norm_eps": -1e-5}, "layer_norm_eps=-1e-05: expected greater than or equal to 0"),
        ({"layer_norm_eps": float("nan")}, "layer_norm_eps=NaN: expected a finite number"),
        ({"dropout_rate": 1.0}, "dropout_rate=1.0: expected less than 1"),
        ({"test_alpha": 0.01}, "test_alpha=0.01: expected greater than or equal to 0.05"),
        ({"learning_rate": float("inf")}, "learning_rate=inf: expected a finite number"),
        (
            {"task": "contains_al", "train_sampler": "variable_length"},
            "task='contains_al': did you mean 'contains_all'?",
        ),
        ({"task": "9"}, "task='9': expected text that matches '^"),
        ({"task": ""}, "task='': expected at least 1 character"),
        ({"layers": "a" * 65}, "': expected at most 64 characters"),
        ({"train_sampler": "fixed"}, "train_sampler='fixed': did you mean 'fixed_length'?"),
        ({"required_letters": ""}, "expected distinct letters"),
        ({"required_letters": "aa"}, "expected distinct letters"),
        ({"required_letters": "az"}, "'z' is outside the alphabet 'abc'"),
        ({"required_letters": "abc"}, "leaves no other letters of the alphabet 'abc'"),
        ({"train_max_length": 1}, "train_max_length=1: no string of that length holds all"),
        ({"train_size": 63}, "train_size=63 is less than one batch of train_batch_size=64"),
        ({"train_seed": 2**32}, "train_seed=4294967296: expected less than"),
        ({"decay": "matrices", "weight_decay": 0.0}, "decay='matrices': with weight_decay=0.0"),
        ({"decay": "biases"}, "decay='biases': expected 'all' or 'matrices'"),
        (
            {"learning_rate_interval": "step", "final_learning_rate_factor": 1.0},
            "learning_rate_interval='step': with final_learning_rate_factor=1.0 the learning rate",
        ),
        (
            {"train_sampler": "fixed_length", "sequence_length": 20},
            "sequence_length=20: fixed_length would train on all 3^19 strings",
        ),
    ],
)
def test_what_cannot_be_trained_is_refused_by_name(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        configuration(fields)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_several_mistakes_are_named_at_once() -> None:
    with pytest.raises(ConfigError, match=r"hidden_size=0: .*; dropout_rate=2\.0: "):
        RunConfig(hidden_size=0, dropout_rate=2.0)


def test_a_configuration_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="Instance is frozen"):
        RunConfig().hidden_size = 3  # type: ignore[misc]


def test_keys_stay_what_they_were() -> None:
    assert RunConfig().key == KEY_OF_THE_DEFAULTS
    assert RunConfig(no_attend_cls=True, layer_norm_eps=0.0).key == KEY_OF_THE_REPORT


def test_the_key_hashes_only_what_differs_from_the_defaults() -> None:
    assert RunConfig(**default_fields()).changed == {}
    assert RunConfig(hidden_size=16).changed == {"hidden_size": 16}
    assert RunConfig(layer_norm_eps=0).key == RunConfig(layer_norm_eps=0.0).key
    assert RunConfig(layer_norm_eps=-0.0).key == RunConfig(layer_norm_eps=0.0).key
    assert RunConfig(required_letters="ba").key == RunConfig(required_letters="ab").key


def test_tests_of_languages_alone_read_how_their_own_negatives_are_drawn() -> None:
    parity, copy = (configuration({"task": task}) for task in ("parity", "copy"))
    assert {"negatives", "test_negatives"} <= {*strings_read(parity, "test")}
    for part in ("train", "validation"):
        assert "negatives" in strings_read(parity, part)
        assert "test_negatives" not in strings_read(parity, part)
    for other in (copy, RunConfig()):
        assert {"negatives", "test_negatives"} <= fields_unread(other)
    near = configuration({"task": "parity", "test_negatives": "near"})
    assert [resolve(near).sampler(part).negatives for part in PARTS] == ["mixed", "mixed", "near"]  # type: ignore[attr-defined]


TEST_SETS: list[tuple[dict[str, Any], str]] = [
    ({}, "44136fa355b3678a"),
    ({"task": "parity"}, "9568e872e2479d29"),
    ({"task": "parity", "negatives": "edits"}, "09aa5688449cebfe"),
    ({"task": "parity", "negatives": "edits", "disjoint": True}, "a06416b5763db28b"),
    ({"task": "copy"}, "e6c0f305a7a2d940"),
]


@pytest.mark.parametrize(("fields", "key"), TEST_SETS)
def test_keys_of_test_sets_stay_what_they_were(fields: dict[str, Any], key: str) -> None:
    assert key_of_test(configuration(fields))[:16] == key


def test_tests_that_are_drawn_alike_are_one_test_whatever_was_trained_on() -> None:
    def key(**fields: Any) -> str:
        return key_of_test(configuration({"task": "parity", **fields}))

    for train in ("uniform", "edits", "mixed", "near"):
        for test in ("uniform", "edits", "mixed", "near"):
            assert key(negatives=train, test_negatives=test) == key(negatives=test)
            # What is kept out of the test depends on how training strings are drawn.
            apart = key(negatives=train, test_negatives=test, disjoint=True)
            assert apart != key(negatives=test)
            if train != test:
                assert apart != key(negatives=test, disjoint=True)
    assert key(test_negatives="as_trained") == key()


CHANGES: dict[str, Any] = {
    "ignore_share": 0.5,
    "test_ignore_share": 0.5,
    "num_letters": 4,
    "required_letters": "ac",
    "train_sampler": "fixed_length",
    "validation_sampler": "balanced_strings",
    "test_sampler": "balanced_strings",
    "dropout_rate": 0.5,
    "architecture": "gru",
    "positions": "rotary",
    "alphabet": "xy",
    "pattern": "(ab)*",
    "formula": "a > b",
    "replacement": "ba",
    "dataset": "0" * 64,
    "imported": "{}",
    "layers": "ga",
    "train_lengths": [[4, 0.5], [10, 1.0]],
    "freeze": [["embeddings", 0.5]],
    "plugins": "somebodys-languages==1.0",
}


def another_value(name: str) -> Any:
    default, annotation = default_fields()[name], RunConfig.model_fields[name].annotation
    if name in CHANGES:
        return CHANGES[name]
    if isinstance(default, bool):
        return not default
    if get_origin(annotation) is Literal:
        return next(value for value in get_args(annotation) if value != default)
    return default * 2 if default else 1


@pytest.mark.parametrize("name", sorted(set(default_fields()) - {"task"}))
def test_every_field_is_an_axis_that_changes_the_key(name: str) -> None:
    changed = RunConfig(**{name: another_value(name)})
    assert changed.key != RunConfig().key
    assert list(changed.changed) == [name]


@given(st.dictionaries(st.sampled_from(sorted(default_fields())), st.integers() | st.text()))
def test_any_fields_are_accepted_or_refused_in_one_line(fields: dict[str, Any]) -> None:
    try:
        configuration(fields)
    except ConfigError as error:
        assert "\n" not in str(error)  # noqa: PT017


def test_only_initial_values_may_differ_within_a_group() -> None:
    own: dict[str, Any] = {
        "embeddings_init_strategy": "linear_like",
        "attention_init_strategy": "output_fan_out",
    }
    assert RunConfig(**own).group_key == RunConfig().group_key
    assert RunConfig(hidden_size=3).group_key != RunConfig().group_key
    assert RunConfig(train_seed=1).group_key != RunConfig().group_key
