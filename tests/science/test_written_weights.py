"""Models with constructed weights, and their exact logits in double precision.

They decide whether a string begins with 1, by a construction like that of Chiang & Cholak (2022,
"Overcoming a theoretical limitation of self-attention"): a dimension that is 1 at place 1 and 0
elsewhere, two blocks, ReLU, and norms after each half of a block, or none.
"""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from seqcls.config import NetworkConfig, RunConfig
from seqcls.engines.pytorch.members import Members
from seqcls.evaluation import distinct_test_strings
from seqcls.interpretability.causes import attributions
from seqcls.interpretability.interventions import (
    find_dilution,
    leaves_right,
    read_string,
)
from seqcls.interpretability.patching import patch
from seqcls.interpretability.states_by_strings import logit_steps
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.models.initialization import make_model
from seqcls.models.parts import Site
from seqcls.models.positions import POSITIONS, read_ids
from seqcls.models.positions.schemes import Places, Positions, States
from seqcls.problem import configuration, resolve
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import CLS, FIRST_LETTER
from tests.conftest import asset
from tests.zoo import LSTM, untrained

EXACT = asset("exact_first.json")
FLAG = 3
"""The dimension that is 1 at place 1 and 0 elsewhere."""


class Flag(Positions):
    """Adds 1 to one dimension at place 1 and, where norms need a mean of zero, -1 to its mirror."""

    def embed(self, states: States, places: Places) -> States:
        flags = torch.zeros_like(states)
        flags[..., FLAG] = (places == 1).to(states.dtype)
        return states + mirrored(flags, self.config.has_norms)


def mirrored(values: Tensor, mirrors: bool) -> Tensor:
    """The values and, in the second half of the dimensions, the same with the other sign."""
    half = values.shape[-1] // 2
    return values - values.roll(half, dims=-1) if mirrors else values


def network(model: dict[str, Any]) -> NetworkConfig:
    """The configuration of a written model."""
    sizes = {"hidden_size": model["width"], "attention_head_size": model["width"] // model["heads"]}
    return NetworkConfig(
        num_letters=2, num_attention_heads=model["heads"], num_blocks=len(model["blocks"]),
        # Blocks are of one size here: a smaller one has rows of zeros.
        feed_forward_size=max(block["ff1"]["shape"][0] for block in model["blocks"]),
        # A norm without its constant is one whose constant disappears in rounding.
        layer_norm_eps=(model["eps"] or 1e-300) if model["layer_norm"] else 0.0,
        layer_norm="nn", norm_placement="post", positions="flag", activation="relu", biases=True,
        attention_scale="log_length" if model["log_length"] else "sqrt", precision="float64",
        **sizes,
    )  # fmt: skip


WRITTEN = {
    **{f"attention.{x}.weight": x for x in ("query", "key", "value")},
    "attention.output.weight": "out", "feed_forward.input.weight": "ff1",
    "feed_forward.input.bias": "b1", "feed_forward.output.weight": "ff2",
}  # fmt: skip


def parameters(model: dict[str, Any]) -> dict[str, Tensor]:
    """A written model's parameters; what it does not name is zero, and norms are the identity."""
    named = make_model(network(model)).named_parameters()
    made = {name: torch.zeros_like(value, dtype=torch.float64).detach() for name, value in named}
    for number, block in enumerate(model["blocks"]):
        for name, written in WRITTEN.items():
            for *place, value in block[written]["entries"]:
                made[f"blocks.{number}.{name}"][tuple(place)] = value
        if model["layer_norm"]:
            for norm in ("attention_norm", "feed_forward_norm"):
                made[f"blocks.{number}.{norm}.weight"].fill_(1)
    for dimension, token in enumerate((FIRST_LETTER, FIRST_LETTER + 1, CLS)):
        made["embedding.weight"][token, dimension] = 1
    made["embedding.weight"] = mirrored(made["embedding.weight"], model["layer_norm"])
    made["classifier.weight"][0, model["read_dimension"]] = 1
    return made


@pytest.fixture(autouse=True)
def _flags_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(POSITIONS, "_own", {**POSITIONS._own, "flag": Flag})


def trained(name: str, **more: Any) -> TrainedModel:
    """A written model as if it had been trained."""
    written = EXACT["models"][name]
    named = {*RunConfig.model_fields} - {"num_letters"}
    own = {name: value for name, value in network(written).model_dump().items() if name in named}
    weights = {name: x.numpy() for name, x in parameters(written).items()}
    return TrainedModel(resolve(configuration({"task": "first", **own, **more})), weights)


models = pytest.mark.parametrize("name", EXACT["models"])


@models
def test_constructed_model_gives_its_exact_logits(name: str) -> None:
    model = EXACT["models"][name]
    config, own = network(model), parameters(model)
    expected = [row for row in EXACT["logits"] if row["model"] == name]
    strings = TokenStrings.of_lists(2, [[int(x) for x in row["string"]] for row in expected])
    logits = np.array([row["logit"] for row in expected])
    plain = make_model(config).double()
    plain.load_state_dict(own)
    read = plain(torch.from_numpy(read_ids(strings, "first")).int())
    np.testing.assert_allclose(read.detach(), logits, rtol=0, atol=1e-9)
    weights = {key: value.numpy() for key, value in own.items()}
    (found,) = Members(config, [weights], torch.device("cpu")).answer(strings)
    np.testing.assert_allclose(found, logits, rtol=0, atol=1e-9)
    assert [row["label"] for row in expected] == (logits > 0).astype(int).tolist()


# Their first block's feed-forward marks, at place 1, whether the token there is a 1; the only head
# of the second block carries that mark to CLS, whose state is read.

MARKED = (Site("embedding"), Site("feed-forward", 0), Site("block", 0))
READ = (Site("head", 1, 0), Site("attention", 1), Site("block", 1))


@models
def test_patching_finds_the_head_of_the_construction(name: str) -> None:
    model = trained(name)
    for base, source in (("011010", "111010"), ("10", "00"), ("0", "1")):
        found = patch(model, model.letters(base), model.letters(source))
        assert (found.base_logit > 0, found.source_logit > 0) == (base[0] == "1", source[0] == "1")
        flips = {(found.sites[site], int(place)) for site, place in np.argwhere(found.flips)}
        carrying = {(site, 1) for site in MARKED} | {(site, 0) for site in READ}
        # With norms after each half the mark is no sum of what block 0's parts added.
        assert flips <= carrying
        assert carrying - flips <= {(Site("feed-forward", 0), 1)}
        if model.config.layer_norm_eps == 0:
            assert flips == carrying


@models
def test_attribution_finds_the_answering_head(name: str) -> None:
    model = trained(name)
    for string in ("0110", "1110", "1", "0", "01" * 20):
        letters = model.letters(string)
        steps = logit_steps(model, letters) or ()
        logit = model.answer(letters).logit
        assert sum(step.adds for step in steps) == pytest.approx(logit, rel=0, abs=1e-10)
        largest = max(steps, key=lambda step: abs(step.adds))
        assert (largest.part, largest.block, largest.head) == ("head", 1, 0)
        assert largest.adds == pytest.approx(logit, abs=1e-10)
        assert math.copysign(1, largest.adds) == (1 if string[0] == "1" else -1)
        assert abs(largest.adds) > 1e-3


# Dilution is named where it is the cause, and nowhere else.

TRAINED, TESTED = 8, 64


@pytest.fixture
def model() -> TrainedModel:
    """A model of strings that begin with 1, with a threshold that the diluted logit falls below.

    Block 1's head at `CLS` attends to place 1 among all others; the threshold lies between its
    logit at 8 tokens and that at 16.
    """
    lengths = {"train_max_length": TRAINED, "test_max_length": TESTED, "test_size": 60}
    whole = trained("first", **lengths)
    middle = np.mean([whole.answer((1,) + (0,) * rest).logit for rest in (7, 15)])
    return TrainedModel(whole.problem, {**whole.weights, "classifier.bias": np.array([-middle])})


def wrong_test_strings(model: TrainedModel) -> list[str]:
    """The test strings that it gets wrong, the shortest first."""
    test = distinct_test_strings(model.problem.test)
    wrong = np.flatnonzero(model.ask(test.strings).wrong)
    return sorted((test.texts[row] for row in wrong), key=len)


def test_dilution_names_the_diluted_head(model: TrainedModel) -> None:
    for length in (20, 40, 64):
        string = (1, 0) * (length // 2)
        assert model.answer(string).is_wrong
        cause = find_dilution(model, read_string(model, string, True))
        assert cause is not None
        assert cause.heads == ((1, 0),)
        assert cause.logit == pytest.approx(model.answer(string[:TRAINED]).logit, abs=1e-9)
    short = read_string(model, (1, 0, 1), True)
    assert find_dilution(model, short) is None, "no longer than in training"


def test_errors_of_a_diluted_model_are_attributed_to_dilution(model: TrainedModel) -> None:
    wrong = wrong_test_strings(model)
    found = attributions(model, wrong)
    assert len(wrong) > 10
    assert {(own.mechanism, own.head) for own in found} == {("dilution", 0)}
    # Where most of what outnumbers the 1 at the beginning are 1's, no other letter is named.
    assert {own.tokens for own in found} == {"1 by 0, block 1", "block 1"}
    # The opposite model is not diluted, nor is a model without attention.
    turned = {name: -x if "classifier" in name else x for name, x in model.weights.items()}
    contrary = dataclasses.replace(model, weights=turned)
    wrong = wrong_test_strings(contrary)[::16]
    assert wrong
    assert not {own.mechanism for own in attributions(contrary, wrong)} & {"dilution"}
    lstm = untrained(**LSTM)
    assert find_dilution(lstm, read_string(lstm, (0, 1) * 100, True)) is None


def test_intervention_must_leave_right_answers_right(model: TrainedModel) -> None:
    zeros = [(0, 1) * 20, (0,) * 40]
    read = [read_string(model, string, False) for string in zeros]
    assert leaves_right(model, read, ((1, 0),))
    # This one predicts positive for a 0 at the beginning, which is diluted beyond 8 tokens.
    contrary = {name: -x if "classifier" in name else x for name, x in model.weights.items()}
    contrary["classifier.bias"] = np.array([-0.03])
    turned = dataclasses.replace(model, weights=contrary)
    assert turned.ask_all(zeros).right.all()
    assert not leaves_right(turned, read, ((1, 0),))
    assert not leaves_right(turned, [], ((1, 0),)), "without any string it is not known"
