"""What frames of runs say beyond their columns. Pure functions; no database."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from seqcls.config import default_fields
from seqcls.fields.imported import PREFIX

if TYPE_CHECKING:
    # Imported where frames are made: a sweep begins half a second sooner without.
    import pandas as pd


def accuracy(counts: "pd.DataFrame") -> "pd.Series[float]":
    """The share of strings classified rightly, in [0, 1]; missing where there are none."""
    return (counts["tested"] - counts["wrong"]).astype("Float64") / counts["tested"]


EXACT = 2**53
"""Up to here every whole number is a float."""


def exact_type(values: Iterable[Any]) -> str:
    """The type of a column that holds these values, each as it is; `object` where none does.

    Args:
        values: as JSON has them; None and NaN are missing.
    """
    known = [value for value in values if value is not None and value == value]
    match {type(value) for value in known}:
        case types if types == {bool}:
            return "boolean"
        case types if types == {str}:
            return "string"
        case types if types == {int} and all(-(2**63) <= value < 2**63 for value in known):
            return "Int64"
        case types if types == {float}:
            return "Float64"
        case types if types == {int, float}:
            whole = (value for value in known if isinstance(value, int))
            return "Float64" if all(abs(value) <= EXACT for value in whole) else "object"
    return "object"


def solved_or_none(solved: "pd.Series[Any]", shortest: "pd.Series[Any]") -> "pd.Series[Any]":
    """Solved lengths, missing where no string of so few tokens was tested.

    That is so of runs that get one of their shortest test strings wrong: nothing is solved.

    Args:
        solved: as stored, the greatest length up to which a run got no test string wrong.
        shortest: the length of the shortest string that each run was tested on.
    """
    return solved.where(solved >= shortest)


def setting_names(table: "pd.DataFrame") -> list[str]:
    """The columns that are fields of the configuration, or settings of models trained elsewhere."""
    foreign = [str(name) for name in table if str(name).startswith(PREFIX)]
    return [*(str(name) for name in default_fields() if name in table), *foreign]


def differing_fields(runs: "pd.DataFrame") -> list[str]:
    """The fields of the configuration that are not the same in all rows of a frame of runs."""
    foreign = [str(name) for name in runs if str(name).startswith(PREFIX)]
    ours = [name for name in default_fields() if name != "imported"]
    return [
        *(name for name in ours if runs[name].nunique() > 1),
        *(name for name in foreign if runs[name].nunique(dropna=False) > 1),
    ]
