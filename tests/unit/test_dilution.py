"""Diluted attention is named where it is the cause, and nowhere else."""

import dataclasses

import numpy as np
import pytest
import torch

from seqcls.config import RunConfig
from seqcls.interpretability.cause_evidence import Dilution, undilute
from seqcls.interpretability.causes import attributions
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.kinds.base import Answers
from seqcls.models.entries import entry_of
from seqcls.models.positions import POSITIONS
from seqcls.problem import configuration, resolve
from seqcls.strings.token_strings import TokenStrings
from tests.unit.asked import LSTM, untrained
from tests.unit.test_exact import EXACT, Flag, network, parameters

TRAINED, TESTED = 8, 64


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> TrainedModel:
    """Whether a string begins with 1, with a threshold that the diluted logit falls below.

    Block 1's head at `CLS` attends to place 1 among all others; the threshold lies between its
    logit at 8 tokens and that at 16.
    """
    monkeypatch.setattr(POSITIONS, "_own", {**POSITIONS._own, "flag": entry_of(Flag)})
    written = EXACT["models"]["first"]
    named = set(RunConfig.model_fields) - {"num_letters"}
    own = {name: value for name, value in network(written).model_dump().items() if name in named}
    lengths = {"train_max_length": TRAINED, "test_max_length": TESTED, "test_size": 60}
    config = configuration({"task": "first", **own, **lengths})
    weights = {name: x.numpy() for name, x in parameters(written).items()}
    whole = TrainedModel(resolve(config), weights)
    middle = np.mean([whole.answer((1,) + (0,) * rest).logit for rest in (7, 15)])
    return TrainedModel(resolve(config), {**weights, "classifier.bias": np.array([-middle])})


def test_the_head_of_the_construction_is_named(model: TrainedModel) -> None:
    dilution = Dilution(model)
    for length in (20, 40, 64):
        string = (1, 0) * (length // 2)
        assert model.answer(string).is_wrong
        cause = dilution.cause_of(string, True)
        assert cause is not None
        assert cause.heads == ((1, 0),)
        assert cause.logit == pytest.approx(model.answer(string[:TRAINED]).logit, abs=1e-9)
    assert dilution.leaves([(0, 1) * 10, (0,) * 30], ((1, 0),))
    assert dilution.cause_of((1, 0, 1), True) is None, "no longer than in training"


def test_errors_of_a_diluted_model_are_attributed_to_its_head(model: TrainedModel) -> None:
    wrong = _wrong_test_strings(model)
    found = attributions(model, wrong)
    assert len(wrong) > 10
    assert {(own.mechanism, own.head, own.tokens) for own in found} == {("dilution", 0, "block 1")}


@dataclasses.dataclass(frozen=True, eq=False)
class WrongOnOne(TrainedModel):
    """The same, but wrong on one string of two letters."""

    def ask(self, strings: TokenStrings) -> Answers:
        answers = super().ask(strings)
        # Strings that are asked together may all be shorter.
        first = np.pad(strings.letters, ((0, 0), (0, 2)))[:, :2]
        one = (strings.lengths == 2) & (first == (0, 1)).all(axis=1)
        logits = np.where(one, 1.0, answers.score)
        return dataclasses.replace(answers, score=logits, predicted=logits > 0)


def test_errors_of_a_model_that_fails_on_a_short_string_are_not_those_of_length(
    model: TrainedModel,
) -> None:
    wrong = _wrong_test_strings(model)
    found = attributions(WrongOnOne(resolve(model.config), model.weights), wrong)
    assert "dilution" not in {own.mechanism for own in found}
    assert any(own.tokens.endswith("shortest error 01") for own in found)


def test_a_model_that_says_the_contrary_is_not_diluted(model: TrainedModel) -> None:
    turned = {name: -x if "classifier" in name else x for name, x in model.weights.items()}
    contrary = dataclasses.replace(model, weights=turned)
    wrong = _wrong_test_strings(contrary)
    assert not {own.mechanism for own in attributions(contrary, wrong)} & {"dilution"}


def test_an_intervention_that_makes_right_answers_wrong_shows_nothing(model: TrainedModel) -> None:
    zeros = [(0, 1) * 20, (0,) * 40]
    assert Dilution(model).leaves(zeros, ((1, 0),))
    # What speaks for a 0 at the beginning makes this one say yes, and is diluted beyond 8 tokens.
    contrary = {name: -x if "classifier" in name else x for name, x in model.weights.items()}
    contrary["classifier.bias"] = np.array([-0.03])
    turned = dataclasses.replace(model, weights=contrary)
    assert turned.ask_all(zeros).right.all()
    assert not Dilution(turned).leaves(zeros, ((1, 0),))
    assert not Dilution(turned).leaves([], ((1, 0),)), "without any string it is not known"


def test_without_attention_nothing_is_diluted() -> None:
    lstm = untrained(**LSTM)
    assert Dilution(lstm).cause_of((0, 1) * 100, True) is None


def test_odds_are_those_beside_fewer_others() -> None:
    scores = torch.zeros(3, 9, dtype=torch.float64)
    scores[0, 4] = 3.0
    scores[1, :6] = 3.0
    seen = torch.ones(3, 9, dtype=torch.bool)
    found = undilute(scores, seen, 4).softmax(dim=1)
    beside_four = torch.tensor([3.0, 0, 0, 0, 0], dtype=torch.float64).softmax(dim=0)
    assert found[0, 4] == pytest.approx(float(beside_four[0]))
    for row in (1, 2):
        before = scores[row].softmax(dim=0)
        assert found[row].tolist() == pytest.approx(before.tolist()), "half of all attend, or all"


def _wrong_test_strings(model: TrainedModel) -> list[str]:

    from seqcls.evaluation import distinct_test_strings

    test = distinct_test_strings(model.problem.test)
    wrong = model.ask(test.strings).wrong
    texts = [text for text, own in zip(test.texts, wrong, strict=True) if own]
    return sorted(texts, key=len)
