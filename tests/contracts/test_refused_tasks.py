"""Settings of tasks that cannot be are refused in one line, which names what is wrong."""

import re
from typing import Any

import pytest

from seqcls.errors import ConfigError
from seqcls.problem import configuration
from tests.contracts.refused_tasks import HUGE, ROWS


def refusal(fields: dict[str, Any]) -> str:
    """Why fields are refused; nothing where they are not."""
    try:
        configuration(fields)
    except ConfigError as error:
        return str(error)
    return ""


def test_what_cannot_be_is_refused_in_one_line_that_names_it() -> None:
    """It begins with a field and its value, and has the word that a user needs."""
    wrong = []
    for name, fields, word in ROWS:
        message = refusal(fields)
        good = word in message and "\n" not in message and message.encode() and len(message) < 600
        if not good or not re.match(r"\w+=", message):
            wrong.append((name, word, message))
    assert wrong == []
    assert len({name for name, *_ in ROWS}) > 90


def test_what_is_too_large_is_refused_before_it_is_looked_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listed: list[int] = []
    monkeypatch.setattr("seqcls.tasks.counting.vectors", lambda length, _: listed.append(length))
    (fields,) = (own for name, own, _ in ROWS if name == "many counts of long strings")
    assert refusal(fields)
    assert not listed


def test_what_looks_like_it_is_not_refused() -> None:
    assert configuration({**HUGE, "disjoint": False})
    assert configuration({**HUGE, "disjoint": True, "train_set": "fixed"})
    spelled = {"task": "counting", "alphabet": "CLS", "formula": "C > L"}
    assert configuration(spelled).alphabet == "CLS"
