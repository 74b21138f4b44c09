"""The contract of every field of a configuration, and the keys of stored runs."""

import datetime
import importlib
import json
import math
import os
import re
import sys
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from benchmarks.fields import page
from dashboard.training.settings import FIELDS
from seqcls.config import ABOUT, STRING_PARTS, RunConfig, default_fields
from seqcls.errors import ConfigError, SpecError
from seqcls.fields import fields_unread, strings_read
from seqcls.fields import test_set_key as key_of_test
from seqcls.models import MODELS
from seqcls.models.positions import POSITIONS
from seqcls.plugins import foreign_fields
from seqcls.problem import configuration, resolve
from sweeps.grid.spec import load_specs, parse_spec
from tests.blocks import rows_of
from tests.conftest import ROOT, asset
from tests.databases import rows
from tests.plugins import python, write_metadata

# Keys are stored in databases: a change of these orphans every run that anybody has trained.
KEY_OF_THE_DEFAULTS = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
KEY_OF_THE_REPORT = "80b3222e31b7654ea7a90d22950515fe375141d7679b78d94887d0a7a61ad2ee"


CHANGES: dict[str, Any] = {
    "ignore_share": 0.5, "test_ignore_share": 0.5, "num_letters": 4, "required_letters": "ac",
    "train_sampler": "fixed_length", "validation_sampler": "balanced_strings",
    "test_sampler": "balanced_strings", "dropout_rate": 0.5, "architecture": "gru",
    "positions": "rotary", "alphabet": "xy", "pattern": "(ab)*", "formula": "a > b",
    "replacement": "ba", "dataset": "0" * 64, "imported": "{}", "layers": "ga",
    "train_lengths": [[4, 0.5], [10, 1.0]], "freeze": [["embeddings", 0.5]],
    "plugins": "somebodys-languages==1.0",
}  # fmt: skip


def another_value(name: str) -> Any:
    """A value of a field that is not its default."""
    default, annotation = default_fields()[name], RunConfig.model_fields[name].annotation
    if name in CHANGES:
        return CHANGES[name]
    if isinstance(default, bool):
        return not default
    if get_origin(annotation) is Literal:
        return next(value for value in get_args(annotation) if value != default)
    return default * 2 if default else 1


def test_every_field_changes_the_key() -> None:
    for name in set(default_fields()) - {"task"}:
        changed = RunConfig(**{name: another_value(name)})
        assert changed.key != RunConfig().key, name
        assert list(changed.changed) == [name]


def test_keys_are_pinned() -> None:
    assert RunConfig().key == KEY_OF_THE_DEFAULTS
    assert RunConfig(no_attend_cls=True, layer_norm_eps=0.0).key == KEY_OF_THE_REPORT
    for known in asset("keys.json")["configurations"]:
        config = configuration(known["fields"])
        assert (config.key, key_of_test(config)) == (known["key"], known["test_set"]), known


def test_shipped_runs_have_the_keys_of_their_specifications() -> None:
    specified = {
        (config.key, seed)
        for spec in load_specs("report")
        for config, seeds in spec.members()
        for seed in seeds
    }
    known = asset("keys.json")["runs"]
    assert {(run["key"], run["model_seed"]) for run in known} == specified
    query = "SELECT run.id, key, model_seed FROM run JOIN config ON config.id = config_id"
    stored = [(run["run"], run["key"], run["model_seed"]) for run in known]
    assert sorted(rows(ROOT / "runs.db", query)) == stored


def test_key_hashes_only_changed_fields() -> None:
    assert RunConfig(**default_fields()).changed == {}
    assert RunConfig(hidden_size=16).changed == {"hidden_size": 16}
    assert RunConfig(layer_norm_eps=0).key == RunConfig(layer_norm_eps=0.0).key
    assert RunConfig(layer_norm_eps=-0.0).key == RunConfig(layer_norm_eps=0.0).key
    assert RunConfig(required_letters="ba").key == RunConfig(required_letters="ab").key
    with pytest.raises(ValidationError, match="Instance is frozen"):
        RunConfig().hidden_size = 3


def test_only_initial_values_may_differ_within_a_group() -> None:
    names = ("embeddings_init_strategy", "attention_init_strategy")
    own: dict[str, Any] = dict(zip(names, ("linear_like", "output_fan_out"), strict=True))
    assert RunConfig(**own).group_key == RunConfig().group_key
    assert RunConfig(hidden_size=3).group_key != RunConfig().group_key
    assert RunConfig(train_seed=1).group_key != RunConfig().group_key


def test_only_languages_read_negatives() -> None:
    parity, copy = (configuration({"task": task}) for task in ("parity", "copy"))
    assert {"negatives", "test_negatives"} <= {*strings_read(parity, "test")}
    for part in ("train", "validation"):
        assert "negatives" in strings_read(parity, part)
        assert "test_negatives" not in strings_read(parity, part)
    for other in (copy, RunConfig()):
        assert {"negatives", "test_negatives"} <= fields_unread(other)
    near = configuration({"task": "parity", "test_negatives": "near"})
    drawn = [vars(resolve(near).sampler(part))["negatives"] for part in STRING_PARTS]
    assert drawn == ["mixed", "mixed", "near"]


def test_key_of_test_sets_does_not_depend_on_training_negatives() -> None:
    def key(**fields: Any) -> str:
        return key_of_test(configuration({"task": "parity", **fields}))

    for train in ("uniform", "edits", "mixed", "near"):
        for test in ("uniform", "edits", "mixed", "near"):
            assert key(negatives=train, test_negatives=test) == key(negatives=test)
            # Strings left out of the test depend on how training strings are drawn.
            apart = key(negatives=train, test_negatives=test, disjoint=True)
            assert apart != key(negatives=test)
            if train != test:
                assert apart != key(negatives=test, disjoint=True)
    assert key(test_negatives="as_trained") == key()


@given(st.dictionaries(st.sampled_from(sorted(default_fields())), st.integers() | st.text()))
def test_any_fields_are_accepted_or_refused_in_one_line(fields: dict[str, Any]) -> None:
    try:
        configuration(fields)
    except ConfigError as error:
        assert "\n" not in str(error)  # noqa: PT017


UNFIT = [
    math.nan, math.inf, 10**400, True, "\ud800", datetime.datetime(2026, 1, 1), {"a": 1}, [], [[1]],
    -1,
]  # fmt: skip


def test_refusal_of_a_value_names_the_field() -> None:
    for number, field in enumerate(RunConfig.model_fields):
        for index, value in enumerate(UNFIT):
            tables: list[dict[str, Any]] = [
                {"fixed": {field: value}},
                {"axes": {field: [value]}},
                {"configurations": [{field: value}]},
            ]
            try:
                parse_spec({"name": "s", "model_seeds": [0], **tables[(number + index) % 3]})
            except SpecError as error:
                refused = str(error)
            else:
                continue
            assert field in refused
            assert len(refused.splitlines()) == 1
            refused.encode()


def test_every_field_has_a_place_and_a_line_on_the_form() -> None:
    grouped = [name for names in FIELDS.values() for name in names]
    assert sorted(grouped) == sorted(set(RunConfig.model_fields) - {"plugins", "imported"})
    slots = [(about.group, about.place) for about in ABOUT.values() if about.group is not None]
    assert len(set(slots)) == len(slots)
    assert {group for group, _ in slots} == set(FIELDS)
    assert all(len(about.line) > 10 and about.line.endswith(".") for about in ABOUT.values())


FADING = """
from typing import Annotated
from pydantic import Field
from seqcls.declarations import About
from seqcls.models.layers import Linear
from seqcls.models.mixing import Mixing, SteppingMixer

class FadingMixer(SteppingMixer):
    def __init__(self, config):
        super().__init__(config)
        self.keeping = Linear(config.hidden_size, config.hidden_size, bias=True)

    def nothing(self, state):
        return (state.new_zeros(state.shape),)

    def step(self, state, kept):
        share = self.config.slowest * self.keeping(state).sigmoid()
        memory = share * kept[0] + (1 - share) * state
        return memory, (memory,)

class Fading(Mixing):
    '''slowest: The most that `fading` keeps of a number. Not less than nothing.'''

    slowest: Annotated[
        float,
        Field(gt=0, le=1),
        About("Network", also="slow", phrase=lambda run: f"fading by {run.slowest:g}"),
    ] = 1.0
    mixer = FadingMixer
    letter = "f"
"""

SCRIPT = """
import json
from dashboard.training.settings import FIELDS
from seqcls.config import ABOUT, RunConfig
from seqcls.fields import limits_of, phrases_of
from seqcls.problem import configuration, obstacle_of, resolve

own = {"task": "parity", "architecture": "fading", "readout": "last", "slowest": 0.5}
blocks = {**own, "architecture": "hybrid", "layers": "fd"}
config, hybrid = configuration(own), configuration(blocks)
print(json.dumps({
    "keys": [RunConfig().key, RunConfig(no_attend_cls=True, layer_norm_eps=0.0).key, config.key],
    "network": [resolve(config).network.slowest, resolve(hybrid).network.slowest],
    "phrases": phrases_of(config),
    "others": phrases_of(configuration({"task": "parity"})),
    "place": FIELDS["Network"][-1],
    "shown": [ABOUT["slowest"].line, limits_of("slowest")],
    "refused": [
        obstacle_of({"slowest": 0.5}),
        obstacle_of({**own, "slowest": 2.0}),
        obstacle_of({"slow": 1}),
    ],
    "stored": config.changed,
}))
"""


def test_plugin_declares_a_field(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fading.py").write_text(FADING)
    points = "[seqcls.{}]\nfading = fading:Fading\n"
    write_metadata(tmp_path, "fading", "1.0", points.format("models") + points.format("fields"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(ROOT)]))
    ended = python("-c", SCRIPT)
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert found["keys"][:2] == [KEY_OF_THE_DEFAULTS, KEY_OF_THE_REPORT]
    assert found["network"] == [0.5, 0.5]
    assert found["phrases"][-1] == "fading by 0.5"
    assert "fading" not in "".join(found["others"])
    assert found["place"] == "slowest"
    assert found["shown"] == ["The most that `fading` keeps of a number.", "> 0, ≤ 1"]
    unread, beyond, unknown = found["refused"]
    assert unread == "slowest=0.5: not read by architecture 'transformer'; leave it out"
    assert beyond == "slowest=2.0: expected less than or equal to 1"
    assert "did you mean 'slowest'?" in unknown
    # Where the package is not installed, what was stored keeps its key.
    assert RunConfig.from_stored(found["stored"]).key == found["keys"][2]
    with pytest.raises(ConfigError, match="unknown field 'slowest'"):
        RunConfig.from_mapping(found["stored"])


def test_faulty_plugin_field_is_reported_and_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_metadata(tmp_path, "fading", "1.0", "[seqcls.fields]\nfading = fading:Fading\n")
    monkeypatch.syspath_prepend(tmp_path)
    for text, reason in (
        ("", "has no attribute 'Fading'"),
        (FADING.replace("slowest:", "width:"), "declares width, which is there"),
        (FADING.replace("slowest: The", "The"), "declares slowest: expected a line"),
        (FADING.replace("] = 1.0", "]"), "declares slowest, without a default"),
        (f"from __future__ import annotations{FADING}", "declares no field: expected"),
    ):
        (tmp_path / "fading.py").write_text(text)
        sys.modules.pop("fading", None)
        importlib.invalidate_caches()
        with pytest.warns(UserWarning, match=f"fading==1.0: its seqcls.fields .*{reason}"):
            assert foreign_fields(RunConfig.model_fields) == {}


def test_fields_page_is_generated() -> None:
    assert (ROOT / "docs" / "fields.md").read_text() == page(), "python -m benchmarks.fields"


def test_docs_describe_every_choice() -> None:
    table = rows_of("models.md")
    choices = {
        name: get_args(field.annotation)
        for name, field in RunConfig.model_fields.items()
        if get_origin(field.annotation) is Literal and name != "precision"
    }
    choices |= {"architecture": tuple(MODELS), "positions": tuple(POSITIONS)}
    described = choices.keys() & table.keys()
    assert {"attention_mask", "readout", "activation", "position_draw"} <= described
    for field in described:
        assert {*re.findall(r"`(\w+)`", table[field][0])} == {*choices[field]}, field


def test_copied_configuration_has_its_own_key() -> None:
    config = RunConfig(hidden_size=3)
    assert config.key != RunConfig().key
    copied = config.model_copy(update={"hidden_size": 4})
    assert vars(copied) == vars(made := RunConfig(hidden_size=4))
    assert (copied.key, copied.group_key) == (made.key, made.group_key)
