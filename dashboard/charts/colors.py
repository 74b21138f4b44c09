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
