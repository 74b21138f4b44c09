"""`seqcls automaton` and the section of the page Model: what a model has become."""

import json
from pathlib import Path

import pytest

from sweeps.api import automaton, open_store
from tests.app import open_app
from tests.commands import run_main
from tests.conftest import ROOT

SHIPPED = str(ROOT / "runs.db")
RIGHT = "increased_dimensionality/0"
QUICK = ("--strings", "200")


def test_a_right_model_has_the_automaton_of_its_language() -> None:
    said = run_main("automaton", RIGHT, *QUICK, SEQCLS_DB=SHIPPED).stdout
    flat = " ".join(said.split())
    assert (
        "An automaton of 4 states agrees with the model on every string of up to 4 tokens" in flat
    )
    assert "the same as the minimal automaton of the language (4 states)" in flat


def test_what_is_found_is_exported() -> None:
    found = automaton(open_store(SHIPPED), RIGHT, strings=200)
    printed = json.loads(run_main("automaton", RIGHT, *QUICK, "--json", SEQCLS_DB=SHIPPED).stdout)
    for name, value in found.record().items():
        assert printed[name] == value
    assert run_main("automaton", RIGHT, *QUICK, "--dot", SEQCLS_DB=SHIPPED).stdout.strip() == (
        found.dot()
    )
    assert found.dfa().accepts_input("ccab")
    assert not found.dfa().accepts_input("cca")




