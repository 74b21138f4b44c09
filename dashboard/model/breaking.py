"""Where the answer changes as one or two counts grow."""

import streamlit as st

from dashboard.charts.errors.families import family_curve, family_map, probability_curve
from dashboard.figures.families import boundary_frame, cells_frame, curve_frame, flips_frame
from dashboard.model.choice import Chosen, examples
from dashboard.model.drawing import place, stretch
from dashboard.model.opened import remembered
from dashboard.text import verbatim
from seqcls.errors import InvalidStringError
from seqcls.interpretability.counts.family import Curve, Map, area, curve, parse_family
from seqcls.interpretability.counts.result_text import curve_text, map_text

curve_of = remembered(curve)
area_of = remembered(area)


def show(chosen: Chosen) -> None:
    """A family of strings, typed in, and what the model says of all of them."""
    text = st.text_input(
        "Family of strings",
        examples(chosen.model.config)[1],
        key="family",
        bind="query-params",
        help="One or two counts are left free, as n or m: ab{n}, a{n}b, b{2}c{n} (two b's, then "
        "c's), a{m}b{n}.",
    )
    try:
        family = parse_family(text.strip(), chosen.model.network.num_letters)
        if len(family.names) == 1:
            _curve(curve_of(chosen.model, family))
        else:
            _map(area_of(chosen.model, family))
    except InvalidStringError as error:
        st.error(verbatim(str(error)))


def _curve(found: Curve) -> None:
    st.markdown(verbatim(" ".join(curve_text(found))))
    frame, name = curve_frame(found), found.family.names[0]
    chart = family_curve(frame, flips_frame(found), found.limit, name, found.family.text)
    stretch(chart, "family_logit")
    stretch(probability_curve(frame, name), "family_probability")


def _map(found: Map) -> None:
    first, second = found.family.names
    said, *rows = map_text(found)
    st.markdown(verbatim(said))
    chart = family_map(cells_frame(found), boundary_frame(found), (first, second))
    place(chart, "family_map")
    st.caption(
        "Colored where the model is wrong; the fainter, the nearer its logit is to 0. Dots are the "
        f"exact boundary: for each {first} the {second} at which the answer changes."
    )
    for row in rows:
        st.markdown(f"- {verbatim(row)}")
