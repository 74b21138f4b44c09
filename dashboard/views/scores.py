"""Scores by length, of each model and over seeds, as the charts want them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dashboard import data
from dashboard.views import shortcuts
from dashboard.words import measures, names
from seqcls.kinds import Measure
from seqcls.problem import Problem, obstacle_of, resolve
from sweeps.api.old_pages import reading
from sweeps.api.old_pages.reading import Selection

# Which strings a measure is the share of, and which of them it counts; by the measure's name.
_SHARES: dict[str, Callable[[pd.DataFrame], tuple["pd.Series[int]", "pd.Series[int]"]]] = {
    "accuracy": lambda scores: (scores["tested"], scores["tested"] - scores["wrong"]),
    "false_positive_rate": lambda scores: (scores["fp"] + scores["tn"], scores["fp"]),
    "false_negative_rate": lambda scores: (scores["fn"] + scores["tp"], scores["fn"]),
    "right_length_given": lambda scores: (scores["tested"], scores["right_length_given"]),
    "token_error_rate": lambda scores: (scores["target_tokens"], scores["edits"]),
}


_MEASURES: dict[str, reading.Measure] = {
    "accuracy": "accuracy",
    "false_positive_rate": "false positives",
    "false_negative_rate": "false negatives",
    "right_length_given": "accuracy with the length given",
    "token_error_rate": "token error rate",
}

WIDTH = 10
"""Lengths in one point, until others are chosen."""

FEW_LENGTHS = 40
"""That are drawn one by one, where strings of no other lengths are tested."""

MAX_POINTS = 1_000
"""Points of thin lines that are sent to a browser."""

MAX_READ = 5_000
"""Models whose errors are read for medians, where one configuration alone has no more."""


def offered_measures(config_ids: Sequence[int]) -> dict[str, Measure]:
    """What may be drawn of some configurations against length, by title: what all measure."""
    return {x.title: x for x in measures.measures_of(tuple(config_ids)) if x.name in _MEASURES}


def first_width(config_ids: Sequence[int]) -> int:
    """Lengths in one point until others are chosen: one by one where none longer is tested."""
    problems = _problems(config_ids)
    longest = max((problem.test.lengths[-1] for problem in problems), default=FEW_LENGTHS + 1)
    return 1 if longest <= FEW_LENGTHS else WIDTH


def _problems(config_ids: Sequence[int]) -> list[Problem]:
    """What these configurations ask for, but those of plug-ins that are not installed here."""
    configs = data.some_configs(tuple(config_ids)).values()
    return [resolve(config) for config in configs if obstacle_of(config) is None]


def drawable(seeds: "pd.Series[int]", most: int, models: int) -> int:
    """How many configurations are drawn: of `seeds` each, at most so many, of so many models.

    One is drawn however many models it has.
    """
    return max(1, int((seeds.head(most).cumsum() <= models).sum()))


def most_drawn(models: Mapping[int, int], per_line: int) -> int | None:
    """How many models of each configuration have a line; None where all have.

    Args:
        models: how many each configuration has.
        per_line: points of a line.
    """
    if sum(models.values()) * per_line <= MAX_POINTS:
        return None
    return max(1, MAX_POINTS // per_line // len(models))


@data.shared
def medians(view: Selection, config_ids: tuple[int, ...], width: int, measure: str) -> pd.DataFrame:
    """The median of each configuration and point, over all its seeds in scope.

    Args:
        view: which models.
        config_ids: the configurations.
        width: lengths that make one point.
        measure: the name of one that is `offered_measures`.

    Returns:
        configuration, middle (length), n, median, low, high; learned, 0 where fewer than half of
        the models that are judged on trained lengths have learned, missing where none is judged.
    """
    named = names.configuration_names(config_ids)
    rows = data.median_curves(view, config_ids, width, _MEASURES[measure])
    rows["middle"] = (rows["first_length"] + rows["last_length"]) / 2
    rows["configuration"] = pd.Categorical(rows["config_id"].map(named), list(named.values()))
    share = data.models(view).groupby("config_id")["learned"].mean()
    rows["learned"] = rows["config_id"].map((share >= 0.5).astype(float).where(share.notna()))
    rows = rows.sort_values(["configuration", "middle"], ignore_index=True)
    return rows[["configuration", "middle", "n", "median", "low", "high", "learned"]]


def points(scores: pd.DataFrame, measure: str) -> pd.DataFrame:
    """One row a run and point of a line; none where there is no string to take a share of.

    Args:
        scores: run_id, first_length, last_length, tn, fp, fn, tp, tested, wrong; and what is
            counted of outputs, where it is measured.
        measure: the name of one that is `offered_measures`.

    Returns:
        run_id, middle and lengths (as text) of the point, value, strings (that it is a share of;
        or tokens).
    """
    strings, counted = _SHARES[measure](scores)
    rows = pd.DataFrame(
        {
            "run_id": scores["run_id"],
            "middle": (scores["first_length"] + scores["last_length"]) / 2,
            "lengths": name_bins(scores),
            "value": counted / strings.where(strings > 0),
            "strings": strings,
        }
    )
    return rows.dropna(subset=["value"])


def name_bins(bins: pd.DataFrame) -> list[str]:
    """What the lengths of each row are called, from its first_length and last_length."""
    return [
        f"{first}" if first == last else f"{first} to {last}"
        for first, last in zip(bins["first_length"], bins["last_length"], strict=True)
    ]


@data.shared
def limits(config_ids: Sequence[int]) -> pd.DataFrame:
    """Where training and validation lengths ended, one line a length: length, label, first.

    Those of training begin at first, which is missing otherwise. What ended beyond all tested
    lengths has no label: there is nothing left of its end to see.
    """
    problems = _problems(config_ids)
    tested = max((problem.test.lengths[-1] for problem in problems), default=0)
    # Of models trained elsewhere nobody knows on what.
    trained = [problem for problem in problems if problem.knows_trained_lengths]
    firsts: dict[int, int] = {}
    for lengths in (problem.train.lengths for problem in trained):
        firsts[lengths[-1]] = min(lengths[0], firsts.get(lengths[-1], lengths[0]))
    ends = {
        "training": sorted(firsts),
        "validation": sorted({problem.validation.lengths[-1] for problem in trained}),
    }
    marks = [
        # Where they are several, which one it is: the labels stand one below the other.
        (length, f"end of {part}" + f": {length}" * (inside[-1] != inside[0]), part)
        for part, lengths in ends.items()
        if (inside := [x for x in lengths if x <= tested])
        for length in inside
    ]
    rows: list[tuple[int, str | None, int | None]] = [
        (length, label, firsts[length] if part == "training" else None)
        for length, label, part in marks
    ]
    rows += [(tested, None, first) for last, first in firsts.items() if last > tested]
    return pd.DataFrame(rows, columns=["length", "label", "first"])


MAX_ROWS, MAX_MODELS = 20, 1_000
"""Configurations in the charts that have a row for each, and models in these charts."""


def _all(view: Selection, config_ids: tuple[int, ...]) -> pd.DataFrame:
    models = data.models(view)
    return models[(models["picked"] > 0) & models["config_id"].isin(config_ids)]


@data.shared
def counts(view: Selection, config_ids: tuple[int, ...]) -> dict[int, int]:
    """How many models the view picks of each of these configurations that has any."""
    numbers = _all(view, config_ids)["config_id"].value_counts()
    return dict(zip(numbers.index.tolist(), numbers.tolist(), strict=True))


@data.shared
def models(view: Selection, config_ids: tuple[int, ...], most: int | None) -> pd.DataFrame:
    """These models, with the names of their configurations.

    Args:
        view: picks the models.
        config_ids: their configurations.
        most: of each configuration, evenly from its worst to its best; all where it is None.
    """
    drawn = _all(view, config_ids)
    if most is not None:
        drawn = pd.concat(_spread(seeds, most) for _, seeds in drawn.groupby("config_id"))
    named = names.configuration_names(config_ids)
    return drawn.assign(configuration=drawn["config_id"].map(named))


def by_seed(view: Selection, config_ids: tuple[int, ...]) -> pd.DataFrame:
    """Reads `models`, up to `MAX_MODELS`, for the charts of every seed: with `jitter` in [-1, 1].

    It follows from the seed, so that the same models always lie at the same place.
    """
    is_many = sum(counts(view, config_ids).values()) > MAX_MODELS
    drawn = models(view, config_ids, MAX_MODELS if is_many else None).drop(
        columns=["failing", "picked"]
    )
    return drawn.assign(jitter=(drawn["model_seed"] * 0.618034) % 1 * 2 - 1)


def _spread(models: pd.DataFrame, most: int) -> pd.DataFrame:
    places = np.linspace(0, len(models) - 1, min(len(models), most)).round().astype(int)
    return models.sort_values("accuracy").iloc[np.unique(places)]


@data.shared
def points_of_models(
    view: Selection, config_ids: tuple[int, ...], most: int | None, width: int, measure: str
) -> pd.DataFrame:
    """The points of a line for each of `models`: as `points`, with model_seed, name and learned."""
    drawn = models(view, config_ids, most)[["run_id", "model_seed", "configuration", "learned"]]
    scores = data.scores_by_length(tuple(drawn["run_id"]), width)
    lines = points(scores, measure).merge(drawn, on="run_id")
    # Gray lines are drawn first, below all others.
    return lines.sort_values("learned", kind="stable", ignore_index=True)


@dataclass(frozen=True, eq=False)
class Lines:
    """Lines of models, and medians of configurations, against length."""

    given: tuple[Any, ...]
    """What `accuracy_by_length` draws: points, medians, limits, the measure's title, colors, and
    the shortcut readers."""
    most: int | None
    """Models of each configuration that have a line; None where all have."""
    without_readers: str = ""
    """Why no shortcut reader is drawn, where one could be."""

    @property
    def colors(self) -> dict[str, str]:
        """The color of each configuration, by its name."""
        *_, colors, _ = self.given
        return dict(colors)


def lines(
    view: Selection, config_ids: tuple[int, ...], measure: Measure, width: int
) -> Lines | None:
    """The lines of a measure; None where no model has a point.

    Args:
        view: picks the models.
        config_ids: their configurations, no more than there are colors.
        measure: one of `offered_measures`.
        width: lengths that make one point.
    """
    middle = medians(view, config_ids, width, measure.name)
    if middle.empty:
        return None
    named = names.configuration_names(config_ids)
    # Those without a point, such as models of outputs where false positives are drawn, need none.
    measured = tuple(x for x in config_ids if (middle["configuration"] == named[x]).any())
    most = most_drawn(counts(view, measured), middle["middle"].nunique())
    color_of = names.colors(config_ids)
    colors = {named[config_id]: color_of[config_id] for config_id in config_ids}
    seeds = points_of_models(view, config_ids, most, width, measure.name)
    readers, why_none = None, ""
    if measure.name == "accuracy":
        readers, why_none = shortcuts.lines(config_ids, named, width)
    given = (seeds, middle, limits(config_ids), measure.title, colors, readers)
    return Lines(given, most, why_none)
