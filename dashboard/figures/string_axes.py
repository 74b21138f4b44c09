"""What figures of a string have along their axes: its tokens, and the parts of its logit."""

from collections.abc import Sequence

import pandas as pd

from dashboard.charts.model.readout import DIRECTIONS
from seqcls.interpretability.attribution.steps import Step
from seqcls.interpretability.model.trained_model import Letters, TrainedModel

DRAWN = 64
"""Tokens up to which attention and units are drawn; the logit after each prefix goes further."""


def with_margin(values: Sequence[float]) -> tuple[float, float]:
    """Limits of an axis on which all of these are seen."""
    low, high = min(values), max(values)
    margin = 0.15 * max(high - low, 1e-6)
    return low - margin, high + margin


def steps_frame(steps: Sequence[Step], string: str) -> pd.DataFrame:
    """The waterfall's rows: string, step, change, start, end, direction; the logit comes last."""
    rows = [
        (step.text, step.adds, step.logit - step.adds, step.logit, DIRECTIONS[step.adds < 0])
        for step in steps
    ]
    rows.append(("logit", steps[-1].logit, 0.0, steps[-1].logit, DIRECTIONS[2]))
    columns = ["step", "change", "start", "end", "direction"]
    return pd.DataFrame(rows, columns=columns).assign(string=string)


def token_names(model: TrainedModel, letters: Letters) -> list[str]:
    """The tokens along the axis: what stands before the string, its letters, what stands after.

    Of a model that writes all that it reads: the input, `SEP` and the output.
    """
    if model.writes:
        # Imported where it is used: PyTorch takes a second or two to load.
        from seqcls.interpretability.model import readable_model

        return readable_model.token_names(model, letters)
    before = {"first": "CLS"}.get(model.config.readout, "")
    alphabet = model.tokenizer.alphabet
    after = ["END"] if model.config.readout == "last" else []
    return [before, *(alphabet[letter] for letter in letters), *after]


def with_letters(model: TrainedModel, places: "pd.Series[int]") -> "pd.Series[int]":
    """The numbers of letters, from 1 on, at places that count from 0 and a `CLS`."""
    return places if model.config.readout == "first" else places + 1
