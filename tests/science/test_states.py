"""States and patches of models whose states are known.

`tests/contracts/test_questions.py` has what holds for every model.
"""

from collections.abc import Mapping

import numpy as np
import pytest
import torch
from torch import Tensor

from seqcls.config import NetworkConfig
from seqcls.errors import ConfigError
from seqcls.interpretability import ablation, inside, patching
from seqcls.interpretability.ablation import Judge
from seqcls.interpretability.patching import patch
from seqcls.interpretability.readable_model import plain_model
from seqcls.interpretability.states_by_strings import principal_path
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.models.base import Classifier, Ids, Places, Recorder
from seqcls.models.layers import Embedding, Linear, masked_mean
from seqcls.models.parts import Part, Site
from seqcls.problem import configuration, resolve
from seqcls.strings.tokenizer import PAD
from tests.zoo import model

BASE, SOURCE = (0, 1, 1, 0, 1), (0, 1, 0, 0, 0)


class Bag(Classifier):
    """A plugin architecture: the mean of the embeddings, and a linear layer."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        self.embedding = Embedding(config.vocabulary_size, config.hidden_size)
        self.classifier = Linear(config.hidden_size, 1)

    def run(self, ids: Ids, record: Recorder, places: Places | None) -> Tensor:
        del places
        states = record("embedding", self.embedding(ids))
        logit: Tensor = self.classifier(masked_mean(states, ids != PAD)).squeeze(-1)
        return record("logit", logit)

    def parts(self) -> Mapping[Part, str]:
        return {Part(0, "unit", unit): "embedding" for unit in range(self.config.hidden_size)}

    def sites(self) -> Mapping[Site, tuple[str, ...]]:
        return {Site("embedding"): ("embedding",)}


@pytest.fixture
def bag(monkeypatch: pytest.MonkeyPatch) -> Bag:
    """A model of a plugin architecture, as which every `TrainedModel` is read."""
    own = Bag(plain_model(model("gru")).config).double().requires_grad_(False)
    for value in own.parameters():
        value.copy_(torch.linspace(-1, 2, value.numel()).view_as(value))
    for module in (ablation, inside, patching):
        monkeypatch.setattr(module, "plain_model", lambda _: own)
    return own


@pytest.mark.usefixtures("bag")
def test_plugin_architecture_is_patched_and_ablated_by_its_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gru = model("gru")
    found = patch(gru, BASE, SOURCE)
    # Only where the strings differ does another embedding change anything.
    changed = [own != other for own, other in zip(BASE, SOURCE, strict=True)]
    moved = np.abs(found.logits[0, :5] - found.base_logit) > 1e-12
    assert moved.tolist() == changed
    judge = Judge(gru, 20)
    parts = judge.parts()
    assert [part.text for part in parts] == [f"block 0, unit {unit}" for unit in range(8)]
    assert np.abs(judge.before).max() > 3
    np.testing.assert_array_equal(judge.outputs(dict.fromkeys(parts, "zero")), 0.0)
    # An architecture without names is refused.
    monkeypatch.setattr(Bag, "sites", Classifier.sites)
    monkeypatch.setattr(Bag, "parts", Classifier.parts)
    for ask in (lambda: patch(gru, BASE, SOURCE), Judge(gru, 20).parts):
        with pytest.raises(ConfigError, match="'gru' names no"):
            ask()


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
