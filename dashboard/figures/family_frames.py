"""Families of strings as data frames for their charts."""

import numpy as np
import pandas as pd

from dashboard.charts.style.encodings import outcome
from seqcls.interpretability.families.curves import Curve, Map

SURE = 5.0
"""A logit that is drawn in full color: a probability of 0.7%, or of 99.3%."""


def curve_frame(curve: Curve) -> pd.DataFrame:
    """n, logit, probability, outcome."""
    return pd.DataFrame(
        {
            "n": curve.n,
            "logit": curve.logits,
            "probability": curve.probability,
            "outcome": _outcomes(curve),
        }
    )


def flips_frame(curve: Curve) -> pd.DataFrame:
    """n, logit, label: where the answer changes."""
    rows = [
        {"n": change.n, "logit": change.logit, "label": f"{curve.family.names[0]} = {change.n:,}"}
        for change in curve.changes
    ]
    return pd.DataFrame(rows, columns=["n", "logit", "label"])


def cells_frame(grid: Map) -> pd.DataFrame:
    """x, x2, y, y2 (the edges of a cell), first, second, logit, outcome."""
    columns, rows = np.meshgrid(np.arange(len(grid.second)), np.arange(len(grid.first)))
    x, y = _edges(grid.first), _edges(grid.second)
    logit = grid.logits.ravel()
    return pd.DataFrame(
        {
            "x": x[rows.ravel()],
            "x2": x[rows.ravel() + 1],
            "y": y[columns.ravel()],
            "y2": y[columns.ravel() + 1],
            "first": grid.first[rows.ravel()],
            "second": grid.second[columns.ravel()],
            "logit": logit,
            "outcome": _outcomes(grid),
            "strength": 0.25 + 0.65 * np.minimum(np.abs(logit), SURE) / SURE,
        }
    )


def boundary_frame(grid: Map) -> pd.DataFrame:
    """first, second: for each value of the first count where over the second the answer changes."""
    rows = [
        {"first": int(value), "second": change.n}
        for value, changes in zip(grid.first, grid.changes, strict=True)
        for change in changes
    ]
    return pd.DataFrame(rows, columns=["first", "second"])


def _outcomes(answers: Curve | Map) -> list[str]:
    pairs = zip(answers.labels.ravel().tolist(), answers.logits.ravel().tolist(), strict=True)
    return [outcome(label, logit > 0) for label, logit in pairs]


def _edges(values: np.ndarray) -> np.ndarray:
    """Halfway between neighbours on a logarithmic scale."""
    middles = np.sqrt(values[1:].astype(float) * values[:-1])
    return np.concatenate([[values[0] ** 2 / middles[0]], middles, [values[-1] ** 2 / middles[-1]]])
