"""Charts show the rows of their frames: which marks, in which colors, and what is pointed at."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import pandas as pd
import pytest

from dashboard.charts.colors import FALSE_NEGATIVE, FALSE_POSITIVE, GREY, HATCH
from dashboard.views.accuracy_by_length import CLICKED as CLICKED_LINE
from dashboard.views.accuracy_by_length import (
    accuracy_by_length,
)
from dashboard.views.configurations import count_outcomes, outcome_bars
from dashboard.views.error_places import feature_plane
from dashboard.views.heat_map import heat_map
from dashboard.views.output_errors import errors_by_length
from dashboard.views.seeds import CLICKED_CELL, CLICKED_POINT, every_seed, seed_grid

COLORS = {"b": "#0072B2", "a": "#009E73"}
MODELS = pd.DataFrame(
    {
        "configuration": ["b", "b", "a", "a"], "run_id": [1, 2, 3, 4], "model_seed": [0, 1, 0, 1],
        "accuracy": [1.0, 0.9, 0.8, 0.7], "errors": [0, 5, 4, 4],
        "false_positives": [0, 0, 3, 0], "false_negatives": [0, 5, 1, 4],
        "solved_length": [200, 50, 40, 30], "jitter": [0.0, 0.5, -0.5, 0.1],
        "outcome": ["generalizes", "fails beyond", "not learned", "not learned"],
    }
)  # fmt: skip
SEEDS = MODELS[["configuration", "model_seed", "run_id"]].assign(
    middle=5.5, lengths="1 to 10", strings=10, value=[1.0, 0.9, 0.8, 0.7]
)
MEDIANS = pd.DataFrame(
    {
        "configuration": ["b", "a"], "middle": 5.5, "lengths": "1 to 10",
        "median": [0.95, 0.75], "low": [0.9, None], "high": [1.0, None], "n": [2, 1],
    }
)  # fmt: skip
LIMITS = pd.DataFrame({"length": [10, 50], "label": ["end of training", "end of validation"]})
CELLS = pd.DataFrame(
    {
        "hidden_size": ["2", "2", "16"], "heads": ["1", "2", "1"], "sampler": ["x", "x", "y"],
        "median": [0.9, 0.8, 1.0], "best": [1.0, 0.9, 1.0], "worst": [0.5, 0.6, 1.0],
        "failing_share": [0.5, 1.0, 0.0], "seeds": [4, 4, 8], "failing": [2, 4, 0],
        "configurations": 1, "predicted": "can",
    }
)  # fmt: skip

Spec = dict[str, Any]


def marks(spec: Spec, kind: str) -> Iterator[Spec]:
    """Every mark of a kind, wherever it is in a chart."""
    mark = spec.get("mark")
    if mark is not None and kind == (mark if isinstance(mark, str) else mark["type"]):
        yield spec
    for name in ("layer", "vconcat", "hconcat", "spec"):
        inner = spec.get(name, [])
        for part in inner if isinstance(inner, list) else [inner]:
            yield from marks(part, kind)


def shown(spec: Spec, layer: Spec) -> list[Spec]:
    """The rows that a mark shows."""
    data: Any = layer.get("data", spec.get("data"))
    found: list[Spec] = spec["datasets"][data["name"]]
    return found


def of_column(spec: Spec, kind: str, column: str) -> list[Spec]:
    """Marks of a kind whose rows have such a column."""
    return [x for x in marks(spec, kind) if column in {*shown(spec, x)[0]}]


def colors_of(layer: Spec) -> dict[str, str]:
    scale = layer["encoding"]["color"]["scale"]
    return dict(zip(scale["domain"], scale["range"], strict=True))


def titles(layer: Spec) -> list[str]:
    return [tip["title"] for tip in layer["encoding"].get("tooltip", [])]


def lengths(
    seeds: pd.DataFrame = SEEDS, medians: pd.DataFrame = MEDIANS, limits: pd.DataFrame = LIMITS
) -> Spec:
    spec: Spec = accuracy_by_length(seeds, medians, limits, "Accuracy").to_dict()
    return spec


@cache
def by_length() -> Spec:
    """Accuracies by length, as they are drawn most of the time."""
    return lengths()


def test_every_seed_is_a_line_and_every_configuration_a_median_with_its_band() -> None:
    spec = by_length()
    lines = of_column(spec, "line", "run_id")
    (median,) = of_column(spec, "line", "median")
    thin, *_, wide = sorted(lines, key=lambda x: x["mark"]["strokeWidth"])
    assert [row["run_id"] for row in shown(spec, thin)] == [1, 2, 3, 4]
    assert thin["encoding"]["detail"]["field"] == "run_id"
    assert [row["median"] for row in shown(spec, median)] == [0.95, 0.75]
    assert thin["mark"]["strokeWidth"] < median["mark"]["strokeWidth"]
    # What is hit of a line is wider than it, and says whose it is.
    assert wide["mark"]["strokeWidth"] > 3 * thin["mark"]["strokeWidth"]
    assert titles(wide) == ["Configuration", "Model seed"]
    # The order is that of the table, and all layers color a configuration alike.
    (band,) = marks(spec, "area")
    for layer in (band, thin, median):
        assert layer["encoding"]["color"]["scale"]["domain"] == ["b", "a"]
    assert len(shown(spec, band)) == 1, "a median of one seed has no band"
    (limits,) = of_column(spec, "rule", "length")
    assert [row["length"] for row in shown(spec, limits)] == [10, 50]
    named = [x["encoding"]["text"]["field"] for x in marks(spec, "text")]
    assert {"label", "configuration"} <= {*named}, "few lines are named at their ends"


def test_a_model_has_the_color_of_its_outcome_and_the_shape_of_its_errors() -> None:
    (points,) = marks(every_seed(MODELS, ["b", "a"]).to_dict(), "point")
    assert colors_of(points)["not learned"] == GREY
    listed = points["encoding"]["color"]["legend"]["values"]
    assert listed == ["generalizes", "fails beyond", "not learned"]
    # A click tells which model was meant.
    for spec, selection in (
        (by_length(), CLICKED_LINE),
        (every_seed(MODELS, ["b", "a"]).to_dict(), CLICKED_POINT),
        (seed_grid(MODELS, ["b", "a"]).to_dict(), CLICKED_CELL),
    ):
        (clicked,) = [param for param in spec["params"] if param["name"] == selection]
        assert clicked["select"] == {"type": "point", "fields": ["run_id"]}
    shapes = points["encoding"]["shape"]["scale"]["domain"]
    assert [word.rpartition(" ")[2] for word in shapes] == ["error", "positives", "negatives"]
    assert points["encoding"]["y"]["sort"] == ["b", "a"]
    neither = MODELS.assign(false_positives=None, false_negatives=None)
    (points,) = marks(every_seed(neither, ["b", "a"]).to_dict(), "point")
    assert points["encoding"]["shape"]["scale"]["domain"] == ["no error", "some errors"]
    # In the grid, whether a model fails at all is seen at once, also where it nearly does not.
    grid = seed_grid(MODELS, ["b", "a"]).to_dict()
    assert [row["run_id"] for row in shown(grid, grid)] == [1, 2, 3, 4]
    color = grid["encoding"]["color"]
    assert color["scale"]["domain"] == [0.7, 1]
    assert color["condition"]["value"] == GREY
    assert "not learned" in color["condition"]["test"]


def test_what_has_not_learned_is_gray_among_the_lines_and_trained_lengths_are_shaded() -> None:
    learned = MODELS["outcome"].ne("not learned").astype(float).to_numpy()
    limits = LIMITS.assign(first=[1.0, float("nan")])
    spec = lengths(seeds=SEEDS.assign(learned=learned), limits=limits)
    (area,) = marks(spec, "rect")
    assert [(row["first"], row["length"]) for row in shown(spec, area)] == [(1, 10)]
    colors = [x["encoding"].get("color", {}) for x in marks(spec, "line")]
    assert GREY in [color.get("condition", {}).get("value") for color in colors]


def test_outcomes_are_stacked_to_a_whole_and_each_has_its_color_and_not_learned_its_hatch() -> None:
    table = pd.DataFrame(
        {"seeds": [5, 4, 3], "judged": [5, 4, 0], "learned": [4, 0, 0],
         "judged_beyond": [3, 0, 0], "generalize": [2, 0, 0], "proved": [0, 0, 0]}
    )  # fmt: skip
    counted = [[0, 2, 1, 1, 1], [0, 0, 0, 4, 0], [0, 0, 0, 0, 3]]
    assert count_outcomes(table).to_numpy().tolist() == counted
    proved = count_outcomes(table.assign(proved=[1, 0, 0])).iloc[0]
    assert proved.tolist() == [1, 1, 1, 1, 1]
    spec = outcome_bars(table, ["c", "b", "a"]).to_dict()
    frame = pd.DataFrame(shown(spec, spec))
    assert frame.groupby("configuration_number")["share"].sum().tolist() == [1, 1, 1]
    ends = [0, 0.4, 0.4, 0.6, 0.6, 0.8, 0.8, 1]
    assert frame[["start", "end"]].head(4).to_numpy().ravel().tolist() == pytest.approx(ends)
    color, dash = (spec["encoding"][x]["scale"] for x in ("color", "strokeDash"))
    assert color["domain"] == dash["domain"]
    assert dash["range"][color["range"].index(GREY)] == list(HATCH)
    assert sum(dashes[1] > 0 for dashes in dash["range"]) == 1, "one alone is hatched"
    assert len({*color["range"]}) == 5


def test_maps_have_one_scale_and_a_line_for_each_setting_that_differs() -> None:
    def cells(value: str, *more: Any, frame: pd.DataFrame = CELLS, **named: Any) -> Spec:
        spec: Spec = heat_map(frame, "hidden_size", "heads", value, *more, **named).to_dict()
        return spec

    def scale(value: str) -> Spec:
        found: Spec = next(marks(cells(value), "rect"))["encoding"]["color"]["scale"]
        return found

    assert scale("median") == scale("worst") == scale("best")
    assert (scale("median")["domain"], scale("failing_share")["domain"]) == ([0.5, 1], [0, 1])
    assert (scale("median")["reverse"], scale("failing_share")["reverse"]) == (False, True)
    others = CELLS.assign(dropout_rate=["0", "0, 0.1", "0"])
    rectangle = next(marks(cells("median", frame=others, others=["dropout_rate"]), "rect"))
    # Values stand in the order of the frame: as text, 16 would come before 2.
    assert rectangle["encoding"]["x"]["sort"] == ["2", "16"]
    said = titles(rectangle)
    assert said[:3] == ["width (hidden_size)", "heads", "dropout rate"]
    assert {"95% interval of the median", "95% interval of the share", "Configurations"} <= {*said}
    beside = cells("median", "sampler")
    assert (beside["facet"]["field"], beside["facet"]["sort"]) == ("sampler", ["x", "y"])


def test_errors_have_the_colors_of_their_kinds_and_lie_where_their_letters_say() -> None:
    errors = pd.DataFrame(
        {"first_length": 1, "last_length": 5, "lengths": "1 to 5", "strings": [2, 3],
         "kind": ["false positive", "false negative"], "tested": [10, 12], "rate": [0.2, 0.25]}
    )  # fmt: skip
    spec = errors_by_length(errors).to_dict()
    assert spec["encoding"]["y"]["stack"] is True
    kinds = {"false positive": FALSE_POSITIVE, "false negative": FALSE_NEGATIVE}
    assert colors_of(spec) == kinds
    places = pd.DataFrame(
        {"string": ["b", "b{2}"], "kind": "false positive", "length": [1, 2], "logit": 1.0,
         "occurrences": 1, "first": [0, 0], "second": [1, 2]}
    )  # fmt: skip
    spec = feature_plane(places, "a's", "nesting depth").to_dict()
    axes = [(spec["encoding"][x]["title"], spec["encoding"][x]["scale"]["domain"]) for x in "xy"]
    assert axes == [("a's", [0, 1]), ("Nesting depth", [0, 2])]
    assert "String" in titles(spec)
    assert [*colors_of(spec)] == [*kinds]
    spec = feature_plane(places.assign(kind="no answer"), "a's", "nesting depth").to_dict()
    assert [*colors_of(spec)] == [*kinds, "no answer"]
    assert len({*colors_of(spec).values()}) == 3
