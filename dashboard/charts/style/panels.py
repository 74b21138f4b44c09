"""A chart of several panels as a chart for each, so that they wrap where a page is narrow."""

from typing import Any

from dashboard.charts.style.keys import with_channels

OF_FACETS = ("facet", "columns", "spacing", "resolve", "spec", "title", "align", "bounds", "center")
KEYS = ("color", "fill", "stroke", "shape", "opacity")
"""Channels that have a legend."""


def apart(spec: dict[str, Any]) -> list[dict[str, Any]]:
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
