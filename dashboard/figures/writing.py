"""Figures as files."""

import json
from collections import Counter
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
    written: list[Path] = []
    names = Counter[str]()
    for figure in figures:
        spec = themed(figure.chart.to_dict(), LIGHT) | {"background": LIGHT.background}
        chart = json.dumps(spec)
        # Of strings that differ in brackets alone the names are the same.
        names[figure.file_name] += 1
        again = names[figure.file_name]
        name = figure.file_name if again == 1 else f"{figure.file_name}_{again}"
        png, svg = (folder / f"{name}.{kind}" for kind in ("png", "svg"))
        png.write_bytes(vl_convert.vegalite_to_png(chart, scale=SCALE))
        svg.write_text(vl_convert.vegalite_to_svg(chart), encoding="utf-8")
        written += [png, svg]
    return written
