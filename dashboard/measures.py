"""What each number means, in a sentence, wherever it is shown."""

from collections.abc import Iterable
from typing import Any

import streamlit as st
from streamlit.column_config import NumberColumn, TextColumn

ACCURACY = "Share of a model's test strings that it classifies rightly."
SEEDS = "Models that are trained and tested: the same settings from other initial values."
MEDIAN_ACCURACY = f"{ACCURACY} The median over seeds: half of the models are better."
INTERVAL = (
    "How sure the median accuracy is: the middle 95% of the medians of 2,000 draws of as many "
    "seeds, with replacement (bootstrap). One seed alone has none."
)
SOLVED_LENGTH = "Letters up to which a model misclassified no test string."
FALSE_POSITIVES = "Test strings said to be in the language that are not"
FALSE_NEGATIVES = "Test strings said not to be in the language that are"
FALSE_POSITIVE_RATE = "Of the test strings that are not in the language, the share said to be."
FALSE_NEGATIVE_RATE = "Of the test strings that are in the language, the share said not to be."
OCCURRENCES = "How often the string is in the test set."
LOGIT = "What the model computes for the string: above 0 it says that it is in the language."
LABEL = "1: the string is in the language. 0: it is not."


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
        "failed": NumberColumn("Untrained", help="Training failed; they are in no average."),
        "failing": NumberColumn("Failing", help=failing(below)),
        "failing_share": NumberColumn(
            "Share", format="percent", help=f"Of the seeds. {failing(below)}"
        ),
        "failing_seeds": TextColumn("Failing seeds", help="Which seeds those are.", width=125),
        "median_accuracy": NumberColumn("Accuracy", help=MEDIAN_ACCURACY, format="percent"),
        "interval": TextColumn("95% interval", help=INTERVAL),
        "median_solved_length": NumberColumn(
            "Solved length", help=f"{SOLVED_LENGTH} The median over seeds.", format="%.0f"
        ),
        "false_positives": NumberColumn("False positives", help=f"{FALSE_POSITIVES}; all seeds."),
        "false_negatives": NumberColumn("False negatives", help=f"{FALSE_NEGATIVES}; all seeds."),
    }


def setting_columns(names: Iterable[str]) -> dict[str, Any]:
    """How columns of settings are shown: narrow, so that results have room."""
    shown: dict[str, Any] = {name: st.column_config.Column(width=95, help=name) for name in names}
    if "sweeps" in shown:
        shown["sweeps"] = TextColumn("Sweeps", width=200, pinned=True)
    return shown


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


def string_columns() -> dict[str, Any]:
    """How the columns of a table of misclassified strings are shown."""
    return {
        "string": TextColumn("String", help="a{100} is the letter a, a hundred times.", width=220),
        "kind": TextColumn("Kind", help=f"False positive: {FALSE_POSITIVES}, and so on."),
        "length": NumberColumn("Length", help="Letters"),
        "label": NumberColumn("Label", help=LABEL),
        "logit": NumberColumn("Logit", help=LOGIT, format="%.4f"),
        "occurrences": NumberColumn("Occurrences", help=OCCURRENCES),
        "models": NumberColumn("Models", help="Models that misclassify it."),
        "share": st.column_config.NumberColumn(
            "Share", help="Of the models with errors that the filters leave.", format="percent"
        ),
    }
