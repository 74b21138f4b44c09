"""Sweep specifications."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import sweeps.grid.spec
from seqcls.config import RunConfig
from seqcls.errors import SpecError
from seqcls.problem import configuration
from sweeps.api import sweeping
from sweeps.grid.spec import load_specs, parse_spec, read_spec, shipped_names
from sweeps.grid.written_spec import MAX_RUNS
from sweeps.store.opening import open_writer
from sweeps.work.estimate import Times
from sweeps.work.machine import WorkOptions

PLAIN = {"name": "s", "model_seeds": [0]}


def test_axes_are_combined_on_top_of_fixed_fields() -> None:
    spec = parse_spec(
        {
            "name": "grid",
            "model_seeds": "0..7",
            "fixed": {"layer_norm_eps": 0.0},
            "axes": {"hidden_size": [2, 16], "num_attention_heads": [1, 2, 4]},
        }
    )
    configs = list(spec.configs())
    assert spec.num_runs() == len(configs) * 8 == 48
    assert [(c.hidden_size, c.num_attention_heads) for c in configs] == [
        (2, 1), (2, 2), (2, 4), (16, 1), (16, 2), (16, 4)
    ]  # fmt: skip
    assert {c.layer_norm_eps for c in configs} == {0.0}
    assert list(spec.model_seeds) == list(range(8))


def test_axis_may_be_a_range() -> None:
    spec = parse_spec({**PLAIN, "axes": {"train_seed": "3..6", "hidden_size": [2, 4]}})
    assert [c.train_seed for c in spec.configs()] == [3, 3, 4, 4, 5, 5, 6, 6]
    assert spec.axes["train_seed"] == json.loads(spec.submitted)["axes"]["train_seed"]


def test_specification_lists_configurations() -> None:
    spec = parse_spec(
        {
            "name": "s",
            "model_seeds": "0..2",
            "axes": {"train_seed": [0, 1]},
            "configurations": [
                {"hidden_size": 2},
                {"hidden_size": 4, "num_attention_heads": 4, "model_seeds": [1, 5]},
            ],
        }
    )
    members = [
        (c.hidden_size, c.num_attention_heads, c.train_seed, list(seeds))
        for c, seeds in spec.members()
    ]
    assert members == [
        *((2, 2, seed, [0, 1, 2]) for seed in (0, 1)), *((4, 4, seed, [1, 5]) for seed in (0, 1))
    ]  # fmt: skip
    assert spec.num_runs() == 10


def test_base_fills_fields_left_out() -> None:
    fixed = {"task": "dyck", "train_max_length": 20, "hidden_size": 64, "learning_rate": 0.01}
    spec = {"name": "x", "model_seeds": "0..0", "base": "small_transformer", "fixed": fixed}
    (config,) = parse_spec(spec).configs()
    assert (config.feed_forward_size, config.attention_head_size) == (256, 16)
    assert (config.validation_max_length, config.negative_lengths) == (20, "uniform")
    assert config.stop_when_right
    assert (config.hidden_size, config.learning_rate) == (64, 0.01)
    without = parse_spec({**spec, "base": "report"}).configs()
    assert (
        next(iter(without)).changed.items()
        >= {"no_attend_cls": True, "layer_norm_eps": 0.0}.items()
    )


def test_base_fits_every_task_and_sets_no_unread_field() -> None:
    spec = {"name": "x", "model_seeds": "0..0", "base": "small_transformer"}
    for task in ("copy", "addition", "contains_all", "word_problem"):
        (config,) = parse_spec({**spec, "fixed": {"task": task}}).configs()
        assert config.validation_max_length == config.train_max_length
    writing = {"task": "copy", "architecture": "lstm"}
    (config,) = parse_spec({**spec, "fixed": writing}).configs()
    assert config.readout == "first", "an output is read at every place"
    several = {**spec, "axes": {"architecture": ["transformer", "lstm", "mamba"]}}
    attention, lstm, mamba = parse_spec({**several, "fixed": {"task": "parity"}}).configs()
    assert (attention.readout, lstm.readout, mamba.readout) == ("first", "last", "last")
    assert attention.num_attention_heads == 4
    assert not {"num_attention_heads", "attention_head_size", "layer_norm"} & lstm.changed.keys()


def test_grid_too_large_is_refused_before_expanding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def expanded(fields: Any) -> None:
        raise AssertionError(f"a configuration was made: {fields}")

    monkeypatch.setattr(sweeps.grid.spec, "configuration", expanded)
    values = list(range(1, 1001))
    for changes in (
        {"model_seeds": "0..99999", "axes": {"hidden_size": values}},
        {"axes": dict.fromkeys(("hidden_size", "feed_forward_size", "train_seed"), values)},
    ):
        with pytest.raises(SpecError, match=f"expected at most {MAX_RUNS:,}"):
            parse_spec({**PLAIN, **changes})
    with pytest.raises(AssertionError, match="was made"):
        parse_spec(PLAIN)


@given(
    st.dictionaries(
        st.sampled_from(["name", "model_seeds", "fixed", "axes", "configurations", "x"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(), x, max_size=3),
            max_leaves=6,
        ),
    )
)
@example({"name": {"\r": math.inf}})
def test_any_table_is_a_specification_or_refused_in_one_line(data: dict[str, Any]) -> None:
    try:
        parse_spec(data)
    except SpecError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017


TABLE = b'name = "x"\nmodel_seeds = [0]\n[fixed]\n'
BROKEN = {
    b"name = \n": r"broken\.toml': Invalid value",
    b"\xff\xfe": "cannot read",
    b"x = " + b"9" * 5000: r"cannot read .* a number has too many digits",
    b"x = " + b"[" * 5000: r"cannot read .* nested too deep",
    TABLE + b"learning_rate = nan\n": "learning_rate=nan: expected a finite number",
}


def test_unreadable_specification_file_is_named(tmp_path: Path) -> None:
    for content, words in BROKEN.items():
        (tmp_path / "broken.toml").write_bytes(content)
        with pytest.raises(SpecError, match=words):
            read_spec(tmp_path / "broken.toml")


def test_specification_is_found_by_path_folder_or_name(
    short_spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load_specs(str(short_spec))[0].name == "short"
    assert load_specs(str(short_spec.parent))[0].name == "short"
    monkeypatch.chdir(short_spec.parent)
    assert load_specs("report/attend_cls")[0].name == "attend_cls"
    assert "report" in shipped_names()
    with pytest.raises(SpecError, match="no sweep specification 'nope': known are report, "):
        load_specs("nope")


def test_grid_is_expanded_once_for_all_steps_of_submitting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expanded: list[Mapping[str, Any]] = []

    def expand(fields: Mapping[str, Any]) -> RunConfig:
        expanded.append(fields)
        return configuration(fields)

    monkeypatch.setattr("sweeps.grid.spec.configuration", expand)
    grid = {"name": "grid", "model_seeds": "0..4", "axes": {"train_seed": [1, 2, 3]}}
    store = open_writer(str(tmp_path / "runs.db"))
    plans = sweeping.read_specs(grid)
    sweeping.check_training(WorkOptions(), plans)
    sweeping.memory_warning(plans)
    assert sweeping.missing_runs(store, plans) is None
    assert sweeping.submit(store, plans) == ["grid"]
    assert sweeping.missing_runs(store, plans) == 15
    assert sweeping.estimate(store, plans, timer=lambda _: Times(1.0, 1.0, 1.0)).runs == 15
    assert len(expanded) == 3
