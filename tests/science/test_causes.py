"""Causes of errors: groups of behaviours, on models whose errors are known."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from seqcls.config import RunConfig
from seqcls.evaluation import distinct_test_strings
from seqcls.fields import test_set_json as json_of_test
from seqcls.interpretability.cause_evidence import same_letters_other_label, sees_counts_alone
from seqcls.interpretability.causes import attributions, summed_up
from seqcls.interpretability.mechanisms import AttributedError, spread_evenly
from seqcls.interpretability.remedies import change_fields, suggestions
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.kinds.base import Answers
from seqcls.kinds.membership import MembershipKind
from seqcls.models.initialization import initial_parameters
from seqcls.problem import configuration, resolve
from seqcls.results import Cause
from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks.base import texts
from tests.science.trained import EQUATIONS, trained
from tests.zoo import LSTM, untrained

PARITY: dict[str, Any] = {
    "task": "parity", "train_size": 256, "train_max_length": 12, "validation_max_length": 12,
    "test_size": 800, "test_max_length": 40,
}  # fmt: skip


Says = Callable[[TokenStrings], np.ndarray]


@dataclass(frozen=True, eq=False)
class Saying(TrainedModel):
    """A model that answers by a rule of ours."""

    says: Says = lambda own: own.lengths < 0

    def ask(self, strings: TokenStrings) -> Answers:
        logits = np.where(self.says(strings), 1.0, -1.0)
        return MembershipKind().judge(self.problem.questions(strings), logits)


def saying(says: Says, **fields: object) -> tuple[TrainedModel, list[str]]:
    """A model that says positive where that holds, and its errors, the shortest first."""
    problem = resolve(configuration({**PARITY, **LSTM, **fields}))
    weights = {name: own.numpy() for name, own in initial_parameters(problem.network, 0).items()}
    model = Saying(problem, weights, says)
    test = distinct_test_strings(model.problem.test)
    wrong = np.flatnonzero(model.ask(test.strings).wrong)
    rows = wrong[np.argsort(test.strings.lengths[wrong], kind="stable")]
    return model, [test.texts[row] for row in rows]


def found_by(says: Says, **fields: object) -> list[Cause]:
    return summed_up(attributions(*saying(says, **fields), 50))


class Silent(Saying):
    """A model whose logits are NaN."""

    def ask(self, strings: TokenStrings) -> Answers:
        nothing = np.full(len(strings), np.nan)
        return MembershipKind().judge(self.problem.questions(strings), nothing)


def ones(strings: TokenStrings) -> np.ndarray:
    return np.asarray(strings.counts[:, 1])


def is_odd(strings: TokenStrings) -> np.ndarray:
    return np.asarray(ones(strings) % 2 == 1)


def two_ones(strings: TokenStrings) -> np.ndarray:
    return np.asarray((ones(strings) == 2) & (strings.lengths == 2))


@pytest.mark.parametrize(
    ("says", "mechanism", "tokens"),
    [
        (lambda own: ones(own) > 0, "simple rule", "positive iff there is a 1"),
        (lambda own: ones(own) == 0, "simple rule", "positive iff no 1 at all"),
        (lambda own: own.lengths < 0, "constant answer", "always negative"),
        (
            lambda own: is_odd(own) ^ (own.lengths > 25),
            *("errors beyond a bound", "the length is above 25"),
        ),
    ],
)
def test_what_errors_have_in_common_is_found(says: Says, mechanism: str, tokens: str) -> None:
    model, wrong = saying(says)
    (found,) = summed_up(attributions(model, wrong, 50))
    assert (found.mechanism, found.tokens, found.share) == (mechanism, tokens, 1.0)
    assert found.strings == min(50, len(wrong))
    assert found.agreement == (None if mechanism == "errors beyond a bound" else 1.0)


def test_no_rule_is_claimed_of_a_model_without_answers() -> None:
    model = Silent(resolve(configuration({**PARITY, **LSTM})), {})
    wrong = distinct_test_strings(model.problem.test).texts
    found = summed_up(attributions(model, wrong, 20))
    assert {own.mechanism for own in found}.isdisjoint({"simple rule", "constant answer"})


def test_a_rule_that_is_the_language_explains_no_error() -> None:
    """A good model of a language that is on the list agrees with it, save where it fails."""
    model, _ = saying(is_odd)
    test = distinct_test_strings(model.problem.test)
    labels = test.labels.astype(bool)
    few = [test.texts[row] for row in np.flatnonzero(labels & (test.strings.lengths > 30))[:2]]
    assert len(few) == 2
    found = summed_up(attributions(model, few))
    assert {own.mechanism for own in found} == {"longer than in training"}


def test_length_is_no_cause_where_a_short_string_fails() -> None:
    """Nor counts, whose bounds would stand for it in the test."""
    found = found_by(lambda own: (is_odd(own) ^ (own.lengths > 25)) | two_ones(own))
    told = {own.tokens for own in found if own.mechanism == "not only longer than in training"}
    assert told == {
        "false positives, the model's shortest error 11",
        "false negatives, the model's shortest error 11",
    }
    assert {own.mechanism for own in found} <= {"not only longer than in training", "one edit away"}


def test_trained_lengths_whose_strings_are_too_many_are_tried_on_those_of_training() -> None:
    longer: dict[str, object] = {"train_max_length": 20, "validation_max_length": 20}
    (cause,) = found_by(lambda own: is_odd(own) ^ (own.lengths > 20), **longer)
    assert cause.tokens == "the length is above 20"
    # By letter counts alone 23 strings stand for all that are as long.
    blind = {"architecture": "transformer", "readout": "first", "biases": False}
    for kind in ({}, blind):
        found = found_by(lambda own: is_odd(own) ^ (own.lengths > 18), **longer, **kind)
        assert {own.mechanism for own in found} == {"not only longer than in training"}


def test_a_rule_of_the_test_strings_alone_is_none() -> None:
    """All test strings have more than twelve letters; shorter ones are answered rightly."""
    found = found_by(lambda own: is_odd(own) | (own.lengths > 12), test_min_length=13)
    assert "constant answer" not in {own.mechanism for own in found}
    found = found_by(
        lambda own: np.where(own.lengths > 12, ones(own) > 3, is_odd(own)), test_min_length=13
    )
    assert "simple rule" not in {own.mechanism for own in found}


def opened_and_closed(strings: TokenStrings) -> np.ndarray:
    limitless = resolve(configuration({"task": "dyck"})).language
    return np.asarray(limitless.labels(strings))


def test_errors_that_lie_deeper_than_allowed_are_told_by_their_depth() -> None:
    (cause,) = found_by(opened_and_closed, task="dyck", max_depth=3)
    assert cause.mechanism == "errors by a feature"
    assert cause.tokens == "the nesting depth is above 3"


def test_a_trained_lstm_that_fails_at_trained_lengths_fails_by_no_length() -> None:
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
    assert not {own.mechanism for own in found} & {
        "longer than in training",
        "errors beyond a bound",
    }


def test_errors_by_the_place_of_their_first_defect_are_told_by_it() -> None:
    fields: dict[str, object] = {"task": "regular", "alphabet": "ab", "pattern": "(ab)*"}
    task = resolve(configuration(fields)).language

    def overlooks(strings: TokenStrings) -> np.ndarray:
        sound = task.features(strings)["length before the first defect"]
        return task.labels(strings) | (sound > 5)

    (cause,) = found_by(overlooks, **fields)
    assert cause.mechanism == "errors by a feature"
    assert cause.tokens.endswith("the length before the first defect is above 5")


def is_equation(strings: TokenStrings) -> np.ndarray:
    """Whether a string looks like an equation, right or wrong."""
    rows = texts("+-*=01234", strings)
    looks = [re.fullmatch(r"[0-4]([-+*][0-4])*=[0-4]", row) is not None for row in rows]
    return np.array(looks, dtype=bool)


def test_an_lstm_that_knows_equations_by_their_looks_answers_by_form() -> None:
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


def test_a_model_that_answers_by_form_is_shown_near_negatives_and_tested_as_before() -> None:
    def suggested(config: RunConfig) -> list[dict[str, object]]:
        every = suggestions(resolve(config), ["answers by form"])
        found = [own for own in every if own.field == "negatives"]
        for own in found:
            other = change_fields(config, own.fields)
            assert json_of_test(other) == json_of_test(config)
        return [own.fields for own in found]

    own = trained("formal").problem.config
    assert suggested(own) == [{"negatives": "near", "test_negatives": "near"}]
    mixed = configuration({**own.changed, "test_negatives": "as_trained"})
    assert suggested(mixed) == [{"negatives": "near", "test_negatives": "mixed"}]
    assert suggested(configuration({**own.changed, "negatives": "near"})) == []
    assert suggested(configuration({"task": "repeat_01", **LSTM})) == [], "it has none"
    assert suggested(configuration({"task": "copy"})) == []


def test_what_errs_as_a_reader_does_answers_by_form_and_nothing_else_does() -> None:
    right = resolve(configuration(EQUATIONS)).language.labels

    def by_form(says: Says) -> bool:
        return "answers by form" in {own.mechanism for own in found_by(says, **EQUATIONS)}

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
    for own in found:
        if own.mechanism == "one edit away":
            assert _helps(model, own)


def _helps(model: TrainedModel, own: AttributedError) -> bool:
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


def test_an_order_that_the_model_does_not_see_is_told() -> None:
    """`(ab)*`, asked of a model without positions."""
    fields: dict[str, Any] = {"task": "regular", "alphabet": "ab", "pattern": "(ab)*"}
    model = untrained(**fields)
    for string, other in (("ba", True), ("a{2}b{2}", True), ("a{3}b", False)):
        letters = model.letters(string)
        found = same_letters_other_label(model.problem, letters)
        assert (found is not None) == other
        if found is not None:
            assert sorted(found) == sorted(letters)
            assert model.problem.language.labels(TokenStrings.of_lists(2, [found]))[0]
    assert sees_counts_alone(model.problem)
    assert not sees_counts_alone(untrained(**fields, positions="alibi").problem)
    assert not sees_counts_alone(untrained(**PARITY).problem), "it need not see an order"


def test_an_error_of_one_that_cannot_see_the_order_names_a_short_one() -> None:
    """A model of `(ab)*` that says positive where both letters are as many, or nearly so."""

    def balanced(strings: TokenStrings) -> np.ndarray:
        a, b = strings.counts.T
        return np.asarray((abs(a - b) <= strings.lengths // 20) & (a > 0))

    blind = {"architecture": "transformer", "readout": "first", "biases": False}
    found = found_by(balanced, task="regular", alphabet="ab", pattern="(ab)*", **blind)
    assert {own.mechanism for own in found} == {"order not seen"}
    assert {own.tokens for own in found} == {"", "as in ba"}
    (suggested, *_) = suggestions(untrained(task="even_pairs").problem, ["order not seen"])
    assert (suggested.field, suggested.value) == ("positions", "alibi")
