"""What commands say of models is so, by a reading of strings that is none of the program's.

Words that stand for a language are read here anew: the notation, and what belongs to it.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.commands import refused, run_main

NUMBER = 12
"""Wrong strings that are asked about again."""


def is_odd(text: str) -> bool:
    return text.count("1") % 2 == 1


def ends_alike(text: str) -> bool:
    return text[:1] == text[-1:]


LANGUAGES: dict[str, Callable[[str], bool]] = {
    "counted": is_odd,
    "of_order": ends_alike,
    "own_file": lambda text: text.count("a") % 2 == 1,
    "parts_from_outside": lambda text: text.endswith("b"),
}
"""Kinds of models, and which strings belong to their language."""


def spelled(text: str) -> str:
    """The notation `a{3}` and `<ab>{2}` written out, by another reading than the tokenizer's."""
    out = ""
    while text:
        if text[0] == "<":
            end = text.index(">")
            piece, text = text[1:end], text[end + 1 :]
        else:
            piece, text = text[0], text[1:]
        times = 1
        if text.startswith("{"):
            end = text.index("}")
            times, text = int(text[1:end]), text[end + 1 :]
        out += piece * times
    return out


@pytest.fixture(scope="module")
def db(kinds: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(shutil.copy(kinds / "kinds.db", tmp_path_factory.mktemp("languages")))


def told(db: str, *arguments: str) -> Any:
    """What a command says of that database."""
    done = run_main(*arguments, "--db", db, "--json")
    assert done.returncode == 0, done
    return json.loads(done.stdout)


@pytest.mark.parametrize("kind", LANGUAGES)
def test_runs_errors_and_predictions_hold_only_what_is_so(db: str, kind: str) -> None:
    belongs = LANGUAGES[kind]
    for run in told(db, "runs", "--sweep", kind):
        errors = told(db, "errors", str(run["id"]))
        for error in errors:
            assert error["label"] == belongs(spelled(error["string"])), error
            assert error["length"] == len(spelled(error["string"]))
            assert (error["logit"] > 0) != error["label"]
        assert sum(error["occurrences"] for error in errors) == run["fp"] + run["fn"]
        shortest = min((error["length"] for error in errors), default=None)
        assert shortest is None or run["solved_length"] == shortest - 1
        asked = errors[:NUMBER]
        predicted = told(db, "predict", str(run["id"]), *[error["string"] for error in asked])
        assert [row["logit"] for row in predicted] == pytest.approx(
            [error["logit"] for error in asked], abs=1e-4
        )


def test_the_exhaustive_check_tries_every_string_of_a_language_by_counts(db: str) -> None:
    (run, *_) = told(db, "runs", "--sweep", "counted")
    (verdict,) = told(db, "verdict", str(run["id"]))
    longest = run["test_max_length"]
    texts = [
        f"{'0' * zeros}{'1' * ones}"
        for zeros in range(longest + 1)
        for ones in range(longest + 1 - zeros)
    ]
    assert (verdict["unit"], verdict["inputs"]) == ("multiset", len(texts))
    predicted = told(db, "predict", str(run["id"]), *texts)
    said = [(row["logit"] > 0, is_odd(text)) for row, text in zip(predicted, texts, strict=True)]
    assert verdict["false_positives"] == sum(yes and not right for yes, right in said)
    assert verdict["false_negatives"] == sum(right and not yes for yes, right in said)
    # The order of letters counts where it counts for the model, and nowhere else.
    one, other = told(db, "predict", str(run["id"]), "110", "011")
    assert one["logit"] == pytest.approx(other["logit"], abs=1e-6)
    (ordered, *_) = told(db, "runs", "--sweep", "of_order")
    one, other = told(db, "predict", str(ordered["id"]), "110", "011")
    assert abs(one["logit"] - other["logit"]) > 1e-6
    assert "requires none" in refused("explain", str(run["id"]), "110", "--db", db)
