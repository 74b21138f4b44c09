"""Summaries of runs: what counts, and what must not."""

import pandas as pd
import pytest

from seqcls.config import default_fields
from sweeps.summaries import accuracy_by_length, by_configuration


def run(config_id: int, **columns: object) -> dict[str, object]:
    fields = {"hidden_size": 2 if config_id == 1 else 16}
    result = {"state": "done", "sweeps": ("s",), "tn": 40, "fp": 0, "fn": 0, "tp": 60}
    return {**default_fields(), **fields, **result, "config_id": config_id, **columns}


def frame(*rows: dict[str, object]) -> pd.DataFrame:
    runs = pd.DataFrame(rows)
    integers = ["tn", "fp", "fn", "tp", "solved_length"]
    runs[integers] = runs[integers].astype("Int64")
    runs["errors"] = runs["fp"] + runs["fn"]
    right = (runs["tn"] + runs["tp"]).astype("Float64")
    runs["accuracy"] = right / (right + runs["errors"])
    return runs


def test_seeds_are_summed_up_by_their_median_and_never_pooled() -> None:
    table = by_configuration(
        frame(
            run(1, solved_length=200),
            run(1, solved_length=200),
            run(1, fn=60, tp=0, solved_length=10),
            run(2, fp=4, tn=36, solved_length=50),
        )
    )
    assert table["config_id"].tolist() == [1, 2]
    assert table["hidden_size"].tolist() == [2, 16]
    first = table.iloc[0]
    assert (first["seeds"], first["failing_seeds"]) == (3, 1)
    assert first["failing_share"] == pytest.approx(1 / 3)
    assert first["median_accuracy"] == 1.0  # pooled it would be 0.8
    assert first["median_solved_length"] == 200
    assert (first["false_positives"], first["false_negatives"]) == (0, 60)
    assert "num_letters" not in table


def test_an_unfinished_or_failed_run_is_in_no_average() -> None:
    nothing = dict.fromkeys(["tn", "fp", "fn", "tp", "solved_length"])
    table = by_configuration(
        frame(
            run(1, fn=6, tp=54, solved_length=7),
            run(1, state="queued", **nothing),
            run(1, state="running", **nothing),
            run(1, state="failed", **nothing),
            run(2, state="queued", **nothing),
        )
    )
    first, second = table.iloc[0], table.iloc[1]
    assert (first["seeds"], first["unfinished"], first["failed"]) == (1, 2, 1)
    assert first["median_accuracy"] == pytest.approx(0.94)
    assert second["seeds"] == 0
    assert second[["failing_share", "median_accuracy", "false_positives"]].isna().all()


def test_lengths_are_put_together_by_counting_their_strings() -> None:
    scores = pd.DataFrame(
        {
            "run_id": [1, 1, 1, 2],
            "length": [1, 10, 11, 20],
            "tn": [3, 0, 1, 0],
            "fp": [0, 1, 0, 2],
            "fn": [0, 0, 1, 0],
            "tp": [0, 4, 0, 0],
        }
    )
    points = accuracy_by_length(scores, 10)
    assert points["run_id"].tolist() == [1, 1, 2]
    assert points["first_length"].tolist() == [1, 11, 11]
    assert points["last_length"].tolist() == [10, 20, 20]
    assert points["strings"].tolist() == [8, 2, 2]
    assert points["misclassified"].tolist() == [1, 1, 2]
    assert points["accuracy"].tolist() == [7 / 8, 0.5, 0.0]
    assert accuracy_by_length(scores, 1)["first_length"].tolist() == [1, 10, 11, 20]
