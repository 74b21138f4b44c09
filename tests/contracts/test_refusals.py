"""Untrainable settings are refused in one line with the value and what was expected."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from seqcls.config import RunConfig
from seqcls.errors import ConfigError, SpecError
from seqcls.problem import configuration
from sweeps.grid.spec import parse_spec
from tests.contracts.refused_networks import NETWORKS
from tests.contracts.refused_tasks import HUGE, TASKS

LONGEST = 400
"""Letters that a refusal may have."""

Row = tuple[Mapping[str, Any], str]
"""The settings, and words of the refusal: the value, and what is expected in its place."""

FIELDS: tuple[Row, ...] = (
    ({"hiden_size": 2}, "unknown field 'hiden_size': did you mean 'hidden_size'?"),
    ({"hidden_size": 0}, "hidden_size=0: expected greater than or equal to 1"),
    ({"hidden_size": 2.5}, "hidden_size=2.5: expected a whole number"),
    ({"hidden_size": "2"}, "hidden_size='2': expected a whole number"),
    ({"hidden_size": True}, "hidden_size=True: expected a whole number"),
    ({"hidden_size": 10**9}, "hidden_size=1000000000: expected less than or equal to 4096"),
    ({"layer_norm": "batch"}, "layer_norm='batch': expected 'rms' or 'nn'"),
    ({"layer_norm_eps": math.nan}, "layer_norm_eps=NaN: expected a finite number"),
    ({"dropout_rate": 1.0}, "dropout_rate=1.0: expected less than 1"),
    ({"task": "contains_al", "train_sampler": "variable_length"}, "did you mean 'contains_all'?"),
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
    ({"decay": "matrices", "weight_decay": 0.0}, "decay='matrices': with weight_decay=0.0"),
    (
        {"learning_rate_interval": "step", "final_learning_rate_factor": 1.0},
        "learning_rate_interval='step': with final_learning_rate_factor=1.0 the learning rate",
    ),
    ({"train_sampler": "fixed_length", "sequence_length": 20}, "would train on all 3^19 strings"),
)
"""Fields of configurations that cannot be trained."""

DEEP: list[Any] = [math.nan]
for _ in range(5_000):
    DEEP = [DEEP]
AT_MOST = "expected at most 100,000"
SPECIFICATIONS: tuple[Row, ...] = (
    ({"configurations": [{"model_seeds": [1, 1]}]}, "model_seeds=[1, 1] of a configuration: "),
    ({"model_seed": [0]}, "unknown key 'model_seed': did you mean 'model_seeds'?"),
    ({"name": ""}, "name='': expected text of one line"),
    ({"name": 3}, "name=3: expected text"),
    ({"model_seeds": []}, "model_seeds=[]: expected a range"),
    ({"model_seeds": "7..0"}, "model_seeds='7..0': expected a range"),
    ({"model_seeds": "0-7"}, "model_seeds='0-7': expected a range"),
    ({"model_seeds": [1, 1]}, "distinct whole numbers"),
    ({"model_seeds": [-1]}, "model_seed=-1: expected a whole number from 0"),
    ({"model_seeds": [2**63]}, "model_seed=9223372036854775808: expected a whole number from 0"),
    ({"model_seeds": [True]}, "model_seed=True: expected a whole number"),
    ({"model_seeds": "0..99999999999999999999"}, "expected a range"),
    ({"model_seeds": f"0..{2**63 - 1}"}, f"{AT_MOST} seeds"),
    ({"verdict": 1}, "verdict=1: expected true or false"),
    ({"checkpoints": "all"}, "expected 'best_epoch' or 'every_epoch'"),
    ({"fixed": {"hiden_size": 2}}, "unknown field 'hiden_size': did you mean 'hidden_size'?"),
    ({"axes": {"hiden_size": [2]}}, "unknown field 'hiden_size'"),
    ({"configurations": [{"hiden_size": 2}]}, "unknown field 'hiden_size'"),
    ({"fixed": {"model_seed": 2}}, "write model_seeds = [0, 1] or '0..7' at the top"),
    ({"axes": {"seed": [0, 1]}}, "'seed' is not a field: write model_seeds = [0, 1]"),
    ({"seeds": [0, 1]}, "unknown key 'seeds': did you mean 'model_seeds'? write model_seeds ="),
    ({"grid": {"hidden_size": [2]}}, "unknown key 'grid': did you mean 'axes'?"),
    ({"hidden_size": 2}, "put it under [fixed], as hidden_size = …, or"),
    ({"lr": 1}, "unknown key 'lr': put it under [fixed], as learning_rate = …"),
    ({"fixed": {"lr": 0.1}}, "unknown field 'lr': did you mean 'learning_rate'?"),
    ({"fixed": {"n_layers": 2}}, "unknown field 'n_layers': did you mean 'num_blocks'?"),
    ({"axes": {"epochs": [2]}}, "unknown field 'epochs': did you mean 'max_num_epochs'?"),
    ({"fixed": {"model": "gru"}}, "unknown field 'model': did you mean 'architecture'?"),
    ({"verdict": math.inf}, "verdict=inf: expected a finite number"),
    ({"fixed": []}, "fixed=[]: expected a table"),
    ({"axes": {"hidden_size": 2}}, "axes: hidden_size=2: expected a list"),
    ({"axes": {"hidden_size": []}}, "axes: hidden_size=[]: expected a list"),
    ({"axes": {"train_seed": "6..3"}}, "train_seed='6..3': a range that ends before it begins"),
    ({"axes": {"train_seed": "0-3"}}, "axes: train_seed='0-3': expected a list of values, or a"),
    ({"axes": {"train_seed": f"0..{2**63}"}}, f"'0..9223372036854775808': {AT_MOST}; take fewer"),
    ({"axes": {"hidden_size": [2, 2]}}, "is in it twice"),
    ({"axes": {"hidden_size": [0]}}, "sweep 's': hidden_size=0: expected greater"),
    ({"configurations": {}}, "configurations={}: expected"),
    ({"fixed": {"hidden_size": 2}, "axes": {"hidden_size": [2]}}, "both in [fixed] and in [axes]"),
    ({"fixed": {"learning_rate": DEEP}}, "nested too deep"),
    ({"until": "share ± 0 %"}, "until='share ± 0 %'"),
    ({"until": "share ± 50 %"}, "less than ± 50 %"),
    ({"until": "accuracy ± 1 %"}, "'share ± 10 %'"),
    ({"until": "learned apart", "axes": {"hidden_size": [2, 3, 4]}}, "it has 3"),
    ({"until": "share ± 9 %", "fixed": {"test_max_length": 10}}, "whether a seed generalizes"),
    ({"until": "learned ± 9 %", "most_seeds": 0}, "most_seeds=0"),
    ({"most_seeds": 12}, "most_seeds=12"),
    ({"base": "big"}, "base='big': expected 'report' or 'small_transformer'"),
)
"""Tables that are no specification."""


def make_spec(changes: Mapping[str, Any]) -> object:
    """The specification of one run, with some of its keys changed."""
    return parse_spec({"name": "s", "model_seeds": [0], **changes})


def test_untrainable_settings_are_refused_by_name() -> None:
    surfaces: tuple[tuple[Callable[[Any], object], Sequence[Row]], ...] = (
        (configuration, FIELDS),
        (configuration, NETWORKS),
        (configuration, [(fields, word) for _, fields, word in TASKS]),
        (make_spec, SPECIFICATIONS),
    )
    for ask, refused in surfaces:
        for given, words in refused:
            with pytest.raises((ConfigError, SpecError)) as error:
                ask(given)
            assert words in str(error.value), given
            assert "\n" not in str(error.value)
            assert len(str(error.value)) < LONGEST, given
    with pytest.raises(ConfigError, match=r"hidden_size=0: .*; dropout_rate=2\.0: "):
        RunConfig(hidden_size=0, dropout_rate=2.0)


def test_large_count_task_is_refused_before_enumeration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listed: list[int] = []
    monkeypatch.setattr("seqcls.tasks.counting.vectors", lambda length, _: listed.append(length))
    (fields,) = (own for name, own, _ in TASKS if name == "many counts of long strings")
    with pytest.raises(ConfigError):
        configuration(fields)
    assert not listed


def test_similar_valid_settings_are_accepted() -> None:
    assert configuration({**HUGE, "disjoint": False})
    assert configuration({**HUGE, "disjoint": True, "train_set": "fixed"})
    spelled = {"task": "counting", "alphabet": "CLS", "formula": "C > L"}
    assert configuration(spelled).alphabet == "CLS"
