"""Whether the two differ by more than chance explains, in numbers and in a sentence."""

import pandas as pd
import streamlit as st

from dashboard.text import verbatim
from seqcls.interpretability.rounded import p_value_text, percent, percents
from sweeps.analysis.compared_configurations import Compared
from sweeps.analysis.compared_runs import ComparedRuns
from sweeps.statistics.intervals import CONFIDENCE, Interval, Table
from sweeps.statistics.median_intervals import FEWEST


def of_configurations(compared: Compared, names: tuple[str, str]) -> None:
    """Failing seeds of both, their difference, and whether the same seeds fail."""
    comparison = compared.comparison
    with st.container(horizontal=True, gap="medium", key="differences"):
        for name, share, runs in zip(names, comparison.failing, comparison.runs, strict=True):
            st.metric(
                verbatim(name),
                f"{round(share.value * runs)} of {runs} fail",
                delta=_span(share),
                delta_color="off",
                delta_arrow="off",
                help="Seeds that fail, and the 95% interval of their share (Wilson).",
                width="content",
            )
        _difference("Difference of failing shares", comparison.difference, "Newcombe")
        _difference("Difference of median accuracy", comparison.median_difference, "bootstrap")
    if comparison.p_value is None:
        st.caption(
            "McNemar: none, since no seed is in both; the two are compared as independent samples."
        )
        return
    _sentence(comparison.table, comparison.p_value, "seeds that both have", "fail")
    _table(comparison.table, names, "fails", "does not fail")


def of_models(compared: ComparedRuns, names: tuple[str, str]) -> None:
    """Strings that both get wrong, or only one, and whether that may be chance."""
    with st.container(horizontal=True, gap="medium", key="differences"):
        _difference("Difference of wrong shares", compared.difference, "Newcombe")
    if compared.table is None or compared.p_value is None:
        st.caption(
            "McNemar: none, since the two are tested on different strings; the shares are compared "
            "as independent samples."
        )
        return
    st.caption(
        "Each different test string counts once, however often the test has it: a model always "
        "answers it the same way."
    )
    _sentence(compared.table, compared.p_value, "test strings", "are wrong")
    _table(compared.table, names, "is wrong", "is right")


def _difference(label: str, difference: Interval, by: str) -> None:
    lacking = difference.low != difference.low
    st.metric(
        label,
        _minus(percent(difference.value, 1, signed=True)),
        delta=f"no interval: fewer than {FEWEST} seeds" if lacking else _span(difference),
        delta_color="off",
        delta_arrow="off",
        help=f"The first less the second, with its {CONFIDENCE:.0%} interval ({by}).",
        width="content",
    )


def _span(interval: Interval) -> str:
    return _minus(percents(interval.low, interval.high))


def _minus(text: str) -> str:
    """Minus signs of a keyboard would read as dashes."""
    return text.replace("-", "\N{MINUS SIGN}")


def _sentence(table: Table, p_value: float, what: str, verb: str) -> None:
    """What McNemar's test says."""
    unlike = table.only_first + table.only_second
    if not unlike:
        st.markdown(f"The two differ on none of the {table.pairs:,} {what}.")
        return
    more = "first" if table.only_first > table.only_second else "second"
    chance = (
        f"More {verb} in the {more} than chance would explain"
        if p_value < 1 - CONFIDENCE
        else "Chance alone may explain the difference"
    )
    st.markdown(
        f"**{chance}** ({p_value_text(p_value)}, exact McNemar): of {table.pairs:,} {what}, "
        f"{unlike:,} {verb} in one alone, {table.only_first:,} in the first and "
        f"{table.only_second:,} in the second."
    )


def _table(table: Table, names: tuple[str, str], yes: str, no: str) -> None:
    """The four cells."""
    first, second = (verbatim(name) for name in names)
    rows = pd.DataFrame(
        {
            f"the second {yes}": [int(table.both), int(table.only_second)],
            f"the second {no}": [int(table.only_first), int(table.none)],
        },
        index=[f"the first {yes}", f"the first {no}"],
    )
    st.caption(f"First: {first}. Second: {second}.")
    st.dataframe(rows, width="content")
