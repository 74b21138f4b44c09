"""What each number means, in a sentence, wherever it is shown."""

from collections.abc import Iterable
from typing import Any

import streamlit as st
from streamlit.column_config import NumberColumn, TextColumn

from seqcls import kinds

ACCURACY = kinds.ACCURACY.meaning
TESTED = "Models that are trained and tested, of all configurations that match the filters."
SEEDS = "Trained and tested models with the same settings but different initial values."
MEDIAN_ACCURACY = f"{ACCURACY} The median over seeds: half of the models are better."
INTERVAL = (
    "For the median accuracy: bootstrap over seeds, 2,000 resamples. None for fewer than six "
    "seeds, which are too few for 95%."
)
SOLVED_LENGTH = (
    "The greatest length up to which a model misclassifies no test string. Strings that are not "
    "in the test set may be misclassified at a shorter length; -1: not even the empty string."
)
FALSE_POSITIVES = "Negative test strings that are predicted positive"
FALSE_NEGATIVES = "Positive test strings that are predicted negative"
OCCURRENCES = "How often the string is in the test set."


def failing(below: float) -> str:
    """What a failing model is, at this threshold in [0, 1]."""
    if below >= 1:
        return "Models that misclassify at least one of their test strings."
    return f"Models with an accuracy below {below:.1%}, as set in the sidebar."


def configuration_columns(below: float) -> dict[str, Any]:
    """How the columns of a table of configurations are shown."""
    return {
        "seeds": NumberColumn("Seeds", help=SEEDS),
        "unfinished": NumberColumn("Unfinished", help="Queued or in training."),
        "failed": NumberColumn("Untrained", help="Training failed; excluded from averages."),
        "failing": NumberColumn("Failing", help=failing(below)),
        "failing_share": NumberColumn(
            "Share", format="percent", help=f"Share of seeds that fail. {failing(below)}"
        ),
        "failing_interval": TextColumn(
            "95% (Wilson)", help="95% interval of the share of failing seeds, by Wilson."
        ),
        "failing_seeds": TextColumn("Failing seeds", help="Which seeds those are.", width=125),
        "median_accuracy": NumberColumn("Median accuracy", help=MEDIAN_ACCURACY, format="percent"),
        "interval": TextColumn("95% interval", help=INTERVAL),
        "median_solved_length": NumberColumn(
            "Median solved length", help=f"{SOLVED_LENGTH} The median over seeds.", format="%.0f"
        ),
        "false_positives": NumberColumn("False positives", help=f"{FALSE_POSITIVES}; all seeds."),
        "false_negatives": NumberColumn("False negatives", help=f"{FALSE_NEGATIVES}; all seeds."),
    }


PINNED = 250
"""Pixels of a column that stays in sight; a wider one would leave a narrow window nothing else."""

LETTER = 7.5
"""Pixels of a letter in a table, about."""


def setting_columns(names: Iterable[str], longest: int = 26) -> dict[str, Any]:
    """How columns of settings are shown: narrow, so that results have room.

    Args:
        names: the columns.
        longest: letters of the longest name of a row.
    """
    shown: dict[str, Any] = {name: st.column_config.Column(width=95, help=name) for name in names}
    width = round(min(max(LETTER * longest + 24, 120), 420))
    for name in ("sweeps", "configuration"):
        if name in shown:
            shown[name] = TextColumn(name.capitalize(), width=width, pinned=width <= PINNED)
    return shown


def naming_columns(names: Iterable[str]) -> dict[str, Any]:
    """How the columns are shown that tell the rows apart: whole, and always in sight."""
    return {
        name: st.column_config.Column(pinned=True)
        for name in names
        if name not in ("sweeps", "configuration")
    }


def model_columns() -> dict[str, Any]:
    """How the columns of a table of models are shown."""
    return {
        "run_id": NumberColumn("Run", help="The model's number in the database."),
        "model_seed": NumberColumn("Seed", help="The seed of its initial values."),
        "errors": NumberColumn("Errors", help="Test strings that it misclassifies."),
        "false_positives": NumberColumn("False positives", help=f"{FALSE_POSITIVES}."),
        "false_negatives": NumberColumn("False negatives", help=f"{FALSE_NEGATIVES}."),
        "accuracy": NumberColumn("Accuracy", help=ACCURACY, format="percent"),
        "solved_length": NumberColumn("Solved length", help=SOLVED_LENGTH),
    }


def string_columns(kind: kinds.Kind | None = None) -> dict[str, Any]:
    """How the columns of a table of misclassified strings are shown.

    Args:
        kind: of their task's answers; of languages if none is given.
    """
    columns = (kind or kinds.KINDS["membership"]()).error_columns()
    return {
        "string": TextColumn("String", help="a{100} is the letter a, a hundred times.", width=220),
        "kind": TextColumn("Kind", help=f"False positive: {FALSE_POSITIVES}, and so on."),
        "length": NumberColumn("Length", help="Letters"),
        "occurrences": NumberColumn("Occurrences", help=OCCURRENCES),
        "models": NumberColumn("Models", help="Models that misclassify it."),
        "of": NumberColumn("Tested on it", help="Of the models with errors that are counted."),
        "share": NumberColumn(
            "Share", help="Of the models with errors that are tested on it.", format="percent"
        ),
        **{column.name: _of_errors(column) for column in columns},
        # Of a task that is no language there is no label.
        **({} if any(column.name == "label" for column in columns) else {"label": None}),
    }


def _of_errors(column: kinds.ErrorColumn) -> Any:
    if column.name == "logit":
        return NumberColumn(column.title, help=column.meaning, format="%.4f")
    return st.column_config.Column(column.title, help=column.meaning)
