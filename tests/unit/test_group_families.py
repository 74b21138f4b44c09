"""Families with groups, against asking about their strings one by one."""

import numpy as np
import pytest

from seqcls.errors import InvalidStringError
from seqcls.interpretability.families import answers, tried_curve, tried_map
from seqcls.interpretability.family import Curve, FamilyMap, parse_family
from tests.unit.asked import LSTM, untrained


def test_groups_are_spelled_out() -> None:
    model = untrained(**LSTM)
    family = parse_family(model.tokenizer, "<01>{n}1{2}0{n}")
    assert family.letters(3) == (0, 1, 0, 1, 0, 1, 1, 1, 0, 0, 0)
    assert family.length(3) == 11
    assert family.names == ("n",)


def test_brackets_are_tokens_like_others() -> None:
    model = untrained(**{**LSTM, "task": "dyck"})
    assert parse_family(model.tokenizer, "({n}){n}").letters(2) == (0, 0, 1, 1)


def test_every_change_is_between_neighbours() -> None:
    model = untrained(**LSTM)
    model.weights["classifier.bias"][:] -= model.answer((0, 1) * 3).logit
    found = tried_curve(model, parse_family(model.tokenizer, "<01>{n}"), points=6)
    assert found.n[-1] == 2000
    rows = [model.answer((0, 1) * n) for n in found.n[:16].tolist()]
    np.testing.assert_allclose(found.logits[:16], [answer.logit for answer in rows])
    assert found.labels[:16].tolist() == [answer.label for answer in rows]
    assert found.changes
    for change in found.changes:
        before, after = (model.answer((0, 1) * n).predicted for n in (change.n - 1, change.n))
        assert (before, after) == (not change.answer, change.answer)


def test_two_counts_are_asked_about_together() -> None:
    model = untrained(**LSTM)
    model.weights["classifier.bias"][:] -= model.answer((0,) * 9 + (1, 0) * 9).logit
    family = parse_family(model.tokenizer, "0{m}<10>{n}")
    assert family.names == ("m", "n")
    assert family.letters(2, 3) == (0, 0, 1, 0, 1, 0, 1, 0)
    found = tried_map(model, family, points=5)
    assert found.first.tolist() == found.second.tolist()
    assert found.first[-1] == 2000
    for row, m in enumerate(found.first[:3].tolist()):
        for column, n in enumerate(found.second[:3].tolist()):
            answer = model.answer((0,) * m + (1, 0) * n)
            assert found.logits[row, column] == pytest.approx(answer.logit)
            assert found.labels[row, column] == answer.label
            assert found.wrong[row, column] == answer.is_wrong
    assert any(found.changes)
    for m, changes in zip(found.first.tolist(), found.changes, strict=True):
        for own in changes:
            before, after = (model.answer((0,) * m + (1, 0) * n) for n in (own.n - 1, own.n))
            assert (before.predicted, after.predicted) == (not own.answer, own.answer)


def test_one_count_is_a_curve_and_two_are_a_map_here_too() -> None:
    model = untrained(**LSTM)
    found = answers(model, "0{n}")
    assert isinstance(found, Curve)
    assert found.limit is None
    found = answers(model, "0{m}1{n}")
    assert isinstance(found, FamilyMap)
    assert not found.exact


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("01", "has no free counts"),
        ("0{l}1{m}0{n}", "has 3 free counts"),
        ("<01{n}", "cannot read '<01{n}' at character 1"),
        ("2{n}", "unknown letter '2'"),
    ],
)
def test_what_is_no_family_is_refused(text: str, problem: str) -> None:
    with pytest.raises(InvalidStringError, match=problem):
        parse_family(untrained(**LSTM).tokenizer, text)
