"""Where the answer changes as one or two counts grow."""

import streamlit as st

from dashboard.charts.errors.families import family_curve, family_map, probability_curve
from dashboard.elements.placement import place, stretch
from dashboard.figures.family_frames import boundary_frame, cells_frame, curve_frame, flips_frame
from dashboard.model.choosing.strings import Chosen, examples
from dashboard.model.opened import remembered
from dashboard.text import verbatim
from seqcls.errors import InvalidStringError
from seqcls.interpretability.families.curves import Curve, Map
from seqcls.interpretability.families.families import answers
from seqcls.interpretability.families.text import family_text

answers_of = remembered(answers)


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
        family = answers_of(chosen.model, text.strip())
    except InvalidStringError as error:
        st.error(verbatim(str(error)))
        return
    said, *rows = family_text(family)
    if isinstance(family, Curve):
        st.markdown(verbatim(" ".join([said, *rows])))
        _curve(family)
    else:
        st.markdown(verbatim(said))
        _map(family)
        for row in rows:
            st.markdown(f"- {verbatim(row)}")


def _curve(curve: Curve) -> None:
    frame, name = curve_frame(curve), curve.family.names[0]
    chart = family_curve(frame, flips_frame(curve), curve.limit, name, curve.family.text)
    stretch(chart, "family_logit")
    stretch(probability_curve(frame, name), "family_probability")


def _map(grid: Map) -> None:
    first, second = grid.family.names
    chart = family_map(cells_frame(grid), boundary_frame(grid), (first, second))
    place(chart, "family_map")
    st.caption(
        "Colored where the model is wrong; the fainter, the nearer its logit is to 0. Dots are the "
        f"{'exact boundary' if grid.exact else 'changes that show'}: for each {first} the "
        f"{second} at which the answer changes."
    )
