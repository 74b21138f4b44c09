"""The report of a sweep as HTML."""

import html
import json

import altair as alt
import pandas as pd
import vl_convert

from dashboard import data, measures, names, spoken
from dashboard.charts.comparison.accuracy_by_length import accuracy_by_length
from dashboard.charts.comparison.every_seed import every_seed
from dashboard.charts.comparison.seed_grid import seed_grid
from dashboard.charts.style.colors import OKABE_ITO
from dashboard.charts.style.encodings import Drawing
from dashboard.charts.style.themes import LIGHT, themed
from dashboard.compare import configurations, drawn_models
from dashboard.compare.lengths import limits, points
from dashboard.report.causes import why
from dashboard.text import models_fail
from seqcls import __version__
from sweeps.grid.written_spec import toml_of
from sweeps.results.summaries import setting_names
from sweeps.statistics.median_intervals import median_intervals
from sweeps.store.databases.engine import Store
from sweeps.store.reading import sweep_queries
from sweeps.store.reading.selection import View

WIDTH = 760
"""Pixels of a chart; a narrower window shrinks it."""

MAX_ROWS = 20
MAX_EXPLAINED = 12
"""Configurations with a row in the charts, and those whose worst model is explained."""

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #0f0f0f; background: #fff;
       max-width: 860px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.8rem; margin-bottom: 0; }
h2 { font-size: 1.3rem; margin-top: 2.5rem; }
.quiet { color: #5a5a5a; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.9rem; }
th, td { text-align: right; padding: 0.3rem 0.7rem; border-bottom: 1px solid #e4e4e4; }
th:first-child, td:first-child { text-align: left; }
svg { max-width: 100%; height: auto; }
pre { background: #f6f6f5; padding: 1rem; overflow-x: auto; }
code { font-size: 0.95em; }
@media print { h2 { break-after: avoid; } figure, tr { break-inside: avoid; } }
"""


def report(store: Store, sweep_id: int) -> str | None:
    """One page that needs nothing else; None where no run of the sweep is finished."""
    with data.asking(store):
        return _page(store, sweep_queries.sweep_record(store, sweep_id))


def _page(store: Store, record: sweep_queries.SweepRecord) -> str | None:
    view = View(sweeps=(record.name,))
    models = data.models(view)
    if models.empty:
        return None
    table = configurations.table(view)
    listed = table[table["seeds"] > 0].head(MAX_ROWS)
    named = names.configuration_names(listed["config_id"].tolist())
    shown = models[models["config_id"].isin(named)]
    parts = [
        _head(record, models),
        _section("Configurations", f'<div class="wide">{_table(table)}</div>', _worst_first(table)),
        _section("Accuracy by string length", _svg(_by_length(shown, named))),
        _section("Seed by seed", *map(_svg, _by_seed(view, named))),
        _section("Why models fail", *why(store, shown, named, MAX_EXPLAINED)),
        _section("Specification", f"<pre>{html.escape(toml_of(record.spec))}</pre>"),
    ]
    title = html.escape(record.name)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{STYLE}</style></head>\n<body>\n" + "\n".join(parts) + "\n</body></html>\n"
    )


def _head(record: sweep_queries.SweepRecord, models: pd.DataFrame) -> str:
    fail = models_fail(int(models["failing"].sum()), len(models))
    words = spoken.of(models["config_id"]).words
    misses = words.misses.format(f"at least one of its {words.plural('test')}")
    return (
        f"<h1>{html.escape(record.name)}</h1>\n<p>{html.escape(record.description)}</p>\n"
        f"<p><strong>{fail[0].upper()}{fail[1:]}</strong>. A model fails if it {misses}. Median "
        f"accuracy {models['accuracy'].median():.2%}.</p>\n"
        f'<p class="quiet">Submitted {record.created_at[:10]}; written by seqcls {__version__}.</p>'
    )


def _section(title: str, *parts: str) -> str:
    return "\n".join([f"<h2>{title}</h2>", *parts])


def _worst_first(table: pd.DataFrame) -> str:
    words = spoken.of(table["config_id"]).words
    waiting = int(table["unfinished"].sum() + table["failed"].sum())
    unfinished = f" {waiting:,} runs are not trained and count in no number." if waiting else ""
    return (
        f'<p class="quiet">Worst first. Accuracy and solved length are medians over seeds. '
        f"Solved length: {html.escape(measures.solved_length(words))}{unfinished}</p>"
    )


def _table(table: pd.DataFrame) -> str:
    settings = setting_names(table)
    shown = pd.DataFrame({name: table[name] for name in settings} or {"sweep": table["sweeps"]})
    shown["failing"] = [
        f"{row.failing:.0f} of {row.seeds:.0f}" for row in table.itertuples(index=False)
    ]
    shown["failing seeds"] = table["failing_seeds"]
    shown["median accuracy"] = table["median_accuracy"].map("{:.2%}".format)
    shown["95% interval"] = table["interval"].fillna("")
    shown["solved length"] = table["median_solved_length"].map("{:.0f}".format)
    return str(shown.to_html(index=False, border=0, na_rep=""))


def _by_length(models: pd.DataFrame, named: dict[int, str]) -> Drawing:
    few = dict(list(named.items())[: len(OKABE_ITO)])
    drawn = models[models["config_id"].isin(few)]
    scores = points(data.scores_by_length(tuple(drawn["run_id"]), 10), "accuracy")
    scores = scores.merge(drawn[["run_id", "config_id", "model_seed"]], on="run_id")
    scores["configuration"] = pd.Categorical(scores["config_id"].map(few), list(few.values()))
    medians = median_intervals(scores, "value", ["configuration", "middle", "lengths"])
    seeds = scores.drop(columns="config_id")
    return accuracy_by_length(seeds, medians, limits(tuple(few)), "Accuracy").properties(height=320)


def _by_seed(view: View, named: dict[int, str]) -> list[Drawing]:
    seeds = drawn_models.by_seed(view, tuple(named), None)
    order = list(named.values())
    return [
        every_seed(seeds, order).properties(height=alt.Step(40)),
        seed_grid(seeds, order).properties(height=alt.Step(34)),
    ]


def _svg(chart: Drawing) -> str:
    spec = themed(chart.properties(width=WIDTH).to_dict(), LIGHT)
    drawn = vl_convert.vegalite_to_svg(json.dumps(spec))
    return f'<figure role="img" aria-label="{html.escape(spec["description"])}">{drawn}</figure>'
