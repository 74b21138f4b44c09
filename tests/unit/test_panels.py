"""Panels of a chart apart from each other."""

from typing import Any

import pandas as pd
import vl_convert

from dashboard.charts.legend import split_panels
from dashboard.charts.scales import title_params
from dashboard.charts.state_points import with_places
from dashboard.charts.themes import describe_chart
from dashboard.figures.whole_model import matrix

PAIRS = pd.DataFrame(
    {"head": ["head 0", "head 0", "head 1", "head 1"], "row": ["a", "b"] * 2, "column": "a",
     "value": [0.5, -1.0, 0.1, 0.2]}
)  # fmt: skip


def spec() -> dict[str, Any]:
    drawn: dict[str, Any] = matrix(PAIRS, "ab", ("row", "column"), "score", 1.0, "column").to_dict()
    return drawn


def test_each_panel_has_its_own_rows_and_its_name_and_the_first_the_legend() -> None:
    first, second = split_panels(spec())
    svgs = [vl_convert.vegalite_to_svg(panel) for panel in (first, second)]
    assert "head 0" in svgs[0]
    assert "1.00<" in svgs[0]
    assert "1.00<" not in svgs[1]
    assert "0.20" in svgs[1]
    assert ["role-legend" in svg for svg in svgs] == [True, False]
    # Their scale is one: what is pale in the one is as little as what is pale in the other.
    domains = [
        panel["layer"][0]["encoding"]["color"]["scale"]["domain"] for panel in split_panels(spec())
    ]
    assert domains == [[-1.0, 1.0], [-1.0, 1.0]]


def test_other_charts_are_left_whole() -> None:
    single = {"mark": "point", "encoding": {}}
    assert split_panels(single) == [single]


def test_what_a_chart_shows_is_said_in_one_sentence_however_its_title_is_broken() -> None:
    titles = [
        title_params("A narrow panel: head 0", letters=10),
        title_params("Losses", subtitle="One. " * 30),
    ]
    narrow, long = (describe_chart({"title": title.to_dict()}) for title in titles)
    assert narrow == "A narrow panel: head 0"
    assert long == f"Losses. {'One. ' * 30}".strip().rstrip(".")


def test_a_name_stands_beside_the_lines_through_zero_where_there_is_room() -> None:
    point = pd.DataFrame({"x": [2.0], "y": [0.0], "name": ["classifier"]})
    (placed,) = with_places(point, [(-5.0, 5.0)] * 2, 300).to_dict("records")
    assert abs(placed["name_y"]) * 30 > 7, "half a line of text, in pixels"
