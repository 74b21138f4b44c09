"""Text and marks have enough contrast, on light and on dark pages."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from dashboard import marks, style
from sweeps.results import Outcome

TEXT, MARKS = 4.5, 3.0
grounds = pytest.mark.parametrize("named", [style.LIGHT, style.DARK], ids=["light", "dark"])

JUDGED = [x for x in marks.OUTCOMES if x != Outcome.NOT_KNOWN]
"""Unknown outcomes carry no information, and are as light as a line."""

NO_MARKS = {"ground", "empty", "line", "band", "not known", "accent soft"}
"""Colors behind marks, or of areas with an edge or a label."""


def luminance(color: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = (int(color[place : place + 2], 16) / 255 for place in (1, 3, 5))
    red, green, blue = (x / 12.92 if x <= 0.03928 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


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
def test_colors_of_outcomes_and_answers_can_be_distinguished(
    named: dict[str, str], seen_by: str
) -> None:
    assert {*marks.OUTCOMES} == {x.value for x in Outcome}
    # What is right at every length is of the same green as what generalizes, in another depth.
    written = ("right", *marks.OUTPUT_ERRORS[:4])
    for names in (JUDGED, marks.RIGHT, marks.ANSWERS, written, ("up", "down")):
        for pair in combinations(names, 2):
            one, other = (as_lab(named[x], seen_by) for x in pair)
            assert np.linalg.norm(one - other) > 12, pair


@grounds
def test_marks_and_text_of_charts_have_enough_contrast(named: dict[str, str]) -> None:
    for name in named.keys() - NO_MARKS:
        assert contrast(named[name], named["ground"]) >= MARKS, name
    for name in ("ink", "muted"):
        assert contrast(named[name], named["ground"]) >= TEXT, name
    # Names of tokens are drawn on cells whose color is their probability.
    assert contrast(named["ink"], named["empty"]) >= TEXT
