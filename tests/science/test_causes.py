"""Causes of errors, found for models whose errors are known."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from seqcls.config import RunConfig
from seqcls.evaluation import distinct_test_strings
from seqcls.fields import test_set_json as json_of_test
from seqcls.interpretability.causes import (
    attributions,
    same_letters_other_label,
    sees_counts_alone,
    summed_up,
)
from seqcls.interpretability.mechanisms import CAUSES, sentence_of, spread_evenly
from seqcls.interpretability.remedies import change_fields, suggestions
from seqcls.interpretability.rules import fitting_rules, rules
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.kinds.base import Answers
from seqcls.kinds.membership import MembershipKind
from seqcls.models.initialization import initial_parameters
from seqcls.problem import configuration, resolve
from seqcls.results import Cause
from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks.base import texts
from tests.conftest import ROOT
from tests.science.trained import EQUATIONS, trained
from tests.zoo import LSTM, untrained

PARITY: dict[str, Any] = {
    "task": "parity", "train_size": 256, "train_max_length": 12, "validation_max_length": 12,
    "test_size": 800, "test_max_length": 40,
}  # fmt: skip


BEYOND, LONG, SHORT = "errors beyond a bound", "longer than in training", "no cause found"
Rule = Callable[[TokenStrings], np.ndarray]


@dataclass(frozen=True, eq=False)
class RuleModel(TrainedModel):
    """A model that answers by a given rule."""

    rule: Rule = lambda own: own.lengths < 0

    def ask(self, strings: TokenStrings) -> Answers:
        logits = np.where(self.rule(strings), 1.0, -1.0) * self.weights.get("factor", 1.0)
        return MembershipKind().judge(self.problem.questions(strings), logits)


def rule_model(rule: Rule, **fields: object) -> tuple[TrainedModel, list[str]]:
    """A model that predicts positive where a rule holds, and its errors, the shortest first."""
    problem = resolve(configuration({**PARITY, **LSTM, **fields}))
    weights = {name: own.numpy() for name, own in initial_parameters(problem.network, 0).items()}
    model = RuleModel(problem, weights, rule)
    test = distinct_test_strings(model.problem.test)
    wrong = np.flatnonzero(model.ask(test.strings).wrong)
    rows = wrong[np.argsort(test.strings.lengths[wrong], kind="stable")]
    return model, [test.texts[row] for row in rows]


def causes_of(rule: Rule, **fields: object) -> list[Cause]:
    return summed_up(attributions(*rule_model(rule, **fields), 50))


def ones(strings: TokenStrings) -> np.ndarray:
    return np.asarray(strings.counts[:, 1])


def is_odd(strings: TokenStrings) -> np.ndarray:
    return np.asarray(ones(strings) % 2 == 1)


def is_balanced(strings: TokenStrings) -> np.ndarray:
    return np.asarray(resolve(configuration({"task": "dyck"})).language.labels(strings))


def overlooks_defects(strings: TokenStrings) -> np.ndarray:
    """Right on strings of `(ab)*`, wrong on those whose first defect comes late."""
    task = resolve(configuration(AB)).language
    sound = task.features(strings)["length before the first defect"]
    return np.asarray(task.labels(strings) | (sound > 5))


AB: dict[str, Any] = {"task": "regular", "alphabet": "ab", "pattern": "(ab)*"}
BLIND = {"architecture": "transformer", "readout": "first", "biases": False}
LONGER: dict[str, Any] = {"train_max_length": 20, "validation_max_length": 20}
BY_ONE: list[tuple[Rule, dict[str, Any], str, str]] = [
    (lambda own: ones(own) > 0, {}, "simple rule", "positive iff there is a 1"),
    (lambda own: ones(own) == 0, {}, "simple rule", "positive iff no 1 at all"),
    (lambda own: own.lengths < 0, {}, "constant answer", "always negative"),
    (lambda own: is_odd(own) ^ (own.lengths > 25), {}, LONG, "the length is above 25"),
    # Trained lengths whose strings are too many are tried on those of training.
    (lambda own: is_odd(own) ^ (own.lengths > 20), LONGER, LONG, "the length is above 20"),
    (
        is_balanced, {"task": "dyck", "max_depth": 3}, BEYOND,
        "the nesting depth is above 3",
    ),
    (
        overlooks_defects, AB, BEYOND,
        "the length before the first defect is above 5",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "fields", "mechanism", "tokens"), BY_ONE)
def test_common_cause_of_errors_is_found(
    rule: Rule, fields: dict[str, Any], mechanism: str, tokens: str
) -> None:
    model, wrong = rule_model(rule, **fields)
    (found,) = summed_up(attributions(model, wrong, 50))
    assert (found.mechanism, found.share) == (mechanism, 1.0)
    assert found.tokens.endswith(tokens)
    assert found.strings == min(50, len(wrong))
    assert found.agreement == (1.0 if mechanism in ("simple rule", "constant answer") else None)


def test_length_and_rules_are_no_cause_where_short_strings_fail() -> None:
    # By letter counts alone 23 strings represent all of their length.
    for kind in ({}, BLIND):
        found = causes_of(lambda own: is_odd(own) ^ (own.lengths > 18), **LONGER, **kind)
        assert {own.mechanism for own in found} == {SHORT}
    # Nor are counts, whose bounds would imply it in the test.
    two = causes_of(
        lambda own: is_odd(own) ^ (own.lengths > 25) | (ones(own) == 2) & (own.lengths == 2)
    )
    named_tokens = {own.tokens for own in two if own.mechanism == SHORT}
    sides = ("false positives", "false negatives")
    assert named_tokens == {f"{side}; the model's shortest error of all is 11" for side in sides}
    assert {own.mechanism for own in two} == {SHORT}
    # All test strings have more than twelve letters; shorter ones are answered rightly.
    at_once: tuple[Rule, ...] = (
        lambda own: is_odd(own) | (own.lengths > 12),
        lambda own: np.where(own.lengths > 12, ones(own) > 3, is_odd(own)),
    )
    for rule in at_once:
        found = causes_of(rule, test_min_length=13)
        assert not {"constant answer", "simple rule"} & {own.mechanism for own in found}


def test_rule_is_no_cause_without_answers_or_if_it_is_the_language() -> None:
    silent = RuleModel(rule_model(is_odd)[0].problem, {"factor": np.array(np.nan)}, is_odd)
    test = distinct_test_strings(silent.problem.test)
    found = summed_up(attributions(silent, test.texts, 20))
    assert {own.mechanism for own in found}.isdisjoint({"simple rule", "constant answer"})
    # A good model of a language that is on the list agrees with it, save where it fails.
    labels = test.labels.astype(bool)
    spelled = texts("01", test.strings)
    rows = np.flatnonzero(labels & (test.strings.lengths > 30))[:2]
    few = {spelled[row] for row in rows}
    model, wrong = rule_model(
        lambda own: is_odd(own) ^ np.array([x in few for x in texts("01", own)])
    )
    assert len(wrong) == 2
    found = summed_up(attributions(model, wrong))
    assert {own.mechanism for own in found} == {"longer than in training"}


def test_lstm_failing_at_trained_lengths_has_no_length_cause() -> None:
    model = trained("deep")
    deep = tuple(int(x) for x in "00001111")
    assert model.answer(deep).is_wrong
    test = distinct_test_strings(model.problem.test)
    wrong = sorted(
        (test.texts[row] for row in np.flatnonzero(model.ask(test.strings).wrong)), key=len
    )
    found = attributions(model, wrong)
    by_depth = {own.string for own in found if own.tokens.endswith("the nesting depth is above 3")}
    assert len(by_depth) > len(found) / 2
    for string in by_depth:
        places = np.cumsum([1 - 2 * letter for letter in model.letters(string)])
        assert places.max() > 3
        assert not model.answer(model.letters(string)).label
    assert LONG not in {own.mechanism for own in found}


def is_equation(strings: TokenStrings) -> np.ndarray:
    """True for strings that have the form of an equation, right or wrong."""
    rows = texts("+-*=01234", strings)
    looks = [re.fullmatch(r"[0-4]([-+*][0-4])*=[0-4]", row) is not None for row in rows]
    return np.array(looks, dtype=bool)


def test_lstm_that_learned_only_form_answers_by_form() -> None:
    formal = trained("formal")
    test = distinct_test_strings(formal.problem.test)
    answers = formal.ask(test.strings)
    assert test.test_set.drawn is not None
    near = np.array([test.test_set.drawn[number] == "near" for number in test.numbers])
    assert answers.wrong[near].mean() > 0.5
    assert answers.wrong[~near].mean() < 0.05
    wrong = sorted((test.texts[row] for row in np.flatnonzero(answers.wrong)), key=len)
    (cause, *_) = summed_up(attributions(formal, wrong, 20))
    assert cause.mechanism == "answers by form"
    assert cause.share > 0.8
    assert cause.agreement is not None
    assert cause.agreement >= 0.95
    kappa = re.fullmatch(r"the (bi|tri)grams that occur, linear, kappa (\S+) .*", cause.tokens)
    assert kappa
    assert float(kappa[2]) > 0.7


def test_near_negatives_are_suggested_for_answering_by_form() -> None:
    def suggested(config: RunConfig) -> list[dict[str, object]]:
        every = suggestions(resolve(config), ["answers by form"])
        found = [own for own in every if own.field == "negatives"]
        for own in found:
            other = change_fields(config, own.fields)
            assert json_of_test(other) == json_of_test(config)
        return [own.fields for own in found]

    own = trained("formal").problem.config
    assert suggested(own) == [{"negatives": "near"}]
    mixed = configuration({**own.changed, "test_negatives": "as_trained"})
    assert suggested(mixed) == [{"negatives": "near", "test_negatives": "mixed"}]
    assert suggested(configuration({**own.changed, "negatives": "near"})) == []
    assert suggested(configuration({"task": "repeat_01", **LSTM})) == [], "it has none"
    assert suggested(configuration({"task": "copy"})) == []


def test_only_errors_of_a_shortcut_reader_are_answers_by_form() -> None:
    right = resolve(configuration(EQUATIONS)).language.labels

    def by_form(rule: Rule) -> bool:
        return "answers by form" in {own.mechanism for own in causes_of(rule, **EQUATIONS)}

    assert by_form(is_equation)
    # Wrong on every twelfth string, whatever it looks like.
    assert not by_form(lambda own: right(own) ^ (own.letters[:, :3].sum(axis=1) % 12 == 0))
    # It looks at the form of what is longer than in training alone.
    assert not by_form(lambda own: np.where(own.lengths > 7, is_equation(own), right(own)))
    # It works out those equations that begin with an odd number.
    assert not by_form(
        lambda own: np.where(own.letters[:, 0] % 2 == 0, is_equation(own), right(own))
    )


@pytest.mark.parametrize("fields", [{}, LSTM])
def test_every_error_of_any_model_has_one_cause(fields: dict[str, Any]) -> None:
    model = untrained(**fields, test_size=300, test_max_length=24, train_max_length=20)
    test = distinct_test_strings(model.problem.test)
    wrong = [test.texts[row] for row in np.flatnonzero(model.ask(test.strings).wrong)]
    wrong = sorted(wrong, key=len)
    found = attributions(model, wrong, 10)
    assert spread_evenly(100, 4) == [0, 25, 50, 75]
    assert [own.string for own in found] == [wrong[x] for x in spread_evenly(len(wrong), 10)]
    assert sum(own.share for own in summed_up(found)) == pytest.approx(1)
    assert {own.mechanism for own in found} <= {*CAUSES}


def test_order_blind_model_errs_by_order_not_seen() -> None:
    """A model of `(ab)*` that predicts positive for about as many a as b."""
    model = untrained(**AB)
    for string, other in (("ba", True), ("a{2}b{2}", True), ("a{3}b", False)):
        letters = model.letters(string)
        same = same_letters_other_label(model.problem, letters)
        assert (same is not None) == other
        if same is not None:
            assert sorted(same) == sorted(letters)
            assert model.problem.language.labels(TokenStrings.of_lists(2, [same]))[0]
    assert sees_counts_alone(model.problem)
    assert not sees_counts_alone(untrained(**AB, positions="alibi").problem)
    assert not sees_counts_alone(untrained(**PARITY).problem), "it need not see an order"

    def balanced(strings: TokenStrings) -> np.ndarray:
        a, b = strings.counts.T
        return np.asarray((abs(a - b) <= strings.lengths // 20) & (a > 0))

    found = causes_of(balanced, **AB, **BLIND)
    assert {own.mechanism for own in found} == {"order not seen"}
    assert {own.tokens for own in found} == {"", "as in ba"}
    (suggested, *_) = suggestions(untrained(task="even_pairs").problem, ["order not seen"])
    assert (suggested.field, suggested.value) == ("positions", "alibi")


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


def test_rules_agree_with_their_words() -> None:
    strings = ["", "0", "00", "01", "1", "10", "1101"]
    own = TokenStrings.of_lists(2, [[int(x) for x in string] for string in strings])
    zeros = np.zeros(len(strings), dtype=bool)
    holds = dict(rules("01", own, zeros, zeros.astype(np.int64)))
    for text, meant in MEANT.items():
        assert np.array(strings)[holds[text]].tolist() == meant, text
    # One layer without positions cannot compute parity: it detects whether there is a 1.
    found = fitting_rules(trained("parity"))
    agreeing = {rule.text for rule in found.rules if rule.agreement == found.best.agreement}
    assert found.best.agreement > 0.99
    assert "positive iff there is a 1" in agreeing
    assert not any(
        rule.text.endswith(f"the {quantity} of 1 is {bound} 0")
        for rule in found.rules
        for quantity in ("number", "share")
        for bound in ("above", "at most")
    ), "said once"


def test_documented_causes_are_those_of_the_program() -> None:
    lines = (ROOT / "docs" / "why.md").read_text(encoding="utf-8").splitlines()
    table = [line.strip("| ").split(" | ") for line in lines if line.startswith("| `")]
    rows = [(re.findall("`([^`]+)`", names), shown_by) for names, *_, shown_by in table]
    documented = {name: shown_by for names, shown_by in rows for name in names}
    assert documented.keys() >= CAUSES.keys()
    assert all(documented[name] for name in CAUSES)
    assert len({entry.sentence for entry in CAUSES.values()}) == len(CAUSES)
    assert sentence_of("dilution", "head 1: b by a") == (
        "Its attention is diluted (head 1: b by a): others outnumber the tokens that it attends to"
    )
    assert sentence_of("rounding", "") == "In double precision the answer is right"
    assert (
        sentence_of("order not seen", "") == CAUSES["order not seen"].sentence[: -len(": {about}")]
    )
