"""Every command that can print JSON does so of the shipped database."""

import json
import re
import shutil
from pathlib import Path
from typing import Any, NoReturn

import pytest

from seqcls.results import Confusion
from sweeps.store import writer
from sweeps.store.opening import open_writer
from tests.commands import run_main, shown_commands
from tests.conftest import ROOT
from tests.databases import load_parity

RUN, WRONG = "lower_magnitude_initializations/2", "all_initializations/2"
SHIPPED: dict[str, list[list[str]]] = {
    "theory": [["parity"], ["copy"], ["regular", "--set", "alphabet=ab", "--set", "pattern=(ab)*"]],
    "status": [[], ["all_initializations"]],
    "estimate": [["report"]],
    "shortcuts": [["report/walkthrough"]],
    "verdict": [[RUN], [RUN, "--beyond"]],
    "sensitive": [[], [RUN]],
    "runs": [["--failing"], ["--where", "hidden_size=16"]],
    "errors": [[RUN], [RUN, "--limit", "3"]],
    "predict": [[RUN, "baac", ""]],
    "explain": [[RUN, "ab{68}"]],
    "family": [[RUN, "ab{n}"], [RUN, "a{m}b{n}"], [RUN, "<ab>{n}"], [RUN, "a{m}<bc>{n}"]],
    "minimal": [[RUN], [WRONG, "ab{100}c{55}"]],
    "rules": [[RUN]],
    "compare": [["attend_cls", "all_initializations"]],
    "states": [[RUN, "ab{10}"]],
    "patch": [[WRONG, "ab{100}c{55}"]],
    "ablate": [[RUN], [RUN, "--sample", "50", "--prune", "--how", "mean"]],
    "automaton": [["increased_dimensionality/0", "--strings", "200", "--inside"]],
    "causes": [["lower_magnitude_initializations", "--sample", "2"]],
    "remedies": [[RUN]],
    "data": [[str(ROOT / "sweeps/grid/specs/known/stress.csv")]],
    "verify": [[]],
    "cache": [[]],
    "populations": [[]],
}
NOTHING_FOUND = ("verify", "sensitive", "cache", "populations")
"""Commands that find nothing wrong in the shipped database, an empty cache or one language."""


def test_no_command_is_left_out() -> None:
    known = shown_commands().items()
    # Loading is asked for beside its other tests.
    asked = {*SHIPPED, "prove", "load"}
    assert {name for name, x in known if any(y.name == "as_json" for y in x.params)} == asked


def test_what_is_proved_of_a_recurrent_network_is_json(tmp_path: Path) -> None:
    load_parity(tmp_path / "hand.db")
    place = {"SEQCLS_DB": str(tmp_path / "hand.db")}
    proof = tmp_path / "proof.json"
    said = run_main("prove", "hand/0", "--json", "--certificate", str(proof), **place)
    found = json.loads(said.stdout, parse_constant=_refuse)
    assert found["outcome"] == "proved"
    assert run_main("check", str(proof)).returncode == 0
    proof.write_text(proof.read_text().replace('"accepting": [1]', '"accepting": [0]'))
    refused = run_main("check", str(proof))
    assert refused.returncode != 0
    assert re.fullmatch(r"seqcls: [^\n]+\n", refused.stderr), refused.stderr


@pytest.mark.parametrize("command", SHIPPED)
def test_what_a_command_prints_is_json(command: str, tmp_path: Path) -> None:
    db = shutil.copy(ROOT / "runs.db", tmp_path / "runs.db")
    # As if it had been trained again with other rounding, which takes minutes.
    writer.record_perturbations(open_writer(str(db)), 38, [Confusion(2886, 1443, 0, 5655)] * 9)
    for arguments in SHIPPED[command]:
        said = run_main(command, *arguments, "--json", SEQCLS_DB=str(db))
        assert said.returncode == 0, said.stderr
        found = json.loads(said.stdout, parse_constant=_refuse)
        assert found or command in NOTHING_FOUND, arguments


def _refuse(constant: str) -> NoReturn:
    raise AssertionError(f"{constant} is no JSON")


@pytest.mark.parametrize(
    ("sweep", "field", "values"),
    [
        ("all_fixed_length_sequences", "train_sampler", ["variable_length", "fixed_length"]),
        ("attend_cls", "no_attend_cls", [True, False]),
        ("increased_dimensionality", "hidden_size", [2, 16]),
    ],
)
def test_values_that_differ_keep_their_kinds(sweep: str, field: str, values: list[Any]) -> None:
    db = str(ROOT / "runs.db")
    said = run_main("compare", "all_initializations", sweep, "--json", "--db", db)
    assert json.loads(said.stdout)["fields"][field] == values
