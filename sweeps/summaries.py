"""Frames of runs and of length scores, summed up. Pure functions; no database.

A configuration's accuracy is never that of strings pooled over seeds: each run has its own, and
seeds are summed up by their median.
"""

from typing import Any

import pandas as pd

from seqcls.config import default_fields


def accuracy(confusion: pd.DataFrame) -> "pd.Series[float]":
    """The share of strings classified rightly, in [0, 1]; missing where there are none."""
    right = (confusion["tn"] + confusion["tp"]).astype("Float64")
    return right / (right + confusion["fp"] + confusion["fn"])


def differing_fields(runs: pd.DataFrame) -> list[str]:
    """The fields of the configuration that are not the same in all rows of a frame of runs."""
    return [name for name in default_fields() if runs[name].nunique() > 1]


def by_configuration(runs: pd.DataFrame) -> pd.DataFrame:
    """One row a configuration, in the order of the runs.

    Args:
        runs: as `sweeps.store.queries.runs` gives them. Runs that are not done count in
            `unfinished` or `failed` and in nothing else.

    Returns:
        config_id, sweeps (names, joined), seeds, unfinished, failed, failing_seeds,
        failing_share and median_accuracy in [0, 1], median_solved_length, false_positives and
        false_negatives (strings, summed over the seeds), and the fields that differ. What no
        finished run tells is missing.
    """
    fields = differing_fields(runs)
    rows = [
        _configuration(own) | {name: own[name].iloc[0] for name in fields}
        for _, own in runs.groupby("config_id", sort=False)
    ]
    columns = ["config_id", "sweeps", *_SUMMARY, *fields]
    return pd.DataFrame(rows, columns=columns)


_SUMMARY = [
    "seeds",
    "unfinished",
    "failed",
    "failing_seeds",
    "failing_share",
    "median_accuracy",
    "median_solved_length",
    "false_positives",
    "false_negatives",
]


def _configuration(runs: pd.DataFrame) -> dict[str, Any]:
    done = runs[runs["state"] == "done"]
    names = dict.fromkeys(name for own in runs["sweeps"] for name in own)
    failing = int((done["errors"] > 0).sum())
    summary: dict[str, Any] = {
        "config_id": int(runs["config_id"].iloc[0]),
        "sweeps": ", ".join(names),
        "seeds": len(done),
        "unfinished": int(runs["state"].isin(["queued", "running"]).sum()),
        "failed": int((runs["state"] == "failed").sum()),
    }
    if done.empty:
        return summary
    return summary | {
        "failing_seeds": failing,
        "failing_share": failing / len(done),
        "median_accuracy": float(done["accuracy"].median()),
        "median_solved_length": float(done["solved_length"].median()),
        "false_positives": int(done["fp"].sum()),
        "false_negatives": int(done["fn"].sum()),
    }


def accuracy_by_length(scores: pd.DataFrame, width: int) -> pd.DataFrame:
    """Each run's accuracy on strings of similar length.

    Args:
        scores: run_id, length, tn, fp, fn, tp.
        width: lengths that make one point: with 10, the lengths 1 to 10, 11 to 20, and so on.

    Returns:
        run_id, first_length, last_length, middle, strings, misclassified, accuracy in [0, 1].
    """
    bins = (scores["length"] - 1) // width
    confusion = ["tn", "fp", "fn", "tp"]
    summed = scores[confusion].groupby([scores["run_id"], bins]).sum().reset_index()
    summed["first_length"] = summed["length"] * width + 1
    summed["last_length"] = (summed["length"] + 1) * width
    summed["middle"] = (summed["first_length"] + summed["last_length"]) / 2
    summed["strings"] = summed[confusion].sum(axis=1)
    summed["misclassified"] = summed["fp"] + summed["fn"]
    summed["accuracy"] = accuracy(summed)
    return summed.drop(columns=["length", *confusion])
