"""Training of a configuration of each shipped specification, and of the stored test models."""

import numpy as np
import pytest

from seqcls.evaluation import distinct_test_strings, evaluate
from seqcls.problem import resolve
from seqcls.training import train_group
from sweeps.grid.spec import load_specs, shipped_names
from tests.conftest import LONG, SHORT
from tests.science.trained import TRAINED, train, trained


@pytest.mark.parametrize("name", TRAINED)
def test_stored_models_of_tests_equal_newly_trained_ones(name: str) -> None:
    stored, anew = trained(name), train(name)
    strings = distinct_test_strings(stored.problem.test).strings
    alike = stored.ask(strings).predicted == anew.ask(strings).predicted
    assert np.mean(alike) > 0.98, "another machine rounds otherwise"


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
