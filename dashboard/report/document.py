"""One page of a report as HTML, with its charts: it asks nothing of the network.

It runs no program but its own. Charts are live where scripts run, else pictures.
"""

import base64
import hashlib
import html
import json
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from subprocess import PIPE, CalledProcessError, Popen, TimeoutExpired
from typing import Any

import pandas as pd
import vl_convert

from dashboard.charts.colors import OKABE_ITO
from dashboard.charts.scales import Drawing
from dashboard.charts.themes import DARK, LIGHT, apply_theme
from dashboard.views import budgets, scores
from dashboard.views.accuracy_by_length import accuracy_by_length
from dashboard.views.scores import MAX_MODELS, MAX_ROWS
from dashboard.views.seeds import every_seed, seed_grid
from dashboard.words import names
from seqcls.cancellation import check
from seqcls.interpretability.wording import percent, percents
from sweeps.api import failures
from sweeps.api.old_pages.reading import Selection

ENGINE = "vega.js"
"""What draws the charts, beside the pages of a site."""

LOOK_AGAIN = 0.2
"""Seconds after which it is looked whether anybody still waits."""

_BUNDLE = (
    "import sys, vl_convert; sys.stdout.reconfigure(encoding='utf-8', newline=''); "
    "sys.stdout.write(vl_convert.javascript_bundle('window.vegaEmbed = vegaEmbed;'))"
)

_HERE = files("dashboard.report")


def document(title: str, body: str, *, beside: bool = False) -> str:
    """A page around its parts.

    Args:
        title: as text.
        body: as HTML.
        beside: whether what draws the charts is the file `ENGINE` beside it, not in it.
    """
    script = _HERE.joinpath("page.js").read_text(encoding="utf-8")
    drawing = f'<script src="{ENGINE}"></script>' if beside else f"<script>{engine()}</script>"
    allowed = ["'self'" if beside else _hash_of(engine()), _hash_of(script)]
    # Charts and tables are styled by attributes; nothing is loaded from anywhere.
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
        f"form-action 'none'; script-src {' '.join(allowed)}"
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{html.escape(title)}</title>\n"
        f"<style>{_HERE.joinpath('page.css').read_text(encoding='utf-8')}</style></head>\n"
        f'<body>\n<div id="root">\n{body}\n</div>\n{drawing}\n'
        f"<script>{script}</script>\n</body></html>\n"
    )


@cache
def engine() -> str:
    """Vega, Vega-Lite and what puts charts onto pages, as the package vl-convert-python has them.

    Raises:
        ValueError: a page could not hold it.
    """
    bundle = _bundle()
    if "</script" in bundle.lower() or "<!--" in bundle:
        raise ValueError("the JavaScript of vl-convert-python would end the element it stands in")
    return bundle


def _bundle() -> str:
    # In a process of its own, which is ended where nobody waits any longer: it takes seconds.
    with Popen([sys.executable, "-c", _BUNDLE], stdout=PIPE, encoding="utf-8") as process:
        try:
            while True:
                check()
                try:
                    bundle, _ = process.communicate(timeout=LOOK_AGAIN)
                except TimeoutExpired:
                    continue
                break
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise CalledProcessError(process.returncode, process.args)
    return bundle


def embed_data(name: str, value: Any) -> str:
    """Data for the page's program, which no browser takes for anything else.

    Args:
        name: identifies it on the page.
        value: as JSON has it.
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    # Without `<` nothing in it can end the element.
    safe = text.replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{safe}</script>'


def section(title: str, *parts: str) -> str:
    """A heading and what stands under it; nothing where there is nothing."""
    there = [part for part in parts if part]
    return "\n".join([f"<h2>{html.escape(title)}</h2>", *there]) if there else ""


def quiet(text: str) -> str:
    """A paragraph of text that explains."""
    return f'<p class="quiet">{html.escape(text)}</p>'


def _hash_of(script: str) -> str:
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


WIDTH = 760
"""Pixels of a picture; a chart is as wide as the page."""

CHOSEN = "chosen"
FAINT = 0.06
"""Opacity of what is not chosen in a legend."""


def by_length(view: Selection, table: pd.DataFrame) -> Iterator[str]:
    """The measure that Compare begins with against length.

    Args:
        view: which models.
        table: a row a configuration: config_id and seeds, those of none left out.
    """
    drawable = scores.drawable(table["seeds"], len(OKABE_ITO), scores.MAX_READ)
    ids = tuple(table["config_id"].head(drawable))
    measure, width = next(iter(scores.offered_measures(ids).values())), scores.first_width(ids)
    lines = scores.lines(view, ids, measure, width)
    if lines is None:
        return
    yield _figure("by_length", _add_highlight(accuracy_by_length(*lines.given)))
    said = [f"{measure.meaning} Click a configuration below the chart to see its models alone."]
    if lines.without_readers:
        said.append(lines.without_readers)
    if drawable < len(table):
        said.append(f"The chart shows the worst {drawable} of {len(table):,} configurations.")
    if lines.most is not None:
        said.append(
            f"Up to {lines.most} models of each, evenly from the worst to the best; medians are "
            "over all."
        )
    yield quiet(" ".join(said))


def by_seed(view: Selection, table: pd.DataFrame) -> Iterator[str]:
    """Every seed as a point and as a cell; as for `by_length`."""
    drawable = scores.drawable(table["seeds"], MAX_ROWS, MAX_MODELS)
    ids = tuple(table["config_id"].head(drawable))
    models = scores.by_seed(view, ids)
    told = names.names_with_settings(ids, view)
    yield _figure("every_seed", every_seed(models, told).to_dict(validate=False))
    yield _figure("seed_grid", seed_grid(models, told).to_dict(validate=False))
    said = ["Click a point or a cell to see the strings of its model."]
    if drawable < len(table):
        said.append(f"The chart shows the worst {drawable} of {len(table):,} configurations.")
    yield quiet(" ".join(said))


def by_budget(view: Selection, table: pd.DataFrame) -> Iterator[str]:
    """Which share of seeds has learned with which budget, where models have several."""
    models = budgets.of_models(view, table["config_id"].tolist())
    if models.empty:
        return
    shown = budgets.table(models).head(MAX_ROWS)
    yield f'<div class="wide">{shown.to_html(index=False, border=0)}</div>'
    chart = budgets.learned_share(*budgets.select_models(models))
    yield _figure("learned_share", chart.to_dict(validate=False))
    yield quiet(budgets.meaning(models, view))


def mechanisms(
    failing: pd.DataFrame, cause_rows: pd.DataFrame, named: Mapping[int, str]
) -> Iterator[str]:
    """What the failing seeds of each configuration fail by, where that is known of any.

    Args:
        failing: a row a failing model: run_id, config_id.
        cause_rows: their causes, as `sweeps.store.reads.explained.causes`.
        named: what configurations are called.
    """
    if cause_rows.empty:
        return
    table = failures.causes_by_configuration(failing.rename(columns={"run_id": "id"}), cause_rows)
    drawn = table["config_id"].drop_duplicates().head(MAX_ROWS).tolist()
    shown = table[table["config_id"].isin(drawn)]
    by_cause = pd.DataFrame(
        {
            "Configuration": shown["config_id"].map(named),
            "Cause": shown["mechanism"],
            "Failing seeds": [f"{n} of {m}" for n, m in shown[["seeds", "failing"]].to_numpy()],
            "Share (95%)": [
                f"{percent(x, 0)} ({percents(y, z, 0)})"
                for x, y, z in shown[["share", "low", "high"]].to_numpy()
            ],
        }
    )
    yield f'<div class="wide">{by_cause.to_html(index=False, border=0)}</div>'


def _figure(name: str, spec: dict[str, Any]) -> str:
    """A chart on either ground, which share its data, and a picture of it until it is drawn."""
    check()
    fitted = {**spec, "width": WIDTH, "autosize": {"type": "fit", "contains": "padding"}}
    datasets = fitted.pop("datasets", {})
    light, dark = (apply_theme(fitted, ground) for ground in (LIGHT, DARK))
    drawn = vl_convert.vegalite_to_svg(json.dumps({**light, "datasets": datasets}))
    for theme in (light, dark):
        theme["background"] = "transparent"
    return (
        f'<figure data-chart="{name}" aria-label="{html.escape(light["description"])}">{drawn}'
        f"</figure>\n{embed_data(name, {'light': light, 'dark': dark, 'datasets': datasets})}"
    )


def _add_highlight(chart: Drawing) -> dict[str, Any]:
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
