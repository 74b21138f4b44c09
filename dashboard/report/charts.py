"""The charts of a report: as Compare draws them, live where scripts run, else as pictures."""

import html
import json
from collections.abc import Iterator
from typing import Any

import pandas as pd
import vl_convert

from dashboard.charts.comparison.accuracy_by_length import accuracy_by_length
from dashboard.charts.comparison.every_seed import every_seed
from dashboard.charts.comparison.seed_grid import seed_grid
from dashboard.charts.errors.mechanisms import mechanism_grid
from dashboard.charts.style.colors import OKABE_ITO
from dashboard.charts.style.encodings import Drawing
from dashboard.charts.style.themes import DARK, LIGHT, themed
from dashboard.compare import drawn_models, lengths
from dashboard.compare.drawn_models import MAX_MODELS, MAX_ROWS
from dashboard.report.document import kept, quiet
from dashboard.words import names
from seqcls.cancellation import check
from sweeps.analysis import causes
from sweeps.store.reading.selection import View

WIDTH = 760
"""Pixels of a picture; a chart is as wide as the page."""

CHOSEN = "chosen"
FAINT = 0.06
"""Opacity of what is not chosen in a legend."""


def by_length(view: View, table: pd.DataFrame) -> Iterator[str]:
    """The measure that Compare begins with against length.

    Args:
        view: which models.
        table: a row a configuration: config_id and seeds, those of none left out.
    """
    drawable = lengths.drawable(table["seeds"], len(OKABE_ITO), lengths.MAX_READ)
    ids = tuple(table["config_id"].head(drawable))
    measure, width = next(iter(lengths.offered(ids).values())), lengths.first_width(ids)
    lines = drawn_models.lines(view, ids, measure, width)
    if lines is None:
        return
    yield _figure("by_length", _highlighted(accuracy_by_length(*lines.given)))
    said = [f"{measure.meaning} Click a configuration below the chart to see its models alone."]
    if drawable < len(table):
        said.append(f"Drawn are the worst {drawable} of {len(table):,} configurations.")
    if lines.most is not None:
        said.append(
            f"{lines.most} models of each, evenly from the worst to the best; medians are over all."
        )
    yield quiet(" ".join(said))


def by_seed(view: View, table: pd.DataFrame) -> Iterator[str]:
    """Every seed as a point and as a cell; as for `by_length`."""
    drawable = lengths.drawable(table["seeds"], MAX_ROWS, MAX_MODELS)
    ids = tuple(table["config_id"].head(drawable))
    models = drawn_models.by_seed(view, ids)
    named = list(names.configuration_names(ids).values())
    yield _figure("every_seed", every_seed(models, named).to_dict(validate=False))
    yield _figure("seed_grid", seed_grid(models, named).to_dict(validate=False))
    said = ["Click a point or a cell to see the strings of its model."]
    if drawable < len(table):
        said.append(f"Drawn are the worst {drawable} of {len(table):,} configurations.")
    yield quiet(" ".join(said))


def mechanisms(failing: pd.DataFrame, cause_rows: pd.DataFrame) -> Iterator[str]:
    """What the failing seeds of each configuration fail by, where that is known of any.

    Args:
        failing: a row a failing model: run_id, config_id.
        cause_rows: their causes, as `sweeps.store.results.explained.causes`.
    """
    if cause_rows.empty:
        return
    table = causes.table(failing.rename(columns={"run_id": "id"}), cause_rows)
    drawn = table["config_id"].drop_duplicates().head(MAX_ROWS).tolist()
    named = names.configuration_names(drawn)
    shown = table[table["config_id"].isin(drawn)]
    shown = shown.assign(configuration=shown["config_id"].map(named))
    yield _figure("mechanisms", mechanism_grid(shown, list(named.values())).to_dict(validate=False))


def _figure(name: str, spec: dict[str, Any]) -> str:
    """A chart on either ground, which share its data, and a picture of it until it is drawn."""
    check()
    fitted = {**spec, "width": WIDTH, "autosize": {"type": "fit", "contains": "padding"}}
    datasets = fitted.pop("datasets", {})
    light, dark = (themed(fitted, ground) for ground in (LIGHT, DARK))
    drawn = vl_convert.vegalite_to_svg(json.dumps({**light, "datasets": datasets}))
    for theme in (light, dark):
        theme["background"] = "transparent"
    return (
        f'<figure data-chart="{name}" aria-label="{html.escape(light["description"])}">{drawn}'
        f"</figure>\n{kept(name, {'light': light, 'dark': dark, 'datasets': datasets})}"
    )


def _highlighted(chart: Drawing) -> dict[str, Any]:
    """The chart with a legend that can be clicked: what is not chosen there is faint."""
    spec: dict[str, Any] = chart.to_dict(validate=False)
    if any(param.get("bind") == "legend" for param in spec.get("params", [])):
        return spec
    colored = [
        layer
        for layer in spec["layer"]
        if layer["encoding"].get("color", {}).get("field") == "configuration"
    ]
    for layer in colored:
        shown = layer["mark"].get("opacity", 1)
        condition = {"param": CHOSEN, "value": shown}
        layer["encoding"]["opacity"] = {"condition": condition, "value": min(shown, FAINT)}
    chosen = {
        "name": CHOSEN,
        "select": {"type": "point", "fields": ["configuration"]},
        "bind": "legend",
        "views": [colored[0].setdefault("name", "colored")],
    }
    return {**spec, "params": [*spec.get("params", []), chosen]}
