"""Every specification that is shipped can be read, and its first configuration trained."""

import json
import re
import tomllib

import pytest

from seqcls.evaluation import evaluate
from seqcls.problem import resolve
from seqcls.training import train_group
from sweeps.grid.spec import load_specs, parse_spec, shipped_names
from tests.conftest import ASSETS, ROOT, SHORT

NAMES = [name for name in shipped_names() if "/" in name]
REDUCED = {
    **SHORT,
    "max_num_epochs": 1,
    "min_num_epochs": 0,
    "test_size": 64,
    "test_batch_size": 64,
}

PUBLISHED = "known/paragraphs_published"
ONE_STEP = {
    **dict.fromkeys(("train_size", "train_batch_size", "validation_size", "test_size"), 1),
    **{f"{part}_max_length": 3 for part in ("train", "validation", "test")},
}
"""One step of training: pictures of 576 x 640 pixels take seconds each."""


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


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_specification_trains(name: str) -> None:
    for spec in load_specs(name):
        reduced = {**REDUCED, **(ONE_STEP if name == PUBLISHED else {})}
        config = next(spec.configs()).model_copy(update=reduced)
        (trained,) = train_group([(resolve(config), 0)])
        assert trained.failure is None
        (evaluation,) = evaluate(resolve(config), [trained.kept_weights])
        assert evaluation.tested == resolve(config).test.epoch_size
