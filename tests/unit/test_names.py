"""Names of configurations, durations and times, and protocols of training."""

import itertools
import json
from collections.abc import Mapping
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from dashboard.model.settings import usual_settings
from dashboard.text import clock
from seqcls.config import RunConfig
from seqcls.errors import ConfigError
from seqcls.fields import fields_unread, language_of
from seqcls.imported import fields_known, imported_config, in_columns, same_settings
from seqcls.problem import configuration, resolve
from seqcls.text import canonical_json
from sweeps import api
from sweeps.api.protocols import of_run, protocol
from sweeps.naming import (
    name_configurations,
    say_setting,
    settings_read,
)
from sweeps.terminal import format_duration
from tests.conftest import ROOT

NAMES = st.sampled_from(["d", "model", "a.b", "a", "config", "b", "config.model", "'"])
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.sampled_from([0.5, 1.0, 2.0**70, 2**70, -0.0, 1e300]),
    st.sampled_from(["null", "1", "1.0", "true", "[1]", '"', '"1"', "", "a, b=1", "a\nb", "{}"]),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)


def _configured(settings: dict[str, Any]) -> RunConfig:
    try:
        return imported_config({"task": "parity"}, "net", settings)
    except ConfigError as error:
        assume("two settings are called" not in str(error))
        raise


@given(st.lists(st.dictionaries(NAMES, VALUES, max_size=3), min_size=2, max_size=6))
def test_imported_configurations_have_distinct_names(several: list[dict[str, Any]]) -> None:
    configs = {config.key: config for config in map(_configured, several)}.values()
    shown = in_columns(map(fields_known, configs))
    columns = [{k: v for k, v in row.items() if k.startswith("config.")} for row in shown]
    named = name_configurations(dict(enumerate(configs, 1)))
    assert len(set(named.values())) == len(configs)
    # What is another value is written otherwise, so that names have numbers for equal ones alone:
    # those of equal numbers, and None beside what is not set.
    distinct = {same_settings(config) for config in configs}
    seen = {tuple(sorted((k, v) for k, v in row.items() if v is not None)) for row in columns}
    without_none = {
        canonical_json({k: v for k, v in json.loads(x)["imported"].items() if v is not None})
        for x in distinct
    }
    assert len(seen) == len(without_none)
    for settings in several:
        again = _configured(json.loads(json.dumps(settings), parse_int=float))
        same = abs(max(_numbers(settings), key=abs, default=0)) < 2**53
        assert not same or same_settings(again) == same_settings(_configured(settings))


def _numbers(value: Any) -> list[int]:
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return [x for item in inner for x in _numbers(item)]
    return [value] if isinstance(value, int) else []


def test_duration_uses_its_largest_sensible_unit() -> None:
    expected = ["under a second", "1 second", "40 seconds", "2 minutes", "1 hour and 30 minutes"]
    assert [format_duration(x) for x in (0.2, 1, 40, 120, 5400)] == expected
    # A damaged database may name any number.
    assert [format_duration(x) for x in (2.0**63, float("inf"))] == ["over a century"] * 2


def test_times_are_shown_in_utc() -> None:
    assert clock("2026-11-21T10:00:00.123+02:00") == "2026-11-21 08:00:00 UTC"
    assert clock(None) == "not yet"


BASE = {"task": "parity", "readout": "last", "attention_head_size": 2}


def names(*several: Mapping[str, Any]) -> list[str]:
    configs = dict(enumerate(configuration({**BASE, **fields}) for fields in several))
    return list(name_configurations(configs).values())


def test_configuration_name_lists_what_differs() -> None:
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


def test_configuration_name_has_no_unread_field() -> None:
    heads = [{"architecture": "lstm", "num_attention_heads": x} for x in (2, 4)]
    assert names(*heads, {"num_attention_heads": 4}) == [
        "LSTM, configuration 0", "LSTM, configuration 1", "Transformer",
    ]  # fmt: skip
    assert names({"architecture": "lstm", "hidden_size": 32}) == ["parity, LSTM, 32 units"]
    assert names({"task": "dyck", "bracket_types": 2, "hidden_size": 16}) == [
        "dyck, 2 bracket types, Transformer, no positions, width 16"
    ]
    # A task is called by its settings as specifications write them.
    assert language_of({"task": "copy", "num_tokens": 2}) == "copy, distinct=false, num_tokens=2"
    # What is usual for a task is no change.
    known = settings_read({1: configuration({"task": "copy", "hidden_size": 16})})[1]
    changed = {"task": "copy", "architecture": "transformer", "hidden_size": 16}
    usual = usual_settings(known)
    assert {x: y for x, y in known.items() if x not in usual or y != usual[x]} == changed


FIELD_VALUES: dict[str, list[Any]] = {
    "task": ["parity", "majority"], "architecture": ["transformer", "lstm", "gru"],
    "hidden_size": [2, 16], "num_attention_heads": [1, 2], "num_blocks": [1, 2],
    "biases": [False, True], "learning_rate": [0.01, 0.001], "test_max_length": [100, 200],
}  # fmt: skip
FIELDS = st.fixed_dictionaries({name: st.sampled_from(own) for name, own in FIELD_VALUES.items()})


@given(st.lists(FIELDS, min_size=2, max_size=12))
def test_any_configurations_have_distinct_names(
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
        is_named = [
            say_setting(first, known[x][first], configs[x].architecture) in named[x].split(", ")
            for x in (one, other)
            if first in known[x]
        ]
        # A long name may leave out a default: the other one has what is none.
        assert first is None or any(is_named)


def test_shipped_models_have_short_names_and_a_protocol() -> None:
    store = api.open_reader(str(ROOT / "runs.db"))
    shipped = api.names_of(store, list(api.configs(store)))
    assert len({*shipped.values()}) == len(shipped) == 7
    assert max(map(len, shipped.values())) <= 46
    assert (shipped[6], shipped[3]) == ("width 16, 16 heads", "width 2, CLS attended")
    sentences = protocol(store, "walkthrough/5")
    trained, validated = (next(x for x in sentences if x.startswith(y)) for y in ("Tra", "Val"))
    assert "9,984 strings of 1 to 10 tokens, new ones in every epoch" in trained
    # Longer strings chose the epoch.
    assert "960 strings of 1 to 50 tokens" in validated
    assert "(50 tokens against 10)" in validated
    assert "30 epochs (4,680 steps)" in " ".join(sentences)
    assert "epoch 8 was kept" in sentences[-1]


def test_protocol_explains_which_epoch_was_saved() -> None:
    row: dict[str, Any] = {"model_seed": 1, "epochs": 12, "tested": None}
    row |= {"best_validation_loss": 9.0, "finished_at": None, "num_parameters": None}
    fields = {"task": "parity", "stop_when_right": True, "min_validation_loss": 0.0}
    for epoch, words in {
        12: "the first at which all validation strings of trained lengths were right",
        7: "epoch 7 was kept, of the lowest loss on the validation strings",
    }.items():
        (sentence,) = of_run(resolve(configuration(fields)), row | {"best_epoch": epoch}, None)
        assert words in sentence
