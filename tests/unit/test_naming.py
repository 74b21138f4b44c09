"""What configurations are called beside each other, and how their models were trained."""

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqcls.fields import fields_unread, language_of
from seqcls.problem import configuration, resolve
from sweeps import api
from sweeps.api.naming import (
    name_configurations,
    names_of,
    say_setting,
    settings_changed,
    settings_read,
)
from sweeps.api.protocols import of_run, protocol

SHIPPED = Path(__file__).parents[2] / "runs.db"


BASE = {"task": "parity", "readout": "last", "attention_head_size": 2}


def test_a_task_is_called_by_its_settings_as_specifications_write_them() -> None:
    assert language_of({"task": "copy", "num_tokens": 2}) == "copy, distinct=false, num_tokens=2"


def names(*several: Mapping[str, Any]) -> list[str]:
    configs = dict(enumerate(configuration({**BASE, **fields}) for fields in several))
    return list(name_configurations(configs).values())


def test_a_name_says_what_differs_the_most_telling_first() -> None:
    assert names(
        {"architecture": "lstm", "hidden_size": 32},
        {"architecture": "lstm", "hidden_size": 64},
        {"architecture": "gru", "hidden_size": 64},
        {"positions": "rotary"},
        {"positions": "none", "learning_rate": 0.002},
        {"positions": "none", "learning_rate": 0.001},
        {"task": "majority"},
    ) == [
        "parity, LSTM, 32 units",
        "parity, LSTM, 64 units",
        "parity, GRU",
        "parity, Transformer, rotary",
        "parity, Transformer, no positions, lr 0.002",
        "parity, Transformer, no positions, lr 0.001",
        "majority",
    ]


def test_what_a_model_does_not_read_is_not_in_its_name() -> None:
    heads = [{"architecture": "lstm", "num_attention_heads": x} for x in (2, 4)]
    assert names(*heads, {"num_attention_heads": 4}) == [
        "LSTM, configuration 0",
        "LSTM, configuration 1",
        "Transformer",
    ]


def test_one_configuration_alone_is_called_by_its_telling_fields() -> None:
    assert names({"architecture": "lstm", "hidden_size": 32}) == ["parity, LSTM, 32 units"]
    assert names({"task": "dyck", "bracket_types": 2, "hidden_size": 16}) == [
        "dyck, 2 bracket types, Transformer, no positions, width 16"
    ]


FIELDS = st.fixed_dictionaries(
    {
        "task": st.sampled_from(["parity", "majority"]),
        "architecture": st.sampled_from(["transformer", "lstm", "gru"]),
        "hidden_size": st.sampled_from([2, 16]),
        "num_attention_heads": st.sampled_from([1, 2]),
        "num_blocks": st.sampled_from([1, 2]),
        "biases": st.booleans(),
        "learning_rate": st.sampled_from([0.01, 0.001]),
        "test_max_length": st.sampled_from([100, 200]),
    }
)


@given(st.lists(FIELDS, min_size=2, max_size=12))
def test_configurations_have_one_name_each_and_it_names_the_first_difference(
    several: list[dict[str, Any]],
) -> None:
    distinct = {x.key: x for x in (configuration(BASE | fields) for fields in several)}
    configs = dict(enumerate(distinct.values(), 1))
    named, known = name_configurations(configs), settings_read(configs)
    assert len({*named.values()}) == len(configs)
    assert name_configurations(dict(reversed(configs.items()))) == named, "in any order"
    for one, other in itertools.combinations(known, 2):
        assert not known[one].keys() & fields_unread(configs[one])
        apart = (x for x in known[one] if known[one][x] != known[other].get(x))
        first = next(apart, None)
        said = [
            say_setting(first, known[x][first], configs[x].architecture) in named[x].split(", ")
            for x in (one, other)
            if first in known[x]
        ]
        # A long name may leave out a default: the other one has what is none.
        assert first is None or any(said)


@pytest.fixture(scope="module")
def shipped() -> dict[int, str]:
    store = api.open_reader(str(SHIPPED))
    return names_of(store, list(api.configs(store)))


def test_the_reports_models_have_short_names(shipped: dict[int, str]) -> None:
    assert len({*shipped.values()}) == len(shipped) == 7
    assert max(map(len, shipped.values())) <= 46
    assert shipped[6] == "width 16, 16 heads"
    assert shipped[3] == "width 2, CLS attended"


def test_what_is_usual_for_a_task_is_no_change() -> None:
    config = configuration({"task": "copy", "hidden_size": 16})
    changed = settings_changed(settings_read({1: config})[1])
    assert changed == {"task": "copy", "architecture": "transformer", "hidden_size": 16}


def test_the_protocol_says_that_longer_strings_chose_the_epoch() -> None:
    said = protocol(api.open_reader(str(SHIPPED)), "walkthrough/5")
    trained, validated = (next(x for x in said if x.startswith(y)) for y in ("Tra", "Val"))
    assert "9,984 strings of 1 to 10 tokens, new ones in every epoch" in trained
    assert "960 strings of 1 to 50 tokens" in validated
    assert "(50 tokens against 10): the loss by which an epoch is kept is also of" in validated
    assert "30 epochs (4,680 steps) at the latest" in " ".join(said)
    assert "epoch 8 was kept" in said[-1]


def test_the_protocol_says_that_training_ended_when_all_was_right() -> None:
    row: dict[str, Any] = {"model_seed": 1, "epochs": 12, "best_epoch": 12, "tested": None}
    row |= {"best_validation_loss": 9.0, "finished_at": None}
    fields = {"task": "parity", "stop_when_right": True, "min_validation_loss": 0.0}
    problem = resolve(configuration(fields))
    (said,) = of_run(problem, row, None)
    assert said.endswith("the first at which all validation strings of trained lengths were right.")
    (said,) = of_run(problem, row | {"best_epoch": 7}, None)
    assert "epoch 7 was kept, of the lowest loss on the validation strings" in said
