"""Figures as files."""

import json
from collections.abc import Iterable
from pathlib import Path

import vl_convert

from dashboard.charts.themes import LIGHT, themed
from dashboard.figures.figure import Figure

SCALE = 2.0
"""Pixels of the PNG for one of the drawing."""


def write_figures(figures: Iterable[Figure], folder: Path) -> list[Path]:
    """Each figure as a PNG and an SVG, on white, in a folder that is made where it is missing.

    Raises:
        OSError: the folder cannot be made or written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for figure in figures:
        spec = themed(figure.chart.to_dict(), LIGHT) | {"background": LIGHT.background}
        chart = json.dumps(spec)
        png, svg = (folder / f"{figure.file_name}.{kind}" for kind in ("png", "svg"))
        png.write_bytes(vl_convert.vegalite_to_png(chart, scale=SCALE))
        svg.write_text(vl_convert.vegalite_to_svg(chart), encoding="utf-8")
        written += [png, svg]
    return written
