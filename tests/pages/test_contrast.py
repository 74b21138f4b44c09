"""Text and marks can be told from their ground, on light and on dark pages."""

import tomllib
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from dashboard.charts import colors
from dashboard.charts.readout import waterfall
from dashboard.charts.scales import OUTCOME_COLORS, model_outcome_dash
from dashboard.charts.themes import DARK, LIGHT, Ground, apply_theme
from dashboard.figures.whole_model import matrix
from dashboard.layout import ON_LIGHT_BUTTONS
from dashboard.views.heat_map import heat_map
from sweeps.results import Outcome
from tests.conftest import ROOT
from tests.pages.chart_data import CELLS, PAIRS, STEPS
from tests.pages.test_charts import by_length, marks

TEXT, MARKS = 4.5, 3.0
grounds = pytest.mark.parametrize("ground", [LIGHT, DARK], ids=["light", "dark"])

MARK_COLORS = {
    *colors.OKABE_ITO, *colors.LETTERS, *OUTCOME_COLORS, colors.GREY, colors.DEEP_GREY,
    colors.FALSE_POSITIVE, colors.FALSE_NEGATIVE, colors.TOWARDS, colors.AWAY,
    *colors.MODEL_OUTCOMES.values(),
}  # fmt: skip

# The scheme viridis, at every tenth of its length.
VIRIDIS = [
    "#440154", "#482475", "#414487", "#355f8d", "#2a788e", "#21918c", "#22a884", "#44bf70",
    "#7ad151", "#bddf26", "#fde725",
]  # fmt: skip


def luminance(color: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = (int(color[place : place + 2], 16) / 255 for place in (1, 3, 5))
    red, green, blue = (x / 12.92 if x <= 0.03928 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def faded(color: str, ground: str, share: float) -> str:
    """A color of which so much is left on its ground."""
    mixed = (
        round(share * int(color[at : at + 2], 16) + (1 - share) * int(ground[at : at + 2], 16))
        for at in (1, 3, 5)
    )
    return "#" + "".join(f"{part:02x}" for part in mixed)


@grounds
def test_every_mark_is_seen(ground: Ground) -> None:
    for color in MARK_COLORS:
        assert contrast(ground.colors.get(color, color), ground.background) >= MARKS, color


# What protanopes and deuteranopes see of linear red, green, and blue (Machado et al. 2009).
SEEN_BY = {
    "all colors": np.eye(3),
    "no red": np.array(
        [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]
    ),
    "no green": np.array(
        [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]
    ),
}  # fmt: skip
TO_XYZ = np.array([[0.434, 0.376, 0.190], [0.213, 0.715, 0.072], [0.018, 0.109, 0.873]])
"""Relative to white."""


def as_lab(color: str, seen_by: str) -> "np.ndarray[Any, Any]":
    """Lightness and two opponent colors, in which equal distances look about alike (CIELAB)."""
    parts = np.array([int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    x, y, z = np.cbrt(TO_XYZ @ np.clip(SEEN_BY[seen_by] @ linear, 0, 1))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@grounds
@pytest.mark.parametrize("seen_by", SEEN_BY)
def test_no_two_configurations_have_colors_that_can_be_confused(
    ground: Ground, seen_by: str
) -> None:
    labs = [as_lab(ground.colors.get(x, x), seen_by) for x in colors.OKABE_ITO]
    apart = {
        (one, other): float(np.linalg.norm(labs[one] - labs[other]))
        for one, other in combinations(range(len(labs)), 2)
    }
    closest = min(apart, key=lambda pair: apart[pair])
    least = 25 if seen_by == "all colors" else 12
    assert apart[closest] > least, [colors.OKABE_ITO[x] for x in closest]


@grounds
def test_every_outcome_has_a_color_of_its_own_and_one_alone_is_hatched(ground: Ground) -> None:
    shades = [ground.colors.get(x, x) for x in colors.MODEL_OUTCOMES.values()]
    assert list(colors.MODEL_OUTCOMES) == list(Outcome)
    assert len({*shades}) == len(Outcome)
    scale: Any = model_outcome_dash().to_dict()
    scale = scale["scale"]
    dashed = dict(zip(scale["domain"], scale["range"], strict=True))
    solid = {name for name, dashes in dashed.items() if dashes[1] == 0}
    assert {*dashed} - solid == {"not learned"}


@grounds
def test_the_ink_of_charts_is_read_and_the_worst_and_the_best_of_a_scheme_are_seen(
    ground: Ground,
) -> None:
    ink = ground.colors.get(colors.INK, colors.INK)
    assert contrast(ink, ground.background) >= TEXT
    for share in ground.amounts:
        place = min(int(share * 10), 9)
        color = faded(VIRIDIS[place + 1], VIRIDIS[place], share * 10 - place)
        assert contrast(color, ground.background) >= MARKS, share


def test_black_or_white_is_read_on_every_color_of_a_scheme() -> None:
    for color in VIRIDIS:
        ink = "#000000" if luminance(color) > 0.179 else "#ffffff"
        assert contrast(ink, color) >= TEXT


def test_captions_and_chosen_words_of_the_theme_are_read() -> None:
    config = tomllib.loads((ROOT / "dashboard" / ".streamlit" / "config.toml").read_text())
    light, dark = config["theme"]["light"], config["theme"]["dark"]
    for ground in (LIGHT.background, "#F8F8F7"):  # the page, the sidebar
        # A caption has 60% of the color of text.
        assert contrast(faded(light["textColor"], ground, 0.6), ground) >= TEXT
        assert contrast(light["primaryColor"], ground) >= TEXT
    for ground in (DARK.background, "#21201D"):
        assert contrast(dark["primaryColor"], ground) >= TEXT
    # What a button of this color does is written in that of the ground.
    assert DARK.background in ON_LIGHT_BUTTONS


@cache
def specs() -> tuple[dict[str, Any], ...]:
    return (
        by_length(),
        heat_map(CELLS, "hidden_size", "heads", "median").to_dict(),
        matrix(PAIRS, "ab", ("row", "column"), "score", 1.0, "column").to_dict(),
        waterfall(STEPS, (-1.0, 1.0), "Steps").to_dict(),
    )


@grounds
def test_words_on_charts_are_in_ink_or_chosen_for_the_cell_that_they_stand_on(
    ground: Ground,
) -> None:
    ink = ground.colors.get(colors.INK, colors.INK)
    for spec in specs():
        drawn = apply_theme(spec, ground)
        texts = list(marks(drawn, "text"))
        assert texts
        for found in texts:
            color = {**found["mark"], **found.get("encoding", {})}.get("color", ink)
            assert color == ink or "luminance(scale" in str(color["condition"])
        config = drawn["config"]
        assert {config["axis"]["labelColor"], config["legend"]["titleColor"]} == {ink}
        assert config["legend"]["symbolBaseFillColor"] == ink, "of opacity they would be black"
        assert bool(drawn["description"]) == ("title" in spec)


WIDE = 9
"""Pixels of a line as wide as a fingertip, or as the interval of a median that stands alone."""


def test_thin_lines_are_drawn_in_their_full_color() -> None:
    spec = by_length()
    drawn = [found["mark"] for kind in ("line", "rule") for found in marks(spec, kind)]
    # But for those that are only hit, and not seen.
    thin = [mark for mark in drawn if mark.get("strokeWidth", 1) < WIDE]
    assert len(thin) >= 3
    assert all(mark.get("opacity", 1) == 1 for mark in thin), "a paler one has less contrast"
