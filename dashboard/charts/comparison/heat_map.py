"""Two fields of the configuration against each other."""

import re
from collections.abc import Sequence

import altair as alt
import pandas as pd

from dashboard.charts.style.colors import GREY
from dashboard.charts.style.scales import LOW_TO_HIGH, readable_on, titled
from seqcls.kinds import ACCURACY, Measure

CLICKED = "clicked_cell"
"""The selection that holds the number of a cell that was clicked."""

CANNOT = "\N{MULTIPLICATION X}"
"""Marks a cell whose models are predicted to fail at some length."""

_COUNT = f"'n = ' + datum.seeds + (datum.predicted === 'cannot' ? ' {CANNOT}' : '')"

CELL_HEIGHT = 48
LEAST_HEIGHT = 150
"""The name of a setting, along the axis, is as long as this."""

FURNITURE_HEIGHT = 100
LEGEND_LENGTH = 100
"""Beside the lowest map."""

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
    columns, rows = _ordered(cells[x]), _ordered(cells[y])
    reverse = value == "failing_share" or measure.is_error
    spread = [0.0, 1.0] if value == "failing_share" else _spread(cells, measure)
    clicked = alt.selection_point(name=CLICKED, fields=["cell"], empty=False)
    base = alt.Chart(cells).encode(
        x=alt.X(
            field=_escaped(x), type="nominal", title=x, sort=columns, axis=alt.Axis(labelAngle=0)
        ),
        y=alt.Y(field=_escaped(y), type="nominal", title=y, sort=rows[::-1]),
    )
    rectangles = base.mark_rect(stroke=GREY, strokeWidth=0.5).encode(
        color=alt.Color(
            f"{value}:Q",
            title=None,
            scale=alt.Scale(scheme=LOW_TO_HIGH, domain=spread, reverse=reverse),
            # Where the scale begins is said: that of accuracies does not begin at zero.
            legend=alt.Legend(
                format=".0%" if reverse else ".1%",
                orient="right",
                gradientLength=LEGEND_LENGTH,
                values=[spread[0], sum(spread) / 2, spread[1]],
            ),
        ),
        tooltip=_tooltips([x, y, *([facet] if facet else []), *others], measure),
    )
    rectangles = rectangles.add_params(clicked)
    ink = readable_on(value)
    share = base.mark_text(dy=-6, fontSize=12).encode(
        text=alt.Text(f"{value}:Q", format=".1%"), color=ink
    )
    seeds = (
        base.mark_text(dy=9, fontSize=10)
        .encode(text=alt.Text("count:N"), color=ink)
        .transform_calculate(count=_COUNT)
    )
    layers = alt.layer(rectangles, share, seeds)
    height = max(LEAST_HEIGHT, CELL_HEIGHT * len(rows))
    if facet is None:
        sized = layers.properties(height=height + FURNITURE_HEIGHT)
        return sized.properties(title=titled(titles(measure)[value]))
    width = FACET_CELL_WIDTH * len(columns)
    return layers.properties(height=height, width=width).facet(
        alt.Facet(field=_escaped(facet), type="nominal", title=facet, sort=_ordered(cells[facet])),
        columns=max(1, FACETS_WIDTH // (width + FACET_CELL_WIDTH // 2)),
        title=titled(titles(measure)[value]),
    )


def titles(measure: Measure) -> dict[str, str]:
    """What the maps of a measure show, by their columns."""
    name = measure.title.lower()
    return {
        "median": f"Median {name}",
        "best": f"Best seed's {name}",
        "worst": f"Worst seed's {name}",
        "failing_share": "Share of failing models",
    }


def _spread(cells: pd.DataFrame, measure: Measure) -> list[float]:
    """One scale for all maps of a measure, so that they can be held against each other."""
    if measure.is_error:
        return [0.0, max(float(cells["worst"].max()), 0.01)]
    return [min(float(cells["worst"].min()), 0.99), 1.0]


def _escaped(field: str) -> str:
    """A column's name, of which a chart would else read `a.b` as a part of `a`."""
    return re.sub(r"([.\[\]\\'\"])", r"\\\1", field)


def _ordered(values: "pd.Series[str]") -> list[str]:
    # The frame is sorted by the values themselves; as text, 16 would come before 2.
    return list(dict.fromkeys(values))


def _tooltips(settings: Sequence[str], measure: Measure) -> list[alt.Tooltip]:
    """A line for each setting that differs, and for what the cells show."""
    shares = {**titles(measure), "failing_share": "Failing share"}
    return [
        *(alt.Tooltip(field=_escaped(field), type="nominal", title=field) for field in settings),
        *(alt.Tooltip(f"{name}:Q", title=label, format=".2%") for name, label in shares.items()),
        alt.Tooltip("median_interval:N", title="95% interval of the median"),
        alt.Tooltip("failing_interval:N", title="95% interval of the share"),
        alt.Tooltip("seeds:Q", title="Models"),
        alt.Tooltip("failing:Q", title="Failing models"),
        alt.Tooltip("configurations:Q", title="Configurations"),
        alt.Tooltip("predicted:N", title="Predicted"),
    ]
