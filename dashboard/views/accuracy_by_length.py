"""Accuracy, or a rate of errors, against string length: seeds thin, medians thick."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from dashboard import links, placement
from dashboard.charts.colors import GREY, HALO, INK, OKABE_ITO
from dashboard.charts.legend import fade_others
from dashboard.charts.pointing import CONFIGURATION, chart_with_names, pointer
from dashboard.charts.scales import (
    LABEL_LINE_HEIGHT,
    configuration_color,
    reserve_height,
    title_params,
)

PLOT_HEIGHT, STRIP_HEIGHT = 340, 34

LIFT = 5
"""Pixels that lines lie apart where they would hide each other: at 100%, and at 0%."""

FEW, LABELLED = 3, 32
"""Lines, and letters of their names, that are written at the ends of the lines."""

CLICKED = "clicked_line"
"""The selection that holds the run_id of a line that was clicked."""

SPAN = "span"
"""The selection of the lengths that are shown."""

_SUBTITLE = (
    "Thin: one model. Thick: the median over seeds, with its 95% interval for six seeds or more."
)

DASH = 5
"""Pixels of a dash of a shortcut reader's line."""


def accuracy_by_length(
    seeds: pd.DataFrame,
    medians: pd.DataFrame,
    limits: pd.DataFrame,
    measure: str,
    colors: Mapping[str, str] | None = None,
    readers: pd.DataFrame | None = None,
) -> alt.LayerChart | alt.FacetChart:
    """The chart as it is printed, with its legend.

    Args:
        seeds: one row a run and point: configuration, model_seed, run_id, middle (length), lengths
            (as text), value in [0, 1], and the strings that it is a share of: strings. Gray where
            there is learned and it is 0.
        medians: configuration, middle, median, low, high (an interval of the median,
            missing where there is none), n (seeds), and learned likewise.
        limits: length and label of lengths to mark, such as where training ended, and the first of
            the lengths up to there that are shaded, if any.
        measure: what `value` is, for the axis: Accuracy, False positive rate.
        colors: of each configuration; those of the palette in order, where none are given.
        readers: the best shortcut reader of the tests, if known, as dashed lines: configuration
            (missing where all have one test), reader (what it is called), middle, value; rank and
            of (which of how many configurations with one line).
    """
    names = list(dict.fromkeys(medians["configuration"]))
    colors = colors or dict(zip(names, OKABE_ITO, strict=False))
    color = configuration_color({name: colors[name] for name in names})
    said = [_SUBTITLE, _describe_gray(seeds), _describe_shade(limits), _describe_readers(readers)]
    title = title_params(f"{measure} by string length", subtitle=_sentences(said))
    layers = _layers(seeds, medians, limits, measure, color, alt.Scale(zero=True), readers)
    return layers.properties(height=PLOT_HEIGHT, title=title)


def zoomed_by_length(
    seeds: pd.DataFrame,
    medians: pd.DataFrame,
    limits: pd.DataFrame,
    measure: str,
    colors: Mapping[str, str],
    readers: pd.DataFrame | None = None,
) -> alt.VConcatChart:
    """The same without a legend, above a strip in which the lengths are chosen that it shows."""
    names = list(colors)
    color = configuration_color(colors, legend=False)
    span = alt.selection_interval(name=SPAN, encodings=["x"])
    lengths = alt.Scale(domain=span, zero=True)
    chart = _layers(seeds, medians, limits, measure, color, lengths, readers)
    strip = (
        chart_with_names(medians, names)
        .mark_line(strokeWidth=1, point=not _alone(medians, "configuration").empty)
        .encode(
            alt.X("middle:Q", axis=None, scale=alt.Scale(zero=True)),
            alt.Y("median:Q", axis=None, scale=alt.Scale(zero=False)),
            _gray_unlearned(color),
        )
        .properties(height=STRIP_HEIGHT, view=alt.ViewConfig(stroke=GREY))
        .add_params(span)
    )
    # Of single models there is no median to tell from them.
    said = [
        _SUBTITLE if medians["n"].max() > 1 else "",
        _describe_gray(seeds),
        _describe_shade(limits),
        _describe_readers(readers),
        "Drag along the strip below to zoom in, double-click it to zoom out.",
    ]
    title = title_params(f"{measure} by string length", subtitle=_sentences(said))
    return alt.vconcat(chart.properties(height=PLOT_HEIGHT), strip, spacing=6).properties(
        title=title, **reserve_height(PLOT_HEIGHT + STRIP_HEIGHT)
    )


def _layers(
    seeds: pd.DataFrame,
    medians: pd.DataFrame,
    limits: pd.DataFrame,
    measure: str,
    color: alt.Color,
    lengths: alt.Scale,
    readers: pd.DataFrame | None,
) -> alt.LayerChart | alt.FacetChart:
    names = list(dict.fromkeys(medians["configuration"]))
    lanes = _lanes(medians)
    lines = chart_with_names(_lift(seeds, "value", lanes), names)
    summed = chart_with_names(lift_apart(_lift(medians, "median", lanes)), names)
    axis = alt.Axis(tickMinStep=1, format=",.0f")
    x = alt.X("middle:Q", title="String length", scale=lengths, axis=axis)
    y = _scale(seeds, medians, readers, len(set(lanes.values())))
    return alt.layer(
        *_limits(limits),
        _band(chart_with_names(medians.dropna(subset=["low"]), names), x, color),
        _seeds(lines, x, y, color, measure),
        _medians(summed, x, y, color, measure),
        *_single_points(seeds, medians, names, x, y, color, measure),
        *_readers(readers, names, x, y, color, measure),
        *_labels(medians, x, y),
        _wide(lines, x, y, measure),
        _targets(lines, x, y, measure),
    )


def _gray_unlearned(color: alt.Color) -> Any:
    """Gray where a model has not learned, or most of a median's have not; else this color."""
    return alt.when(alt.datum.learned == 0).then(alt.value(GREY)).otherwise(color)


def _lanes(medians: pd.DataFrame) -> dict[str, int]:
    """The place of each configuration among those whose lines touch the best or worst value."""
    touching = medians[medians["median"].isin([0, 1])]["configuration"]
    return {name: lane for lane, name in enumerate(dict.fromkeys(touching))}


def _lift(frame: pd.DataFrame, column: str, lanes: Mapping[str, int]) -> pd.DataFrame:
    """With pixels by which each point is moved beyond the end of the axis: lift."""
    lane = frame["configuration"].astype(str).map(lanes).fillna(0)
    side = np.select([frame[column] >= 1, frame[column] <= 0], [-LIFT, LIFT], 0)
    return frame.assign(lift=lane * side)


def lift_apart(medians: pd.DataFrame) -> pd.DataFrame:
    """Lifted medians, those moved too that would hide each other between the ends of the axis."""
    values = medians["median"]
    span = max(float(values.max() - values.min()), 0.01)
    pixels = (values / span * PLOT_HEIGHT / LIFT).round()
    alike = medians.groupby([medians["middle"], pixels])["median"]
    lane = alike.cumcount() - (alike.transform("size") - 1) / 2
    inside = (values > 0) & (values < 1)
    return medians.assign(lift=medians["lift"].where(~inside, lane * LIFT))


def _scale(
    seeds: pd.DataFrame, medians: pd.DataFrame, readers: pd.DataFrame | None, lanes: int
) -> alt.Scale:
    """From the lowest to the highest value, with room for lines that are moved."""
    columns = [seeds["value"], medians["median"], medians["low"], medians["high"]]
    values = pd.concat(columns if readers is None else [*columns, readers["value"]])
    low, high = float(values.min()), float(values.max())
    margin = max(high - low, 0.01) * LIFT * (lanes + 1) / PLOT_HEIGHT
    low, high = (low - margin if low <= 0 else low), (high + margin if high >= 1 else high)
    return alt.Scale(domain=[low, max(high, low + 0.01)], nice=False, zero=False)


# Above all and below nothing lie only lines that are moved.
_SHARES = alt.Axis(
    format="~%", labelExpr="datum.value < 0 || datum.value > 1 ? '' : datum.label", grid=True,
    gridOpacity={"expr": "datum.value < 0 || datum.value > 1 ? 0 : 1"}, ticks=False,
)  # fmt: skip


def _y(field: str, measure: str, scale: alt.Scale) -> alt.Y:
    return alt.Y(
        f"{field}:Q",
        title=f"{measure} on test strings of that length",
        axis=_SHARES,
        scale=scale,
    )


_MOVED: dict[str, Any] = {"yOffset": {"expr": "datum.lift"}, "clip": True}


def _band(medians: alt.Chart, x: alt.X, color: alt.Color) -> alt.Chart:
    # Without a legend entry of its own: the band has the color of its line.
    areas = medians.mark_area(fillOpacity=0.15, clip=True)
    return areas.encode(x, alt.Y("low:Q"), alt.Y2("high:Q"), _gray_unlearned(color), fade_others())


def _seeds(seeds: alt.Chart, x: alt.X, y: alt.Scale, color: alt.Color, measure: str) -> alt.Chart:
    lines = seeds.mark_line(strokeWidth=1, **_MOVED)
    return lines.encode(
        x, _y("value", measure, y), _gray_unlearned(color), alt.Detail("run_id:N"), fade_others()
    )


def _medians(
    medians: alt.Chart, x: alt.X, y: alt.Scale, color: alt.Color, measure: str
) -> alt.Chart:
    lines = medians.mark_line(strokeWidth=3, **_MOVED)
    return lines.encode(x, _y("median", measure, y), _gray_unlearned(color), fade_others())


def _describe_gray(seeds: pd.DataFrame) -> str:
    """What gray lines are, where there are any."""
    is_gray = "learned" in seeds and (seeds["learned"] == 0).any()
    return "Gray: not learned; of medians, by most seeds." if is_gray else ""


def _describe_shade(limits: pd.DataFrame) -> str:
    is_shaded = "first" in limits and limits["first"].notna().any()
    return "Shaded: trained lengths." if is_shaded else ""


def _sentences(said: Sequence[str]) -> str:
    return " ".join(filter(None, said))


def _describe_readers(readers: pd.DataFrame | None) -> str:
    """What the dashed lines are, where there are any."""
    if readers is None:
        return ""
    named = list(dict.fromkeys(readers["reader"]))
    which = f"best shortcut: {named[0]}" if len(named) == 1 else "best shortcut of each test"
    return f"Dashed: {which}."


def _readers(
    readers: pd.DataFrame | None,
    names: list[str],
    x: alt.X,
    y: alt.Scale,
    color: alt.Color,
    measure: str,
) -> Iterator[alt.Chart]:
    """Dashed lines; where configurations have one test, their dashes take turns on its line."""
    if readers is None:
        return
    tooltip = [
        alt.Tooltip("reader:N", title="Best shortcut"),
        alt.Tooltip("value:Q", title=measure, format=".2~%"),
    ]
    # One point is no line.
    looks: dict[str, Any] = {
        "strokeWidth": 2,
        "clip": True,
        "point": len(set(readers["middle"])) == 1,
    }
    if readers["configuration"].isna().all():
        line = alt.Chart(readers).mark_line(strokeDash=[DASH, DASH], color=INK, **looks)
        yield line.encode(x, _y("value", measure, y), tooltip=tooltip)
        return
    for rank, of in sorted(set(zip(readers["rank"], readers["of"], strict=True))):
        rows = readers[(readers["rank"] == rank) & (readers["of"] == of)]
        dash: dict[str, Any]
        dash = {"strokeDash": [DASH, DASH * (2 * of - 1)], "strokeDashOffset": -2 * DASH * rank}
        line = chart_with_names(rows, names).mark_line(**dash, **looks)
        named = [alt.Tooltip("configuration:N", title="Configuration"), *tooltip]
        yield line.encode(x, _y("value", measure, y), color, fade_others(), tooltip=named)


def _alone(frame: pd.DataFrame, line: str) -> pd.DataFrame:
    """The points of lines that have no other: as a line, one of them is not seen."""
    alone: pd.DataFrame = frame[frame.groupby(line, observed=True)[line].transform("size") == 1]
    return alone


def _single_points(
    seeds: pd.DataFrame,
    medians: pd.DataFrame,
    names: list[str],
    x: alt.X,
    y: alt.Scale,
    color: alt.Color,
    measure: str,
) -> Iterator[alt.Chart]:
    """Models as small points, medians as large ones with their intervals, where there are any."""
    lanes = _lanes(medians)
    # The only point there is lies at the end of the axis, and can be zoomed to nowhere.
    moved = _MOVED | {"clip": medians["middle"].nunique() > 1}
    spans = _alone(medians.dropna(subset=["low"]), "configuration")
    if len(spans):
        rules = chart_with_names(spans, names).mark_rule(
            strokeWidth=9, strokeOpacity=0.15, clip=moved["clip"]
        )
        yield rules.encode(
            x, alt.Y("low:Q"), alt.Y2("high:Q"), _gray_unlearned(color), fade_others()
        )
    for frame, line, field, size in (
        (seeds, "run_id", "value", 18),
        (medians, "configuration", "median", 90),
    ):
        alone = _lift(_alone(frame, line), field, lanes)
        if len(alone):
            points = chart_with_names(alone, names).mark_point(filled=True, size=size, **moved)
            yield points.encode(x, _y(field, measure, y), _gray_unlearned(color), fade_others())


def _labels(medians: pd.DataFrame, x: alt.X, y: alt.Scale) -> list[alt.Chart]:
    """The names of a few lines at their ends; none where these are many, or would cover each other.

    A name of several settings stands in the legend alone. One that would be above the chart stands
    below its line.
    """
    ends = medians.sort_values("middle").groupby("configuration", observed=True).tail(1)
    low, high = y.to_dict()["domain"]
    heights = (ends["median"] - low) / (high - low) * PLOT_HEIGHT
    long = ends["configuration"].astype(str).map(len).max() > LABELLED
    apart = heights.sort_values().diff().min()
    if not 1 < len(ends) <= FEW or long or apart < 3 * LABEL_LINE_HEIGHT:
        return []
    fits = heights < PLOT_HEIGHT - 2 * LABEL_LINE_HEIGHT
    ends = ends.assign(below=fits.map({True: -LABEL_LINE_HEIGHT, False: LABEL_LINE_HEIGHT}))
    names = chart_with_names(ends, list(dict.fromkeys(medians["configuration"])))
    at: dict[str, Any] = {"align": "right", "dx": -2, "dy": {"expr": "datum.below"}}
    at["fontWeight"] = "bold"
    marks = names.mark_text(**at, stroke=HALO, strokeWidth=4), names.mark_text(**at)
    text = alt.Text("configuration:N")
    return [mark.encode(x, alt.Y("median:Q", scale=y), text) for mark in marks]


def _wide(seeds: alt.Chart, x: alt.X, y: alt.Scale, measure: str) -> alt.Chart:
    """Lines as wide as a fingertip, unseen, so that a thin one is hit anywhere."""
    lines = seeds.mark_line(strokeWidth=11, opacity=0.001, **_MOVED)
    return lines.encode(x, _y("value", measure, y), alt.Detail("run_id:N"), tooltip=_TOOLTIPS)


def _targets(seeds: alt.Chart, x: alt.X, y: alt.Scale, measure: str) -> alt.Chart:
    """Points, unseen until the line is pointed at, which say what their model comes to there.

    What is selected on any layer is selected by this one's parameters.
    """
    clicked = alt.selection_point(name=CLICKED, fields=["run_id"], empty=False)
    here = alt.selection_point(
        name="pointed", fields=["run_id"], on="pointerover", clear="pointerout", empty=False
    )
    return (
        seeds.mark_point(size=90, filled=True, color=GREY, **_MOVED)
        .encode(
            x,
            _y("value", measure, y),
            opacity=alt.when(here).then(alt.value(0.6)).otherwise(alt.value(0)),
            tooltip=[
                *_TOOLTIPS,
                alt.Tooltip("lengths:N", title="Lengths"),
                alt.Tooltip("value:Q", title=measure, format=".2~%"),
                alt.Tooltip("strings:Q", title="Of test strings"),
            ],
        )
        .add_params(here, clicked, pointer(CONFIGURATION))
    )


_TOOLTIPS = [
    alt.Tooltip("configuration:N", title="Configuration"),
    alt.Tooltip("model_seed:Q", title="Model seed"),
]


def _limits(limits: pd.DataFrame) -> list[alt.Chart]:
    # Where no label is, all that is tested is shaded, and there is no end to mark.
    marked = limits[limits["label"].notna()]
    # Each label in a line of its own: in a narrow window two lengths lie close together.
    places = marked.assign(line=[-4 - LABEL_LINE_HEIGHT * i for i in range(len(marked))])
    base = alt.Chart(places).encode(alt.X("length:Q"))
    labels = base.mark_text(
        align="left", baseline="bottom", dx=4, dy={"expr": "datum.line"}, color=INK, clip=True
    )
    shaded = limits.dropna(subset=["first"]) if "first" in limits else limits.head(0)
    areas = alt.Chart(shaded).mark_rect(color=GREY, opacity=0.12, clip=True)
    return [
        *([areas.encode(alt.X("first:Q"), alt.X2("length:Q"))] if len(shaded) else []),
        base.mark_rule(color=GREY, strokeDash=[4, 4], clip=True),
        labels.encode(alt.Text("label:N"), y=alt.value("height")),
    ]


def show(given: Sequence[Any], colors: Mapping[str, str], key: str) -> None:
    """Draws the lines with their names beside them; a click on a line leads to its model.

    Args:
        given: what `zoomed_by_length` is given.
        colors: of each configuration, by its name.
        key: of the chart.
    """
    chart = placement.build(zoomed_by_length, *given)
    links.open_clicked(placement.with_legend(chart, colors, key, click=CLICKED), CLICKED)
