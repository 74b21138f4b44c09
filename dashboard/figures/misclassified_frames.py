"""All misclassified strings of a model as data frames for their charts."""

import numpy as np
import pandas as pd

from dashboard.charts.errors.misclassified import KINDS
from seqcls.interpretability.model.network import Network
from seqcls.interpretability.multisets import multisets_of
from seqcls.interpretability.verdicts.errors import Errors

CELL = 5
"""Counts in a cell; the count 0 has cells of its own."""


def likeliest_letters(errors: Errors) -> tuple[int, int]:
    """The two letters that misclassified strings hold most of, in order."""
    first, second = sorted(np.argsort(-errors.counts.sum(axis=0), kind="stable")[:2].tolist())
    return first, second


def cells_frame(network: Network, errors: Errors, letters: tuple[int, int]) -> pd.DataFrame:
    """x, x2, y, y2, firsts, seconds, kind, errors, share: see `error_map`."""
    everything = multisets_of(network.problem, errors.max_length)
    labels = network.problem.count_task.labels_of_counts(everything)
    side = -(-errors.max_length // CELL) + 1
    wrong = _binned(errors.counts, errors.label, letters, side)
    of_all = _binned(everything, labels, letters, side)
    place = np.flatnonzero(wrong)
    kind, x, y = np.unravel_index(place, (2, side, side))
    return pd.DataFrame(
        {
            "x": CELL * (x - 1),
            "x2": CELL * x,
            "y": CELL * (y - 1),
            "y2": CELL * y,
            "firsts": [_counts(value) for value in x.tolist()],
            "seconds": [_counts(value) for value in y.tolist()],
            "kind": [KINDS[value] for value in kind.tolist()],
            "errors": wrong[place],
            "share": wrong[place] / of_all[place],
        }
    )


def lengths_frame(errors: Errors) -> pd.DataFrame:
    """length, kind, errors; lengths without errors have no row."""
    table = errors.by_length()
    length, kind = np.nonzero(table)
    return pd.DataFrame(
        {
            "length": length,
            "kind": [KINDS[value] for value in kind.tolist()],
            "errors": table[length, kind],
        }
    )


def _binned(
    counts: np.ndarray, labels: np.ndarray, letters: tuple[int, int], side: int
) -> np.ndarray:
    """How many multisets there are of each label and cell, flat."""
    x, y = (-(-counts[:, letter] // CELL) for letter in letters)
    return np.bincount((labels * side + x) * side + y, minlength=2 * side * side)


def _counts(cell: int) -> str:
    return f"{CELL * (cell - 1) + 1} to {CELL * cell}" if cell else "none"
