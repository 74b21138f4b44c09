"""The command `seqcls model figures`: figures of any model, drawn and written to files."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from dashboard import style
from dashboard.figures.epochs import are_figures_by_counts, through_epochs
from dashboard.figures.figure import Figure
from dashboard.figures.gallery import figures
from dashboard.model.string_figures import figures_of_strings
from seqcls.problem import resolve
from seqcls.text import with_nulls
from sweeps.api import Store, reading
from sweeps.api.models import trained_model, untrained_model
from sweeps.files import refuse_taken, whole_files
from sweeps.terminal import say

SCALE = 2.0
"""Pixels of the PNG for one of the drawing."""

WIDTH = 500
"""Pixels of a plot that is as wide as its place."""


def write_figures(drawn: Iterable[Figure], folder: Path, *, force: bool = False) -> list[Path]:
    """Each figure as a PNG and an SVG, on white; `folder` and `force` as for `whole_files`."""
    named = dict(_name_figures(drawn))
    paths = [folder / f"{name}.{kind}" for name in named for kind in ("png", "svg")]
    # Drawing takes longer than anybody wants to wait for a refusal.
    refuse_taken(paths, force=force)
    with whole_files(folder, force=force) as new:
        for name, figure in named.items():
            # JSON lacks NaN, which frames have where nothing is known.
            chart = json.dumps(with_nulls(_on_paper(figure)))
            (new / f"{name}.png").write_bytes(vl_convert.vegalite_to_png(chart, scale=SCALE))
            (new / f"{name}.svg").write_text(vl_convert.vegalite_to_svg(chart), encoding="utf-8")
    return paths


def _on_paper(figure: Figure) -> dict[str, Any]:
    """A figure's drawing on white, below its name."""
    spec = figure.spec
    width = {"width": WIDTH} if spec.get("width") == "container" else {}
    title = {"text": figure.name, "anchor": "start"}
    config = style.PAPER_CONFIG
    painted: dict[str, Any] = style.paint(
        {"title": title, **spec, **width, "config": config}, style.LIGHT
    )
    return painted


def _name_figures(drawn: Iterable[Figure]) -> Iterator[tuple[str, Figure]]:
    names = Counter[str]()
    for figure in drawn:
        # Of strings that differ in brackets alone the names are the same.
        names[figure.file_name] += 1
        again = names[figure.file_name]
        yield figure.file_name if again == 1 else f"{figure.file_name}_{again}", figure


def write_all(
    store: Store,
    run: int,
    strings: Sequence[str],
    out: Path,
    epoch: int | None,
    *,
    force: bool = False,
) -> None:
    """Writes every figure of a run's model for some strings, and prints the paths.

    Args:
        store: the database.
        run: the run's id.
        strings: to draw.
        out: the folder.
        epoch: whose model; 0 is before training, None the tested epoch.
        force: replace files, in a folder that holds no others.

    Raises:
        SeqclsError: no such run or epoch, a string that is not of the alphabet, or a file that
            may not be written.
    """
    written = write_figures(draw_figures(store, str(run), strings, epoch), out, force=force)
    say(f"{out}: {len(written)} files, {len(written) // 2} figures as PNG and SVG.")


def charts(store: Store, run: int | str, strings: Sequence[str], epoch: int | None) -> list[Any]:
    """Charts for `sweeps.api.figures`, which Altair can concatenate."""
    return [_as_chart(figure) for figure in draw_figures(store, str(run), strings, epoch)]


_OF_A_PAGE = ("$schema", "config", "autosize", "padding", "datasets")
"""Keys that a concatenated chart may not have."""


def _as_chart(figure: Figure) -> Any:
    spec = _on_paper(figure)
    datasets = spec.get("datasets", {})

    def with_rows(part: Any) -> Any:
        if isinstance(part, list):
            return [with_rows(x) for x in part]
        if not isinstance(part, dict):
            return part
        # A concatenated chart has no data sets of its own: rows replace their names.
        if (name := part.get("name")) in datasets and len(part) == 1:
            return {"values": datasets[name]}
        return {key: with_rows(value) for key, value in part.items()}

    own = {name: with_rows(value) for name, value in spec.items() if name not in _OF_A_PAGE}
    kinds = {"layer": alt.LayerChart, "facet": alt.FacetChart}
    kind: Any = next((made for name, made in kinds.items() if name in own), alt.Chart)
    return kind.from_dict(own, validate=False)


def draw_figures(
    store: Store, reference: str, strings: Sequence[str], epoch: int | None
) -> list[Figure]:
    """Every figure of a run's model for some strings; arguments and errors as of `write_all`."""
    run = reading.find_run(store, reference)
    if are_figures_by_counts(resolve(reading.run_config(store, run))):
        return list(figures(through_epochs(store, run, strings, epoch)))
    model = untrained_model(store, run) if epoch == 0 else trained_model(store, run, epoch)
    return list(figures_of_strings(model, strings))
