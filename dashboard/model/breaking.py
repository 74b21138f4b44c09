"""Where the answer changes as one or two counts grow."""

import streamlit as st

from dashboard.charts.families import family_curve, family_map, probability_curve
from dashboard.figures.families import boundary_frame, cells_frame, curve_frame, flips_frame
from dashboard.model.choice import Chosen, examples
from dashboard.model.drawing import place, stretch
from dashboard.model.opened import remembered
from dashboard.model.words import verbatim
from seqcls.errors import StringError
from seqcls.inside.family import MAX_COUNT, Curve, Map, area, curve, parse_family

curve_of = remembered(curve)
area_of = remembered(area)


def show(chosen: Chosen) -> None:
    """A family of strings, typed in, and what the model says of all of them."""
    text = st.text_input(
        "Family of strings",
        examples(chosen.model.config)[1],
        key="family",
        bind="query-params",
        help="One or two counts are left free: ab{n}, a{n}b, b{2}c{n}, a{m}b{n}.",
    )
    try:
        family = parse_family(text.strip(), chosen.model.config.num_letters)
        if len(family.names) == 1:
            _curve(curve_of(chosen.model, family))
        else:
            _map(area_of(chosen.model, family))
    except StringError as error:
        st.error(verbatim(str(error)))


def _curve(found: Curve) -> None:
    st.markdown(verbatim(curve_sentence(found)))
    frame, name = curve_frame(found), found.family.names[0]
    chart = family_curve(frame, flips_frame(found), found.limit, name, found.family.text)
    stretch(chart, "family_logit")
    stretch(probability_curve(frame, name), "family_probability")


def curve_sentence(found: Curve) -> str:
    """What becomes of a family as its count grows, in a line or two."""
    name, text = found.family.names[0], found.family.text
    label = "in the language" if found.label else "not in the language"
    wrong = found.first_wrong
    said = f"Every string {text} is {label}. "
    if wrong is None:
        said += f"The model is right up to {name} = {MAX_COUNT:,}"
    elif wrong == 1 and not found.flips:
        said += f"The model is wrong for every {name} up to {MAX_COUNT:,}"
    else:
        said += f"The model is first wrong at {name} = {wrong:,}"
    flips = [flip.n for flip in found.flips]
    if flips:
        places = ", ".join(f"{n:,}" for n in flips[:6])
        said += f"; its answer changes at {name} = {places}{' and on' if len(flips) > 6 else ''}"
    at_last = (found.limit > 0) == found.label
    return (
        f"{said}. As {name} grows without end the logit tends to {found.limit:.4g}, which is "
        f"{'right' if at_last else 'wrong'}."
    )


def _map(found: Map) -> None:
    first, second = found.family.names
    st.markdown(verbatim(map_sentence(found)))
    chart = family_map(cells_frame(found), boundary_frame(found), (first, second))
    place(chart, "family_map")
    st.caption(
        "Colored where the model is wrong; the paler, the nearer its logit is to 0. Dots are the "
        f"exact boundary: for each {first} the {second} at which the answer changes."
    )


def map_sentence(found: Map) -> str:
    """How much of the map is answered wrongly, in a line."""
    label = "in the language" if found.label else "not in the language"
    wrong = float(((found.logit > 0) != found.label).mean())
    return (
        f"Every string {found.family.text} is {label}. The model is wrong on {wrong:.0%} of this "
        "map, whose scales are logarithmic."
    )
