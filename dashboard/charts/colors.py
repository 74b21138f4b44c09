"""The colors of every chart: one meaning, one color, in a light and in a dark shade.

Charts are built with the shades for light ground. `charts.themes` turns them into those for dark
ground where a page is dark. Marks have a contrast of at least 3:1 to their ground, text 4.5:1.
"""

from collections.abc import Sequence

from seqcls.strings.alphabets import CLS_NAME, has_names

OKABE_ITO = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#332288", "#7F0000", "#333333"]
"""A palette of which no two colors look alike, to color-blind people neither.

The first four are of Okabe & Ito 2008, the fifth of Tol 2021. Of more hues, or of brighter ones on
white, two are one to somebody: what is more than these is chosen, not drawn.
"""

GREY = "#888888"
"""Marks that are no finding: rules, medians, models that have not learned."""

DEEP_GREY = "#4F4F4F"
"""Beside `GREY`, where two things that are no finding are told apart."""

FAILS, GENERALIZES = "#D55E00", "#009E73"
"""What became of a model. Neither is the accent of the theme, which is what can be done, or how far
something is; that a model fails is no success, and that all are trained no alarm."""

INK = "#5A5A5A"
"""Text, and what must be read rather than seen."""

FALSE_POSITIVE = "#9467BD"
FALSE_NEGATIVE = "#D62728"
WRONG = "#D95F02"
"""Errors of tasks that are no languages."""

HALO = "#FEFEFE"
"""The ground, around text that stands on lines."""

STOPPED_EARLY = "#0072B2"
WENT_ON = "#C17D00"
REPEATS = "#009E73"
WRONG_TOKEN = "#882255"
"""Errors of transductions, from the palette."""

TOWARDS = "#2F8C7C"
AWAY = "#CC6677"
"""What moves a logit up, towards a positive prediction, and down (Tol 2021, the first darker)."""

LETTERS = ["#0072B2", "#C17D00", "#009E73", "#3A93C8", "#8F8F2B", "#8C6D31", "#5A9A1B", "#A6912F"]
"""The letters in order, from the same two palettes without what is near purple or red.

After the eighth they begin again: charts name each letter besides.
"""

ON_DARK = {
    "#0072B2": "#2E8FCC",
    "#C17D00": "#E69F00",
    "#009E73": "#12AD82",
    "#3A93C8": "#56B4E9",
    "#D55E00": "#E2701A",
    "#8F8F2B": "#A9A943",
    "#882255": "#C25C92",
    "#CC79A7": "#F0A6CC",
    "#332288": "#B9A7FF",
    "#7F0000": "#C0392B",
    "#333333": "#F2F2F2",
    "#8C6D31": "#A98645",
    "#5A9A1B": "#7CBF3A",
    "#A6912F": "#DDCC77",
    "#440154": "#306A8E",  # where the scheme of amounts begins on either ground
    GREY: "#8E8E8E",
    DEEP_GREY: "#D0D0D0",
    INK: "#B9B9B9",
    HALO: "#171614",
    FALSE_POSITIVE: "#A583CB",
    FALSE_NEGATIVE: "#E5484A",
    TOWARDS: "#44AA99",
    AWAY: "#D9788A",
}
"""The shade on dark ground of each color that has another one there."""


def colors_of(tokens: Sequence[str]) -> list[str]:
    """`CLS` is grey, every letter has its own: names by their place among them.

    Args:
        tokens: all of an alphabet in its order, `CLS` among them or not.
    """
    letters = [token for token in tokens if token != CLS_NAME]
    if has_names(letters):
        places = {letter: place for place, letter in enumerate(letters)}
    else:
        places = {letter: ord(letter) - ord("a") for letter in letters}
    return [LETTERS[places[x] % len(LETTERS)] if x in places else GREY for x in tokens]
