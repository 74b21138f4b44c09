"""Figures as files."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import vl_convert

from dashboard.charts.style.themes import LIGHT, themed
from dashboard.figures.figure import Figure
from seqcls.canonical import with_nulls
from sweeps.files import refuse_taken, whole_files

SCALE = 2.0
"""Pixels of the PNG for one of the drawing."""


def write_figures(figures: Iterable[Figure], folder: Path, *, force: bool = False) -> list[Path]:
    """Each figure as a PNG and an SVG, on white; `folder` and `force` as for `whole_files`."""
    named = dict(_named(figures))
    paths = [folder / f"{name}.{kind}" for name in named for kind in ("png", "svg")]
    # Drawing takes longer than anybody wants to wait for a refusal.
    refuse_taken(paths, force=force)
    with whole_files(folder, force=force) as new:
        for name, figure in named.items():
            spec = themed(figure.chart.to_dict(), LIGHT) | {"background": LIGHT.background}
            chart = json.dumps(with_nulls(spec))
            (new / f"{name}.png").write_bytes(vl_convert.vegalite_to_png(chart, scale=SCALE))
            (new / f"{name}.svg").write_text(vl_convert.vegalite_to_svg(chart), encoding="utf-8")
    return paths


def _named(figures: Iterable[Figure]) -> Iterator[tuple[str, Figure]]:
    names = Counter[str]()
    for figure in figures:
        # Of strings that differ in brackets alone the names are the same.
        names[figure.file_name] += 1
        again = names[figure.file_name]
        yield figure.file_name if again == 1 else f"{figure.file_name}_{again}", figure
