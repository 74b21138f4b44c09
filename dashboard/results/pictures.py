"""The pictures of results, as functions of frames."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from dashboard import marks, style


def by_length(
    medians: int, shortcuts: int, trained: range | None, low: float, longest: float
) -> Any:
    """A configuration's seeds as thin lines in the color of their outcome, and their median.

    The data are named: `seeds` has run, seed, outcome, middle (length), lengths, right (a share);
    `medians` has middle, median; `shortcuts` has middle, right: of the best reader, dashed.

    Args:
        medians: how many rows there are.
        shortcuts: likewise.
        trained: the lengths that are shaded.
        low: where the vertical axis begins, the same in all panels.
        longest: where the horizontal one ends.
    """
    x = marks.x_axis("middle:Q", None, domain=[0, longest])
    y = marks.y_axis("right:Q", form="~%", domain=[low, 1], nice=False)
    hovered = alt.selection_point(
        name="hovered", fields=["run"], nearest=True, on="pointerover", empty=False
    )
    clicked = alt.selection_point(name="clicked", fields=["run"], nearest=True, empty=False)
    seeds = alt.Chart(alt.NamedData("seeds")).encode(
        x, y, marks.color("outcome", marks.OUTCOMES), detail="run:N"
    )
    width = alt.when(hovered).then(alt.value(3.5)).otherwise(alt.value(1.3))
    tooltip = marks.tips(seed="Seed", outcome="Outcome", lengths="Lengths", right="Right:.2%")
    layers = [] if trained is None else [marks.trained_band(trained)]
    if shortcuts:
        layers.append(_through("shortcuts", shortcuts, "~muted", 1.2, [3, 3]).encode(x, y))
    layers.append(seeds.mark_line(opacity=0.85).encode(strokeWidth=width))
    layers.append(marks.single_points(seeds, "run"))
    if medians:
        thick = _through("medians", medians, "~ink", 2.2, [1, 0])
        layers.append(thick.encode(x, alt.Y("median:Q", title=None)))
    # Invisible, and easier to meet than a line.
    met = seeds.mark_point(size=90, opacity=0).encode(tooltip=tooltip)
    layers.append(met.add_params(clicked, hovered))
    return alt.layer(*layers).properties(height=style.SMALL, width="container")


def _through(data: str, rows: int, color: str, width: float, dashes: list[int]) -> Any:
    """A line through points; a stroke where there is one alone, of which a line draws nothing."""
    chart = alt.Chart(alt.NamedData(data))
    if rows == 1:
        return chart.mark_tick(orient="horizontal", size=24, thickness=width, color=color)
    return chart.mark_line(color=color, strokeWidth=width, strokeDash=dashes)


def heat_map(
    cells: pd.DataFrame,
    across: str,
    up: str,
    order: dict[str, list[str]],
    span: tuple[float, float],
) -> Any:
    """Two settings against each other: a share in each cell, with its n.

    Args:
        cells: across, up (as text), value in [0, 1] (missing where there is none), label, n, told,
            ink (the name of the color of both).
        order: the values of both, in order.
        span: the values at which colors begin and end.
    """
    axis: dict[str, Any] = {"domain": False, "ticks": False, "title": None}
    base = alt.Chart(cells).encode(
        alt.X("across:N", sort=order["across"], axis=alt.Axis(labelAngle=0, **axis)),
        # Vega-Lite begins at the top, while an axis grows upward.
        alt.Y("up:N", sort=order["up"][::-1], axis=alt.Axis(labelLimit=160, **axis)),
        tooltip=[
            alt.Tooltip("across:N", title=across),
            alt.Tooltip("up:N", title=up),
            *marks.tips(told="Models"),
        ],
    )
    ends = ["~fails beyond", "~line", "~generalizes"]
    domain = [span[0], sum(span) / 2, span[1]]
    scale = alt.Scale(domain=domain, range=ends, interpolate="rgb", clamp=True)
    ink = alt.Color("ink:N", legend=None, scale=None)
    cell: dict[str, Any] = {"stroke": "~ground", "strokeWidth": 3, "cornerRadius": 4}
    layers = [
        # Vega-Lite draws no cell without a number: those of models that did not learn lie below.
        base.mark_rect(color="~not known", **cell),
        base.transform_filter("isValid(datum.value)")
        .mark_rect(**cell)
        .encode(alt.Color("value:Q", legend=None, scale=scale)),
        base.mark_text(fontSize=13, fontWeight=600, dy=-7).encode(text="label:N", color=ink),
        base.mark_text(fontSize=11, dy=9).encode(text="n:N", color=ink),
    ]
    height = 52 * len(order["up"]) + 10
    # Layers share a scale of colors by default, while texts name their colors and cells have
    # values.
    map_ = alt.layer(*layers).resolve_scale(color="independent")
    return map_.properties(height=height, width="container")


def effects(frame: pd.DataFrame, fields: Sequence[str]) -> Any:
    """Effect of each setting on a measure, with its interval.

    Args:
        frame: field, moves, low, high, worst, best (texts), value_worst, value_best.
        fields: in order.
    """
    top = max(0.01, float(frame[["moves", "high"]].max().max()))
    least = min(0.0, float(frame["low"].min(skipna=True)) if frame["low"].notna().any() else 0.0)
    axis = alt.Axis(format="~%", tickCount=5, grid=True)
    x = alt.X("moves:Q", title=None, axis=axis, scale=alt.Scale(domain=[least, top]))
    y = alt.Y(
        "field:N", sort=list(fields), title=None,
        axis=alt.Axis(domain=False, ticks=False, labelLimit=260),
    )  # fmt: skip
    tooltip = marks.tips(
        field="Setting",
        moves="Difference:.1%",
        interval="95%",
        told_worst="Worst",
        told_best="Best",
    )
    base = alt.Chart(frame).encode(y, tooltip=tooltip)
    bars = base.mark_bar(color="~accent soft", height=14).encode(x)
    whiskers = base.transform_filter("isValid(datum.low)").mark_rule(color="~ink")
    return alt.layer(bars, whiskers.encode(alt.X("low:Q"), alt.X2("high:Q"))).properties(
        height=28 * len(fields) + 6, width="container"
    )


def two_by_length(lengths: pd.DataFrame, names: tuple[str, str], low: float) -> Any:
    """The mean accuracies of two configurations at every length.

    Args:
        lengths: length, accuracy, which (a name).
    """
    tooltip = marks.tips(
        which="Configuration", length="Length:", accuracy="Right:.2%", seeds="Seeds:"
    )
    dashes = alt.StrokeDash(
        "which:N", legend=None, scale=alt.Scale(domain=list(names), range=[[1, 0], [5, 3]])
    )
    colors = marks.color("which", names, ("ink", "accent"))
    y = marks.y_axis("accuracy:Q", form="~%", domain=[low, 1], nice=False)
    x = marks.x_axis("length:Q", "Length")
    drawn = marks.lines(lengths, "which", tooltip, x, y, colors, dashes)
    return drawn.properties(height=style.HEIGHT, width="container")


def differences(lengths: pd.DataFrame) -> Any:
    """The first less the second at every length, with the 95% interval of the mean.

    Args:
        lengths: length, difference, low, high.
    """
    x = marks.x_axis("length:Q", "Length")
    y = marks.y_axis("difference:Q", form="+~%")
    base = alt.Chart(lengths).encode(x)
    known = base.transform_filter("isValid(datum.low)")
    soft: dict[str, Any] = {"color": "~accent soft", "opacity": 0.35}
    # The area of one length has no width.
    band = known.mark_area(**soft) if len(lengths) > 1 else known.mark_rule(size=6, **soft)
    tooltip = marks.tips(
        length="Length:", difference="Difference:+.2%", low="From:+.2%", high="To:+.2%"
    )
    line = base.encode(y).mark_line(color="~accent", strokeWidth=2, point=len(lengths) == 1)
    met = base.encode(y, tooltip=tooltip).mark_point(size=80, opacity=0)
    shaded = band.encode(alt.Y("low:Q", title=None), alt.Y2("high:Q"))
    return alt.layer(shaded, marks.rule("y"), line, met).properties(
        height=style.HEIGHT, width="container"
    )
