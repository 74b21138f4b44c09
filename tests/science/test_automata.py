"""Automata extracted from models, of which some are automata and some are not."""

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from seqcls.errors import ConfigError
from seqcls.interpretability.automaton import (
    LearnedAutomaton,
    LearningBudget,
    learned_text,
)
from seqcls.interpretability.automaton_answers import EndedError, ModelAnswers
from seqcls.interpretability.automaton_inside import look_inside
from seqcls.interpretability.automaton_learning import learn, shortest_difference
from seqcls.interpretability.domains import strings_of_length
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.problem import configuration, resolve
from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks.automaton import Automaton
from seqcls.tasks.regular import minimal_automaton
from tests.science.test_causes import rule_model
from tests.zoo import LSTM, untrained

SMALL = LearningBudget(strings=2**10, states=20)
SMALL_TEST: dict[str, Any] = {"test_size": 200, "test_max_length": 40}
TOMITA_5 = "(00|11|(01|10)(00|11)*(01|10))*"


def predictions_of(automaton: Automaton) -> Callable[[TokenStrings], np.ndarray]:
    return lambda strings: automaton.accepting[automaton.states(strings)]


def learned(rule: Callable[[TokenStrings], np.ndarray], **fields: Any) -> LearnedAutomaton:
    return learn(rule_model(rule, **fields)[0], SMALL)


@pytest.mark.parametrize(
    "pattern", ["1*", "0*1*0*1*", "(01|(1|00)(10)*(0|11))*", "(0|1)*1(0|1){3}"]
)
def test_automaton_of_a_regular_model_is_learned(pattern: str) -> None:
    language = minimal_automaton(pattern, "01")
    found = learned(predictions_of(language), task="regular", alphabet="01", pattern=pattern)
    assert found.found
    assert shortest_difference(found.automaton, language) is None
    assert found.states == len(language.table)
    text = " ".join(learned_text(found))
    assert "of up to 9 tokens" in text
    assert f"the same as the minimal automaton of the language ({found.states} states)" in text


def test_difference_from_the_language_is_an_error_of_the_model() -> None:
    found = learned(lambda strings: strings.counts[:, 1] > 0)
    assert (found.found, found.states) == (True, 2)
    assert found.error is not None
    assert (found.error.string, found.error.is_wrong) == ("1{2}", True)
    assert found.wrong == found.explained > 0
    assert "an error of the model" in learned_text(found)[1]


def test_counting_model_has_no_automaton() -> None:
    found = learned(lambda strings: strings.counts[:, 1] > strings.counts[:, 0])
    assert not found.found
    assert found.states <= SMALL.states
    assert "beyond 20 states" in learned_text(found)[0]
    sizes = [made.states for made in found.rounds]
    assert sizes == sorted(sizes), "the line does not fall here"
    assert all(made.counterexample is not None for made in found.rounds)


def test_learning_finds_differences_in_longer_test_strings() -> None:
    found = learned(lambda strings: (strings.counts[:, 1] % 2 == 1) ^ (strings.lengths > 12))
    assert not found.found or found.states > 12
    assert found.rounds[1].states == 2
    assert found.rounds[1].agreement < 1


def test_untested_empty_string_takes_the_answer_of_the_language() -> None:
    model = untrained(**LSTM, **SMALL_TEST, task="parity", test_min_length=1)
    answers = ModelAnswers(model, SMALL)
    assert answers.empty_given
    assert not answers.ask_one(())


def test_shortest_difference_is_the_first_of_all_strings() -> None:
    patterns = (TOMITA_5, "(01|(1|00)(10)*(0|11))*", "((0|1){4})*", "(0|1)*1(0|1){3}")
    automata = [minimal_automaton(pattern, "01") for pattern in patterns]
    for one, other in combinations(automata, 2):
        batches = (strings_of_length(2, length) for length in range(7))
        differ = (
            (x, np.flatnonzero(predictions_of(one)(x) != predictions_of(other)(x))) for x in batches
        )
        strings, rows = next((x, rows) for x, rows in differ if len(rows))
        assert shortest_difference(one, other) == tuple(strings.letters[rows[0]].tolist())


def test_unlearnable_model_or_budget_is_refused_with_the_reason() -> None:
    bad: list[tuple[dict[str, Any], str]] = [
        ({"states": 0}, "states=0: expected more than 0"),
        ({"seconds": float("nan")}, "seconds=nan: expected more than 0"),
        ({"length": -1}, "length=-1: expected more than 0"),
        ({"strings": 2**30}, "expected at most 1,048,576"),
    ]
    for bounds, message in bad:
        with pytest.raises(ConfigError, match=message):
            LearningBudget(**bounds)
    without = (
        ({"task": "contains_all", "num_letters": 9}, "9 tokens"),
        ({"task": "reverse"}, "is no"),
    )
    for fields, message in without:
        with pytest.raises(ConfigError, match=message):
            learn(TrainedModel(resolve(configuration(fields)), {}))
    with pytest.raises(ConfigError, match="seconds are over"):
        learn(untrained(**SMALL_TEST), LearningBudget(seconds=1e-9))


def test_learning_ends_after_its_budget_of_long_strings() -> None:
    answers = ModelAnswers(untrained(**LSTM, **SMALL_TEST), LearningBudget(strings=30, single=2))
    for letter in (0, 1):
        answers.ask_one((letter,) * answers.longest)
    with pytest.raises(EndedError, match="2 strings have been asked one by one"):
        answers.ask_one((0, 1) + (0,) * (answers.longest - 2))


def test_learning_queries_no_string_beyond_the_position_table() -> None:
    places: dict[str, Any] = {"positions": "learned", "train_max_length": 12, "test_max_length": 30}
    model = untrained(**places, validation_max_length=12)
    found = learn(model, LearningBudget(strings=200))
    assert found.longest <= 30
    answers = ModelAnswers(model, LearningBudget(strings=200))
    assert answers.longest < 60, "it would be twice the longest test string"


def test_probe_reads_the_last_token_from_states() -> None:
    """The last token can be read from every state of a model."""
    last = minimal_automaton("(0|1)*1", "01")
    model = untrained(**LSTM, hidden_size=8, train_max_length=12, **SMALL_TEST)
    found = look_inside(model, last)
    for probe in found.probes:
        assert probe.trained > 0.9
        assert probe.beyond is not None
        assert len(probe.by_position) == len(probe.positions)
    assert f"{found.commonest:.1%}".replace(".0%", "%") in next(found.describe(model))
