"""The colors of every chart: one meaning, one color."""

OKABE_ITO = [
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#999933",
    "#882255",
]
"""A palette that color-blind people can tell apart (Okabe & Ito 2008; the last two, Tol 2021)."""

GREY = "#888888"

FALSE_POSITIVE = "#9467BD"
FALSE_NEGATIVE = "#D62728"

TOWARDS = "#44AA99"
AWAY = "#CC6677"
"""What moves a logit up, towards "in the language", and down (Tol 2021)."""

LETTERS = ["#0072B2", "#E69F00", "#009E73", "#56B4E9", "#999933", "#8C6D31", "#66A61E", "#DDCC77"]
"""The letters in order, from the same two palettes without what is near purple or red.

After the eighth they begin again: charts name each letter besides.
"""


def token_color(token: str) -> str:
    """`CLS` is grey, every letter has its own."""
    return GREY if token == "CLS" else LETTERS[(ord(token) - ord("a")) % len(LETTERS)]
