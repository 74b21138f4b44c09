"""Simple rules, on models whose rule is known and on one that is trained to have it."""

import numpy as np

from seqcls.interpretability.rules import fitting_rules, rules
from seqcls.strings.token_strings import TokenStrings
from tests.science.trained import trained

MEANT = {
    "positive iff no 1 at all": ["", "0", "00"],
    "positive iff the first token is 1": ["1", "10", "1101"],
    "positive iff the last token is not 1": ["", "0", "00", "10"],
    "positive iff the first and the last token are the same": ["", "0", "00", "1", "1101"],
    "positive iff two equal tokens stand beside one another": ["00", "1101"],
    "positive iff the number of 1 is odd": ["01", "1", "10", "1101"],
    "positive iff more 1 than 0": ["1", "1101"],
    "positive iff every token of the alphabet occurs": ["01", "10", "1101"],
}


def test_rules_say_what_their_words_say() -> None:
    strings = ["", "0", "00", "01", "1", "10", "1101"]
    own = TokenStrings.of_lists(2, [[int(x) for x in string] for string in strings])
    zeros = np.zeros(len(strings), dtype=bool)
    holds = dict(rules("01", own, zeros, zeros.astype(np.int64)))
    found = {
        text: [string for string, yes in zip(strings, holds[text](own), strict=True) if yes]
        for text in MEANT
    }
    assert found == MEANT


def test_a_trained_one_layer_parity_model_says_positive_where_there_is_a_1() -> None:
    found = fitting_rules(trained("parity"))
    agreeing = {rule.text for rule in found.rules if rule.agreement == found.best.agreement}
    assert found.best.agreement > 0.99
    assert "positive iff there is a 1" in agreeing
