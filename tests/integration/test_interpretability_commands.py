"""`seqcls explain`, `family` and `verdict --beyond` as a user runs them."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from seqcls.errors import SeqclsError
from sweeps.cli.app import app
from tests.conftest import ROOT

SEED_2 = "all_initializations/2"


def said_by(*arguments: str) -> str:
    result = CliRunner().invoke(app, [*arguments, "--db", str(ROOT / "runs.db")])
    if result.exception is not None:
        raise result.exception
    return result.stdout


def json_of(*arguments: str) -> dict[str, Any]:
    found = json.loads(said_by(*arguments, "--json"))
    assert isinstance(found, dict)
    return found


def test_a_cause_is_told_in_sentences_and_as_data() -> None:
    said = said_by("explain", SEED_2, "ab{100}c{55}").splitlines()
    assert said[0].startswith("ab{100}c{55} is positive, but the model predicts negative")
    assert said[1].startswith("Dilution: in head 0, the 100 b's drown the a")
    found = json_of("explain", SEED_2, "ab{100}c{55}")
    assert found["sentences"] == said
    assert found["mechanism"]["name"] == "dilution"
    assert found["smallest"]["string"] == "ab{66}"
    assert found["no_part"] == ["c"]


def test_another_epoch_has_other_reasons() -> None:
    first, kept = (said_by("explain", SEED_2, "aac", *epoch) for epoch in (["--epoch", "1"], []))
    assert first != kept


def test_where_a_family_flips_is_told() -> None:
    said = said_by("family", SEED_2, "ab{n}").splitlines()
    assert said[0] == "ab{n} is positive for every n from 1 on."
    assert any(line.startswith("From n = 66 on it predicts negative (wrong)") for line in said)
    found = json_of("family", SEED_2, "ab{n}")
    assert [flip["n"] for flip in found["flips"]] == [66]
    assert len(found["n"]) == len(found["logit"])


def test_two_free_counts_have_a_boundary() -> None:
    said = said_by("family", SEED_2, "a{m}b{n}").splitlines()
    assert "With m = 1: positive (correct) for n = 1; negative from n = 66 on." in said
    found = json_of("family", SEED_2, "a{m}b{n}")
    assert found["m"] == found["n"]
    assert found["flips"][0][0]["n"] == 66


def test_proofs_are_told_of_every_set_of_letters() -> None:
    said = said_by("verdict", SEED_2, "--beyond").splitlines()
    assert said[0].startswith("Proved for strings of every length")
    assert len(said) == 8
    assert said[5].startswith("strings of a and c (negative): certified right, the logit at least")
    assert "wrong where the share of b is 2.59e-05 to 0.0142" in said[6]
    claims = {x["letters"]: x["claim"] for x in json_of("verdict", SEED_2, "--beyond")["supports"]}
    assert claims["ac"] == "certified right"
    assert claims["bc"] == "depends on the proportions"


