"""Families of strings as data frames for their charts."""

import numpy as np
import pandas as pd

from dashboard.charts.style.encodings import outcome
from seqcls.interpretability.counts.family import Curve, Map

SURE = 5.0
"""A logit that is drawn in full color: a probability of 0.7%, or of 99.3%."""


def curve_frame(curve: Curve) -> pd.DataFrame:
    """n, logit, probability, outcome."""
    outcomes = [outcome(curve.label, logit > 0) for logit in curve.logit.tolist()]
    return pd.DataFrame(
        {"n": curve.n, "logit": curve.logit, "probability": curve.probability, "outcome": outcomes}
    )


def flips_frame(curve: Curve) -> pd.DataFrame:
    """n, logit, label: where the answer changes."""
    rows = [
        {"n": flip.n, "logit": flip.logit, "label": f"{curve.family.names[0]} = {flip.n:,}"}
        for flip in curve.flips
    ]
    return pd.DataFrame(rows, columns=["n", "logit", "label"])


def cells_frame(found: Map) -> pd.DataFrame:
    """x, x2, y, y2 (the edges of a cell), first, second, logit, outcome."""
    columns, rows = np.meshgrid(np.arange(len(found.second)), np.arange(len(found.first)))
    x, y = _edges(found.first), _edges(found.second)
    logit = found.logit.ravel()
    return pd.DataFrame(
        {
            "x": x[rows.ravel()],
            "x2": x[rows.ravel() + 1],
            "y": y[columns.ravel()],
            "y2": y[columns.ravel() + 1],
            "first": found.first[rows.ravel()],
            "second": found.second[columns.ravel()],
            "logit": logit,
            "outcome": [outcome(found.label, value > 0) for value in logit.tolist()],
            "strength": 0.25 + 0.65 * np.minimum(np.abs(logit), SURE) / SURE,
        }
    )


def boundary_frame(found: Map) -> pd.DataFrame:
    """first, second: for each value of the first count where over the second the answer changes."""
    rows = [
        {"first": int(value), "second": flip.n}
        for value, flips in zip(found.first, found.boundary, strict=True)
        for flip in flips
    ]
    return pd.DataFrame(rows, columns=["first", "second"])


def _edges(values: np.ndarray) -> np.ndarray:
    """Halfway between neighbours on a logarithmic scale."""
    middles = np.sqrt(values[1:].astype(float) * values[:-1])
    return np.concatenate([[values[0] ** 2 / middles[0]], middles, [values[-1] ** 2 / middles[-1]]])
