"""Configurations by their settings: a map of two of them, and which one matters."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dashboard.results import pictures
from dashboard.results.words import MEASURED, MINUS
from dashboard.section import Panel, Section
from dashboard.words.sentences import say
from seqcls.interpretability.wording import percent, percents
from seqcls.text import count
from sweeps.api import Store, by_settings
from sweeps.api.selecting import Selection
from sweeps.naming import say_setting
from sweeps.results import describe_longer
from sweeps.statistics.intervals import FEWEST

MAPPED = {
    "learned": "how many learned",
    "generalize": "how many of those that learned generalize",
    "median": "median accuracy on longer strings of those that learned",
    "best": "best accuracy on longer strings of those that learned",
    "worst": "worst accuracy on longer strings of those that learned",
}
"""Measures of a map, by name."""

MOST_FACETS, MOST_EFFECTS = 6, 12

FAR = 0.7
"""From so far from the middle of the colors on, text on a cell has the color of the ground."""


def heat_map(
    store: Store,
    selection: Selection,
    config_ids: Sequence[int],
    across: str,
    up: str,
    measure: str = "generalize",
    facet: str | None = None,
) -> Section:
    """Two settings against each other: what the models of each cell come to.

    Args:
        across: a setting of `by_settings.axes_of`; `up` is another.
        measure: one of `MAPPED`.
        facet: of each of whose values there is a map of its own, if any.
    """
    fields = [across, up, *([facet] if facet else [])]
    cells, missing, longer = by_settings.cells(store, selection, config_ids, fields)
    if cells.empty:
        return Section("Map", (say("no_models"),))
    cells = _with_labels(cells, measure)
    # Sorted as values before they are texts: as texts, 16 would come before 2.
    order = {
        x: _texts(cells[y].drop_duplicates().sort_values())
        for x, y in (("across", across), ("up", up))
    }
    cells = cells.assign(across=_texts(cells[across]), up=_texts(cells[up]))
    shares = measure in ("learned", "generalize")
    # Down to the next twentieth, so that colors begin at a round number; shares begin at 0.
    least = 0.0 if shares else float(np.floor(20 * np.nanmin([1, *cells["value"]])) / 20)
    # Five points at least, or differences of next to nothing would have all colors.
    span = (min(least, 0.95), 1.0)
    far = ((cells["value"] - sum(span) / 2).abs() > FAR * (span[1] - span[0]) / 2).tolist()
    cells["ink"] = ["~ground" if x else "~ink" for x in far]
    parts = [("", cells)]
    if facet is not None:
        parts = [(say_setting(facet, value), part) for value, part in cells.groupby(facet)]
    drawn = ["across", "up", "value", "label", "n", "told", "ink"]
    panels = [
        Panel.of(pictures.heat_map(part[drawn], across, up, order, span), title)
        for title, part in parts[:MOST_FACETS]
    ]
    caption = f"In each cell: {MAPPED[measure]}. Across: {across}; up: {up}."
    if missing:
        total = count(missing + int(cells["models"].sum()), "model")
        caption += f" {missing:,} of {total} are in no cell: they do not read both."
    if (cells["configurations"] > 1).any():
        caption += " Some cells hold models that differ in other settings."
    caption = f"{caption} {describe_longer([longer])}".strip()
    table = cells.assign(
        learned_of=[f"{x['learned']} of {x['judged']}" for x in cells.to_dict("records")],
        generalize_of=[
            f"{x['generalize']} of {x['judged_beyond']}" for x in cells.to_dict("records")
        ],
        accuracy_beyond=cells["median"],
    )
    shown = (*fields, "models", "learned_of", "generalize_of", "accuracy_beyond")
    return Section("Map", (), table[[*shown, "best", "worst"]], tuple(panels), caption, shown=shown)


def _texts(values: "pd.Series[Any]") -> list[str]:
    return [f"{x:g}" if isinstance(x, float) else str(x) for x in values.tolist()]


def _with_labels(cells: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Adds the value, label, n and tooltip of each cell."""
    rows = cells.to_dict("records")
    if measure in ("learned", "generalize"):
        total = "judged" if measure == "learned" else "judged_beyond"
        value = cells[measure] / cells[total].where(cells[total] > 0)
        labels = [f"{x[measure]} of {x[total]}" if x[total] else "none learned" for x in rows]
    else:
        value = cells[measure]
        labels = [percent(x[measure], 1) if x["learned"] else "none learned" for x in rows]
    tooltips = [
        f"{x['learned']} of {x['judged']} learned, {x['generalize']} of {x['judged_beyond']} "
        f"generalize, {count(x['configurations'], 'configuration')}"
        for x in rows
    ]
    n = [f"{x['learned']} of {x['judged']} learned" for x in rows]
    if measure == "learned":
        n = [count(x["models"], "model") for x in rows]
    return cells.assign(value=value.astype(float), label=labels, n=n, told=tooltips)


def settings(
    store: Store, selection: Selection, config_ids: Sequence[int], measure: str = "generalizes"
) -> Section:
    """Effect of each setting on a measure: its worst value against its best.

    Args:
        measure: one of `by_settings.MEASURES`.
    """
    found, longer = by_settings.which_matters(store, selection, config_ids, measure)
    if found.empty:
        return Section("Settings", (say("no_setting", what=MEASURED[measure]),))
    rows = [_effect(x) for x in found.head(MOST_EFFECTS).to_dict("records")]
    frame, first = pd.DataFrame(rows), found.iloc[0]
    if first["moves"] > 0:
        others = "" if first["alike"] else say("differ_too")
        says = [_moves_most(rows[0], first, measure), say("chosen_from", others=others)]
    else:
        value = percent(first["at_best"], 1)
        says = [say("moves_nothing", what=MEASURED[measure], value=value)]
    says.append(describe_longer([longer]))
    caption = (
        f"By {MEASURED[measure]}: a setting's worst value against its best, each the mean over "
        "the configurations that have it, with the 95% interval. Settings that always change "
        "together are one; who does not read a setting is left out."
    )
    chart = pictures.effects(frame, frame["field"].tolist())
    sentences = tuple(filter(None, says))
    table = frame[["field", "told_worst", "told_best", "moves", "low", "high"]]
    shown = ("field", "told_worst", "told_best")
    return Section("Settings", sentences, table, (Panel.of(chart),), caption, shown=shown)


def _effect(row: Mapping[Any, Any]) -> dict[str, Any]:
    """A setting, its worst and its best value and what they come to, in words."""
    ends = {end: _values(row["fields"], row[end]) for end in ("worst", "best")}
    interval = f"none of fewer than {FEWEST} seeds, or of very many"
    if pd.notna(row["low"]):
        interval = percents(row["low"], row["high"]).replace("-", MINUS)
    return {
        "field": ", ".join(x.replace("_", " ") for x in row["fields"]),
        "moves": row["moves"],
        "low": row["low"],
        "high": row["high"],
        "interval": interval,
        **ends,
        **{f"told_{x}": f"{percent(row[f'at_{x}'], 1)} with {ends[x]}" for x in ends},
    }


def _values(fields: Sequence[str], text: str) -> str:
    values = text.split(", ")
    # A value may hold a comma itself, which would make the parts ambiguous.
    if len(values) != len(fields):
        return text
    return ", ".join(map(say_setting, fields, values))


def _moves_most(effect: Mapping[str, Any], first: "pd.Series[Any]", measure: str) -> str:
    interval = "no interval: too few seeds, or too many"
    if pd.notna(first["low"]):
        unsure = "; it includes 0, so more seeds are needed to tell" if first["low"] <= 0 else ""
        interval = f"95%: {effect['interval']}{unsure}"
    return say(
        "most_moves",
        n=len(first["fields"]),
        field=effect["field"],
        what=MEASURED[measure],
        worst=percent(first["at_worst"], 1),
        at_worst=effect["worst"],
        best=percent(first["at_best"], 1),
        at_best=effect["best"],
        moves=percent(first["moves"], 1),
        interval=interval,
    )
