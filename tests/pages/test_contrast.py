"""Text and marks can be told from their ground, on light and on dark pages."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from dashboard.charts.scales import OUTCOME_COLORS
from dashboard.charts.themes import DARK, LIGHT, Ground

from dashboard import marks, style
from dashboard.charts import colors
from sweeps.results import Outcome

TEXT, MARKS = 4.5, 3.0
grounds = pytest.mark.parametrize("ground", [LIGHT, DARK], ids=["light", "dark"])

MARK_COLORS = {
    *colors.OKABE_ITO, *colors.LETTERS, *OUTCOME_COLORS, colors.GREY, colors.DEEP_GREY,
    colors.FALSE_POSITIVE, colors.FALSE_NEGATIVE, colors.TOWARDS, colors.AWAY,
}  # fmt: skip
JUDGED = [x for x in marks.OUTCOMES if x != Outcome.NOT_KNOWN]
"""What is not known tells nothing, and is as light as a line."""

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


# What protanopes and deuteranopes see of linear red, green, and blue (Machado et al. 2009).
SEEN_BY = {
    "all colors": np.eye(3),
    "no red": np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    "no green": np.array([[0.367, 0.861, -0.228], [0.28, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
}
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
def test_no_two_outcomes_or_groups_have_colors_that_can_be_confused(
    ground: Ground, seen_by: str
) -> None:
    named = style.LIGHT if ground is LIGHT else style.DARK
    assert {*marks.OUTCOMES} == {x.value for x in Outcome}
    palette = [ground.colors.get(x, x) for x in colors.OKABE_ITO]
    least = 25 if seen_by == "all colors" else 12
    # What is right at every length is of the same green as what generalizes, in another depth.
    for shades, apart in ((palette, least), ([named[x] for x in JUDGED], 12)):
        for pair in combinations(shades, 2):
            one, other = (as_lab(x, seen_by) for x in pair)
            assert np.linalg.norm(one - other) > apart, pair


@grounds
def test_every_mark_and_the_ink_of_charts_are_seen(ground: Ground) -> None:
    named = style.LIGHT if ground is LIGHT else style.DARK
    for name in (*JUDGED, "right", "wrong", "accent"):
        assert contrast(named[name], named["ground"]) >= MARKS, name
    for name in ("ink", "muted"):
        assert contrast(named[name], named["ground"]) >= TEXT, name
    for color in MARK_COLORS:
        assert contrast(ground.colors.get(color, color), ground.background) >= MARKS, color
    ink = ground.colors.get(colors.INK, colors.INK)
    assert contrast(ink, ground.background) >= TEXT
    # So are the worst and the best of a scheme, on every color of which black or white is read.
    for share in ground.amounts:
        place = min(int(share * 10), 9)
        color = faded(VIRIDIS[place + 1], VIRIDIS[place], share * 10 - place)
        assert contrast(color, ground.background) >= MARKS, share
    for color in VIRIDIS:
        ink = "#000000" if luminance(color) > 0.179 else "#ffffff"
        assert contrast(ink, color) >= TEXT
