"""Accuracy by length: a small picture for each configuration."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from dashboard import marks
from dashboard.results import pictures
from dashboard.section import Panel, Section, Spec, colors_present
from dashboard.words.sentences import say
from sweeps.api import Store, outcomes
from sweeps.api.by_length import MOST_LINES, Curves, curves
from sweeps.api.outcomes import deciding
from sweeps.api.selecting import Selection

MOST_PANELS = 12

LEAST_SPAN = 0.05
"""The least part of the vertical scale that is shown."""


def by_length(store: Store, selection: Selection, config_ids: Sequence[int]) -> Section:
    """A picture for each configuration, a line a seed that the selection picks.

    Args:
        config_ids: those whose names are shown, in order; the first `MOST_PANELS` have pictures.
    """
    counts = outcomes.counts_of(store, selection).set_index("config_id")
    known = [x for x in config_ids if x in counts.index]
    shown = known[:MOST_PANELS]
    if not shown:
        return Section("By length", (say("no_models"),))
    found = curves(store, selection, shown)
    points = _points(found)
    knows = deciding(store, shown)
    # Of a task that a reader decides, no reader is a shortcut.
    shortcuts = found.shortcuts[found.shortcuts["config_id"].map(knows).isna()]
    shortcuts = shortcuts.rename(columns={"accuracy": "right"})
    lowest = [points["right"].min(), found.medians["median"].min(), shortcuts["right"].min()]
    low = float(np.floor(20 * np.nanmin(np.array(lowest, dtype=float))) / 20)
    low, longest = min(low, 1 - LEAST_SPAN), float(points["last_length"].max())
    panels = []
    for config_id in shown:
        own, worst = _own(points, config_id), _worst(found, config_id)
        row: Any = counts.loc[config_id]
        rows = {
            "seeds": own[["run", "seed", "outcome", "middle", "lengths", "right"]],
            "medians": _middles(_own(found.medians, config_id))[["middle", "median"]],
            "shortcuts": _middles(_own(shortcuts, config_id))[["middle", "right"]],
        }
        trained = found.trained.get(config_id)
        # All but the rows is drawn once, for any number of configurations and states of them.
        spec = _draw_once(len(rows["medians"]), len(rows["shortcuts"]), trained, low, longest)
        link = f"Opens its worst seed, {worst['model_seed']}"
        of_panel = (str(row["name"]), _note(row), int(worst["run_id"]), link)
        panels.append(Panel(_with_rows(spec, rows, config_id), *of_panel))
    legend = colors_present(found.runs["outcome"], marks.OUTCOMES)
    legend += ("ink",) * (not found.medians.empty) + ("muted",) * (not shortcuts.empty)
    caption = _caption(found, counts, shown, len(known))
    return Section("By length", (), None, tuple(panels), caption, legend, "run")


@lru_cache(maxsize=256)
def _draw_once(*given: Any) -> Spec:
    return Panel.of(pictures.by_length(*given)).spec


def _with_rows(spec: Spec, rows: Mapping[str, pd.DataFrame], config_id: int) -> Spec:
    """A picture with its data, under names of their own: as one figure pictures share names."""
    own = {name: f"{name} {config_id}" for name in rows}

    def rename(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: rename(value) for key, value in part.items() if key != "datasets"}
        if isinstance(part, list):
            return [rename(item) for item in part]
        return own.get(part, part) if isinstance(part, str) else part

    # Altair would look through thousands of rows for what JSON cannot hold.
    data = {own[name]: frame.to_dict("records") for name, frame in rows.items() if len(frame)}
    named: Spec = rename(spec)
    return named | {"datasets": {**spec.get("datasets", {}), **data}}


def _own(frame: pd.DataFrame, config_id: int) -> pd.DataFrame:
    return frame[frame["config_id"] == config_id]


def _middles(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(middle=(frame["first_length"] + frame["last_length"]) / 2)


def _points(found: Curves) -> pd.DataFrame:
    """The points of all lines: run, seed, outcome, middle, lengths, right, config_id."""
    points = _middles(found.points.merge(found.runs, on="run_id"))
    first, last = points["first_length"].astype(str), points["last_length"].astype(str)
    lengths = first.where(first == last, first + " to " + last)
    names = {"run_id": "run", "model_seed": "seed", "accuracy": "right"}
    return points.rename(columns=names).assign(lengths=lengths)


def _worst(found: Curves, config_id: int) -> "pd.Series[Any]":
    """The seed that a configuration's name opens: of those that fail beyond the least accurate."""
    own = _own(found.runs, config_id)
    failing = own[own["outcome"] == "fails beyond"]
    return (own if failing.empty else failing).iloc[0]


def _note(row: Any) -> str:
    if not row["judged"]:
        return f"{row['seeds']} seeds, not known whether they learned"
    learned = f"{row['learned']} of {row['judged']} learned"
    if not row["judged_beyond"]:
        return learned
    return f"{learned}, {row['generalize']} of {row['judged_beyond']} generalize"


def _caption(found: Curves, counts: pd.DataFrame, shown: Sequence[int], total: int) -> str:
    parts = ["Right by length; a line is a seed, the thick one the median of those that learned"]
    parts += ["trained lengths are shaded"] * bool(found.trained)
    sentence = "; ".join(parts) + "."
    if (counts.loc[list(shown), "seeds"] > MOST_LINES).any():
        sentence += f" {MOST_LINES} seeds of each at most, from the worst to the best, have a line."
    if len(shown) < total:
        sentence += f" The first {len(shown)} of {total:,}; select rows to see others."
    return sentence
