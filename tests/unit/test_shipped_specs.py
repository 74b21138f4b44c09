"""Every specification that is shipped can be read, and all that it asks for can be trained."""

import json
import re
import tomllib

import pytest

from seqcls.problem import resolve
from sweeps.grid.spec import load_specs, parse_spec, shipped_names
from tests.conftest import ASSETS, ROOT

NAMES = shipped_names()
ALONE = [name for name in NAMES if not any(other.startswith(f"{name}/") for other in NAMES)]
"""Specifications that are no folder of others."""


@pytest.mark.parametrize("name", ALONE)
def test_a_shipped_specification_can_be_trained(name: str) -> None:
    for spec in load_specs(name):
        problem = resolve(next(spec.configs()))
        assert problem.train.epoch_size
        assert problem.test.epoch_size


def test_the_whole_benchmark_is_asked_what_its_sample_is() -> None:
    page = (ROOT / "docs" / "mlregtest.md").read_text()
    (text,) = re.findall(r'```text title="mlregtest.toml"\n(.*?)```', page, re.DOTALL)
    whole, (sample,) = tomllib.loads(text), load_specs("known/mlregtest_sample")
    own = json.loads(sample.submitted)
    assert whole["fixed"] == {**own["fixed"], "task": "automaton"}
    assert whole["configurations"] == own["configurations"]
    assert whole["axes"].pop("path") == "mlregtest/*.att"
    spec = parse_spec({**whole, "axes": {"path": str(ASSETS / "automata" / "04.*.att")}})
    assert spec.num_runs() >= 2 * len(whole["configurations"]) * 3
