"""Causes and rounding of runs: found, stored, shown, merged and deleted with their runs."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from seqcls.interpretability.causes import attributions
from seqcls.interpretability.explanations import explain
from seqcls.interpretability.mechanisms import SAMPLE
from seqcls.results import Cause, Confusion
from sweeps.api import failures
from sweeps.api.models import trained_model
from sweeps.api.trials import mechanisms_of
from sweeps.cli.app import app
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads import explained, misclassified, queries, sweep_queries
from sweeps.store.reads.selection import Selection
from sweeps.store.verification import verify
from tests.conftest import ROOT
from tests.databases import forget_causes, rows

FOUND = [Cause("dilution", 1, "a by b", 0.75, 3), Cause("simple rule", None, "x", 0.25, 1, 0.99)]


@pytest.fixture
def shipped(tmp_path: Path) -> Store:
    """A copy of the report's models that may be written."""
    copied = Path(shutil.copy(ROOT / "runs.db", tmp_path / "runs.db"))
    return open_writer(str(forget_causes(copied)))


def run(store: Store, *arguments: str) -> str:
    result = CliRunner().invoke(app, [*arguments, "--db", str(store.path)])
    assert result.exit_code == 0, result.output
    return result.output


def test_attributed_causes_equal_the_explanations() -> None:
    store = open_reader(str(ROOT / "runs.db"))
    failing = queries.runs(store, Selection(failing=True))
    assert len(failing) == 16
    for run_id in failing["id"][::2]:
        model = trained_model(store, run_id)
        errors = misclassified.string_errors(store, run_id)
        found = attributions(model, errors["string"].tolist(), 3)
        assert len(found) == 3
        for own in found:
            page = explain(model, own.string).mechanism
            assert page is not None
            assert (own.mechanism, own.head) == (page.name, page.head)
            about = " by " if page.name == "dilution" else ", none on "
            assert own.tokens == f"{page.letter}{about}{page.by}"


def test_causes_command_stores_causes_and_groups_them(shipped: Store) -> None:
    sweep = ("causes", "lower_magnitude_initializations")
    output = run(shipped, *sweep, "--sample", "10")
    assert "6 failing runs of lower_magnitude_initializations" in output
    assert "83% (44% to 97%)" in output
    stored = rows(shipped, "SELECT run_id, mechanism, sum(strings) FROM cause GROUP BY run_id")
    assert [number for *_, number in stored] == [10] * 6
    for share, strings in rows(shipped, "SELECT share, strings FROM cause"):
        assert share == pytest.approx(strings / 10)
    before = queries.revision(shipped)
    record = json.loads(run(shipped, *sweep, "--sample", "10", "--json"))
    assert queries.revision(shipped) == before, "what is stored is not found again"
    assert record["failing"] == 6
    leading = {own["mechanism"]: own["seeds"] for own in record["by_configuration"]}
    assert leading == {"dilution": 5, "not learned": 1}
    assert verify(shipped).damages == []


def test_leading_cause_covers_most_errors() -> None:
    columns = ["run_id", "number", "mechanism", "share", "strings"]
    rows_ = [
        (1, 0, "two heads on one letter", 0.4, 4), (1, 1, "dilution", 0.3, 3),
        (1, 2, "dilution", 0.3, 3),
        # What is found wherever it is leads.
        (2, 0, "simple rule", 0.94, 47), (2, 1, "order not seen", 0.06, 3),
        (3, 0, "simple rule", 1.0, 50),
        # What has not learned counts as that, though it cannot see the order of tokens.
        (4, 0, "not learned", 0.4, 4), (4, 1, "order not seen", 0.6, 6),
    ]  # fmt: skip
    frame = pd.DataFrame(rows_, columns=columns)
    found = failures.leading_causes(frame)
    leading = ["dilution", "order not seen", "simple rule", "not learned"]
    assert found.to_dict() == dict(enumerate(leading, start=1))
    assert mechanisms_of(frame[frame["run_id"] == 2]) == ["order not seen", "simple rule"]
    assert mechanisms_of(frame[frame["run_id"] == 4]) == ["order not seen", "not learned"]


def test_unlearned_run_has_no_length_cause(
    shipped: Store,
) -> None:
    found = failures.causes_of(shipped, 38, 10)
    assert [own.mechanism for own in found] == ["not learned", "two heads on one letter"]
    assert found[0].tokens == (
        "wrong on 75 of 508 test strings of trained lengths; training loss was no longer falling "
        "at the end; 30 epochs, epoch 30 kept"
    )
    writer.record_findings(shipped, 39, "cause", [replace(FOUND[0], share=1.0)])
    assert set(explained.causes(shipped)["run_id"]) == {39}
    assert failures.attribute(shipped, [38, 39], 3) == 1, "of 39 as many were looked at before"
    assert set(explained.causes(shipped)["run_id"]) == {38, 39}
    assert failures.attribute(shipped, [38, 39], 3) == 0
    output = run(shipped, "remedies", "38")
    assert "run 38 has not learned the trained lengths: wrong on 75 of 508 test strings" in output
    assert "run 38 fails by two heads on one letter" in output
    assert "try max_num_epochs=120 (now 30), and with it patience=12, against not learned" in output


def test_lower_learning_threshold_finds_other_causes(shipped: Store) -> None:
    assert failures.attribute(shipped, [38, 39]) == 2
    before = rows(shipped, "SELECT * FROM cause")
    lower = failures.causes_judged(shipped, [38, 39], 0.8)
    assert "not learned" not in set(lower["mechanism"])
    for run_id in (38, 39):
        own = failures.causes_of_run(shipped, run_id, 0.8)
        assert own["share"].sum() == pytest.approx(1.0)
        assert own.to_dict("records") == lower[lower["run_id"] == run_id].to_dict("records")
        found = failures.causes_of(shipped, run_id, SAMPLE, 0.8)
        assert own["mechanism"].tolist() == [x.mechanism for x in found]
    assert rows(shipped, "SELECT * FROM cause") == before, "nothing of it is stored"
    output = run(shipped, "remedies", "38", "--learned-at", "0.8")
    assert "no test string" not in output
    assert f"run 38 fails by {', '.join(mechanisms_of(lower[lower['run_id'] == 38]))}" in output


def test_sensitive_command_finds_runs_decided_by_rounding(shipped: Store) -> None:
    meant = ("lower_magnitude_initializations/5", "walkthrough", "all_initializations/6")
    records = json.loads(run(shipped, "sensitive", *meant, "--json"))
    by_run = {own["run_id"]: own for own in records}
    assert by_run[41]["sensitive"]
    assert by_run[41]["most"] > 100 > by_run[41]["least"] == 0
    assert not by_run[8]["sensitive"]
    assert (by_run[9]["least"], by_run[9]["most"]) == (972, 973)
    assert len(rows(shipped, "SELECT * FROM perturbation")) == 3 * 9
    before = queries.revision(shipped)
    run(shipped, "sensitive", *meant)
    assert queries.revision(shipped) == before, "what is stored is not trained again"
    assert "lower_magnitude_initializations" in run(shipped, "sensitive")


def test_findings_are_merged_and_deleted_with_their_run(shipped: Store, tmp_path: Path) -> None:
    before = queries.revision(shipped)
    writer.record_findings(shipped, 39, "cause", FOUND)
    writer.record_findings(shipped, 39, "perturbation", [Confusion(2886, 1443, 0, 5655)] * 2)
    assert queries.revision(shipped) > before
    fresh = open_writer(str(tmp_path / "other.db"))
    writer.merge(fresh, shipped)
    writer.merge(fresh, shipped)
    merged = explained.causes(fresh)
    assert merged["mechanism"].tolist() == [own.mechanism for own in FOUND]
    assert explained.sensitivity(fresh)["times"].tolist() == [2]
    sweep = sweep_queries.find_sweep(shipped, "lower_magnitude_initializations")
    writer.delete(shipped, sweep)
    assert explained.causes(shipped).empty
    assert explained.sensitivity(shipped).empty
    assert verify(shipped).damages == []
