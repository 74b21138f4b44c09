"""Causes of errors: groups of behaviours, on models whose errors are known."""

from typing import Any

import numpy as np
import pytest

from seqcls.data import configuration, sampler_of, task_of
from seqcls.evaluation import distinct_test_strings
from seqcls.interpretability.causes import Attribution, attributions, spread_evenly, summed_up
from seqcls.interpretability.strings.asked import AskedModel
from seqcls.interpretability.strings.same_letters import (
    same_letters_other_label,
    sees_counts_alone,
)
from seqcls.remedies import suggestions
from seqcls.strings import TokenStrings
from tests.unit.asked import LSTM, untrained

PARITY: dict[str, Any] = {
    "task": "parity",
    "train_size": 256,
    "train_max_length": 12,
    "validation_max_length": 12,
    "test_size": 800,
    "test_max_length": 40,
}


def wrong_strings(positive: str, **fields: object) -> tuple[AskedModel, list[str]]:
    """A parity model and the errors of one that says positive where that holds of its letters."""
    config = configuration({**PARITY, **LSTM, **fields})
    test = distinct_test_strings(sampler_of(config, "test"))
    ones, lengths = test.strings.counts[:, 1], test.strings.lengths
    says = {
        "a 1": ones > 0,
        "no 1": ones == 0,
        "never": lengths < 0,
        "right up to 25": (ones % 2 == 1) ^ (lengths > 25),
    }[positive]
    rows = np.flatnonzero(says != task_of(config).labels(test.strings))
    # What a behaviour is, the stored errors say: weights are not asked.
    return AskedModel(config, {}), sorted((test.texts[row] for row in rows), key=len)


@pytest.mark.parametrize(
    ("positive", "mechanism", "tokens"),
    [
        ("a 1", "simple rule", "positive iff there is a 1"),
        ("no 1", "simple rule", "positive iff no 1 at all"),
        ("never", "constant answer", "always negative"),
        ("right up to 25", "errors beyond a bound", "the length is above 25"),
    ],
)
def test_what_errors_have_in_common_is_found(positive: str, mechanism: str, tokens: str) -> None:
    model, wrong = wrong_strings(positive)
    (found,) = summed_up(attributions(model, wrong, 50))
    assert (found.mechanism, found.tokens, found.share) == (mechanism, tokens, 1.0)
    assert found.strings == min(50, len(wrong))
    agreement = None if mechanism == "errors beyond a bound" else 1.0
    assert found.agreement == agreement


def test_a_rule_that_is_the_language_explains_no_error() -> None:
    """A good model of a language that is on the list agrees with it, save where it fails."""
    model, _ = wrong_strings("a 1")
    test = distinct_test_strings(sampler_of(model.config, "test"))
    labels = test.labels.astype(bool)
    few = [test.texts[row] for row in np.flatnonzero(labels & (test.strings.lengths > 30))[:2]]
    assert len(few) == 2
    found = summed_up(attributions(model, few))
    assert {own.mechanism for own in found} == {"longer than in training"}


@pytest.mark.parametrize("fields", [{}, LSTM])
def test_every_error_of_any_model_has_one_cause(fields: dict[str, Any]) -> None:
    model = untrained(**fields, test_size=300, test_max_length=30, train_max_length=20)
    test = distinct_test_strings(sampler_of(model.config, "test"))
    wrong = [test.texts[row] for row in np.flatnonzero(model.ask(test.strings).wrong)]
    found = attributions(model, sorted(wrong, key=len), 20)
    assert [own.string for own in found] == [
        sorted(wrong, key=len)[place] for place in spread_evenly(len(wrong), 20)
    ]
    assert sum(own.share for own in summed_up(found)) == pytest.approx(1)
    for own in found:
        if own.mechanism == "one edit away":
            assert _helps(model, own)


def _helps(model: AskedModel, own: Attribution) -> bool:
    """Whether an edit of that kind makes the model answer otherwise, and rightly."""
    letters = model.letters(own.string)
    kind, *tokens = own.tokens.replace(" by", "").split()
    first, last = (model.tokenizer.alphabet.index(x) for x in (tokens[0], tokens[-1]))
    found = []
    for place in range(len(letters) + 1):
        before, after = letters[:place], letters[place + 1 :]
        if kind == "insert":
            found.append((*before, first, *letters[place:]))
        elif letters[place : place + 1] == (first,):
            found.append((*before, *((last,) if kind == "replace" else ()), *after))
    answers = model.ask_all(found)
    was = model.answer(letters).predicted
    return bool((answers.right & (answers.predicted != was)).any())


def test_errors_are_picked_evenly_from_the_shortest_on() -> None:
    assert spread_evenly(3, 50) == [0, 1, 2]
    assert spread_evenly(100, 4) == [0, 25, 50, 75]


@pytest.mark.parametrize(("string", "other"), [("ba", True), ("a{2}b{2}", True), ("a{3}b", False)])
def test_an_order_that_the_model_does_not_see_is_told(string: str, other: bool) -> None:
    """`(ab)*`, asked of a model without positions."""
    fields: dict[str, Any] = {"task": "regular", "alphabet": "ab", "pattern": "(ab)*"}
    model = untrained(**fields)
    letters = model.letters(string)
    found = same_letters_other_label(model.config, letters)
    assert (found is not None) == other
    if found is not None:
        assert sorted(found) == sorted(letters)
        assert model.task.labels(TokenStrings.of_lists(2, [found]))[0]
    assert sees_counts_alone(model.config)
    assert not sees_counts_alone(untrained(**fields, positions="alibi").config)
    assert not sees_counts_alone(untrained(**PARITY).config), "it need not see an order"


def test_errors_of_one_that_cannot_see_the_order_say_so() -> None:
    own = untrained(
        **{**PARITY, "task": "regular", "alphabet": "ab", "pattern": "(ab)*", "test_max_length": 20}
    )
    test = distinct_test_strings(sampler_of(own.config, "test"))
    even = test.strings.counts[:, 0] == test.strings.counts[:, 1]
    rows = np.flatnonzero(even & ~test.labels)
    found = attributions(own, [test.texts[row] for row in rows], 20)
    assert {one.mechanism for one in found} <= {"order not seen", "constant answer"}
    (suggested, *_) = suggestions(own.config, ["order not seen"])
    assert (suggested.field, suggested.value) == ("positions", "alibi")
