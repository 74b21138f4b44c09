"""The accuracy of both by string length."""

import pandas as pd

from dashboard import data, links
from dashboard.charts.comparison import accuracy_by_length
from dashboard.charts.style.colors import OKABE_ITO
from dashboard.compare import drawn_models, lengths
from dashboard.compare_two.choosing import Pair
from dashboard.elements import placement
from dashboard.words import names
from sweeps.store.reading.selection import View

MEASURE = "accuracy"


def show(pair: Pair) -> None:
    """A line for each model, and for each of two configurations the median of its models."""
    width = lengths.first_width(pair.config_ids)
    if pair.run_ids is None:
        seeds, medians = _of_configurations(pair, width)
        color_of = names.colors(list(dict.fromkeys(pair.config_ids)))
        colors = dict(zip(pair.names, (color_of[x] for x in pair.config_ids), strict=True))
    else:
        seeds, medians = _of_models(pair.run_ids, pair.names, width)
        colors = dict(zip(pair.names, OKABE_ITO, strict=False))
    measure = lengths.offered(pair.config_ids)
    title = next(name for name, known in measure.items() if known.name == MEASURE)
    drawn = (seeds, medians, lengths.limits(pair.config_ids), title, colors)
    chart = placement.built(accuracy_by_length.zoomed_by_length, *drawn)
    event = placement.with_legend(
        chart, colors, "by_length_of_two", click=accuracy_by_length.CLICKED
    )
    links.open_clicked(event, accuracy_by_length.CLICKED)


def _of_configurations(pair: Pair, width: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    ids = tuple(dict.fromkeys(pair.config_ids))
    named = names.configuration_names(list(ids))
    renamed = {named[x]: name for x, name in zip(pair.config_ids, pair.names, strict=True)}
    medians = lengths.medians(View(), ids, width, MEASURE)
    most = max(1, lengths.MAX_POINTS // max(1, medians["middle"].nunique()) // len(ids))
    seeds = drawn_models.points(View(), ids, most, width, MEASURE)
    return tuple(  # type: ignore[return-value]
        x.assign(configuration=x["configuration"].astype(str).map(renamed))
        for x in (seeds, medians)
    )


def _of_models(
    run_ids: tuple[int, int], called: tuple[str, str], width: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The line of each model, which is its own median."""
    parts = []
    for run_id, name in zip(run_ids, called, strict=True):
        points = lengths.points(data.scores_by_length((run_id,), width), MEASURE)
        seed = int(data.model(run_id)["model_seed"].iloc[0])
        parts.append(points.assign(configuration=name, model_seed=seed))
    seeds = pd.concat(parts, ignore_index=True)
    medians = seeds.rename(columns={"value": "median"})[["configuration", "middle", "median"]]
    return seeds, medians.assign(low=float("nan"), high=float("nan"), n=1)
