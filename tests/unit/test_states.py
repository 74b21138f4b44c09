"""States of any model: their parts sum to the logit, and what is carried over is what it says."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from seqcls.config import NetworkConfig
from seqcls.errors import ConfigError, InvalidStringError
from seqcls.interpretability import backends_by_strings, patching
from seqcls.interpretability.attribution import logit_steps
from seqcls.interpretability.patching import patch
from seqcls.interpretability.readable_model import ids_of, plain_model, plain_network
from seqcls.interpretability.states_by_strings import (
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
from tests.patching import patch_everywhere
from tests.unit.asked import LSTM, TWO_BLOCKS, untrained

GRU: dict[str, Any] = {"architecture": "gru", "num_blocks": 2, "readout": "mean"}
TRANSFORMERS: list[dict[str, Any]] = [
    TWO_BLOCKS,
    {**TWO_BLOCKS, "biases": True, "norm_placement": "post", "layer_norm": "nn"},
    {**TWO_BLOCKS, "readout": "mean", "norm_placement": "post", "positions": "rotary"},
    {"num_attention_heads": 3, "biases": True, "feed_forward_size": 3, "layer_norm": "nn"},
    {**TWO_BLOCKS, "final_norm": True, "layer_norm": "nn", "activation": "gelu_tanh"},
    {"final_norm": True, "readout": "mean", "positions": "rotary", "attention_head_size": 2},
]
BASE, SOURCE = (0, 1, 1, 0, 1), (0, 1, 0, 0, 0)


def logit(model: TrainedModel, letters: tuple[int, ...]) -> float:
    with torch.no_grad():
        return float(plain_model(model)(ids_of(model, [letters])))


@pytest.mark.parametrize("fields", TRANSFORMERS)
def test_what_every_part_adds_sums_to_the_logit(fields: dict[str, Any]) -> None:
    model = untrained(**fields)
    for string in (BASE, (), (1,) * 30):
        steps = logit_steps(model, string)
        assert sum(step.adds for step in steps) == pytest.approx(logit(model, string), abs=1e-10)
        assert steps[-1].logit == pytest.approx(logit(model, string), abs=1e-10)
    heads = [(step.block, step.head) for step in steps if step.part == "head"]
    config = model.config
    assert heads == [
        (block, head)
        for block in range(config.num_blocks)
        for head in range(config.num_attention_heads)
    ]


def test_attention_is_what_each_token_attends_to() -> None:
    found = attention_patterns(untrained(**TWO_BLOCKS), BASE)
    assert found.tokens == ("0", "1", "1", "0", "1", "END")
    assert found.weights.shape == (2, 2, 6, 6)
    np.testing.assert_allclose(found.weights.sum(axis=3), 1)
    assert (found.weights[..., np.triu_indices(6, 1)[0], np.triu_indices(6, 1)[1]] == 0).all()


@pytest.mark.parametrize("fields", [*TRANSFORMERS, LSTM, GRU])
def test_a_string_patched_with_itself_is_answered_as_before(fields: dict[str, Any]) -> None:
    model = untrained(**fields)
    found = patch(model, BASE, BASE)
    np.testing.assert_allclose(found.logits, logit(model, BASE), atol=1e-12)
    assert not found.flips.any()


@pytest.mark.parametrize("fields", TRANSFORMERS)
def test_carrying_everything_over_gives_the_others_logit(fields: dict[str, Any]) -> None:
    model = untrained(**fields)
    last = model.config.num_blocks - 1
    for site in (Site("embedding"), Site("block", last)):
        found = patch_everywhere(model, BASE, SOURCE, site)
        assert found == pytest.approx(logit(model, SOURCE), abs=1e-12)


@pytest.mark.parametrize("fields", [LSTM, GRU, {**GRU, "architecture": "lstm"}])
def test_carrying_all_of_the_last_layer_over_gives_the_others_logit(fields: dict[str, Any]) -> None:
    model = untrained(**fields)
    last = model.config.num_blocks - 1
    read = {Site("layer", last), Site("state", last)}
    for site in read.intersection(plain_model(model).sites()):
        found = patch_everywhere(model, BASE, SOURCE, site)
        assert found == pytest.approx(logit(model, SOURCE), abs=1e-12)
    with pytest.raises(ConfigError, match="'block 0' is none of the model's sites"):
        patch_everywhere(model, BASE, SOURCE, Site("block", 0))
    kept = patch_everywhere(model, BASE, BASE, Site("unit", 0, unit=1))
    assert kept == pytest.approx(logit(model, BASE), abs=1e-12)


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
    own = Bag(plain_network(untrained(**GRU))).double().requires_grad_(False)
    for value in own.parameters():
        value.copy_(torch.linspace(-1, 2, value.numel()).view_as(value))
    for module in (patching, backends_by_strings):
        monkeypatch.setattr(module, "plain_model", lambda _: own)
    return own


@pytest.mark.usefixtures("bag")
def test_an_architecture_from_outside_is_looked_into_by_what_it_names() -> None:
    model = untrained(**GRU)
    found = patch(model, BASE, SOURCE)
    # Only where the strings differ does another embedding change anything.
    changed = [own != other for own, other in zip(BASE, SOURCE, strict=True)]
    assert (found.logits[0] != found.base_logit).tolist() == changed
    backend = backends_by_strings.Strings(model, 20)
    parts = backend.parts()
    assert [part.text for part in parts] == [f"block 0, unit {unit}" for unit in range(4)]
    assert np.abs(backend.before).max() > 3
    np.testing.assert_array_equal(backend.outputs(dict.fromkeys(parts, "zero")), 0.0)


@pytest.mark.usefixtures("bag")
def test_an_architecture_from_outside_that_names_nothing_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Bag, "sites", Classifier.sites)
    monkeypatch.setattr(Bag, "parts", Classifier.parts)
    with pytest.raises(ConfigError, match="'gru' names no states that could be carried over"):
        patch(untrained(**GRU), BASE, SOURCE)
    with pytest.raises(ConfigError, match="'gru' names no parts"):
        backends_by_strings.Strings(untrained(**GRU), 20).parts()


def test_an_lstms_states_and_cells_are_carried_over_on_their_own() -> None:
    found = patch(untrained(**LSTM), BASE, SOURCE)
    names = [site.text for site in found.sites]
    assert names[:4] == ["layer 0", "layer 0, state", "layer 0, cell", "layer 0, unit 0"]
    assert len(names) == 3 + 4
    # What is read is the state after the last token: the cell is nothing but what led to it.
    assert found.logits[1, -1] == pytest.approx(found.source_logit, abs=1e-12)
    assert found.logits[2, -1] == pytest.approx(found.base_logit, abs=1e-12)


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


def test_the_state_that_is_read_is_all_that_the_last_block_has_to_say() -> None:
    model = untrained(**TWO_BLOCKS)
    found = patch(model, BASE, SOURCE)
    last = found.sites.index(Site("block", 1))
    np.testing.assert_allclose(found.logits[last, -1], found.source_logit)
    np.testing.assert_allclose(found.logits[last, :-1], found.base_logit)


def test_a_recurrent_networks_state_stands_for_all_that_it_has_read() -> None:
    model = untrained(**LSTM)
    found = patch(model, BASE, SOURCE)
    for place in range(5):
        mixed = (*SOURCE[: place + 1], *BASE[place + 1 :])
        assert found.logits[0, place] == pytest.approx(logit(model, mixed), abs=1e-12)


def test_units_are_those_that_the_answer_is_read_off() -> None:
    model = untrained(**LSTM)
    found = recurrent_units(model, BASE)
    assert set(found.gates) == {"input_gate", "forget_gate", "candidate", "output_gate", "cell"}
    assert found.tokens[-1] == "END"
    read = found.states[-1, -1] @ model.weights["classifier.weight"][0]
    bias = float(model.weights["classifier.bias"][0])
    assert read + bias == pytest.approx(logit(model, BASE))
    assert np.tanh(found.gates["cell"]) * found.gates["output_gate"] == pytest.approx(found.states)


def test_every_prefix_is_asked_about() -> None:
    model = untrained(**LSTM)
    found = prefix_logits(model, BASE)
    expected = [model.answer(BASE[:end]) for end in range(6)]
    assert found.labels.tolist() == [answer.label for answer in expected]
    np.testing.assert_allclose(found.logits, [answer.logit for answer in expected])


def test_a_path_keeps_its_distances_in_the_plane() -> None:
    plane = np.array([[0.0, 1.0], [3.0, -2.0], [5.0, 4.0], [-1.0, 0.5]])
    turned = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0][:2]
    found = principal_path(plane @ turned)
    assert sum(found.shares) == pytest.approx(1)
    distances = [np.linalg.norm(x[:, None] - x, axis=2) for x in (plane, found.points)]
    np.testing.assert_allclose(*distances)


def test_what_is_not_there_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="architecture='lstm' has no attention"):
        attention_patterns(untrained(**LSTM), BASE)
    with pytest.raises(ConfigError, match="architecture='transformer' is not recurrent"):
        recurrent_units(untrained(**TWO_BLOCKS), BASE)
    with pytest.raises(InvalidStringError, match="has 5 tokens and '01' 2"):
        patch(untrained(**LSTM), BASE, (0, 1))
    with pytest.raises(InvalidStringError, match="has 600 tokens, more than the 512"):
        prefix_logits(untrained(**LSTM), (0,) * 600)
