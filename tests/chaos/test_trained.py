"""Kept weights of small models are those that training gives."""

import numpy as np
import pytest

from seqcls.evaluation import distinct_test_strings
from tests.science.trained import TRAINED, train, trained


@pytest.mark.parametrize("name", TRAINED)
def test_kept_models_are_those_that_training_gives(name: str) -> None:
    stored, anew = trained(name), train(name)
    strings = distinct_test_strings(stored.problem.test).strings
    alike = stored.ask(strings).predicted == anew.ask(strings).predicted
    assert np.mean(alike) > 0.98, "another machine rounds otherwise"
