"""Merging, verifying and exporting whole databases."""

import shutil
from pathlib import Path

import pandas as pd
import pytest

from seqcls.errors import ConfigError, StoreDamagedError
from sweeps.api.exports import arrow_table, export, without_formulas
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads import queries
from sweeps.store.verification import verify
from tests.chaos.contents import contents
from tests.conftest import ROOT
from tests.databases import change, rows, spec, stored_sweeps
from tests.results import claimed, filled


@pytest.fixture
def other(made_file: Path, tmp_path: Path) -> Store:
    return open_writer(str(shutil.copy(made_file, tmp_path / "other.db")))


def named(store: Store) -> list[str]:
    return [str(damage) for damage in verify(store).damages]


def test_merging_into_an_empty_database_copies_everything(store: Store) -> None:
    shipped = open_reader(str(ROOT / "runs.db"))
    merged = writer.merge(store, shipped)
    assert (merged.results, merged.same, merged.conflicts, merged.damaged) == (43, 0, [], [])
    assert contents(store) == contents(shipped)
    assert named(store) == []
    again = writer.merge(store, shipped)
    assert (again.results, again.same) == (0, 43)
    assert contents(store) == contents(shipped)


def test_merging_keeps_both_sweeps_and_fills_in_waiting_runs(store: Store, other: Store) -> None:
    filled(store)
    # Model seed 2 is the third run here and the first there.
    filled(other, first=2, name="t", model_seeds=[2, 3, 4])
    writer.submit(store, spec(name="waits", model_seeds=[3, 4]))
    assert stored_sweeps(store)["state"].tolist() == ["done", "queued"]
    merged = writer.merge(store, other)
    assert (merged.results, merged.same, merged.conflicts) == (2, 1, [])
    assert queries.runs(store)["model_seed"].tolist() == [0, 1, 2, 3, 4]
    assert stored_sweeps(store)["state"].tolist() == ["done", "done", "done"]


def test_merging_reports_conflicting_results_and_keeps_the_stored_ones(
    store: Store, other: Store
) -> None:
    before = contents(filled(store))
    merged = writer.merge(store, filled(other, first=1))
    assert len(merged.conflicts) == 3
    conflict = "run 1 (model seed 0): other best_validation_loss, fn, tested"
    assert merged.conflicts[0].startswith(conflict)
    assert contents(store) == before


def test_merging_keeps_failed_and_waiting_runs_in_their_states(store: Store, other: Store) -> None:
    sweep_id = writer.submit(other, spec(model_seeds=[0]))
    for _ in range(3):
        writer.record_lost(other, claimed(other, sweep_id)[1], "killed")
    writer.submit(other, spec(name="waits", model_seeds=[1]))
    merged = writer.merge(store, other)
    assert (merged.results, merged.waiting) == (0, 2)
    assert rows(store, "SELECT state, error, failures FROM run ORDER BY id") == [
        ("failed", "killed", 3),
        ("queued", None, 0),
    ]
    assert rows(store, "SELECT count(*) FROM failure") == [(3,)]
    assert named(store) == []


def test_merging_renames_a_sweep_whose_name_is_taken(store: Store, other: Store) -> None:
    filled(store)
    filled(other, model_seeds=[7, 8, 9])
    for _ in range(2):
        assert writer.merge(store, other).renamed == {"s": "s (other)"}
    assert stored_sweeps(store)["name"].tolist() == ["s", "s (other)"]
    assert stored_sweeps(store)["runs"].tolist() == [3, 3]
    assert named(store) == []


def test_merging_names_the_damaged_database(store: Store, other: Store) -> None:
    filled(other)
    change(other, "UPDATE sweep SET title = CAST(x'ff' AS TEXT)")
    with pytest.raises(StoreDamagedError, match=r"other\.db'.*restore a copy"):
        writer.merge(store, other)


DAMAGED = (
    "UPDATE run SET tested = tested + 1 WHERE id = 1",
    "UPDATE run SET losses = '[]' WHERE id = 2",
    "UPDATE run SET tp = tp + 1 WHERE id = 3",
    "UPDATE run SET errors = '[[1,0.5]]' WHERE id = 4",
    "DELETE FROM checkpoint WHERE run_id = 5",
    "UPDATE run SET lengths = '[]' WHERE id = 6",
    "UPDATE run SET within_from = 'validation' WHERE id = 7",
    "UPDATE run SET digest = 'x' WHERE id = 8",
)
"""Changes that damage one run each."""


def test_damaged_runs_are_named_and_not_merged(store: Store, other: Store) -> None:
    filled(store, model_seeds="0..9", fixed={"hidden_size": 4})
    assert named(store) == []
    change(store, *DAMAGED)
    damages = named(store)
    for run_id in range(1, 9):
        damage = f"run {run_id} (model seed {run_id - 1}): its results do not fit its digest"
        assert damage in damages
        with pytest.raises(StoreDamagedError, match=f"run {run_id} is damaged: its results do not"):
            queries.find_run(store, str(run_id))
    assert queries.find_run(store, "9") == 9
    assert {int(x.split()[1]) for x in damages if x.startswith("run")} == {*range(1, 9)}
    merged = writer.merge(other, store)
    left = [f"run {number} (model seed {number - 1})" for number in range(1, 9)]
    assert (merged.results, merged.damaged) == (2, left)
    done = "SELECT model_seed FROM run WHERE state = 'done' ORDER BY 1"
    assert rows(other, done) == [(8,), (9,)]
    assert named(other) == []


def test_an_export_for_spreadsheets_has_no_formulas(tmp_path: Path, other: Store) -> None:
    """Texts of others are cells there, and the default loses none of their signs."""
    for name in ("=HYPERLINK(0)", "+1", "plain"):
        filled(other, name=name, fixed={"hidden_size": len(name)})
    plain = export(other, tmp_path / "plain", "csv")
    safe = export(other, tmp_path / "safe", "csv", spreadsheet=True)
    assert list(plain.values()) == list(safe.values())
    before, after = (
        pd.read_csv(tmp_path / folder / "runs.csv", dtype=str)["sweeps"].unique().tolist()
        for folder in ("plain", "safe")
    )
    assert before == ["=HYPERLINK(0)", "+1", "plain"]
    assert after == ["'=HYPERLINK(0)", "'+1", "plain"]
    first, second = (pd.read_csv(tmp_path / x / "errors.csv") for x in ("plain", "safe"))
    pd.testing.assert_series_equal(first["logit"], second["logit"])
    for kind, how, words in (
        ("parquet", True, "spreadsheet=True with format 'parquet'"),
        ("xls", False, "format 'xls': expected csv, parquet or jsonl"),
    ):
        with pytest.raises(ConfigError, match=words):
            export(other, tmp_path / "out", kind, spreadsheet=how)


def test_no_cell_and_no_title_for_spreadsheets_begins_like_a_formula() -> None:
    signs = ["=1", "+1", "-1", "@x", "\t=1", "\r=1", "\n=1", "\uff1d1", "\uff0b1", "\uff0d1"]
    plain = ["a=1", "'=1", "", " =1", "1"]
    frame = pd.DataFrame({"=x": [*signs, *plain], "n": [-1.5] * 15})
    frame["mixed"] = [-1, None, "-1", True, *["b"] * 11]
    shown = without_formulas(arrow_table(frame)).to_pydict()
    assert shown["'=x"] == [*(f"'{text}" for text in signs), *plain]
    assert shown["n"] == [-1.5] * 15
    assert shown["mixed"][:4] == ["'-1", None, "'-1", "True"]


def test_an_export_without_runs_has_its_columns(tmp_path: Path, other: Store) -> None:
    assert set(export(other, tmp_path / "out", "csv").values()) == {0}
    columns = list(pd.read_csv(tmp_path / "out" / "lengths.csv"))
    assert columns[:8] == ["run_id", "length", "tn", "fp", "fn", "tp", "tested", "wrong"]
