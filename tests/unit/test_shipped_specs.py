"""Shipped specifications are valid."""

import json
import re
import tomllib
from collections import Counter

import pytest

from seqcls.problem import resolve
from seqcls.tasks.regular import Regular
from seqcls.theory.classes import class_of
from sweeps.grid.spec import load_specs, parse_spec, shipped_names
from tests.conftest import ASSETS, ROOT

NAMES = shipped_names()
ALONE = [name for name in NAMES if not any(other.startswith(f"{name}/") for other in NAMES)]
"""Specifications that are no folder of others."""


@pytest.mark.parametrize("name", ALONE)
def test_shipped_specification_resolves(name: str) -> None:
    for spec in load_specs(name):
        problem = resolve(next(spec.configs()))
        assert problem.train.epoch_size
        assert problem.test.epoch_size


def test_counting_study_has_as_many_languages_of_each_level() -> None:
    languages = {}
    for name in ("counting", "counting_fresh"):
        (spec,) = load_specs(f"known/{name}")
        patterns = {(config.alphabet, config.pattern) for config in spec.configs()}
        levels = [class_of(Regular(*language)).counting for language in patterns]
        names = [x and ("level 1" if x.level else x.name) for x in levels]
        assert Counter(names) == {"level 0": 12, "level 1": 12, "outside": 12}
        languages[name] = patterns
    assert not languages["counting"] & languages["counting_fresh"]
    (controls,) = load_specs("known/counting_controls")
    models = [next(iter(load_specs(f"known/{x}"))).num_runs() for x in languages]
    assert (*models, controls.num_runs()) == (684, 360, 135)


def test_documented_whole_benchmark_extends_its_sample() -> None:
    page = (ROOT / "docs" / "mlregtest.md").read_text()
    (text,) = re.findall(r'```text title="mlregtest.toml"\n(.*?)```', page, re.DOTALL)
    changes, (sample,) = tomllib.loads(text), load_specs("known/mlregtest_sample")
    own = json.loads(sample.submitted)
    whole = {**own, "fixed": {**own["fixed"], **changes["fixed"]}}
    assert changes["axes"] == {"path": "mlregtest/*.att"}
    spec = parse_spec({**whole, "axes": {"path": str(ASSETS / "automata" / "04.*.att")}})
    assert spec.num_runs() >= 2 * len(whole["configurations"]) * 3
