"""A section is data: sentences, a table and pictures, which pages, files and terminals show.

A picture is a Vega-Lite dictionary, so that a section can be cached, sent and compared, and nothing
that makes one imports Streamlit. Colors in it are names, such as `~wrong`, which the renderer
replaces by those of its theme. Sentences are plain text: all of it is escaped wherever it is
shown, and text between backquotes is a string of letters, set as code.
"""

from dataclasses import dataclass
from typing import Any

import altair as alt
import pandas as pd
from altair.utils.schemapi import disable_debug_mode

from dashboard import style
from dashboard.words import columns

# Charts are not validated piece by piece while they are built: it takes longer than drawing them.
disable_debug_mode()

Spec = dict[str, Any]


@dataclass(frozen=True)
class Panel:
    """A picture of a section; several are small multiples on one scale."""

    spec: Spec
    title: str = ""
    note: str = ""
    opens: int | None = None
    """The run that its title leads to."""
    link: str = ""
    """Label of that link."""

    @classmethod
    def of(
        cls, chart: Any, title: str = "", note: str = "", opens: int | None = None, link: str = ""
    ) -> "Panel":
        """A panel of a chart as Altair builds it; data that has a name it may be given later."""
        # Altair refuses more than 5,000 rows by default, for the sake of notebooks.
        with alt.data_transformers.enable("default", max_rows=None):
            return cls(chart.to_dict(validate=False), title, note, opens, link)


@dataclass(frozen=True)
class Section:
    """The answer to one question: its sentences first, then its numbers, then its pictures."""

    title: str
    says: tuple[str, ...] = ()
    """Sentences, the first of which is the answer."""
    table: pd.DataFrame | None = None
    """Its columns are named and formatted in `words.columns`; those without a name are in the
    download alone."""
    panels: tuple[Panel, ...] = ()
    caption: str = ""
    """A sentence on how to read the pictures."""
    legend: tuple[str, ...] = ()
    """Names of colors, in the order in which they are explained."""
    opens: str = ""
    """The column of the table, and the field of the marks, whose value a click leads to."""
    shown: tuple[str, ...] = ()
    """Columns of the table that are shown, in order; all that have names where it is empty."""

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to show."""
        return not self.says and not self.panels and (self.table is None or self.table.empty)

    def record(self) -> dict[str, Any]:
        """The section as a record, for agents and `--json`."""
        rows = [] if self.table is None else self.table.to_dict("records")
        return {"title": self.title, "says": list(self.says), "table": rows}


def svg(spec: Spec, width: int = 660) -> str:
    """A picture on white, as it is printed.

    Args:
        width: in pixels.
    """
    # Imported where it is used: it starts a JavaScript engine.
    import vl_convert

    drawn: str = vl_convert.vegalite_to_svg(style.on_paper(spec, width))
    return drawn


def figure(section: Section, title: str, kind: str = "svg") -> bytes:
    """All pictures of a section as one figure, with its title, what is selected, and the legend.

    Args:
        title: includes the selection.
        kind: `svg` or `png`.
    """
    import vl_convert

    spec = as_figure(section, title)
    if kind == "png":
        return bytes(vl_convert.vegalite_to_png(spec, scale=2))
    return str(vl_convert.vegalite_to_svg(spec)).encode()


def as_figure(section: Section, title: str, columns_at_most: int = 3) -> Spec:
    """The pictures of a section in rows, below their title, their caption and their legend."""
    panels = section.panels
    # Four make a square rather than a row of three and one below.
    across = 2 if len(panels) == 4 else min(columns_at_most, max(1, len(panels)))
    width = {1: 560, 2: 320}.get(across, 220)
    # Vega-Lite finds named data at the top of a picture only.
    datasets = {
        name: rows for panel in panels for name, rows in panel.spec.get("datasets", {}).items()
    }
    parts: list[Spec] = [
        {"concat": [_part(panel, width) for panel in panels], "columns": across}
        | {"spacing": {"row": 24, "column": 24}}
    ]
    if section.legend:
        parts.insert(0, _legend(section.legend, width * across))
    heading = {
        "text": title, "subtitle": section.caption.replace("`", ""), "anchor": "start",
        "fontSize": 15, "subtitleFontSize": 11, "subtitleColor": "~muted", "offset": 12,
    }  # fmt: skip
    whole = {"title": heading, "datasets": datasets, "vconcat": parts, "config": style.PAPER_CONFIG}
    drawn: Spec = style.paint({"$schema": style.SCHEMA, **whole}, style.LIGHT)
    return drawn


# Of a figure as a whole: what Vega-Lite takes at the top alone, selections, and the width.
_NOT_IN_A_PART = ("width", "datasets", "$schema", "config", "params", "usermeta", "autosize")


def _part(panel: Panel, width: int) -> Spec:
    spec = {name: value for name, value in panel.spec.items() if name not in _NOT_IN_A_PART}
    title = {
        "text": panel.title, "subtitle": panel.note, "fontSize": 12, "subtitleFontSize": 11,
        "anchor": "start",
    }  # fmt: skip
    part: Spec = style.without_selections({"width": width, **spec})
    return {**part, "title": title} if panel.title else part


def _legend(names: tuple[str, ...], width: int) -> Spec:
    key = [{"name": columns.LEGEND.get(name, name), "color": f"~{name}"} for name in names]
    x = {"field": "name", "type": "nominal", "axis": None, "sort": None}
    color = {"field": "color", "type": "nominal", "scale": None}
    dot = {"type": "point", "filled": True, "size": 60}
    label = {"type": "text", "align": "left", "dx": 8, "fontSize": 11, "color": "~ink"}
    return {
        "data": {"values": key},
        "height": 14,
        "width": min(150 * max(1, len(key)), width + 60),
        "view": {"stroke": None},
        "layer": [
            {"mark": dot, "encoding": {"x": x, "color": color}},
            {"mark": label, "encoding": {"x": x, "text": {"field": "name"}}},
        ],
    }


def colors_present(values: "pd.Series[Any]", names: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the names of colors that occur among values, in the order of the names."""
    present = set(values.dropna().astype(str))
    return tuple(name for name in names if name in present)
