"""How much of the page a chart will take: its place is kept until it is drawn."""

from typing import Any

AXIS, TITLE, LEGENDS, HEADER = 50, 28, 60, 20
"""Pixels around a plot: an axis with its title, a title, legends above, a panel's name."""

SPACING = 20


def height_of(spec: dict[str, Any]) -> int:
    """Pixels of a chart from top to bottom with all around it, estimated low.

    Args:
        spec: a Vega-Lite specification with its data, all of it.
    """
    return _height(spec, spec.get("datasets", {}))


def width_of(spec: dict[str, Any]) -> int:
    """Pixels of a chart's plots from left to right; 0 where only its data says how many."""
    width = spec.get("spec", spec).get("width", 0)
    return round(width) if isinstance(width, int | float) else 0


def _height(spec: dict[str, Any], datasets: dict[str, Any]) -> int:
    titled = TITLE if spec.get("title") else 0
    if "vconcat" in spec:
        gaps = int(spec.get("spacing", SPACING)) * (len(spec["vconcat"]) - 1)
        return titled + sum(_height(part, datasets) for part in spec["vconcat"]) + gaps
    inner = {"data": spec.get("data"), **spec.get("spec", spec)}
    legends = LEGENDS * _has_legend_above(inner)
    return round(titled + legends + _plots(spec, inner, datasets) + AXIS)


def _plots(spec: dict[str, Any], inner: dict[str, Any], datasets: dict[str, Any]) -> float:
    """The plot, or the panels below one another with their names."""
    height = inner.get("height", 0)
    rows = _rows(spec, datasets) if "spec" in spec else 0
    named = HEADER * rows
    if isinstance(height, int | float):
        return named + height * max(1, rows)
    # Panels below one another may have different numbers of rows.
    by = [spec["facet"]] if rows > 1 and spec.get("columns") == 1 else []
    return float(named + height.get("step", 0) * _steps(inner, by, datasets))


def _has_legend_above(spec: dict[str, Any]) -> bool:
    return any(
        isinstance(channel, dict) and (channel.get("legend") or {}).get("orient") == "top"
        for view in [spec, *spec.get("layer", [])]
        for channel in view.get("encoding", {}).values()
    )


def _rows(spec: dict[str, Any], datasets: dict[str, Any]) -> int:
    """Rows of panels."""
    facet = spec["facet"]
    if "columns" in spec:
        return -(-_distinct(spec, [facet], datasets) // int(spec["columns"]))
    return _distinct(spec, [facet["row"]], datasets) if "row" in facet else 1


def _steps(spec: dict[str, Any], by: list[dict[str, Any]], datasets: dict[str, Any]) -> int:
    """Rows of a chart, or of panels by a field, whose height is so many pixels a row."""
    for view in [spec, *spec.get("layer", [])]:
        if "field" in (channel := view.get("encoding", {}).get("y", {})):
            found = {"data": spec.get("data"), **view}
            return _distinct(found, [channel, *by], datasets)
    return 1


def _distinct(
    spec: dict[str, Any], channels: list[dict[str, Any]], datasets: dict[str, Any]
) -> int:
    """How many combinations of values some fields have."""
    rows = datasets.get((spec.get("data") or {}).get("name", ""), [])
    return max(1, len({tuple(str(row.get(x.get("field"))) for x in channels) for row in rows}))
