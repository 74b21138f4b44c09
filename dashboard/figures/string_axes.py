"""What figures of a string have along their axes: its tokens, and the parts of its logit."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from dashboard.charts.model.readout import DIRECTIONS
from seqcls.interpretability.strings.asked import AskedModel, Letters

DRAWN = 64
"""Tokens up to which attention and units are drawn; the logit after each prefix goes further."""


def with_margin(values: Sequence[float]) -> tuple[float, float]:
    """Limits of an axis on which all of these are seen."""
    low, high = min(values), max(values)
    margin = 0.15 * max(high - low, 1e-6)
    return low - margin, high + margin


def steps_frame(steps: pd.DataFrame, string: str) -> pd.DataFrame:
    """The waterfall's rows: string, step, change, start, end, direction; the logit comes last.

    Args:
        steps: part, block, head, adds, logit.
        string: its text.
    """
    rows = [
        {
            "step": _step_name(step),
            "change": step["adds"],
            "start": step["logit"] - step["adds"],
            "end": step["logit"],
            "direction": DIRECTIONS[int(step["adds"] < 0)],
        }
        for step in steps.to_dict("records")
    ]
    last = float(steps["logit"].iloc[-1])
    rows.append(
        {"step": "logit", "change": last, "start": 0.0, "end": last, "direction": DIRECTIONS[2]}
    )
    return pd.DataFrame(rows).assign(string=string)


def _step_name(step: Mapping[Any, Any]) -> str:
    block, head = step["block"], step["head"]
    if pd.isna(block):
        return str(step["part"])
    part = f"head {head}" if not pd.isna(head) else str(step["part"])
    return f"block {block}: {part}"


def token_names(model: AskedModel, letters: Letters) -> list[str]:
    """The tokens along the axis: what stands before the string, its letters, what stands after."""
    before = {"first": "CLS"}.get(model.config.readout, "")
    alphabet = model.tokenizer.alphabet
    after = ["END"] if model.config.readout == "last" else []
    return [before, *(alphabet[letter] for letter in letters), *after]


def with_letters(model: AskedModel, places: "pd.Series[int]") -> "pd.Series[int]":
    """The numbers of letters, from 1 on, at places that count from 0 and a `CLS`."""
    return places if model.config.readout == "first" else places + 1
