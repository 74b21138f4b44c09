"""Commands about the inside of models, against sums, definitions and each other."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from seqcls.interpretability.mechanisms import NOT_LEARNED, OUTPUT_MECHANISMS
from seqcls.interpretability.states_of_outputs import output_tree
from seqcls.interpretability.verdicts import OutputVerdict
from sweeps import api
from sweeps.cli.app import app
from sweeps.store.opening import open_reader
from tests.inside import (
    BLOCKS,
    LSTM,
    NEXT_SYMBOLS,
    PREFIXES,
    STATES,
    WRITING,
    WRITING_LSTM,
    inside,
)
from tests.oracles.facts import Facts
from tests.world import kinds

__all__ = ["inside", "kinds"]

STRING = "abca"


def invoke(db: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--db", str(db)])


def data(db: Path, *arguments: str) -> Any:
    result = invoke(db, *arguments, "--json")
    assert result.exit_code == 0, (result.output, result.exception)
    return json.loads(result.stdout)


REFUSED: dict[tuple[str, ...], str] = {
    ("patch", WRITING, STRING, "--source", "abd"): "expected as many",
    ("ablate", LSTM, "--part", "head"): "has no such part",
    ("family", WRITING, "x{n}"): "unknown letter",
    ("rules", WRITING): "task='copy' is not a language",
    ("sensitive", WRITING): "--precision float64",
    ("explain", PREFIXES, "ab"): "asked at every place, answers more than yes or no",
    ("rules", PREFIXES): "asked at every place, answers more than yes or no",
    ("predict", NEXT_SYMBOLS, "aa"): "expected a string of the language",
    ("predict", WRITING, "ab", "--beam", "0"): "beam 0: expected 1 to 1,000 outputs",
    ("predict", WRITING, "ab", "--beam", "1000000"): "expected 1 to 1,000 outputs",
    ("predict", BLOCKS, "01", "--beam", "2"): "is not a transduction",
}


def test_unanswerable_question_is_refused(inside: Path) -> None:
    for arguments, words in REFUSED.items():
        result = invoke(inside, *arguments)
        assert result.exit_code != 0
        assert words in str(result.exception)


def test_family_of_inputs_lists_targets_beside_outputs(inside: Path) -> None:
    outputs = data(inside, "family", WRITING, "ab{n}")["outputs"]
    assert [row["n"] for row in outputs][:16] == list(range(1, 17))
    for row in outputs:
        assert row["target"] == row["input"].replace("{1}", "")
        assert row["right"] == (row["output"] == row["target"])
        assert row["right"] == (row["error_kind"] is None)
        assert row["right_tokens"] <= row["target_tokens"] == row["n"] + 1
    predicted = data(inside, "predict", WRITING, *[row["input"] for row in outputs[:8]])
    assert [row["output"] for row in predicted] == [row["output"] for row in outputs[:8]]
    wrong = sum(not row["right"] for row in outputs)
    printed = invoke(inside, "family", WRITING, "ab{n}").stdout
    assert f"Tried: {len(outputs)} inputs" in printed
    assert "Every output is" in printed or f"Wrong outputs: {wrong}" in printed
    outputs = data(inside, "family", WRITING_LSTM, "a{m}b{n}")["outputs"]
    failing = [row["m"] for row in outputs if not row["right"]]
    lines = invoke(inside, "family", WRITING_LSTM, "a{m}b{n}").stdout.splitlines()
    for m in {row["m"] for row in outputs} if 0 < len(failing) < len(outputs) else ():
        assert any(line.startswith(f"m = {m}: {failing.count(m)} of") for line in lines)


def test_verdict_command_tries_every_input(inside: Path) -> None:
    found = data(inside, "verdict", WRITING)
    # Tested on up to 7 tokens: 4 + 16 + ... inputs, and the next length is too long.
    assert [row["inputs"] for row in found["by_length"]] == [4**n for n in range(1, 8)]
    assert found["inputs"] == sum(4**n for n in range(1, 8))
    assert found["wrong"] == sum(sum(row["wrong"].values()) for row in found["by_length"])
    predicted = data(inside, "predict", WRITING, *"abcd")
    wrong = [row["string"] for row in predicted if row["output"] != row["target"]]
    assert sum(found["by_length"][0]["wrong"].values()) == len(wrong)
    assert not wrong or found["shortest"][0]["string"] == wrong[0]


def test_output_tree_shares_prefixes(inside: Path) -> None:
    opened = api.model(open_reader(str(inside)), WRITING)
    letters = opened.letters(STRING)
    best = data(inside, "predict", WRITING, STRING, "--beam", "5")
    beams = [row["log_probability"] for row in best]
    assert beams == sorted(beams, reverse=True)
    assert 1 <= len(beams) <= 5
    tree = output_tree(opened, letters, 5)
    assert {leaf.text for leaf in tree.leaves} == {row["output"] for row in best}
    cells = {(token.row, token.place): token for token in tree.tokens}
    for leaf in tree.leaves:
        # Tokens before a branch are in the row above, which it leaves.
        own = [cells[leaf.row, place] for place in range(leaf.branch, leaf.tokens)]
        assert (leaf.row, leaf.branch - 1) not in cells
        before = 0.0
        if leaf.branch:
            row = leaf.parent
            while (row, leaf.branch - 1) not in cells:
                row = tree.leaves[row].parent
            before = cells[row, leaf.branch - 1].log_probability
        whole = before + sum(math.log(token.probability) for token in own)
        assert whole == pytest.approx(leaf.log_probability)
    starts = [token.probability for token in tree.tokens if token.place == 0]
    assert sum(starts) <= 1 + 1e-9
    assert all(leaf.right == (leaf.ended and leaf.text == STRING) for leaf in tree.leaves)


def test_causes_remedies_and_comparisons_cover_transductions(inside: Path) -> None:
    outputs = {}
    for arguments in (
        *(("causes", "copying"), ("remedies", WRITING), ("compare", WRITING, WRITING_LSTM)),
        ("ablate", WRITING),
    ):
        result = invoke(inside, *arguments)
        assert result.exit_code == 0, (arguments, result.output)
        assert "classif" not in result.output
        outputs[arguments[0]] = result.output
    causes = data(inside, "causes", "copying")["causes"]
    known = {*OUTPUT_MECHANISMS, NOT_LEARNED}
    for run in (int(WRITING), int(WRITING_LSTM)):
        own = [cause for cause in causes if cause["run_id"] == run]
        assert {cause["mechanism"] for cause in own} <= known
        assert math.isclose(sum(cause["share"] for cause in own), 1)
        assert all(cause["mechanism"] in outputs["causes"] for cause in own)
        assert own[0]["mechanism"] == NOT_LEARNED, "neither has copied what it was trained on"
    assert "has not learned the trained lengths: wrong on" in outputs["remedies"]
    # What helps with longer inputs is not tried on a model that has not learned the short ones.
    assert "Position Coupling" not in outputs["remedies"]


def test_answers_at_positions_are_stored_and_questioned(inside: Path) -> None:
    store = open_reader(str(inside))
    for run, first in ((PREFIXES, "0"), (NEXT_SYMBOLS, "b"), (STATES, "0")):
        wrong = api.errors(store, [run])
        assert set(wrong["error_kind"]) <= {"too much", "too little", "wrong answer"}
        assert (wrong["first_wrong"] <= wrong["length"]).all()
        assert wrong["target"].str.contains(first, regex=False).any()
        scores = api.lengths(store, [run])
        assert (scores["target_tokens"] == scores["tested"] * (scores["length"] + 1)).all()
        assert (scores["edits"] >= scores["wrong"]).all()
        tried = api.verdict(store, run)
        assert isinstance(tried, OutputVerdict)
        assert tried.wrong == sum(tried.error_kinds.values()) > 0
        shortest = wrong.iloc[0]
        prefixes = api.states(store, run, shortest["string"]).prefixes
        assert prefixes is not None
        right = [x == y for x, y in zip(prefixes.labels, prefixes.answers, strict=True)]
        assert right.index(False) == shortest["first_wrong"]
        assert prefixes.logits.min() == pytest.approx(shortest["logit"], abs=1e-4)
        learned = api.automaton(store, run, strings=64, seconds=20)
        assert learned.names
        assert learned.error is None or learned.error.is_wrong
    for arguments in (
        *(("minimal", PREFIXES), ("family", PREFIXES, "<ab>{n}"), ("compare", PREFIXES, STATES)),
        ("predict", NEXT_SYMBOLS, "abab"),
    ):
        assert invoke(inside, *arguments).exit_code == 0, arguments


def test_named_tokens_are_read_and_written_by_commands(kinds: Path, tmp_path: Path) -> None:
    db = tmp_path / "kinds.db"
    db.write_bytes((kinds / "kinds.db").read_bytes())
    facts = Facts(db)
    for sweep in ("named_tokens", "tokens_from_outside"):
        run = str(facts.sweeps[sweep][0]["run_id"])
        wrong = [own["string"] for own in data(db, "errors", run)]
        assert all(map(is_written, [*wrong, *facts.test_strings(int(run))]))
        string = max(wrong, key=len)
        (answer,) = data(db, "predict", run, string)
        (spaced,) = data(db, "predict", run, f"  {string.replace(' ', '   ')} ")
        (stored,) = [own for own in data(db, "errors", run) if own["string"] == string]
        assert answer["logit"] == spaced["logit"] == pytest.approx(stored["logit"], abs=1e-5)
        found = data(db, "minimal", run, string)
        assert is_written(found["minimal"]["string"])
        assert found["minimal"]["length"] <= found["given"]["length"]
        rules = [own["text"] for own in data(db, "rules", run)["rules"]]
        assert "positive iff more push than pop" in rules
        refused = str(invoke(db, "predict", run, "pusk pop").exception)
        assert "unknown token 'pusk'" in refused
        assert "did you mean 'push'?" in refused
    run = str(facts.sweeps["named_tokens"][0]["run_id"])
    states = data(db, "states", run, "push a pop pop")
    assert [x for x in states["tokens"] if x in TOKENS] == ["push", "a", "pop", "pop"]
    patched = data(db, "patch", run, "push a pop pop", "--source", "push a push pop")
    assert patched["base"]["string"] == "push a pop{2}"


TOKENS = {"push", "pop", "a"}


def is_written(text: str) -> bool:
    """True if a text is tokens and groups with exactly one space between them."""
    for sign in "<>{}0123456789":
        text = text.replace(sign, "")
    return text == "" or all(token in TOKENS for token in text.split(" "))
