"""Two or three settings against each other: the cells of a map, and their chart."""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt
import pandas as pd

from dashboard import data
from dashboard.charts.colors import GREY, HATCH, INK
from dashboard.charts.scales import LOW_TO_HIGH, readable_on, title_params
from dashboard.text import format_value
from dashboard.views import shortcuts
from seqcls.fields import language_fields
from seqcls.imported import PREFIX
from seqcls.interpretability.wording import percents
from seqcls.kinds import ACCURACY, Measure
from sweeps.api.old_pages.judging_naming import say_field, say_value
from sweeps.api.old_pages.reading import Selection, judge_languages_alike
from sweeps.grid.budgets import BUDGET_FIELDS
from sweeps.results import BORDER_SHARES, GENERALIZING, Outcome, of_learned
from sweeps.statistics.intervals import FEWEST, median_intervals, wilson
from sweeps.statistics.populations import CLASS, language_shares

# Beyond so many values of a field, its cells could not be read.
MAX_VALUES = 30

MOST_OTHERS = 6
"""Settings beside those of the axes that the text at a cell has lines for."""

FEW_VALUES = 4
"""The most values of a setting that one cell lists; more are counted."""

NOT_READ = "not read"
"""A setting of another network, language or program."""

NOT_GIVEN = "not given"
"""A setting of models trained elsewhere that a model has none of."""

DIFFERS = "differs"
"""What is predicted of a cell whose models are predicted to do different things."""


@data.shared
def models_by_language(view: Selection) -> "pd.Series[int]":
    """How many models each language has; empty where none matches the filters."""
    models = data.models(view)
    if not (models["picked"] > 0).any():
        models = models.head(0)
    counts: pd.Series[int] = models["config_id"].map(data.languages()).value_counts()
    return counts


def _models(view: Selection, language: str | None) -> pd.DataFrame:
    """Models with the settings that each reads, of one language or of all."""
    models = data.models(view)
    if language is not None:
        models = models[models["config_id"].map(data.languages()) == language]
    config_ids = tuple(models["config_id"].drop_duplicates().astype(int))
    settings = data.read_settings(config_ids)
    for name in (x for x in map(str, settings) if x.startswith(PREFIX)):
        # Models that were trained here have cells beside those that were trained elsewhere.
        if settings[name].isna().any():
            known = settings[name].map(format_value, na_action="ignore").astype(object)
            settings = settings.assign(**{name: known.fillna(NOT_GIVEN)})
    return models.join(settings, on="config_id", how="left")


@data.shared
def config_ids(view: Selection, language: str | None) -> list[int]:
    """The configurations of the models of a language, or of all where it is None."""
    ids: list[int] = _models(view, language)["config_id"].drop_duplicates().tolist()
    return ids


@data.shared
def fields(view: Selection, language: str | None) -> list[str]:
    """The settings of few values in which the models differ, those first that all of them read; of
    all languages the network and what tells these apart.
    """
    models = _models(view, language)
    known = models.columns.intersection([*data.settings().columns, CLASS], sort=False)
    few = [str(x) for x in known if 1 < models[x].nunique() <= MAX_VALUES]
    apart = [x for x in ("task", CLASS) if x in few][: language is None]
    first = ["architecture", *apart] if apart else []
    return sorted(few, key=lambda x: (x not in first, bool(models[x].isna().any())))


@data.shared
def unread(view: Selection, language: str | None, fields: list[str]) -> tuple[int, dict[str, int]]:
    """How many models there are, and how many of them do not read each field."""
    models = _models(view, language)
    return len(models), {name: int(models[name].isna().sum()) for name in fields}


@data.shared
def language_settings(view: Selection, language: str) -> dict[str, Any]:
    """The settings that say which language it is, as a link to its models names them."""
    first = int(_models(view, language)["config_id"].iloc[0])
    settings = data.settings().astype(object).loc[first].to_dict()
    named = language_fields(str(settings.get("task")))
    return {name: settings[name] for name in named if name in settings}


def _are_further(view: Selection, models: pd.DataFrame, fields: list[str]) -> "pd.Series[bool]":
    """Which models are not counted, since the same seed was trained with a larger budget: none
    where an axis is of budgets.
    """
    is_of_budgets = bool({*fields} & {*BUDGET_FIELDS})
    return models["run_id"].isin(() if is_of_budgets else data.trained_further(view))


def count_further(view: Selection, language: str | None, fields: list[str]) -> int:
    """How many models of a language no cell counts, since it counts them with a larger budget."""
    return int(_are_further(view, _models(view, language), fields).sum())


def _alike(view: Selection, models: pd.DataFrame) -> tuple[pd.DataFrame, list[range]]:
    named = models.assign(language=models["config_id"].map(data.languages()))
    return judge_languages_alike(data.reader(), named, view.below)


@data.shared
def longer_lengths(view: Selection, language: str | None) -> list[range]:
    """The lengths of the longer strings that models are compared on, where their own are others."""
    return _alike(view, _models(view, language))[1]


@data.shared
def cells(
    view: Selection, language: str | None, fields: list[str], measure: Measure = ACCURACY
) -> pd.DataFrame:
    """Applies `cells_of` to the models of a language, or to all where it is None.

    And predicted: what theory says of all models of a cell, else `differs`.
    """
    models = _models(view, language)
    models = models[~_are_further(view, models, fields)]
    models, _ = _alike(view, models)
    models = shortcuts.with_border(models)
    models = of_learned(models, models.set_index("run_id")["outcome"])
    if measure.name in BORDER_SHARES:
        # A cell of which nothing is known is none; in others all models count in shares.
        models = models[models.groupby(fields)[measure.name].transform("count") > 0]
    elif measure.name not in models:
        shares = data.output_shares(tuple(models["run_id"]))
        models = models.merge(shares[["run_id", measure.name]], on="run_id")
    predicted = data.predictions(tuple(models["config_id"].drop_duplicates()))
    verdicts = models["config_id"].map({each: said.verdict for each, said in predicted.items()})
    said = verdicts.groupby([models[name] for name in fields], sort=True).agg(["first", "nunique"])
    table = cells_of(models, fields, measure)
    table["predicted"] = said["first"].where(said["nunique"] == 1, DIFFERS).to_numpy()
    return table


def cells_of(models: pd.DataFrame, fields: list[str], measure: Measure = ACCURACY) -> pd.DataFrame:
    """One row a cell of the map, sorted by the fields' values, which become text.

    Args:
        models: one row a model, with the measure, failing, config_id, language (what it is called)
            and the fields.
        fields: what makes the cells.
        measure: what is summed up.

    Returns:
        The fields; median, best and worst of the measure; medians of the columns of `BORDER_SHARES`
        that the models have; failing_share in [0, 1]; seeds (models),
        failing (models), configurations, their number (cell), and the 95% intervals of the median
        and of the failing share as text: median_interval, failing_interval; where there is an
        outcome, judged, learned, judged_beyond and generalize (models), learned_share and
        generalizing_share (of those that learned; missing where there is none), of which the
        learned_interval and generalizing_interval are told as text, and learned_n and
        generalizing_n. Of several languages these are means over languages, with intervals over
        languages; of one, over its seeds.
    """
    grouped = models.groupby(fields, sort=True)
    best, worst = ("min", "max") if measure.is_error else ("max", "min")
    table = grouped.agg(
        median=(measure.name, "median"),
        best=(measure.name, best),
        worst=(measure.name, worst),
        **{name: (name, "median") for name in BORDER_SHARES if name in models},
        failing=("failing", "sum"),
        seeds=("run_id", "size"),
        configurations=("config_id", "nunique"),
    ).reset_index()
    table["failing_share"] = table["failing"] / table["seeds"]
    table["cell"] = range(len(table))
    medians = median_intervals(models, measure.name, fields)
    table["median_interval"] = _spans(medians["low"], medians["high"])
    shares = [
        wilson(int(failing), int(seeds))
        for failing, seeds in zip(table["failing"], table["seeds"], strict=True)
    ]
    table["failing_interval"] = _spans([x.low for x in shares], [x.high for x in shares])
    if "outcome" in models:
        _count_outcomes(table, grouped)
        _sum_over_languages(table, models, fields)
    return table.astype(dict.fromkeys(fields, str))


def _count_outcomes(table: pd.DataFrame, grouped: Any) -> None:
    """Adds what the models of each cell came to: as counts and text."""
    outcomes = (
        grouped["outcome"]
        .value_counts()
        .unstack(fill_value=0)
        .reindex(columns=[x.value for x in Outcome], fill_value=0)
    )
    table["judged"] = grouped["learned"].count().to_numpy()
    table["learned"] = grouped["learned"].sum().astype(int).to_numpy()
    table["generalize"] = outcomes[list(GENERALIZING)].sum(axis=1).to_numpy()
    table["judged_beyond"] = table["generalize"] + outcomes[Outcome.FAILS_BEYOND.value].to_numpy()
    table["learned_of"] = _pairs(table["learned"], table["judged"])
    table["generalize_of"] = _pairs(table["generalize"], table["judged_beyond"])


def _sum_over_languages(table: pd.DataFrame, models: pd.DataFrame, fields: list[str]) -> None:
    """Adds shares with their intervals: over languages, where a cell has several."""
    over = table[fields].merge(language_shares(models, fields, least=1), on=fields)
    for share, part, of in (
        ("learned", "learned", "judged"),
        ("generalizing", "generalize", "judged_beyond"),
    ):
        table[f"{share}_share"] = over[part]
        ends = zip(over[f"{part}_low"], over[f"{part}_high"], strict=True)
        table[f"{share}_interval"] = ["" if pd.isna(x[0]) else percents(*x) for x in ends]
        number = over[f"{part}_languages"].map(lambda n: f"{n} language{'s' * (n != 1)}")
        table[f"{share}_n"] = number.where(over["languages"] > 1, table[of].astype(str))


def _pairs(counts: "pd.Series[int]", of: "pd.Series[int]") -> list[str]:
    pairs = zip(counts.tolist(), of.tolist(), strict=True)
    return [f"{count}/{whole}" if whole else "\N{EN DASH}" for count, whole in pairs]


def outcome_map(
    cells: pd.DataFrame, x: str, y: str, facet: str | None = None, others: Sequence[str] = ()
) -> alt.LayerChart | alt.FacetChart:
    """Cells colored by the share that generalizes of those that learned, gray where none did.

    In each stand how many learned, of those judged, and how many of those generalize.

    Args:
        cells: as `heat_map` takes them, with the counts and shares of outcomes.
        x: the field along the horizontal axis.
        y: the field along the vertical axis.
        facet: the field of which each value gets a map of its own, beside the others.
        others: columns of text with what else differs, each a line of the text at a cell.
    """
    cells = cells.assign(
        none_learned=(cells["judged"] > 0) & (cells["learned"] == 0),
        both=cells["learned_of"] + " \N{MIDDLE DOT} " + cells["generalize_of"],
    )
    base = _base(cells, x, y, facet)
    share = alt.Color(
        "generalizing_share:Q",
        title=None,
        scale=alt.Scale(scheme=LOW_TO_HIGH, domain=[0, 1]),
        legend=alt.Legend(
            format=".0%", orient="right", gradientLength=LEGEND_LENGTH, values=[0, 0.5, 1]
        ),
    )
    clicked = alt.selection_point(name=CLICKED, fields=["cell"], empty=False)
    fields = [x, y, *([facet] if facet else []), *others]
    tooltip = _tooltips(fields, ACCURACY, cells, outcomes=True)
    known = base.transform_filter("isValid(datum.generalizing_share)")
    other = base.transform_filter("!isValid(datum.generalizing_share)")
    parts = ["learned_of", "generalize_of"]
    in_a_line = _fits(cells["both"], 12)
    in_two = _fits(cells[parts].to_numpy().ravel(), 10)
    lines = f"[{', '.join(f'datum.{part}' for part in parts)}]"
    said = alt.TextValue(alt.ExprRef(f"{in_a_line} ? datum.both : {in_two} ? {lines} : ''"))
    text: dict[str, Any] = {
        "fontSize": alt.ExprRef(f"{in_a_line} ? 12 : 10"),
        "dy": alt.ExprRef(f"{in_a_line} ? 0 : -6"),
        "lineHeight": 13,
    }
    layers = alt.layer(
        known.mark_rect(stroke=GREY, strokeWidth=0.5)
        .encode(color=share, tooltip=tooltip)
        .add_params(clicked),
        other.mark_rect(color=GREY, fillOpacity=0.3, stroke=GREY, strokeWidth=2).encode(
            strokeDash=alt.when(alt.datum.none_learned)
            .then(alt.value(HATCH))
            .otherwise(alt.value([1, 0])),
            tooltip=tooltip,
        ),
        known.mark_text(**text).encode(said, color=readable_on("generalizing_share")),
        other.mark_text(**text, color=INK).encode(said),
    )
    return _set_size(layers, cells, x, y, BOTH, facet)


def _base(cells: pd.DataFrame, x: str, y: str, facet: str | None) -> alt.Chart:
    """Cells at their place; columns whose names do not fit beside each other have them upright."""
    columns, rows = _in_order(cells[x]), _in_order(cells[y])
    upright = bool(_upright(cells[x], facet))
    across = alt.Axis(
        labelAngle=-90 if upright else 0,
        labelOverlap="greedy",
        labelLimit=LABEL_LIMIT,
        labelExpr=_in_words(cells[x]),
    )
    up = alt.Axis(labelExpr=_in_words(cells[y]), labelLimit=LABEL_LIMIT)
    return alt.Chart(cells).encode(
        x=alt.X(field=_escape(x), type="nominal", title=say_field(x), sort=columns, axis=across),
        y=alt.Y(field=_escape(y), type="nominal", title=say_field(y), sort=rows[::-1], axis=up),
    )


def _in_words(values: "pd.Series[str]") -> str:
    """The expression that gives the label of each value of a field."""
    said = {x: say_value(str(values.name), x) for x in _in_order(values)}
    return f"{json.dumps(said)}[datum.label]"


def _upright(values: "pd.Series[str]", facet: str | None) -> float:
    """Pixels that the names of columns are high where they stand upright; else 0."""
    columns = _in_order(values)
    longest = _text_width((say_value(str(values.name), x) for x in columns), 10)
    room = NARROWEST / len(columns) if facet is None else FACET_CELL_WIDTH
    return min(longest, LABEL_LIMIT) if longest > room else 0


def _text_width(texts: Iterable[str], size: int) -> float:
    """Pixels of the longest text, rather too many."""
    letters = (sum(NARROW_WIDTH if x in NARROW else WIDTH for x in text) for text in texts)
    return size * max(letters, default=0) + 3


def _fits(texts: Iterable[str], size: int) -> str:
    """The condition that a cell is as wide as the longest text: maps are as wide as the page."""
    return f"bandwidth('x') >= {_text_width(texts, size):.0f}"


def _set_size(
    layers: alt.LayerChart | alt.FacetChart,
    cells: pd.DataFrame,
    x: str,
    y: str,
    title: str,
    facet: str | None,
) -> alt.LayerChart | alt.FacetChart:
    """A map as high as its cells, or one for each value of a facet."""
    columns, rows = _in_order(cells[x]), _in_order(cells[y])
    height = max(LEAST_HEIGHT, CELL_HEIGHT * len(rows))
    if facet is None:
        whole = round(height + FURNITURE_HEIGHT + _upright(cells[x], facet))
        return layers.properties(height=whole, title=title_params(title))
    width = FACET_CELL_WIDTH * len(columns)
    return layers.properties(height=height, width=width).facet(
        alt.Facet(
            field=_escape(facet),
            type="nominal",
            title=say_field(facet),
            sort=_in_order(cells[facet]),
            header=alt.Header(labelExpr=_in_words(cells[facet])),
        ),
        columns=max(1, FACETS_WIDTH // (width + FACET_CELL_WIDTH // 2)),
        title=title_params(title),
    )


@data.shared
def other_settings(view: Selection, language: str | None, grouped: list[str]) -> pd.DataFrame:
    """What else differs among a map's models: the values in each cell, as text.

    Args:
        view: which models.
        language: of one language, or of all where it is None.
        grouped: the settings that make the cells.

    Returns:
        One row a cell: the settings that make it, as text, and those others, of few values first.
    """
    models = _models(view, language).dropna(subset=grouped)
    known = [name for name in fields(view, language) if name not in grouped]
    others = sorted(
        (x for x in known if models[x].nunique() > 1), key=lambda x: models[x].nunique()
    )
    rows = [
        [*map(str, cell), *(_few_values(of_cell[name]) for name in others[:MOST_OTHERS])]
        for cell, of_cell in models.groupby(grouped, sort=True)
    ]
    return pd.DataFrame(rows, columns=[*grouped, *others[:MOST_OTHERS]])


def _few_values(values: "pd.Series[Any]") -> str:
    """The distinct values of a cell in a line."""
    known = sorted(values.dropna().unique())
    more = [f"{len(known) - FEW_VALUES} more"] if len(known) > FEW_VALUES else []
    return ", ".join([*map(format_value, known[:FEW_VALUES]), *more]) or NOT_READ


def _spans(lows: Iterable[float], highs: Iterable[float]) -> list[str]:
    return [
        f"none: fewer than {FEWEST} models" if pd.isna(low) else percents(low, high)
        for low, high in zip(lows, highs, strict=True)
    ]


CLICKED = "clicked_cell"
"""The selection that holds the number of a cell that was clicked."""

CANNOT = "\N{MULTIPLICATION X}"
"""Marks a cell whose models are predicted to fail at some length."""

OUTCOME_SHARES = {"learned_share": "learned_n", "generalizing_share": "generalizing_n"}
"""The shares that are of some of a cell's models or languages, and the column that counts these."""

BOTH = "Learned \N{MIDDLE DOT} generalize, of those that learned"

CELL_HEIGHT = 48
LEAST_HEIGHT = 150
"""The name of a setting, along the axis, is as long as this."""

FURNITURE_HEIGHT = 100
LEGEND_LENGTH = 100
"""Beside the lowest map."""

NARROWEST = 280
"""The cells of a map side by side, where two maps just so stand beside each other."""

WIDTH, NARROW_WIDTH = 0.56, 0.3
"""The widths of a letter or digit, and of a narrow one, in sizes of the text."""

NARROW = " ./\N{MIDDLE DOT}"

LABEL_LIMIT = 180
"""Longer names of values are cut off."""

FACET_CELL_WIDTH = 54
FACETS_WIDTH = 640
"""Beyond it, the maps beside each other go on in the next line."""


def heat_map(
    cells: pd.DataFrame,
    x: str,
    y: str,
    value: str,
    facet: str | None = None,
    measure: Measure = ACCURACY,
    others: Sequence[str] = (),
) -> alt.LayerChart | alt.FacetChart:
    """Cells colored by a share, with the share and the number of seeds written in them.

    Args:
        cells: one row a cell: its number (cell), the fields x, y and facet as text, `value` in
            [0, 1], seeds, models that fail (failing), configurations, and the intervals of the
            median and of the failing share as text (median_interval, failing_interval), and what
            theory predicts of them (predicted).
        x: the field along the horizontal axis.
        y: the field along the vertical axis.
        value: the column that colors the cells.
        facet: the field of which each value gets a map of its own, beside the others.
        measure: of what the cells have the median, the best and the worst.
        others: columns of text with what else differs, each a line of the text at a cell.
    """
    reverse = value == "failing_share" or measure.is_error
    spread = [0.0, 1.0] if value.endswith("_share") else _spread(cells, measure)
    clicked = alt.selection_point(name=CLICKED, fields=["cell"], empty=False)
    counted = cells[OUTCOME_SHARES.get(value, "seeds")].astype(str)
    mark = (cells["predicted"] == "cannot").map({True: CANNOT, False: ""})
    cells = cells.assign(
        count=("n = " + counted + " " + mark).str.strip(),
        # Without the word for what is counted, which the text at the cell says.
        short_count=("n = " + counted.str.split().str[0] + " " + mark).str.strip(),
        mark=mark,
    )
    base = _base(cells, x, y, facet)
    rectangles = base.mark_rect(stroke=GREY, strokeWidth=0.5).encode(
        color=alt.Color(
            f"{value}:Q",
            title=None,
            scale=alt.Scale(scheme=LOW_TO_HIGH, domain=spread, reverse=reverse),
            # Where the scale begins is said: that of accuracies does not begin at zero.
            legend=alt.Legend(
                format=".0%" if reverse or value.endswith("_share") else ".1~%",
                orient="right",
                gradientLength=LEGEND_LENGTH,
                values=[spread[0], sum(spread) / 2, spread[1]],
            ),
        ),
        tooltip=_tooltips([x, y, *([facet] if facet else []), *others], measure, cells),
    )
    rectangles = rectangles.add_params(clicked)
    ink = readable_on(value)
    said = [f"{x:.1%}".replace(".0%", "%") for x in cells[value]]
    large, small = _fits(said, 12), _fits(said, 10)
    written = f"{small} ? format(datum[{value!r}], '.1~%') : ''"
    share = base.mark_text(dy=-6, fontSize=alt.ExprRef(f"{large} ? 12 : 10")).encode(
        text=alt.TextValue(alt.ExprRef(written)), color=ink
    )
    count = "".join(
        f"{_fits(cells[name], 10)} ? datum.{name} : " for name in ("count", "short_count", "mark")
    )
    seeds = base.mark_text(dy=9, fontSize=10).encode(
        text=alt.TextValue(alt.ExprRef(f"{count}''")), color=ink
    )
    layers = alt.layer(rectangles, share, seeds)
    return _set_size(layers, cells, x, y, titles(measure)[value], facet)


def titles(measure: Measure) -> dict[str, str]:
    """What the maps of a measure show, by their columns."""
    name = measure.title.lower()
    return {
        "median": f"Median {name}",
        "best": f"Best seed's {name}",
        "worst": f"Worst seed's {name}",
        "failing_share": "Share of failing models",
        "learned_share": "Share that learned",
        "generalizing_share": "Share that generalizes, of those that learned",
    }


def _spread(cells: pd.DataFrame, measure: Measure) -> list[float]:
    """One scale for all maps of a measure, so that they can be held against each other."""
    if measure.is_error:
        return [0.0, max(float(cells["worst"].max()), 0.01)]
    return [min(float(cells["worst"].min()), 0.99), 1.0]


def _escape(field: str) -> str:
    """A column's name, of which a chart would else read `a.b` as a part of `a`."""
    return re.sub(r"([.\[\]\\'\"])", r"\\\1", field)


def _in_order(values: "pd.Series[str]") -> list[str]:
    # The frame is sorted by the values themselves; as text, 16 would come before 2.
    return list(dict.fromkeys(values))


def _tooltips(
    settings: Sequence[str],
    measure: Measure,
    cells: pd.DataFrame,
    *,
    outcomes: bool = False,
) -> list[alt.Tooltip]:
    """A line for each setting that differs, and for what the cells show."""
    named = {x: say_field(x, with_name=True) for x in settings}
    lines = [alt.Tooltip(field=_escape(x), type="nominal", title=y) for x, y in named.items()]
    border = [x for x in BORDER_SHARES if x in cells and cells[x].notna().any()]
    if outcomes:
        return [
            *lines,
            alt.Tooltip("learned_of:N", title="Learned"),
            alt.Tooltip("generalize_of:N", title="Generalize, of those that learned"),
            alt.Tooltip("learned_share:Q", title="Share that learned", format=".2~%"),
            alt.Tooltip("learned_interval:N", title="95% interval"),
            alt.Tooltip("learned_n:N", title="Of"),
            alt.Tooltip("generalizing_share:Q", title="Share that generalizes", format=".2~%"),
            alt.Tooltip("generalizing_interval:N", title="95% interval"),
            alt.Tooltip("generalizing_n:N", title="Of"),
            alt.Tooltip("configurations:Q", title="Configurations"),
            alt.Tooltip("predicted:N", title="Predicted"),
        ]
    shares = {**titles(measure), "failing_share": "Failing share"}
    shares = {x: said for x, said in shares.items() if x not in OUTCOME_SHARES}
    shares |= {x: f"Median, {BORDER_SHARES[x]}" for x in border}
    return [
        *lines,
        *(alt.Tooltip(f"{name}:Q", title=label, format=".2~%") for name, label in shares.items()),
        alt.Tooltip("median_interval:N", title="95% interval of the median"),
        alt.Tooltip("failing_interval:N", title="95% interval of the share"),
        alt.Tooltip("seeds:Q", title="Models"),
        alt.Tooltip("failing:Q", title="Failing models"),
        alt.Tooltip("configurations:Q", title="Configurations"),
        alt.Tooltip("predicted:N", title="Predicted"),
    ]
