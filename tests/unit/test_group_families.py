"""Families with groups, against asking about their strings one by one."""

import numpy as np
import pytest

from seqcls.errors import StringError
from seqcls.interpretability.strings.families import group_curve, parse_groups
from tests.unit.asked import LSTM, untrained


def test_groups_are_spelled_out() -> None:
    model = untrained(**LSTM)
    family = parse_groups(model, "<01>{n}1{2}0{n}")
    assert family.letters(3) == (0, 1, 0, 1, 0, 1, 1, 1, 0, 0, 0)
    assert family.length(3) == 11
    assert family.name == "n"


def test_brackets_are_tokens_like_others() -> None:
    model = untrained(**{**LSTM, "task": "dyck"})
    assert parse_groups(model, "({n}){n}").letters(2) == (0, 0, 1, 1)


def test_every_change_is_between_neighbours() -> None:
    model = untrained(**LSTM)
    model.weights["classifier.bias"][:] -= model.answer((0, 1) * 3).logit
    found = group_curve(model, parse_groups(model, "<01>{n}"), points=6)
    assert found.n[-1] == 2000
    rows = [model.answer((0, 1) * n) for n in found.n[:16].tolist()]
    np.testing.assert_allclose(found.logits[:16], [answer.logit for answer in rows])
    assert found.labels[:16].tolist() == [answer.label for answer in rows]
    assert found.changes
    for change in found.changes:
        before, after = (model.answer((0, 1) * n).predicted for n in (change.n - 1, change.n))
        assert (before, after) == (not change.answer, change.answer)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("01", "has no free counts"),
        ("0{m}1{n}", "has 2 free counts"),
        ("<01{n}", "cannot read '<01{n}' at character 1"),
        ("2{n}", "unknown letter '2'"),
    ],
)
def test_what_is_no_family_is_refused(text: str, problem: str) -> None:
    with pytest.raises(StringError, match=problem):
        parse_groups(untrained(**LSTM), text)
