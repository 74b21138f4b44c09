"""A new question asked through a specification: every command answers truly, or says why not."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dashboard.cli import app
from seqcls.errors import SeqclsError
from tests.conftest import SHORT

SPEC = """
name = "{name}"
model_seeds = "0..1"
verdict = true
[fixed]
{fixed}
"""
SHORTLY = {**SHORT, "train_max_length": 8, "validation_max_length": 8, "test_max_length": 12}
EVEN = {"task": "counting", "alphabet": "ab", "formula": "a % 2 == 0"}
PAIRS = {
    "task": "regular",
    "alphabet": "ab",
    "pattern": "(ab)*",
    "positions": "sinusoidal",
    "attention_mask": "causal",
    "readout": "last",
    "hidden_size": 4,
}


class Question:
    """A sweep that was asked for and trained, in a database of its own."""

    def __init__(self, name: str, fields: dict[str, Any], folder: Path) -> None:
        self.name, self.spec, self.db = name, folder / f"{name}.toml", folder / f"{name}.db"
        values = {**SHORTLY, **fields}
        lines = "\n".join(f"{field} = {json.dumps(value)}" for field, value in values.items())
        self.spec.write_text(SPEC.format(name=name, fixed=lines))

    def said(self, *arguments: str, db: bool = True) -> str:
        own = ["--db", str(self.db)] if db else []
        result = CliRunner().invoke(app, [*arguments, *own])
        if isinstance(result.exception, SystemExit):
            assert result.exit_code == 0, result.output
        elif result.exception is not None:
            raise result.exception
        return result.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.said(*arguments, "--json"))

    def refusal(self, *arguments: str) -> str:
        with pytest.raises(SeqclsError) as refused:
            self.said(*arguments)
        assert "\n" not in str(refused.value)
        return str(refused.value)


def ask(name: str, fields: dict[str, Any], folder: Path) -> Question:
    question = Question(name, fields, folder)
    question.said("sweep", str(question.spec), "--workers", "0")
    return question


@pytest.fixture(scope="module")
def even(tmp_path_factory: pytest.TempPathFactory) -> Question:
    return ask("even", EVEN, tmp_path_factory.mktemp("even"))


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Question:
    return ask("pairs", PAIRS, tmp_path_factory.mktemp("pairs"))


def is_even(text: str) -> bool:
    return spelled(text).count("a") % 2 == 0


def is_pairs(text: str) -> bool:
    return spelled(text).replace("ab", "") == ""


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


@pytest.mark.parametrize(("asked", "belongs"), [("even", is_even), ("pairs", is_pairs)])
def test_runs_and_errors_hold_only_what_is_so(
    asked: str, belongs: Any, request: pytest.FixtureRequest
) -> None:
    question: Question = request.getfixturevalue(asked)
    runs = question.json("runs")
    assert [run["state"] for run in runs] == ["done", "done"]
    for run in runs:
        errors = question.json("errors", str(run["id"]))
        for error in errors:
            assert error["label"] == belongs(error["string"]), error
            assert error["length"] == len(spelled(error["string"]))
            assert (error["logit"] > 0) != belongs(error["string"])
        wrong = sum(error["occurrences"] for error in errors)
        assert wrong == run["fp"] + run["fn"]
        shortest = min((error["length"] for error in errors), default=13)
        assert run["solved_length"] == min(shortest - 1, 12)


@pytest.mark.parametrize("asked", ["even", "pairs"])
def test_predictions_are_those_of_the_test(asked: str, request: pytest.FixtureRequest) -> None:
    question: Question = request.getfixturevalue(asked)
    errors = question.json("errors", f"{asked}/0")
    assert errors, "so short a training leaves errors"
    strings = [error["string"] for error in errors][:20]
    predicted = question.json("predict", f"{asked}/0", *strings)
    np.testing.assert_allclose(
        [row["logit"] for row in predicted], [error["logit"] for error in errors][:20], atol=1e-4
    )


def test_order_counts_in_predictions_where_it_counts_for_the_model(
    even: Question, pairs: Question
) -> None:
    one, other = even.json("predict", "even/0", "aab", "baa")
    assert one["logit"] == pytest.approx(other["logit"], abs=1e-6)
    one, other = pairs.json("predict", "pairs/0", "abab", "aabb")
    assert abs(one["logit"] - other["logit"]) > 1e-6


def test_the_exhaustive_check_tries_every_string_of_a_language_by_counts(even: Question) -> None:
    verdict = even.json("verdict", "even/0")[0]
    # 0 to 12 letters, a and b: n + 1 multisets of n letters.
    assert (verdict["unit"], verdict["inputs"]) == ("multiset", sum(range(1, 14)))
    texts = [f"{'a' * a}{'b' * b}" for a in range(13) for b in range(13 - a)]
    predicted = even.json("predict", "even/0", *texts)
    said = [row["logit"] > 0 for row in predicted]
    truth = [is_even(text) for text in texts]
    pairs = list(zip(said, truth, strict=True))
    assert verdict["false_positives"] == sum(s and not t for s, t in pairs)
    assert verdict["false_negatives"] == sum(t and not s for s, t in pairs)


def test_what_rests_on_required_letters_says_that_it_does_not_hold(even: Question) -> None:
    assert "task='counting' requires none" in even.refusal("explain", "even/0", "aab")
    assert "task='counting' requires none" in even.refusal("verdict", "even/0", "--beyond")


def test_what_rests_on_letter_counts_says_that_order_decides(
    pairs: Question, tmp_path: Path
) -> None:
    assert pairs.json("verdict", "pairs/0")[0]["unit"] == "string"
    places = "positions='sinusoidal' makes equal tokens differ by their place"
    for command in (["explain", "pairs/0", "ab"], ["verdict", "pairs/0", "--beyond"]):
        assert places in pairs.refusal(*command)
    assert pairs.said("figures", "pairs/0", "ab", "--out", str(tmp_path / "figures"))
    assert (tmp_path / "figures" / "logit_of_every_prefix_ab.svg").exists()


def test_a_family_of_strings_is_asked_of_any_model(even: Question, pairs: Question) -> None:
    for question, name in ((even, "even/0"), (pairs, "pairs/0")):
        assert question.said("family", name, "a{n}")


@pytest.mark.parametrize("asked", ["even", "pairs"])
def test_the_rest_of_the_commands_work(
    asked: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    question: Question = request.getfixturevalue(asked)
    estimate = question.json("estimate", str(question.spec))[0]
    assert (estimate["runs"], estimate["there"]) == (2, 2)
    engines = question.said("engines", str(question.spec), db=False)
    assert "1 configuration" in engines
    question.said("export", str(tmp_path / "out"))
    lines = (tmp_path / "out" / "errors.csv").read_text().splitlines()
    found = sum(len(question.json("errors", f"{asked}/{seed}")) for seed in (0, 1))
    assert len(lines) == 1 + found
    assert "nothing is damaged" in question.said("verify")
    assert question.json("sensitive") == []
    assert question.json("status")[0]["done"] == 2


