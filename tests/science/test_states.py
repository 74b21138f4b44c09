"""States that are looked at and carried over: what they are, on models where that is known.

What holds of every model stands in `tests/contracts/test_questions.py`.
"""

from collections.abc import Mapping

import numpy as np
import pytest
import torch
from torch import Tensor

from dashboard.charts.readout import steps_frame
from seqcls.config import NetworkConfig
from seqcls.errors import ConfigError
from seqcls.interpretability import backends_by_strings, patching
from seqcls.interpretability.attribution import logit_steps
from seqcls.interpretability.patching import patch
from seqcls.interpretability.readable_model import plain_network
from seqcls.interpretability.states_by_strings import (
    Patterns,
    attention_patterns,
    prefix_logits,
    principal_path,
    recurrent_units,
)
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.models.base import Classifier, Ids, Places, Recorder
from seqcls.models.layers import Embedding, Linear, masked_mean
from seqcls.models.parts import Part, Site
from seqcls.problem import configuration, resolve
from seqcls.strings.tokenizer import PAD
from sweeps.api.presentation import (
    head_frame,
    layer_frame,
    patched_frame,
    path_frame,
    pattern_runs,
    prefixes_frame,
)
from tests.zoo import model

BASE, SOURCE = (0, 1, 1, 0, 1), (0, 1, 0, 0, 0)


class Bag(Classifier):
    """As somebody else would write it: the mean of the embeddings, and a linear layer."""

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
    """A model of an architecture from outside, into which every `TrainedModel` looks."""
    own = Bag(plain_network(model("gru"))).double().requires_grad_(False)
    for value in own.parameters():
        value.copy_(torch.linspace(-1, 2, value.numel()).view_as(value))
    for module in (patching, backends_by_strings):
        monkeypatch.setattr(module, "plain_model", lambda _: own)
    return own


@pytest.mark.usefixtures("bag")
def test_an_architecture_from_outside_is_looked_into_by_what_it_names() -> None:
    gru = model("gru")
    found = patch(gru, BASE, SOURCE)
    # Only where the strings differ does another embedding change anything.
    changed = [own != other for own, other in zip(BASE, SOURCE, strict=True)]
    assert (found.logits[0, :5] != found.base_logit).tolist() == changed
    backend = backends_by_strings.Strings(gru, 20)
    parts = backend.parts()
    assert [part.text for part in parts] == [f"block 0, unit {unit}" for unit in range(8)]
    assert np.abs(backend.before).max() > 3
    np.testing.assert_array_equal(backend.outputs(dict.fromkeys(parts, "zero")), 0.0)


@pytest.mark.usefixtures("bag")
def test_an_architecture_from_outside_that_names_nothing_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Bag, "sites", Classifier.sites)
    monkeypatch.setattr(Bag, "parts", Classifier.parts)
    with pytest.raises(ConfigError, match="'gru' names no states that could be carried over"):
        patch(model("gru"), BASE, SOURCE)
    with pytest.raises(ConfigError, match="'gru' names no parts"):
        backends_by_strings.Strings(model("gru"), 20).parts()


def test_a_recurrent_networks_state_stands_for_all_that_it_has_read() -> None:
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


def test_the_state_that_is_read_is_all_that_the_last_block_has_to_say() -> None:
    found = patch(model("two blocks"), BASE, SOURCE)
    last = found.sites.index(Site("block", 1))
    np.testing.assert_allclose(found.logits[last, -1], found.source_logit)
    np.testing.assert_allclose(found.logits[last, :-1], found.base_logit)


def first_token_kept_by_unit_0() -> TrainedModel:
    """A plain network: unit 0 keeps the sign of the first token, unit 1 that of the last one."""
    config = configuration(
        {
            "task": "first",
            "architecture": "rnn",
            "readout": "last",
            "hidden_size": 2,
            "precision": "float64",
        }
    )
    embedding = np.zeros((4, 2))
    embedding[-2:, :] = [[-1.0, -1.0], [1.0, 1.0]]
    weights = {
        "embedding.weight": embedding,
        "layers.0.input_weight": np.diag([1.0, 5.0]),
        "layers.0.state_weight": np.diag([10.0, 0.0]),
        "classifier.weight": np.array([[1.0, 0.01]]),
    }
    return TrainedModel(resolve(config), weights)


def test_patching_names_the_unit_that_holds_what_decides() -> None:
    model = first_token_kept_by_unit_0()
    assert not model.ask_all([(0, 1, 1, 0), (1, 1, 0, 1), (1, 0), (0, 1)]).wrong.any()
    found = patch(model, (0, 1, 1, 0), (1, 0, 0, 1))
    flips = {(found.sites[site].text, place) for site, place in found.ranked}
    places = range(5)
    assert flips == {(name, place) for name in ("layer 0", "layer 0, unit 0") for place in places}
    assert {found.sites[site].text for site, _ in found.ranked[:5]} == {"layer 0, unit 0"}
    assert found.most_restoring_units(1) == [1]


def test_a_path_keeps_its_distances_in_the_plane() -> None:
    plane = np.array([[0.0, 1.0], [3.0, -2.0], [5.0, 4.0], [-1.0, 0.5]])
    turned = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0][:2]
    found = principal_path(plane @ turned)
    assert sum(found.shares) == pytest.approx(1)
    distances = [np.linalg.norm(x[:, None] - x, axis=2) for x in (plane, found.points)]
    np.testing.assert_allclose(*distances)


def test_frames_have_a_row_for_every_mark_with_the_number_of_the_array() -> None:
    own, string = model("two blocks"), (0, 1, 1)
    patterns = attention_patterns(own, string)
    attention = head_frame(patterns, 1, 0, whole=True)
    assert len(attention) == 4 * 4
    row = attention.query("query == 3 and key == 2").iloc[0]
    assert (patterns.tokens[3], patterns.tokens[2]) == ("END", "1")
    assert row["weight"] == patterns.weights[1, 0, 3, 2]
    steps = logit_steps(own, string)
    frame = steps_frame(steps, "011")
    assert frame["step"].tolist() == [*(step.text for step in steps), "logit"]
    assert frame["change"].iloc[-1] == frame["end"].iloc[-2] == steps[-1].logit
    found = patch(own, string, (0, 0, 1))
    frame = patched_frame(found)
    assert len(frame) == len(found.sites) * 4
    assert {*frame["site"]} == {site.text for site in found.sites}
    assert frame["flips"].sum() == found.flips.sum()
    own = model("lstm")
    units = recurrent_units(own, string)
    frames = {name: layer_frame(units, name, 0) for name in ("state", *units.gates)}
    assert [len(frame) for frame in frames.values()] == [4 * 8] * 6
    assert frames["state"].iloc[-1]["value"] == units.states[0][-1, -1]
    path = path_frame(principal_path(units.states[-1]), units.tokens)
    assert path["token"].tolist() == ["0", "1", "1", "END"]
    prefixes = prefixes_frame(prefix_logits(own, string))
    assert prefixes["token"].tolist() == ["", "0", "1", "1"]
    assert prefixes["logit"].iloc[-1] == pytest.approx(own.answer(string).logit)


def test_a_head_is_drawn_in_pieces_that_say_what_its_weights_are() -> None:
    weights = np.random.default_rng(0).dirichlet(np.full(9, 0.3), size=(2, 3, 9))
    runs = pattern_runs(Patterns(tuple("012345678"), weights))
    painted = np.full(weights.shape, np.nan)
    for own in runs.to_dict("records"):
        rows = slice(own["query"], own["query"] + own["rows"])
        painted[own["block"], own["head"], rows, own["first"] : own["last"] + 1] = own["weight"]
    assert np.abs(painted - weights).max() <= 0.5 / 20 + 1e-12
    even = pattern_runs(Patterns(tuple("ab" * 20), np.full((2, 4, 40, 40), 1 / 40)))
    assert len(even) <= 2 * 4 * (1 + 40), "a row of equal weights is one piece"
    # What would be written as nothing is left out.
    weights = np.array([[[[1.0, 0.0], [0.00004, 0.99996]]]])
    frame = head_frame(Patterns(("a", "b"), weights), 0, 0)
    assert frame[["query", "key"]].to_numpy().tolist() == [[0, 0], [1, 1]]
