"""What charts look like once they are drawn: what can be seen, and what fits."""

import re
from typing import Any

import altair as alt
import pandas as pd
import vl_convert
from PIL import ImageFont

from dashboard.charts.attention import attention_weights
from dashboard.charts.legend import split_panels
from dashboard.charts.readout import steps_of_one
from dashboard.charts.scales import rows
from dashboard.charts.token_states import prefix_logits
from dashboard.figures.whole_model import matrix
from dashboard.views.ablation import pruning_curve
from dashboard.views.accuracy_by_length import accuracy_by_length, zoomed_by_length
from dashboard.views.heat_map import CANNOT, heat_map, outcome_map
from dashboard.views.losses import DIED, loss_curves
from tests.pages.chart_data import (
    ATTENDED,
    COLORS,
    CURVES,
    LIMITS,
    MEDIANS,
    PAIRS,
    REMOVED,
    SEEDS,
    STEPS,
    many_columns,
)


def drawn(chart: Any) -> str:
    """A chart as SVG."""
    spec = chart if isinstance(chart, dict) else chart.to_dict()
    svg: str = vl_convert.vegalite_to_svg(spec)
    return svg


def seen(chart: Any) -> list[str]:
    """The marks of points and lines that can be seen."""
    found = re.findall(r'<path aria-label="[^"]*" role="graphics-symbol"[^>]*>', drawn(chart))
    lines = [mark for mark in found if "stroke-width" in mark and "L" in mark.split(' d="')[1]]
    points = [mark for mark in found if 'fill="#' in mark and "A" in mark.split(' d="')[1]]
    return [x for x in (*lines, *points) if not re.search(r'opacity="0(\.00\d*)?"', x)]


def test_where_all_strings_or_epochs_are_in_one_point_the_point_is_seen() -> None:
    for draw in (accuracy_by_length, zoomed_by_length):
        found = seen(draw(SEEDS, MEDIANS, LIMITS, "Accuracy", COLORS))
        assert len(found) >= len(SEEDS) + len(MEDIANS)
    assert seen(loss_curves(CURVES.head(1).assign(state=DIED), COLORS))


def written(chart: Any, width: int) -> list[str]:
    """What is written in the cells of a map that is so wide, each checked to fit into its cell."""
    text = r'aria-roledescription="text mark"[^>]* font-size="(\d+)px"[^>]*(?<!/)>(.*?)</text>'
    columns = len(chart.to_dict()["layer"][0]["encoding"]["x"]["sort"])
    texts = []
    for size, inner in re.findall(text, drawn(chart.properties(width=width))):
        lines = re.findall(r"<tspan[^>]*>(.*?)</tspan>", inner) or [inner]
        font = ImageFont.load_default(int(size))
        for line in lines:
            assert font.getlength(line) < width / columns, (line, size)
        texts += [" / ".join(lines)]
    return sorted({*texts})


def test_texts_of_a_map_are_shortened_or_left_out_where_cells_are_narrower() -> None:
    cells = [many_columns(number) for number in (3, 9, 30)]
    outcomes = [written(outcome_map(x, "class", "width"), 330) for x in cells]
    assert outcomes == [["12/15 \N{MIDDLE DOT} 7/12"], ["12/15 / 7/12"], []]
    shares = [written(heat_map(x, "class", "width", "learned_share"), 330) for x in cells]
    assert shares == [["80%", f"n = 5 languages {CANNOT}"], ["80%", f"n = 5 {CANNOT}"], [CANNOT]]


def test_a_long_name_is_cut_in_the_middle() -> None:
    names = ["parity, Transformer, sinusoidal positions, 2 blocks, width 64", "another"]
    frame = pd.DataFrame({"configuration": names, "x": 1})
    base = alt.Chart(frame).mark_point().encode(x="x:Q", y=rows(names)).properties(height=90)
    (long,) = (x for x in re.findall(r">([^<]*)</text>", drawn(base)) if x.startswith("parity"))
    assert "…" in long
    assert long.endswith("width 64")


def test_the_name_of_a_special_token_covers_no_letter() -> None:
    """CLS is longer than the place of a token where there are many."""
    frame = pd.DataFrame({"letter": range(46), "prefix": "x", "logit": 0.0, "label": 1})
    svg = drawn(prefix_logits(frame, ["CLS", *"a" * 44, "SEP"]).chart)
    names = re.findall(
        r'text-anchor="(\w+)" transform="translate\(([\d.]+),[\d.]+\)"[^>]*>(CLS|a|SEP)<', svg
    )
    assert [name for _, _, name in names] == ["CLS", *"a" * 44, "SEP"]
    (before, first, _), (_, letter, _), *_, (after, last, _) = names
    assert (before, after) == ("end", "start")
    step = float(names[2][1]) - float(letter)
    assert float(first) <= float(letter) - step / 2 < float(last)


def test_panels_have_their_own_rows_and_charts_reserve_the_place_that_they_take() -> None:
    whole = matrix(PAIRS, "ab", ("row", "column"), "score", 1.0, "column").to_dict()
    svgs = [drawn(panel) for panel in split_panels(whole)]
    assert ["1.00<" in svg for svg in svgs] == [True, False]
    assert ["role-legend" in svg for svg in svgs] == [True, False]
    charts = attention_weights(ATTENDED, "ab", "Title"), pruning_curve(REMOVED)
    for chart in (*charts, steps_of_one(STEPS, None).chart):
        spec = chart.to_dict()
        height = re.search(r'height="(\d+)"', drawn(spec))
        assert height is not None
        assert 0.6 * int(height[1]) <= spec["usermeta"]["height"] <= int(height[1])
