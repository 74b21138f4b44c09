"""Causes of wrong outputs, found for models whose outputs are given."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from seqcls.evaluation import distinct_test_strings
from seqcls.interpretability.causes import attributions, summed_up
from seqcls.interpretability.mechanisms import FIRST_RIGHT
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.kinds.transduction import OutputAnswers, WrongOutput
from seqcls.models.initialization import initial_parameters
from seqcls.problem import configuration, resolve
from seqcls.results import ErrorKind
from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks.base import texts

SMALL = {"task": "copy", "architecture": "lstm", "hidden_size": 4}
LENGTHS = {"train_max_length": 3, "validation_max_length": 3, "test_max_length": 8}
PROBLEM = resolve(configuration({**SMALL, **LENGTHS}))
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
        for row, (output, _, _) in found.items():
            target = [x for x in targets[row].tolist() if x != 255]
            errors[row] = WrongOutput(["ab".index(x) for x in output], target, True)
        score = np.zeros(len(strings))
        answers = OutputAnswers(strings, targets, targets, score, every, ~every, every, errors)
        # The places and kinds are those that are given.
        vars(answers)["first_wrong"] = np.array([place for _, place, _ in found.values()])
        vars(answers)["error_kinds"] = [kind for _, _, kind in found.values()]
        return answers

    monkeypatch.setattr(TrainedModel, "ask", ask)
    return model


def test_output_errors_are_grouped_by_kind_and_place(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_that_writes(
        monkeypatch,
        {
            "ab": ("a", 1, "stopped early"), "aba": ("abaa", 3, "went on"),
            "abab": ("aba", 3, "stopped early"), "babab": ("bab", 3, "stopped early"),
            "bababa": ("a", 0, "wrong token"),
        },
    )  # fmt: skip
    causes = summed_up(attributions(model, [*WRONG, "ab"]))
    bound = "the 3 tokens of the longest target in training"
    assert [(x.mechanism, x.tokens, x.strings) for x in causes] == [
        ("stopped early", f"within {bound}", 2),
        ("stopped early", f"after {bound}", 2),
        ("went on", f"after {bound}", 1),
        ("wrong token", f"within {bound}", 1),
        ("rounding", "", 1),
    ]
    assert [x.share for x in causes] == pytest.approx([x.strings / 7 for x in causes])


def test_cause_common_to_all_outputs_comes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = model_that_writes(monkeypatch, dict.fromkeys(WRONG, ("", 0, "stopped early")))
    (cause,) = summed_up(attributions(model, WRONG))
    assert (cause.mechanism, cause.tokens, cause.share) == ("constant answer", "always ε", 1)
    test = distinct_test_strings(PROBLEM.test)
    spelled = dict(zip(test.texts, texts("ab", test.strings), strict=True))
    outputs: dict[str, tuple[str, int, ErrorKind]] = {
        own: (own[:3], 3, "stopped early") for own in spelled.values() if len(own) > 3
    }
    long = [text for text in test.texts if spelled[text] in outputs]
    (cause,) = summed_up(attributions(model_that_writes(monkeypatch, outputs), long))
    assert cause.tokens.split("; ") == [
        "the first 3 tokens are right, and every output with a longer target is wrong",
        "the output stopped early",
    ]
    assert (cause.mechanism, cause.share) == ("first tokens right", 1)


def causes_of(
    monkeypatch: pytest.MonkeyPatch,
    is_wrong: Callable[[str], bool],
    position: Callable[[str], int],
    least: int = 0,
) -> dict[str, list[str]]:
    """Strings by cause, for a model that copies test inputs but for some.

    Args:
        is_wrong: which copies are wrong.
        position: the first wrong position of a wrong copy.
        least: tokens of the shortest input that may be wrong.
    """
    test = distinct_test_strings(PROBLEM.test)
    spelled = dict(zip(test.texts, texts("ab", test.strings), strict=True))
    outputs: dict[str, tuple[str, int, ErrorKind]] = {
        # One is no output of the others.
        own: (f"{own}a", min(position(own), len(own)), "wrong token")
        for own in spelled.values()
        if len(own) >= least and is_wrong(own)
    }
    wrong = [text for text in test.texts if spelled[text] in outputs]
    found: dict[str, list[str]] = {}
    for error in attributions(model_that_writes(monkeypatch, outputs), wrong, 1000):
        found.setdefault(error.mechanism, []).append(spelled[error.string])
    return found


def test_first_tokens_right_needs_all_longer_outputs_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    find = partial(causes_of, monkeypatch)
    assert {*find(lambda x: len(x) > 3, lambda x: 3 + len(x) % 3)} == {FIRST_RIGHT}
    assert {*find(lambda x: len(x) > 3, lambda _: 0)} == {"wrong token"}, "all go wrong at once"
    some_right = find(lambda x: len(x) > 3 and x[:3] != "aba", lambda _: 3)
    assert {*some_right} == {"wrong token"}, "some longer outputs are right, too"
    # Of four wrong outputs little is known.
    number = iter(range(1000))
    few = find(lambda x: len(x) == 8 and next(number) < 4, lambda _: 2)
    assert sum(map(len, few.values())) == 4
    assert {*few} == {"wrong token"}


def test_outputs_wrong_earlier_have_another_cause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    early = "ababa"
    found = causes_of(monkeypatch, lambda x: len(x) > 3, lambda x: 1 if x == early else 3)
    assert found["wrong token"] == [early]
    assert len(found[FIRST_RIGHT]) > 9
