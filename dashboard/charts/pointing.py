"""Charts that follow each other: what is pointed at is marked in every chart of a page.

A selection is bound to the page itself, under an event that all charts share: Vega writes what is
pointed at there and reads it from there, so that charts follow each other, drawn as one or apart.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from dashboard.charts.colors import FALSE_NEGATIVE

LETTER, TOKEN, STRING, CONFIGURATION = "letter", "token", "name", "configuration"
"""Fields by which marks are one thing: a place in the string, a token type, a string, or a line."""

HELD_BY = {LETTER: "body", TOKEN: "head", STRING: "html", CONFIGURATION: "#root"}
"""The page's element that holds what is pointed at, one for each field."""

WORDS = {TOKEN: "a token", STRING: "the point of a string"}

RING = 300
WIDTH = 1.5


def pointer(field: str = LETTER) -> alt.Parameter:
    """What is pointed at: the value of a field, in this chart or in another of the page."""
    return alt.selection_point(
        # The same name everywhere: parts of one drawing share it.
        name=_name(field),
        fields=[field],
        on="pointerover",
        clear="pointerout",
        empty=False,
        bind=alt.BindDirect(element=HELD_BY[field], event=_name(field)),
    )


def _name(field: str) -> str:
    return f"pointed_{field}"


def add_frame(chart: alt.Chart, field: str = LETTER) -> alt.Chart:
    """A frame around the cells of a chart that are pointed at, or the whole rows or columns.

    One mark of its own: asked of each cell whether it is pointed at, a browser would be slow.
    """
    return chart.mark_rect(
        fillOpacity=0, stroke=FALSE_NEGATIVE, strokeWidth=WIDTH
    ).transform_filter(pointer(field))


def row_frames(chart: alt.Chart) -> alt.Chart:
    """Every row of a chart of few, which can be pointed at as a whole; the frame is seen then."""
    seen = alt.when(pointer(TOKEN)).then(alt.value(1)).otherwise(alt.value(0))
    return (
        # Its rows are not filtered, which would make others of them, with a scale of their own.
        chart.mark_rect(fillOpacity=0, stroke=FALSE_NEGATIVE, strokeWidth=WIDTH)
        .encode(strokeOpacity=seen)
        .add_params(pointer(TOKEN))
    )


def hint(specs: Sequence[dict[str, Any]]) -> str:
    """What pointing does in these charts; empty where no two of them have anything in common.

    Args:
        specs: Vega-Lite specifications.
    """
    shared = Counter(param["name"] for spec in specs for param in spec.get("params", []))
    words = [word for field, word in WORDS.items() if shared[_name(field)] > 1]
    return f"Hover over {' or '.join(words)} to mark the same in the other figures." * bool(words)


def add_ring(chart: alt.Chart, field: str) -> alt.Chart:
    """A ring around the points of a chart that are pointed at; the chart has no colors yet."""
    return chart.mark_point(
        filled=False, size=RING, color=FALSE_NEGATIVE, strokeWidth=WIDTH, opacity=1
    ).transform_filter(pointer(field))


# Names that many rows share: sent once, and put into the rows by the browser.

NAMED = "configuration"
NUMBER = "configuration_number"
SETTINGS = "settings"

Named = Sequence[str] | Mapping[str, str]
"""Names of configurations; with the settings of each, which tooltips say."""
