"""Charts are functions of their frames."""

import re
from typing import Any

import altair as alt
import pandas as pd
import pytest
import vl_convert
from PIL import ImageFont

from dashboard.charts.attention import attention_weights
from dashboard.charts.colors import FALSE_NEGATIVE, FALSE_POSITIVE, GREY, HALO, HATCH
from dashboard.charts.legend import legend
from dashboard.charts.readout import DIRECTIONS, steps_of_one
from dashboard.charts.scales import BLANK, LABEL_WIDTH, rows
from dashboard.charts.token_states import last_turn
from dashboard.views.ablation import pruning_curve
from dashboard.views.accuracy_by_length import CLICKED as CLICKED_LINE
from dashboard.views.accuracy_by_length import (
    LIFT,
    PLOT_HEIGHT,
    SPAN,
    accuracy_by_length,
    lift_apart,
    zoomed_by_length,
)
from dashboard.views.configurations import count_outcomes, outcome_bars
from dashboard.views.error_places import feature_plane
from dashboard.views.heat_map import CANNOT, heat_map, outcome_map
from dashboard.views.losses import DIED, FINISHED, IN_TRAINING, loss_curves
from dashboard.views.output_errors import errors_by_length
from dashboard.views.scores import name_bins
from dashboard.views.seeds import CLICKED_CELL, CLICKED_POINT, every_seed, seed_grid

MODELS = pd.DataFrame(
    {
        "configuration": ["b", "b", "a", "a"],
        "run_id": [1, 2, 3, 4],
        "model_seed": [0, 1, 0, 1],
        "accuracy": [1.0, 0.9, 0.8, 0.7],
        "errors": [0, 5, 4, 4],
        "false_positives": [0, 0, 3, 0],
        "false_negatives": [0, 5, 1, 4],
        "solved_length": [200, 50, 40, 30],
        "outcome": ["generalizes", "fails beyond", "not learned", "not learned"],
        "jitter": [0.0, 0.5, -0.5, 0.1],
    }
)


def titles(encoding: dict[str, Any]) -> list[str]:
    return [tip["title"] for tip in encoding["tooltip"]]


SEEDS = MODELS[["configuration", "model_seed", "run_id"]].assign(
    middle=5.5, lengths="1 to 10", strings=10, value=[1.0, 0.9, 0.8, 0.7]
)
MEDIANS = pd.DataFrame(
    {
        "configuration": ["b", "a"],
        "middle": 5.5,
        "lengths": "1 to 10",
        "median": [0.95, 0.75],
        "low": [0.9, None],
        "high": [1.0, None],
        "n": [2, 1],
    }
)
LIMITS = pd.DataFrame({"length": [10, 50], "label": ["end of training", "end of validation"]})


def by_length() -> dict[str, Any]:
    return accuracy_by_length(SEEDS, MEDIANS, LIMITS, "Accuracy").to_dict()


def test_every_seed_is_a_line_and_every_configuration_a_median() -> None:
    spec = by_length()
    rules, labels, band, lines, median, *alone, halo, ends, wide, targets = spec["layer"]
    marks = [layer["mark"]["type"] for layer in spec["layer"]]
    assert marks[:5] == ["rule", "text", "area", "line", "line"]
    assert [layer["mark"]["type"] for layer in alone] == ["rule", "point", "point"]
    assert marks[-4:] == ["text", "text", "line", "point"]
    assert lines["encoding"]["detail"]["field"] == "run_id"
    assert lines["mark"]["strokeWidth"] < median["mark"]["strokeWidth"]
    # The order is that of the table, and all layers color a configuration alike.
    for layer in (band, lines, median):
        assert layer["encoding"]["color"]["scale"]["domain"] == ["b", "a"]
        assert layer["encoding"]["x"]["title"] == "String length"
    assert "Accuracy" in lines["encoding"]["y"]["title"]
    assert "Model seed" in titles(targets["encoding"])
    data = spec["datasets"]
    assert [row["run_id"] for row in data[lines["data"]["name"]]] == [1, 2, 3, 4]
    assert [row["median"] for row in data[median["data"]["name"]]] == [0.95, 0.75]
    assert [row["length"] for row in data[rules["data"]["name"]]] == [10, 50]
    assert labels["encoding"]["text"]["field"] == "label"
    assert ends["encoding"]["text"]["field"] == "configuration", "few lines are named at their ends"
    # The names are read where lines run through them.
    assert halo["mark"] == ends["mark"] | {"stroke": HALO, "strokeWidth": 4}
    # What is hit of a line is wider than it, between its points too, and says whose it is.
    assert wide["mark"]["strokeWidth"] > 3 * lines["mark"]["strokeWidth"]
    assert titles(wide["encoding"]) == ["Configuration", "Model seed"]


def seen(chart: Any) -> list[str]:
    """The marks of points and lines of a chart, as they are rendered, that can be seen."""
    svg = vl_convert.vegalite_to_svg(chart.to_dict())
    found = re.findall(r'<path aria-label="[^"]*" role="graphics-symbol"[^>]*>', svg)
    lines = [mark for mark in found if "stroke-width" in mark and "L" in mark.split(' d="')[1]]
    points = [mark for mark in found if 'fill="#' in mark and "A" in mark.split(' d="')[1]]
    return [x for x in (*lines, *points) if not re.search(r'opacity="0(\.00\d*)?"', x)]


READERS = pd.DataFrame(
    {
        "configuration": ["b", "b", "a", "a"],
        "reader": "the bigrams that occur, linear",
        "middle": [5.5, 15.5, 5.5, 15.5],
        "value": [0.5, 0.6, 0.5, 0.6],
        "rank": [0, 0, 1, 1],
        "of": 2,
    }
)


@pytest.mark.parametrize("draw", [accuracy_by_length, zoomed_by_length])
def test_the_best_shortcut_is_a_dashed_line_that_the_title_names(draw: Any) -> None:
    colors = {"b": "#112233", "a": "#445566"}
    one = READERS[READERS["configuration"] == "b"].assign(configuration=None)
    spec = draw(SEEDS, MEDIANS, LIMITS, "Accuracy", colors, one).to_dict()
    said = " ".join(spec["title"]["subtitle"])
    assert "Dashed: best shortcut: the bigrams that occur, linear." in said
    layers = spec.get("layer") or spec["vconcat"][0]["layer"]
    (dashed,) = [x for x in layers if x["mark"]["type"] == "line" and "strokeDash" in x["mark"]]
    assert "color" not in dashed["encoding"], "it belongs to no configuration alone"
    assert dashed["encoding"]["y"]["scale"]["domain"][0] <= 0.5, "it is in sight"
    plain = draw(SEEDS, MEDIANS, LIMITS, "Accuracy", colors).to_dict()
    assert "Dashed" not in " ".join(plain["title"]["subtitle"])


def test_dashes_of_configurations_with_one_test_take_turns() -> None:
    spec = accuracy_by_length(SEEDS, MEDIANS, LIMITS, "Accuracy", None, READERS).to_dict()
    marks = [x["mark"] for x in spec["layer"] if "strokeDashOffset" in x["mark"]]
    ((drawn, left), other), offsets = (
        [mark["strokeDash"] for mark in marks],
        [mark["strokeDashOffset"] for mark in marks],
    )
    assert [drawn, left] == other
    starts = sorted(-offset % (drawn + left) for offset in offsets)
    assert starts[1] - starts[0] >= drawn
    assert starts[1] + drawn <= starts[0] + drawn + left


@pytest.mark.parametrize("draw", [accuracy_by_length, zoomed_by_length])
def test_where_all_strings_are_in_one_point_the_point_is_seen(draw: Any) -> None:
    colors = {"b": "#112233", "a": "#445566"}
    drawn = seen(draw(SEEDS, MEDIANS, LIMITS, "Accuracy", colors))
    assert len(drawn) >= len(SEEDS) + len(MEDIANS)


def test_a_model_that_died_after_its_first_epoch_has_a_point() -> None:
    frame = pd.DataFrame(
        {"run_id": [1], "configuration": ["a"], "model_seed": [0], "epoch": [1], "loss": [0.5]}
    )
    assert seen(loss_curves(frame.assign(state=DIED), {"a": "#112233"}))


def test_configurations_at_100_percent_lie_beside_each_other() -> None:
    perfect = MEDIANS.assign(median=1.0, low=1.0, high=1.0)
    spec = accuracy_by_length(SEEDS.assign(value=1.0), perfect, LIMITS, "Accuracy").to_dict()
    median = spec["layer"][4]
    lifts = [row["lift"] for row in spec["datasets"][median["data"]["name"]]]
    assert lifts == [0, -LIFT], "each by more than a line is wide"
    assert median["mark"]["strokeWidth"] < LIFT
    low, high = median["encoding"]["y"]["scale"]["domain"]
    assert (high - 1) / (high - low) * PLOT_HEIGHT >= LIFT, "there is room for them"


def test_lengths_are_zoomed_by_a_strip_and_configurations_pointed_at_in_a_legend_beside() -> None:
    colors = {"b": "#0072B2", "a": "#009E73"}
    spec = zoomed_by_length(SEEDS, MEDIANS, LIMITS, "Accuracy", colors).to_dict()
    chart, strip = spec["vconcat"]
    (span,) = [param for param in spec["params"] if param["name"] == SPAN]
    assert span["select"] == {"type": "interval", "encodings": ["x"]}
    lines = chart["layer"][3]
    assert lines["encoding"]["x"]["scale"]["domain"] == {"param": SPAN}
    assert "domain" not in strip["encoding"]["x"]["scale"], "the strip has all lengths"
    beside = legend(colors).to_dict()
    held = [param["bind"] for s in (spec, beside) for param in s["params"] if "bind" in param]
    assert len(held) == 2
    assert held[0] == held[1], "what is pointed at in the one is pointed at in the other"
    assert lines["encoding"]["opacity"]["condition"]["param"] == "pointed_configuration"
    assert "pointed_configuration" in {param["name"] for param in beside["params"]}
    for drawn in (spec, beside):
        assert "<svg" in vl_convert.vegalite_to_svg(drawn)


def test_a_median_of_one_seed_has_no_band() -> None:
    spec = by_length()
    band = spec["layer"][2]
    (row,) = spec["datasets"][band["data"]["name"]]
    # The names are sent once, and the number of one with each row.
    (named,) = band["transform"]
    own, table = named["lookup"], named["from"]
    assert row[own] == 0
    looked_up = {each[table["key"]]: each for each in spec["datasets"][table["data"]["name"]]}
    assert [looked_up[number][table["fields"][0]] for number in (0, 1)] == ["b", "a"]


@pytest.mark.parametrize(
    ("spec", "selection"),
    [
        (by_length(), CLICKED_LINE),
        (every_seed(MODELS, ["b", "a"]).to_dict(), CLICKED_POINT),
        (seed_grid(MODELS, ["b", "a"]).to_dict(), CLICKED_CELL),
    ],
    ids=["lines", "points", "cells"],
)
def test_a_click_tells_which_model_was_meant(spec: dict[str, Any], selection: str) -> None:
    (clicked,) = [param for param in spec["params"] if param["name"] == selection]
    assert clicked["select"] == {"type": "point", "fields": ["run_id"]}


def test_a_point_has_the_color_of_its_outcome_and_the_shape_of_its_errors() -> None:
    spec = every_seed(MODELS, ["b", "a"]).to_dict()
    _, points = spec["layer"]
    scale = points["encoding"]["color"]["scale"]
    assert dict(zip(scale["domain"], scale["range"], strict=True))["not learned"] == GREY
    assert points["encoding"]["color"]["legend"]["values"] == [
        "generalizes", "fails beyond", "not learned",
    ]  # fmt: skip
    shapes = points["encoding"]["shape"]["scale"]["domain"]
    assert [word.rpartition(" ")[2] for word in shapes] == ["error", "positives", "negatives"]
    assert points["encoding"]["y"]["sort"] == ["b", "a"]
    neither = MODELS.assign(false_positives=None, false_negatives=None)
    shapes = every_seed(neither, ["b", "a"]).to_dict()["layer"][1]["encoding"]["shape"]["scale"]
    assert shapes == {"domain": ["no error", "some errors"], "range": ["circle", "triangle-up"]}


def test_the_grid_has_a_cell_for_each_finished_model() -> None:
    spec = seed_grid(MODELS, ["b", "a"]).to_dict()
    assert [row["run_id"] for row in spec["datasets"][spec["data"]["name"]]] == [1, 2, 3, 4]
    encoding = spec["encoding"]
    assert (encoding["x"]["field"], encoding["y"]["field"]) == ("model_seed", "configuration")
    # Whether a model fails at all has to be seen at once, also where it nearly does not.
    assert encoding["color"]["scale"]["domain"] == [0.7, 1]
    gray = encoding["color"]["condition"]
    assert gray["value"] == GREY
    assert "(datum.accuracy < 1)" in gray["test"]
    assert "(datum.outcome === 'not learned')" in gray["test"]


def test_what_has_not_learned_is_gray_among_the_lines_and_trained_lengths_are_shaded() -> None:
    limits = LIMITS.assign(first=[1.0, float("nan")])
    learned = MODELS["outcome"].ne("not learned").astype(float).to_numpy()
    spec = accuracy_by_length(SEEDS.assign(learned=learned), MEDIANS, limits, "Accuracy").to_dict()
    said = " ".join(spec["title"]["subtitle"])
    assert "Gray: not learned" in said
    assert "Shaded: trained lengths." in said
    plain = " ".join(by_length()["title"]["subtitle"])
    assert "Gray" not in plain
    assert "Shaded" not in plain
    (area,) = [x for x in spec["layer"] if x["mark"]["type"] == "rect"]
    (row,) = spec["datasets"][area["data"]["name"]]
    assert (row["first"], row["length"]) == (1, 10)
    lines = [x for x in spec["layer"] if x["mark"]["type"] == "line"]
    assert {x["encoding"]["color"]["condition"]["value"] for x in lines[:2]} == {GREY}


def test_outcomes_are_stacked_to_a_whole_and_each_has_its_color_and_not_learned_its_hatch() -> None:
    table = pd.DataFrame(
        {
            "seeds": [5, 4, 3], "judged": [5, 4, 0], "learned": [4, 0, 0],
            "judged_beyond": [3, 0, 0], "generalize": [2, 0, 0], "proved": [0, 0, 0],
        }
    )  # fmt: skip
    assert count_outcomes(table).to_numpy().tolist() == [
        [0, 2, 1, 1, 1], [0, 0, 0, 4, 0], [0, 0, 0, 0, 3]
    ]  # fmt: skip
    proved = count_outcomes(table.assign(proved=[1, 0, 0])).iloc[0]
    assert proved.tolist() == [1, 1, 1, 1, 1]
    spec = outcome_bars(table, ["c", "b", "a"]).to_dict()
    frame = pd.DataFrame(spec["datasets"][spec["data"]["name"]])
    assert frame.groupby("configuration_number")["share"].sum().tolist() == [1, 1, 1]
    assert frame[["start", "end"]].head(4).to_numpy().ravel().tolist() == pytest.approx(
        [0, 0.4, 0.4, 0.6, 0.6, 0.8, 0.8, 1]
    )
    color, dash = (spec["encoding"][x]["scale"] for x in ("color", "strokeDash"))
    assert color["domain"] == dash["domain"]
    assert dash["range"][color["range"].index(GREY)] == list(HATCH)
    assert len(set(color["range"])) == 5


CELLS = pd.DataFrame(
    {
        "hidden_size": ["2", "2", "16"],
        "heads": ["1", "2", "1"],
        "sampler": ["x", "x", "y"],
        "median": [0.9, 0.8, 1.0],
        "best": [1.0, 0.9, 1.0],
        "worst": [0.5, 0.6, 1.0],
        "failing_share": [0.5, 1.0, 0.0],
        "seeds": [4, 4, 8],
        "failing": [2, 4, 0],
        "configurations": [1, 1, 1],
        "predicted": ["can", "can", "can"],
    }
)


def test_a_map_says_in_every_cell_how_many_seeds_it_sums_up() -> None:
    spec = heat_map(CELLS, "hidden_size", "heads", "median").to_dict()
    rectangles, share, _ = spec["layer"]
    # Values stand in the order of the frame: as text, 16 would come before 2.
    assert rectangles["encoding"]["x"]["sort"] == ["2", "16"]
    assert "datum['median']" in share["encoding"]["text"]["value"]["expr"]
    assert written(heat_map(CELLS, "hidden_size", "heads", "median"), 800)[-3:] == [
        "n = 4",
        "n = 4",
        "n = 8",
    ]
    assert spec["title"]["text"] == "Median accuracy"


def test_maps_of_accuracies_have_one_scale_and_that_of_failures_runs_the_other_way() -> None:
    def scale(value: str) -> dict[str, Any]:
        spec = heat_map(CELLS, "hidden_size", "heads", value).to_dict()
        found: dict[str, Any] = spec["layer"][0]["encoding"]["color"]["scale"]
        return found

    assert scale("median") == scale("worst") == scale("best")
    assert scale("median")["domain"] == [0.5, 1.0]
    assert scale("failing_share")["domain"] == [0.0, 1.0]
    assert scale("failing_share")["reverse"]
    assert not scale("median")["reverse"]


def test_a_cell_of_a_map_has_a_line_for_each_setting_that_differs() -> None:
    others = CELLS.assign(dropout_rate=["0", "0, 0.1", "0"])
    spec = heat_map(others, "hidden_size", "heads", "median", others=["dropout_rate"]).to_dict()
    said = titles(spec["layer"][0]["encoding"])
    assert said[:3] == ["width (hidden_size)", "heads", "dropout rate"]
    assert "95% interval of the median" in said
    assert "95% interval of the share" in said
    assert "Configurations" in said


def test_a_map_can_stand_beside_another_for_each_value_of_a_third_field() -> None:
    spec = heat_map(CELLS, "hidden_size", "heads", "median", "sampler").to_dict()
    assert (spec["facet"]["field"], spec["facet"]["sort"]) == ("sampler", ["x", "y"])
    assert spec["columns"] > 1


def written(chart: Any, width: int) -> list[str]:
    """What is written in the cells of a map that is so wide, each checked to fit into its cell."""
    svg = vl_convert.vegalite_to_svg(chart.properties(width=width).to_dict())
    drawn = r'aria-roledescription="text mark"[^>]* font-size="(\d+)px"[^>]*(?<!/)>(.*?)</text>'
    columns = len(chart.to_dict()["layer"][0]["encoding"]["x"]["sort"])
    texts = []
    for size, inner in re.findall(drawn, svg):
        lines = re.findall(r"<tspan[^>]*>(.*?)</tspan>", inner) or [inner]
        font = ImageFont.load_default(int(size))
        for line in lines:
            assert font.getlength(line) < width / columns, (line, size)
        texts += [" / ".join(lines)]
    return texts


def many_columns(number: int) -> pd.DataFrame:
    """Cells of two rows of many columns, of several languages each."""
    names = [f"C{each}" for each in range(number)]
    return pd.DataFrame(
        {
            "class": names * 2, "width": ["2"] * number + ["3"] * number, "cell": range(2 * number),
            "median": 0.973, "best": 1.0, "worst": 0.613, "failing_share": 0.5,
            "judged": 15, "learned": 12, "judged_beyond": 12, "learned_of": "12/15",
            "generalize_of": "7/12", "learned_share": 0.8, "generalizing_share": 7 / 12,
            "learned_n": "5 languages", "generalizing_n": "5 languages", "seeds": 15,
            "predicted": "cannot",
        }
    )  # fmt: skip


def test_texts_of_a_map_are_shortened_or_left_out_where_cells_are_narrower() -> None:
    wide, narrow, narrowest = many_columns(3), many_columns(9), many_columns(30)
    known = [(outcome_map(x, "class", "width"), 330) for x in (wide, narrow, narrowest)]
    assert [sorted({*written(*x)}) for x in known] == [
        ["12/15 \N{MIDDLE DOT} 7/12"], ["12/15 / 7/12"], [],
    ]  # fmt: skip
    known = [
        (heat_map(x, "class", "width", "learned_share"), 330) for x in (wide, narrow, narrowest)
    ]
    assert [sorted({*written(*x)}) for x in known] == [
        ["80%", f"n = 5 languages {CANNOT}"], ["80%", f"n = 5 {CANNOT}"], [CANNOT],
    ]  # fmt: skip


def test_columns_of_a_map_whose_names_do_not_fit_beside_each_other_have_them_upright() -> None:
    def turned(cells: pd.DataFrame) -> tuple[int, int]:
        spec = outcome_map(cells, "class", "width").to_dict()
        return spec["layer"][0]["encoding"]["x"]["axis"]["labelAngle"], spec["height"]

    cells = many_columns(10)
    level, upright = (
        turned(cells),
        turned(cells.assign(**{"class": "transformer " + cells["class"]})),
    )
    assert (level[0], upright[0]) == (0, -90)
    assert upright[1] > level[1] + 50, "the cells stay as high"


def test_errors_by_length_are_stacked_in_the_colors_of_their_kinds() -> None:
    errors = pd.DataFrame(
        {
            "first_length": [1, 1],
            "last_length": [5, 5],
            "lengths": "1 to 5",
            "kind": ["false positive", "false negative"],
            "strings": [2, 3],
            "tested": [10, 12],
            "rate": [0.2, 0.25],
        }
    )
    encoding = errors_by_length(errors).to_dict()["encoding"]
    assert encoding["y"]["stack"] is True
    scale = encoding["color"]["scale"]
    assert dict(zip(scale["domain"], scale["range"], strict=True)) == {
        "false positive": FALSE_POSITIVE,
        "false negative": FALSE_NEGATIVE,
    }


def test_strings_lie_where_their_letters_say_even_if_none_has_the_letter() -> None:
    errors = pd.DataFrame(
        {
            "string": ["b", "b{2}"],
            "kind": "false positive",
            "length": [1, 2],
            "logit": 1.0,
            "occurrences": 1,
            "first": [0, 0],
            "second": [1, 2],
        }
    )
    encoding = feature_plane(errors, "a's", "nesting depth").to_dict()["encoding"]
    assert encoding["x"]["title"] == "a's"
    assert encoding["y"]["title"] == "Nesting depth"
    assert encoding["x"]["scale"]["domain"] == [0, 1]
    assert encoding["y"]["scale"]["domain"] == [0, 2]
    assert "String" in titles(encoding)
    assert encoding["shape"]["scale"]["domain"] == ["false positive", "false negative"]
    unanswered = errors.assign(kind="no answer")
    encoding = feature_plane(unanswered, "a's", "nesting depth").to_dict()["encoding"]
    for scale in (encoding["shape"]["scale"], encoding["color"]["scale"]):
        assert scale["domain"] == ["false positive", "false negative", "no answer"]
        assert len(set(scale["range"])) == 3


def test_a_name_is_one_line_in_a_row_of_its_own() -> None:
    names = ["parity, Transformer, sinusoidal positions, 2 blocks, width 64", BLANK, "another"]
    found: Any = rows(names).to_dict()
    assert found["sort"] == found["scale"]["domain"] == names, "a blank one parts two groups"
    said = found["axis"]["labelExpr"]
    assert "'center'" in said, "a long one is cut where names that differ are alike"
    assert "split" not in said
    assert str(LABEL_WIDTH) in found["axis"]["labelLimit"]["expr"]
    frame = pd.DataFrame({"configuration": [names[0], names[2]], "x": 1})
    base = alt.Chart(frame).mark_point().encode(x="x:Q", y=rows(names))
    drawn = vl_convert.vegalite_to_svg(base.properties(height=90).to_dict())
    ticks = re.findall(r">([^<]*)</text>", drawn)
    (long,) = (x for x in ticks if x.startswith("parity"))
    assert "…" in long
    assert long.endswith("width 64")


def test_medians_that_would_hide_each_other_lie_apart() -> None:
    medians = pd.DataFrame(
        {
            "configuration": ["a", "a", "b", "b"],
            "middle": [5.0, 15.0, 5.0, 15.0],
            "median": [0.8, 0.7, 0.8, 0.5],
            "lift": 0.0,
        }
    )
    assert lift_apart(medians)["lift"].tolist() == [-LIFT / 2, 0, LIFT / 2, 0]


CURVES = pd.DataFrame(
    {
        "run_id": [1, 1, 2, 2],
        "configuration": ["a", "a", "b", "b"],
        "model_seed": [0, 0, 0, 0],
        "state": FINISHED,
        "epoch": [1, 2, 1, 2],
        "loss": [0.7, 0.1, 0.7, 0.0],
    }
)


def test_a_loss_curve_is_a_line_a_model_in_the_color_of_its_configuration() -> None:
    spec = loss_curves(CURVES, {"a": "#0072B2", "b": "#009E73"}).to_dict()
    lines, _ = spec["layer"]
    assert lines["encoding"]["detail"]["field"] == "run_id"
    assert lines["encoding"]["color"]["scale"]["range"] == ["#0072B2", "#009E73"]
    (drawn,) = spec["datasets"].values()
    assert len(drawn) == 3, "a logarithm needs more than zero"


def test_models_in_training_are_dashed_and_end_in_a_point() -> None:
    frame = CURVES.assign(state=[FINISHED, FINISHED, IN_TRAINING, IN_TRAINING])
    spec = loss_curves(frame, {"a": "#0072B2", "b": "#009E73"}).to_dict()
    _, dashed, ends, _ = spec["layer"]
    scale = dashed["encoding"]["strokeDash"]["scale"]
    assert scale["domain"] == [FINISHED, IN_TRAINING], "no state is listed that is not there"
    assert scale["range"][0] == [1, 0]
    assert ends["mark"]["type"] == "point"
    (last,) = spec["datasets"][ends["data"]["name"]]
    assert (last["run_id"], last["epoch"]) == (2, 1), "the last that is drawn"
    # One color a configuration, whatever the state.
    assert dashed["encoding"]["color"] == ends["encoding"]["color"]


ATTENDED = pd.DataFrame(
    {
        "string": ["ab", "ab", "b"],
        "head": "head 0",
        "token": ["a", "b", "b"],
        "count": 1,
        "label": ["a x 1", "b x 1", "b x 1"],
        "score": [0.5, -0.5, 0.1],
        "weight": [0.7, 0.3, 1.0],
    }
)
STEPS = pd.DataFrame(
    {
        "string": "ab",
        "step": ["start", "logit"],
        "change": [0.5, -0.871],
        "start": [0, 0],
        "end": [0.5, -0.871],
        "direction": [DIRECTIONS[0], DIRECTIONS[2]],
    }
)
REMOVED = pd.DataFrame(
    {
        "removed": [1, 2, 3],
        "part": ["a", "b", "c"],
        "errors": [0, 5, 70],
        "accuracy": 0.9,
        "loss": 0.1,
        "logit_change": 0.2,
    }
)


@pytest.mark.parametrize(
    "chart",
    [
        attention_weights(ATTENDED, "ab", "Title"),
        pruning_curve(REMOVED),
        steps_of_one(STEPS, None).chart,
    ],
    ids=["panels", "rows", "plot"],
)
def test_a_chart_reserves_about_as_much_of_the_page_as_it_takes(chart: alt.LayerChart) -> None:
    spec = chart.to_dict()
    drawn = re.search(r'height="(\d+)"', vl_convert.vegalite_to_svg(spec))
    assert drawn is not None
    assert 0.6 * int(drawn[1]) <= spec["usermeta"]["height"] <= int(drawn[1])


@pytest.mark.parametrize(
    ("logits", "expected"),
    [([1.0, -1.0, 2.0, 3.0], ["sign last changes at 2"]), ([1.0, 2.0], []), ([-1.0, 0.0], [])],
)
def test_the_last_change_of_sign_along_a_string_is_found(
    logits: list[float], expected: list[str]
) -> None:
    prefixes = pd.DataFrame({"letter": range(len(logits)), "logit": logits})
    assert last_turn(prefixes)["said"].tolist() == expected


def test_the_first_of_several_lengths_is_said_to_hold_the_empty_string_too() -> None:
    bins = pd.DataFrame({"first_length": [0, 1, 0, 11], "last_length": [0, 1, 10, 20]})
    assert name_bins(bins) == ["0", "1", "0 to 10", "11 to 20"]
