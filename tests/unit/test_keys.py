"""What colors and shapes mean is told once above several charts."""

import altair as alt
import pandas as pd
import pytest

from dashboard.charts.legend import deduplicate_legends
from dashboard.charts.scales import outcome_colors, outcome_shapes, token_colors
from dashboard.text import models_fail

FRAME = pd.DataFrame({"x": [0.0], "token": ["a"], "outcome": ["true positive"]})


def test_charts_lose_legends_that_stand_above_them_all() -> None:
    base = alt.Chart(FRAME).mark_point().encode(x="x:Q")
    tokens = base.encode(token_colors(["CLS", "a"]))
    strings = alt.layer(base, base.encode(outcome_colors(), outcome_shapes()))
    made = [deduplicate_legends(chart.to_dict()) for chart in (tokens, strings)]
    keys = [key for _, keys_of_chart in made for key in keys_of_chart]
    assert [key.title for key in keys] == ["Token", "String"]
    assert keys[0].names == ("CLS", "a")
    assert set(keys[1].shapes) == {"triangle-down", "triangle-up"}
    for spec, _ in made:
        assert "'legend': None" in str(spec)
        assert "'orient': 'top'" not in str(spec)


def test_a_scale_of_amounts_keeps_its_legend() -> None:
    amounts = alt.Color("x:Q", scale=alt.Scale(scheme="viridis"), legend=alt.Legend(title="x"))
    spec = alt.Chart(FRAME).mark_rect().encode(color=amounts).to_dict()
    assert deduplicate_legends(spec) == (spec, [])


@pytest.mark.parametrize(
    ("failing", "of", "said"),
    [
        (0, 1, "the only model does not fail"),
        (1, 1, "the only model fails"),
        (0, 8, "none of 8 models fails"),
        (1, 8, "1 of 8 models fails"),
        (1200, 2000, "1,200 of 2,000 models fail"),
    ],
)
def test_how_many_models_fail_is_said_in_english(failing: int, of: int, said: str) -> None:
    assert models_fail(failing, of) == said
