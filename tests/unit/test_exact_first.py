"""Attribution and patching on written models, whose head and place of the answer are known.

Block 0's feed-forward writes, at place 1, whether the token there is 1; in block 1 the head at
`CLS` attends to place 1 and reads that off.
"""

import math

import numpy as np
import pytest

from seqcls.config import RunConfig
from seqcls.interpretability.attribution import logit_steps
from seqcls.interpretability.patching import patch
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.models.entries import entry_of
from seqcls.models.positions import POSITIONS
from seqcls.problem import configuration, resolve
from tests.unit.test_exact import EXACT, Flag, network, parameters

FROM_CLS, FROM_FIRST = 0, 1


@pytest.fixture(params=EXACT["models"])
def model(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> TrainedModel:
    monkeypatch.setattr(POSITIONS, "_own", {**POSITIONS._own, "flag": entry_of(Flag)})
    written = EXACT["models"][request.param]
    named = set(RunConfig.model_fields) - {"num_letters"}
    own = {name: value for name, value in network(written).model_dump().items() if name in named}
    config = configuration({"task": "first", **own})
    return TrainedModel(
        resolve(config), {name: x.numpy() for name, x in parameters(written).items()}
    )


@pytest.mark.parametrize(("base", "source"), [("0110", "1110"), ("10", "00"), ("0", "1")])
def test_patching_names_the_head_and_the_places_of_the_construction(
    model: TrainedModel, base: str, source: str
) -> None:
    found = patch(model, model.letters(base), model.letters(source))
    flips = {(found.sites[site].text, int(place)) for site, place in np.argwhere(found.flips)}
    assert {place for name, place in flips if name.startswith("block 1")} == {FROM_CLS}
    assert {place for name, place in flips if not name.startswith("block 1")} == {FROM_FIRST}
    assert ("block 1, head 0", FROM_CLS) in flips
    assert ("block 0, feed-forward", FROM_FIRST) in flips
    assert "block 0, head 0" not in {name for name, _ in flips}


@pytest.mark.parametrize("string", ["0110", "1110", "1", "0", "01" * 20])
def test_attribution_names_the_head_that_answers(model: TrainedModel, string: str) -> None:
    letters = model.letters(string)
    steps = logit_steps(model, letters)
    logit = model.answer(letters).logit
    assert sum(step.adds for step in steps) == pytest.approx(logit, rel=0, abs=1e-10)
    largest = max(steps, key=lambda step: abs(step.adds))
    assert (largest.part, largest.block, largest.head) == ("head", 1, 0)
    assert math.copysign(1, largest.adds) == (1 if string[0] == "1" else -1)
