"""Legends: what colors and shapes mean, once above several charts or beside a chart."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import altair as alt
import pandas as pd

from dashboard.charts.pointing import CONFIGURATION, pointer

CHANNELS = ("color", "shape")
DISC = "circle"
"""What a mark looks like that has no shape of its own."""


@dataclass(frozen=True)
class Key:
    """What one legend says."""

    title: str
    names: tuple[str, ...]
    colors: tuple[str, ...]
    shapes: tuple[str, ...]
    """By the names of Vega; both are as many as the names."""


def deduplicate_legends(spec: dict[str, Any]) -> tuple[dict[str, Any], list[Key]]:
    """A chart without those of its legends that name each color or shape, and what they say.

    Args:
        spec: a Vega-Lite specification with the colors that are shown; it is not changed.
    """
    legends: dict[tuple[str, tuple[str, ...]], dict[str, tuple[str, ...]]] = {}

    def deduplicate(name: str, channel: Any) -> Any:
        if name not in CHANNELS or channel.get("legend") is None:
            return channel
        scale = channel.get("scale") or {}
        names, values = scale.get("domain"), scale.get("range")
        if not (isinstance(names, list) and isinstance(values, list) and len(names) == len(values)):
            return channel
        # A legend may name only what occurs.
        said = channel["legend"].get("values", names)
        pairs = [(x, value) for x, value in zip(names, values, strict=True) if x in said]
        key = (channel.get("title") or "", tuple(str(x) for x, _ in pairs))
        legends.setdefault(key, {})[name] = tuple(str(value) for _, value in pairs)
        return channel | {"legend": None}

    bare = with_channels(spec, deduplicate)
    return bare, [_key(title, names, channels) for (title, names), channels in legends.items()]


def _key(title: str, names: tuple[str, ...], channels: dict[str, tuple[str, ...]]) -> Key:
    colors = channels.get("color", ("currentColor",) * len(names))
    return Key(title, names, colors, channels.get("shape", (DISC,) * len(names)))


def with_channels(spec: dict[str, Any], change: Callable[[str, Any], Any]) -> dict[str, Any]:
    """A chart with each channel of its layers changed, which is given by its name."""
    changed = dict(spec)
    if "encoding" in spec:
        changed["encoding"] = {x: change(x, channel) for x, channel in spec["encoding"].items()}
    if "layer" in spec:
        changed["layer"] = [with_channels(layer, change) for layer in spec["layer"]]
    if "spec" in spec:
        changed["spec"] = with_channels(spec["spec"], change)
    return changed


# A chart of several panels as a chart for each, so that they wrap where a page is narrow.

OF_FACETS = ("facet", "columns", "spacing", "resolve", "spec", "title", "align", "bounds", "center")
KEYS = ("color", "fill", "stroke", "shape", "opacity")
"""Channels that have a legend."""


def split_panels(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """The panels of a chart, each with its name as the title; the first alone has a legend.

    Only of a chart that is faceted by one field, in the order that it gives, and whose scales
    have fixed limits: its panels are drawn alike, together or apart. Any other is left whole.

    Args:
        spec: a Vega-Lite specification; it is not changed.
    """
    facet = spec.get("facet", {})
    names = facet.get("sort")
    if "columns" not in spec or "field" not in facet or not isinstance(names, list):
        return [spec]
    common = {key: value for key, value in spec.items() if key not in OF_FACETS}
    panels = []
    for place, name in enumerate(names):
        inner = spec["spec"] if place == 0 else with_channels(spec["spec"], _without_legend)
        condition = {"filter": {"field": facet["field"], "equal": name}}
        panel = {**common, **inner, "transform": [condition, *inner.get("transform", [])]}
        panel["title"] = {"text": str(name), "fontWeight": "normal", "fontSize": 13}
        panel["description"] = f"{spec.get('description', '')} ({name})".strip()
        panels.append(panel)
    return panels


def _without_legend(name: str, channel: Any) -> Any:
    return channel | {"legend": None} if name in KEYS and "field" in channel else channel


# The names of configurations in their colors, as a chart that stands beside another.

ROW, ROW_OF_TWO, LETTERS = 24, 32, 34
"""Pixels from name to name, and where any has two lines; the letters that fit into a line."""

FADED = 0.12
"""Opacity of lines while another configuration is pointed at."""


def fade_others() -> alt.Opacity:
    """Marks fade while a configuration is pointed at that is not theirs."""
    return alt.Opacity(
        condition={"param": f"pointed_{CONFIGURATION}", "empty": True, "value": 1}, value=FADED
    )


def _break_name(name: str) -> str:
    """A name in two lines where one is too short: broken after a setting, or between words."""
    if len(name) <= LETTERS:
        return name
    for between in (", ", " "):
        ends = [x.start() + len(between) for x in re.finditer(between, name)]
        if ends:
            end = min(ends, key=lambda x: abs(2 * x - len(name)))
            return f"{name[:end].rstrip()}\n{name[end:]}"
    return name


def legend(colors: Mapping[str, str]) -> alt.LayerChart | alt.FacetChart:
    """A row for each name; what is pointed at here is marked in the charts beside it.

    Args:
        colors: of each configuration, in order.
    """
    said = [_break_name(name) for name in colors]
    row = ROW if said == list(colors) else ROW_OF_TWO
    tops, height = [row * place for place in range(len(colors))], row * len(colors)
    bottoms = [x + row for x in tops]
    rows = pd.DataFrame({CONFIGURATION: list(colors), "said": said, "top": tops, "bottom": bottoms})
    color = alt.Color(
        f"{CONFIGURATION}:N",
        legend=None,
        scale=alt.Scale(domain=list(colors), range=list(colors.values())),
    )
    scale = alt.Scale(domain=[0, height], reverse=True, nice=False)
    top = alt.Y("top:Q", axis=None, scale=scale)
    base = alt.Chart(rows).encode(top)
    # Over all of its row, unseen: a name need not be hit letter by letter.
    targets = (
        base.mark_rect(opacity=0.001)
        .encode(
            alt.Y2("bottom:Q"), tooltip=alt.Tooltip(f"{CONFIGURATION}:N", title="Configuration")
        )
        .add_params(pointer(CONFIGURATION))
    )
    marks = base.mark_square(size=130, yOffset=9, opacity=1).encode(
        color=color, x=alt.value(7), opacity=fade_others()
    )
    names = base.mark_text(
        align="left",
        baseline="top",
        fontSize=alt.ExprRef("indexof(datum.said, '\\n') < 0 ? 12 : 11"),
        lineBreak="\n",
        lineHeight=11,
        dy=alt.ExprRef("indexof(datum.said, '\\n') < 0 ? 3 : 0"),
        limit={"expr": "width - 20"},
    )
    texts = names.encode(x=alt.value(20), text=alt.Text("said:N"), opacity=fade_others())
    # Below a chart that states no padding Streamlit leaves some, which the rows would be short of:
    # of a single one nothing was left to point at.
    padding = dict.fromkeys(("left", "top", "right", "bottom"), 0)
    return alt.layer(marks, texts, targets).properties(
        height=height, padding=padding, title=alt.TitleParams("", offset=0)
    )
