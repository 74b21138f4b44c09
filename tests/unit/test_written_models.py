"""Patching and attribution name the head and the places that written models use.

Their first block's feed-forward marks, at place 1, whether the token there is a 1; the only head of
the second block carries that mark to CLS, whose state is read.
"""

from itertools import product

import pytest

from seqcls.config import RunConfig
from seqcls.interpretability.attribution import logit_steps
from seqcls.interpretability.patching import patch
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.models.entries import entry_of
from seqcls.models.parts import Site
from seqcls.models.positions import POSITIONS
from seqcls.problem import resolve
from tests.unit.test_exact import EXACT, Flag, network, parameters

MARKED = (Site("embedding"), Site("feed-forward", 0), Site("block", 0))
READ = (Site("head", 1, 0), Site("attention", 1), Site("block", 1))


@pytest.fixture(params=EXACT["models"])
def written(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> TrainedModel:
    monkeypatch.setattr(POSITIONS, "_own", {**POSITIONS._own, "flag": entry_of(Flag)})
    model = EXACT["models"][request.param]
    own = network(model).model_dump()
    fields = {name: own[name] for name in own if name in RunConfig.model_fields}
    weights = {name: value.numpy() for name, value in parameters(model).items()}
    return TrainedModel(resolve(RunConfig(**{**fields, "task": "first"})), weights)


def test_the_states_that_flip_the_answer_are_those_that_carry_the_mark(
    written: TrainedModel,
) -> None:
    found = patch(written, (0, 1, 1, 0, 1, 0), (1, 1, 1, 0, 1, 0))
    assert (found.base_logit > 0, found.source_logit > 0) == (False, True)
    flips = {
        (site, place)
        for (row, site), place in product(enumerate(found.sites), range(7))
        if found.flips[row, place]
    }
    carrying = {(site, 1) for site in MARKED} | {(site, 0) for site in READ}
    # With norms after each half the mark is no sum of what block 0's parts added.
    assert flips <= carrying
    assert carrying - flips <= {(Site("feed-forward", 0), 1)}
    if written.config.layer_norm_eps == 0:
        assert flips == carrying


def test_the_logit_comes_from_the_head_that_reads_the_mark(written: TrainedModel) -> None:
    steps = logit_steps(written, (1, 0, 0, 1, 0))
    (head,) = [step for step in steps if (step.part, step.block) == ("head", 1)]
    assert head.adds == pytest.approx(steps[-1].logit, abs=1e-10)
    assert abs(head.adds) > 1e-3
