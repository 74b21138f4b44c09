"""The first configuration of every specification that is shipped is trained."""

import pytest

from seqcls.evaluation import evaluate
from seqcls.problem import resolve
from seqcls.training import train_group
from sweeps.grid.spec import load_specs, shipped_names
from tests.conftest import LONG, SHORT

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


@pytest.mark.parametrize("name", NAMES if LONG else NAMES[::6])
def test_a_shipped_specification_trains(name: str) -> None:
    for spec in load_specs(name):
        reduced = {**REDUCED, **(ONE_STEP if name == PUBLISHED else {})}
        config = next(spec.configs()).model_copy(update=reduced)
        (trained,) = train_group([(resolve(config), 0)])
        assert trained.failure is None
        (evaluation,) = evaluate(resolve(config), [trained.kept_weights])
        assert evaluation.tested == resolve(config).test.epoch_size
