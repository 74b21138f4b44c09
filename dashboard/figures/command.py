"""What `seqcls model figures` does: the figures of any model, drawn and written into files."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from dashboard.charts.themes import LIGHT, apply_theme
from dashboard.figures.figure import Figure
from dashboard.figures.gallery import figures
from dashboard.figures.history import History
from dashboard.figures.string_states import figures_of_strings
from seqcls.errors import UnknownRunError
from seqcls.interpretability.network import obstacle
from seqcls.problem import resolve
from seqcls.text import with_nulls
from sweeps.api import Store
from sweeps.api.models import trained_model
from sweeps.api import reading
from sweeps.api.reading import StoredModel, stored_model
from sweeps.files import refuse_taken, whole_files
from sweeps.terminal import say

SCALE = 2.0
"""Pixels of the PNG for one of the drawing."""


def write_figures(figures: Iterable[Figure], folder: Path, *, force: bool = False) -> list[Path]:
    """Each figure as a PNG and an SVG, on white; `folder` and `force` as for `whole_files`."""
    named = dict(_name_figures(figures))
    paths = [folder / f"{name}.{kind}" for name in named for kind in ("png", "svg")]
    # Drawing takes longer than anybody wants to wait for a refusal.
    refuse_taken(paths, force=force)
    with whole_files(folder, force=force) as new:
        for name, figure in named.items():
            spec = apply_theme(figure.chart.to_dict(), LIGHT) | {"background": LIGHT.background}
            chart = json.dumps(with_nulls(spec))
            (new / f"{name}.png").write_bytes(vl_convert.vegalite_to_png(chart, scale=SCALE))
            (new / f"{name}.svg").write_text(vl_convert.vegalite_to_svg(chart), encoding="utf-8")
    return paths


def _name_figures(figures: Iterable[Figure]) -> Iterator[tuple[str, Figure]]:
    names = Counter[str]()
    for figure in figures:
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
    """Writes every figure of a run's model for some strings, and says where.

    Args:
        store: the database.
        run: the run's id.
        strings: to draw.
        out: the folder.
        epoch: whose model; 0 is before training, None the kept epoch.
        force: replace files, in a folder that holds no others.

    Raises:
        SeqclsError: no such run or epoch, a string that is not of the alphabet, or a file that
            may not be written.
    """
    written = write_figures(draw_figures(store, str(run), strings, epoch), out, force=force)
    say(f"{out}: {len(written)} files, {len(written) // 2} figures as PNG and SVG.")


def charts(store: Store, run: int | str, strings: Sequence[str], epoch: int | None) -> list[Any]:
    """What `sweeps.api.figures` hands out."""
    drawings = [
        figure.chart.copy(deep=False) for figure in draw_figures(store, str(run), strings, epoch)
    ]
    for chart in drawings:
        # Pages alone read it, and charts with it could not be concatenated.
        chart.usermeta = alt.Undefined
    return drawings


def draw_figures(
    store: Store, reference: str, strings: Sequence[str], epoch: int | None
) -> list[Figure]:
    """Every figure of a run's model for some strings; arguments and errors as of `write_all`."""
    run_id = reading.find_run(store, reference)
    if obstacle(resolve(reading.run_config(store, run_id)), "labels") is not None:
        return list(figures_of_strings(trained_model(store, run_id, epoch), strings))
    return _by_letter_counts(stored_model(store, run_id), strings, epoch)


def _by_letter_counts(
    stored: StoredModel, strings: Sequence[str], epoch: int | None
) -> list[Figure]:
    history = History.of(stored, with_initial=True)
    shown = stored.kept_epoch if epoch is None else epoch
    if shown not in history.networks:
        known = ", ".join(map(str, history.networks))
        raise UnknownRunError(
            f"run {stored.run_id} has no weights of epoch {shown}; there are those of {known}"
        )
    traces = history.through(tuple(dict.fromkeys(strings)))
    heads = range(stored.config.num_attention_heads)
    return list(figures(traces, shown, heads))
