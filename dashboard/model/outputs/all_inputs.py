"""Every input up to a length: how many outputs are wrong, and the shortest of those inputs."""

from typing import get_args

import pandas as pd
import streamlit as st

from dashboard.charts.errors.wrong_by_length import wrong_by_length
from dashboard.elements.placement import stretch
from dashboard.model.opened import AnyModel, remembered
from dashboard.text import verbatim
from seqcls.interpretability.enumeration import MAX_STRINGS
from seqcls.interpretability.verdicts.by_outputs import MAX_INPUTS
from seqcls.interpretability.verdicts.output_verdict import OutputVerdict, output_verdict_text
from seqcls.interpretability.verdicts.verdict import verdict_of_outputs
from seqcls.results import ErrorKind

ERROR_KINDS: tuple[ErrorKind, ...] = get_args(ErrorKind)

every_output = remembered(verdict_of_outputs, "Trying every input")


def show(opened: AnyModel) -> None:
    """What trying every input finds; it takes seconds, and so is asked for."""
    st.caption(
        f"Every input of the task up to the greatest length at which there are no more than "
        f"{MAX_STRINGS:,} strings and {MAX_INPUTS:,} inputs, at most the longest test length."
    )
    if not st.toggle("Try every input", key="every_input", bind="query-params"):
        return
    verdict = every_output(opened)
    for said in output_verdict_text(verdict):
        st.markdown(verbatim(said))
    if not verdict.wrong:
        return
    stretch(wrong_by_length(_by_length(verdict)), "all inputs by length")
    st.markdown(f"**The shortest {len(verdict.shortest)}**")
    display = opened.model.tokenizer.display
    rows = [
        [display(str(text)) for text in (each.string, each.label, each.predicted)]
        for each in verdict.shortest
    ]
    names = ["input", "target", "output"]
    shortest = pd.DataFrame(rows, columns=names)
    titles = {name: st.column_config.TextColumn(name.capitalize()) for name in names}
    st.dataframe(shortest, hide_index=True, column_config=titles)


def _by_length(verdict: OutputVerdict) -> pd.DataFrame:
    """A frame as `wrong_by_length` takes it; of a length without errors one row of none."""
    rows = [
        {
            "length": each.length,
            "kind": kind,
            "wrong": wrong,
            "inputs": each.inputs,
            "share": wrong / each.inputs,
        }
        for each in verdict.by_length
        for kind, wrong in (each.wrong or {ERROR_KINDS[0]: 0}).items()
    ]
    return pd.DataFrame(rows)
