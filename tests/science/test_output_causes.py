"""What a model's wrong outputs have in common, said of models whose outputs are known."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from seqcls.evaluation import distinct_test_strings
from seqcls.interpretability.causes import attributions, summed_up
from seqcls.interpretability.mechanisms import FIRST_RIGHT, LATER, ONE_PLACE, REPEATED
from seqcls.interpretability.output_causes import WrongOutputs, statements
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.kinds.transduction import OutputAnswers, WrongOutput
from seqcls.models.initialization import initial_parameters
from seqcls.problem import Problem, configuration, resolve
from seqcls.results import ErrorKind
from seqcls.strings.token_strings import TokenStrings

SMALL = {"task": "copy", "architecture": "lstm", "hidden_size": 4}


def of_lengths(trained: int, tested: int, **more: int) -> Problem:
    """Copies by an LSTM, trained and tested up to these lengths."""
    lengths = {"train_max_length": trained, "validation_max_length": trained}
    return resolve(configuration({**SMALL, **lengths, "test_max_length": tested, **more}))


PROBLEM = of_lengths(3, 8)
COPY = of_lengths(4, 12, num_tokens=20, test_size=400)
WRONG = ["ab", "aba", "abab", "babab", "bababa", "aaaabbb"]


def model_that_writes(
    monkeypatch: pytest.MonkeyPatch, outputs: dict[str, tuple[str, int, ErrorKind]]
) -> TrainedModel:
    """A model whose outputs, first wrong places and kinds of error are these; others are right."""
    weights = {x: y.numpy() for x, y in initial_parameters(PROBLEM.network, 0).items()}
    model = TrainedModel(PROBLEM, weights)

    def ask(_model: object, strings: TokenStrings) -> OutputAnswers:
        spelled = ["".join("ab"[x] for x in row if x != 255) for row in strings.letters.tolist()]
        found = {row: outputs[text] for row, text in enumerate(spelled) if text in outputs}
        targets = PROBLEM.questions(strings).targets
        every, errors = np.ones(len(strings), dtype=bool), {}
        for row, (said, _, _) in found.items():
            target = [x for x in targets[row].tolist() if x != 255]
            errors[row] = WrongOutput(["ab".index(x) for x in said], target, True)
        score = np.zeros(len(strings))
        answers = OutputAnswers(strings, targets, targets, score, every, ~every, every, errors)
        # The places and kinds are those that are given.
        vars(answers)["first_wrong"] = np.array([place for _, place, _ in found.values()])
        vars(answers)["error_kinds"] = [kind for _, _, kind in found.values()]
        return answers

    monkeypatch.setattr(TrainedModel, "ask", ask)
    return model


def test_errors_are_told_apart_by_kind_and_place(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_that_writes(
        monkeypatch,
        {
            "ab": ("a", 1, "stopped early"),
            "aba": ("abaa", 3, "went on"),
            "abab": ("aba", 3, "stopped early"),
            "babab": ("bab", 3, "stopped early"),
            "bababa": ("a", 0, "wrong token"),
        },
    )
    causes = summed_up(attributions(model, [*WRONG, "ab"]))
    bound = "the 3 tokens of the longest target in training"
    assert [(x.mechanism, x.tokens, x.strings) for x in causes] == [
        ("stopped early", f"within {bound}", 2),
        ("stopped early", f"after {bound}", 2),
        ("went on", f"after {bound}", 1),
        ("wrong token", f"within {bound}", 1),
        ("rounding", "", 1),
    ]
    assert sum(x.share for x in causes) == pytest.approx(1)


def test_one_output_for_all_says_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_that_writes(monkeypatch, dict.fromkeys(WRONG, ("", 0, "stopped early")))
    (cause,) = summed_up(attributions(model, WRONG))
    assert (cause.mechanism, cause.tokens, cause.share) == ("constant answer", "always ε", 1)


def wrong_outputs(
    is_wrong: Callable[[list[int]], bool], place: Callable[[list[int]], int]
) -> WrongOutputs:
    """Copies of test inputs, wrong where it is said, from the place on that is said."""
    test = distinct_test_strings(COPY.test).strings
    inputs = [row[:length] for row, length in zip(test.letters.tolist(), test.lengths, strict=True)]
    wrong = np.array([is_wrong(tokens) for tokens in inputs])
    places = [place(tokens) for tokens, fails in zip(inputs, wrong, strict=True) if fails]
    rows = np.flatnonzero(wrong)
    return WrongOutputs(test.take(rows), np.array(places), test, test.lengths, wrong)


def said(
    is_wrong: Callable[[list[int]], bool], place: Callable[[list[int]], int]
) -> dict[str, str]:
    found = statements(wrong_outputs(is_wrong, place))
    assert all(x.holds.mean() >= (0.5 if x.mechanism == ONE_PLACE else 0.9) for x in found)
    return {x.mechanism: x.text for x in found}


def scattered(tokens: list[int]) -> int:
    """Some place of an output, whichever its tokens happen to give."""
    return sum(tokens) % len(tokens)


def has_repeats(tokens: list[int]) -> bool:
    return len(set(tokens)) < len(tokens)


def test_the_first_tokens_are_right_where_every_longer_target_is_wrong() -> None:
    right_for = "the first 6 tokens are right, and every output with a longer target is wrong"
    assert said(lambda x: len(x) > 6, lambda x: 6 + sum(x) % 4) == {FIRST_RIGHT: right_for}
    # 6 of them are right in all, but some longer outputs are right, too.
    longer = said(lambda x: len(x) > 6 and sum(x) % 7 > 0, lambda x: 6 + sum(x) % 4)
    assert not longer
    # All outputs go wrong at once.
    assert FIRST_RIGHT not in said(lambda x: len(x) > 6, lambda _: 0)


def test_a_few_outputs_that_are_wrong_before_are_not_covered() -> None:
    wrong = wrong_outputs(lambda x: len(x) > 5, lambda x: 2 if sum(x) % 20 == 0 else 5)
    first, place = statements(wrong)
    assert (first.mechanism, place.mechanism) == (FIRST_RIGHT, ONE_PLACE)
    for statement in (first, place):
        assert statement.holds.tolist() == (wrong.first_wrong == 5).tolist()
        assert 0.9 <= statement.holds.mean() < 1


def test_one_place_is_said_where_it_is_that_of_most_lengths() -> None:
    at_two = said(lambda x: len(x) > 2 and sum(x) % 2 > 0, lambda _: 2)
    assert at_two == {ONE_PLACE: "first wrong at token 3, whatever the length"}
    assert said(lambda x: len(x) > 5, lambda x: 2 if sum(x) % 3 else sum(x) % 5) == at_two
    assert not said(lambda x: len(x) > 5, lambda x: sum(x) % 3)
    # One length has one place anyway.
    assert not said(lambda x: len(x) == 9 and sum(x) % 2 > 0, lambda _: 2)
    assert not said(lambda x: sum(x) % 2 > 0, scattered)


def test_errors_come_later_in_longer_inputs_where_the_ranks_agree() -> None:
    (later,) = said(lambda x: sum(x) % 2 > 0, lambda x: len(x) - 1).items()
    assert later == (LATER, "right for longer in longer inputs (rank correlation 1.00)")
    assert not said(lambda x: sum(x) % 2 > 0, lambda x: 12 - len(x))


def test_repeats_are_named_where_inputs_as_long_without_are_right() -> None:
    (named,) = said(has_repeats, scattered).items()
    assert named == (
        REPEATED,
        "a token occurs more than once; of such inputs 100% are wrong, of as long ones without 0%",
    )


def test_repeats_are_not_named_where_length_or_nothing_tells_them_apart() -> None:
    long_ones = wrong_outputs(lambda x: len(x) > 8, scattered)
    assert np.mean([has_repeats(x) for x in long_ones.inputs.letters.tolist()]) > 0.8
    assert not statements(long_ones)
    # All inputs have repeats.
    of_two = wrong_outputs(has_repeats, scattered)
    rows = np.flatnonzero((of_two.tested.counts > 1).any(axis=1))
    alike = replace(
        of_two,
        tested=of_two.tested.take(rows),
        target_lengths=of_two.target_lengths[rows],
        is_wrong=of_two.is_wrong[rows],
    )
    assert not statements(alike)


def test_little_is_known_of_few_wrong_outputs() -> None:
    number = iter(range(1000))
    few = wrong_outputs(lambda x: len(x) == 12 and next(number) < 4, lambda _: 2)
    assert len(few.inputs) == 4
    assert not statements(few)


def test_what_holds_of_all_names_the_cause_and_the_kind_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    test = distinct_test_strings(PROBLEM.test)
    rows = zip(test.strings.letters.tolist(), test.strings.lengths.tolist(), strict=True)
    strings = ["".join("ab"[x] for x in row[:length]) for row, length in rows]
    spelled = dict(zip(test.texts, strings, strict=True))
    long = [text for text in test.texts if len(spelled[text]) > 3]
    outputs: dict[str, tuple[str, int, ErrorKind]] = {
        spelled[text]: (spelled[text][:3], 3, "stopped early") for text in long
    }
    causes = summed_up(attributions(model_that_writes(monkeypatch, outputs), long))
    text = (
        "the first 3 tokens are right, and every output with a longer target is wrong; first "
        "wrong at token 4, whatever the length; the output stopped early"
    )
    (cause,) = causes
    assert (cause.mechanism, cause.tokens, cause.share) == ("first tokens right", text, 1)
