"""States and patches of models whose states are known.

`tests/contracts/test_questions.py` has what holds for every model.
"""

import numpy as np
import pytest

from seqcls.interpretability.patching import patch
from seqcls.interpretability.states_by_strings import principal_path
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.models.parts import Site
from seqcls.problem import configuration, resolve
from tests.zoo import model

BASE, SOURCE = (0, 1, 1, 0, 1), (0, 1, 0, 0, 0)


def test_recurrent_state_summarizes_the_prefix() -> None:
    own = model("lstm")
    found = patch(own, BASE, SOURCE)
    assert [site.text for site in found.sites][:4] == [
        "layer 0", "layer 0, state", "layer 0, cell", "layer 0, unit 0",
    ]  # fmt: skip
    for place in range(5):
        mixed = own.answer((*SOURCE[: place + 1], *BASE[place + 1 :]))
        assert found.logits[0, place] == pytest.approx(mixed.logit)
    # What is read is the state after the last token: the cell is nothing but what led to it.
    assert found.logits[1, -1] == pytest.approx(found.source_logit)
    assert found.logits[2, -1] == pytest.approx(found.base_logit)
    # So is the state that is read of a last block.
    found = patch(model("two blocks"), BASE, SOURCE)
    last = found.logits[found.sites.index(Site("block", 1))]
    np.testing.assert_allclose(last, [*[found.base_logit] * 5, found.source_logit])


def first_token_kept_by_unit_0() -> TrainedModel:
    """A plain network: unit 0 keeps the sign of the first token, unit 1 that of the last one."""
    sizes = {"hidden_size": 2, "precision": "float64"}
    config = configuration({"task": "first", "architecture": "rnn", "readout": "last", **sizes})
    embedding = np.zeros((4, 2))
    embedding[-2:, :] = [[-1.0, -1.0], [1.0, 1.0]]
    weights = {
        "embedding.weight": embedding,
        "layers.0.input_weight": np.diag([1.0, 5.0]),
        "layers.0.state_weight": np.diag([10.0, 0.0]),
        "classifier.weight": np.array([[1.0, 0.01]]),
    }
    return TrainedModel(resolve(config), weights)


def test_patching_finds_the_deciding_unit() -> None:
    model = first_token_kept_by_unit_0()
    assert not model.ask_all([(0, 1, 1, 0), (1, 1, 0, 1), (1, 0), (0, 1)]).wrong.any()
    found = patch(model, (0, 1, 1, 0), (1, 0, 0, 1))
    flips = {(found.sites[site].text, place) for site, place in found.ranked}
    places = range(5)
    assert flips == {(name, place) for name in ("layer 0", "layer 0, unit 0") for place in places}
    assert {found.sites[site].text for site, _ in found.ranked[:5]} == {"layer 0, unit 0"}
    assert found.most_restoring_units(1) == [1]


def test_principal_path_preserves_distances() -> None:
    plane = np.array([[0.0, 1.0], [3.0, -2.0], [5.0, 4.0], [-1.0, 0.5]])
    turned = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0][:2]
    found = principal_path(plane @ turned)
    assert sum(found.shares) == pytest.approx(1)
    distances = [np.linalg.norm(x[:, None] - x, axis=2) for x in (plane, found.points)]
    np.testing.assert_allclose(*distances)
