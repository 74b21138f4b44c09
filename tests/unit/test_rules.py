"""Simple rules, on models whose rule is known and on one that is trained to have it."""

import numpy as np
import pytest

from seqcls.config import RunConfig
from seqcls.interpretability.rules import fitting_rules, rules
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.problem import configuration, resolve
from seqcls.strings.token_strings import TokenStrings
from seqcls.training import train_group


def says(text: str, strings: list[str]) -> list[bool]:
    own = TokenStrings.of_lists(2, [[int(x) for x in string] for string in strings])
    zeros = np.zeros(len(strings), dtype=bool)
    holds = dict(rules("01", own, zeros, zeros.astype(np.int64)))[text]
    return [bool(positive) for positive in holds(own)]


@pytest.mark.parametrize(
    ("text", "positive"),
    [
        ("positive iff no 1 at all", ["", "0", "00"]),
        ("positive iff the first token is 1", ["1", "10", "1101"]),
        ("positive iff the last token is not 1", ["", "0", "00", "10"]),
        ("positive iff the first and the last token are the same", ["", "0", "00", "1", "1101"]),
        ("positive iff two equal tokens stand beside one another", ["00", "1101"]),
        ("positive iff the number of 1 is odd", ["01", "1", "10", "1101"]),
        ("positive iff more 1 than 0", ["1", "1101"]),
        ("positive iff every token of the alphabet occurs", ["01", "10", "1101"]),
    ],
)
def test_rules_say_what_their_words_say(text: str, positive: list[str]) -> None:
    strings = ["", "0", "00", "01", "1", "10", "1101"]
    found = [own for own, yes in zip(strings, says(text, strings), strict=True) if yes]
    assert found == positive


PARITY = {
    "task": "parity",
    "hidden_size": 8,
    "attention_head_size": 8,
    "train_size": 2048,
    "validation_size": 256,
    "test_size": 512,
    "train_max_length": 10,
    "validation_max_length": 10,
    "test_max_length": 30,
    "max_num_epochs": 12,
    "learning_rate": 3e-3,
}


@pytest.mark.slow
def test_a_trained_one_layer_parity_model_says_positive_where_there_is_a_1() -> None:
    config: RunConfig = configuration(PARITY)
    (trained,) = train_group([(resolve(config), 0)], engine="strings")
    found = fitting_rules(TrainedModel(resolve(config), trained.kept_weights))
    agreeing = {rule.text for rule in found.rules if rule.agreement == found.best.agreement}
    assert found.best.agreement > 0.99
    assert "positive iff there is a 1" in agreeing
