"""The whole report, trained by the slower engine: it gives the matrices of the faster one."""

from pathlib import Path

from sweeps.store.opening import open_reader
from sweeps.store.reads import queries
from tests.chaos.conftest import long_alone
from tests.commands import run_main
from tests.conftest import ROOT

CHAOTIC = "lower_magnitude_initializations/5"
"""Rounding decides what it comes to."""

CELLS = ["tn", "fp", "fn", "tp"]


def matrices(db: Path, engine: str) -> dict[tuple[str, int], list[int]]:
    """The confusion matrix of every run, by its configuration and seed."""
    store = open_reader(str(db))
    runs = queries.runs(store)
    runs = runs[runs["id"] != queries.find_run(store, CHAOTIC)]
    assert set(runs["engine"]) == {engine}
    keys = [queries.run_config(store, int(run_id)).key for run_id in runs["id"]]
    found = zip(keys, runs["model_seed"].tolist(), runs[CELLS].to_numpy().tolist(), strict=True)
    return {(key, seed): cells for key, seed, cells in found}


@long_alone
def test_both_engines_give_the_same_confusion_matrices(tmp_path: Path) -> None:
    db = tmp_path / "stacked.db"
    completed = run_main("sweep", "report", "--db", str(db), "--engine", "torch")
    assert completed.returncode == 0, completed
    assert matrices(db, "counts") == matrices(ROOT / "runs.db", "fused")
