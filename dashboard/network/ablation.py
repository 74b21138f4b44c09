"""What the model can do without: each part ablated alone, by length, and pruned one by one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from dashboard.charts.model import ablations
from dashboard.drawing import stretch
from dashboard.network.opened_string import say
from seqcls.errors import SeqclsError
from seqcls.interpretability.strings.asked import AskedModel

if TYPE_CHECKING:
    from seqcls.interpretability.strings.ablation import Ablated
    from seqcls.models.parts import Part

SAMPLE = 200
WAYS = {"zero": "zero: the part adds nothing", "mean": "mean: it adds its mean"}
WIDTH = 10
"""Lengths in one point."""


def show(run_id: int, model: AskedModel) -> None:
    """Draws the section; it takes seconds, and so is asked for."""
    way = st.segmented_control(
        "Ablation",
        list(WAYS),
        format_func=lambda name: WAYS[name],
        default="zero",
        required=True,
        key="way",
        bind="query-params",
    )
    if not st.toggle("Ablate each part on its own", key="ablate", bind="query-params"):
        st.caption(f"Measured on {SAMPLE} distinct test strings, spread evenly over their lengths.")
        return
    try:
        found: tuple[Ablated, ...] = _ranked((run_id, way), model, str(way))
    except SeqclsError as error:
        say(error)
        return
    whole, *ranked = found
    st.subheader("Without each part alone")
    stretch(ablations.costs(_frame(ranked), whole.errors), "network costs")
    named = {own.parts[0].text: own for own in ranked}
    chosen = st.selectbox(
        "Accuracy by length without", list(named), key="without", bind="query-params"
    )
    if chosen is not None:
        both = [("as trained", whole), (f"without {chosen}", named[chosen])]
        by_length = pd.concat([_lengths(own).assign(model=name) for name, own in both])
        stretch(ablations.accuracy_by_length(by_length), "network lengths")
    _pruned(run_id, model, str(way))


def _pruned(run_id: int, model: AskedModel, way: str) -> None:
    st.subheader("Pruning, the cheapest part first")
    if not st.toggle("Remove them one by one", key="prune", bind="query-params"):
        return
    try:
        steps: tuple[Ablated, ...] = _steps((run_id, way), model, way)
    except SeqclsError as error:
        say(error)
        return
    frame = _frame(steps).assign(removed=range(len(steps)))
    stretch(ablations.pruning(frame), "network pruning")


@st.cache_resource(show_spinner="Ablating", max_entries=32)
def _ranked(key: Any, _model: AskedModel, way: Any) -> Any:  # noqa: ARG001 - which model
    from seqcls.interpretability.strings.ablation import Judge, rank

    judge = Judge(_model, SAMPLE)
    return judge.without((), way), *rank(judge, _parts(_model), way)


@st.cache_resource(show_spinner="Pruning", max_entries=32)
def _steps(key: Any, _model: AskedModel, way: Any) -> Any:  # noqa: ARG001 - which model
    from seqcls.interpretability.strings.ablation import Judge, prune

    return tuple(prune(Judge(_model, SAMPLE), _parts(_model), way))


def _parts(model: AskedModel) -> "tuple[Part, ...]":
    from seqcls.interpretability.strings.ablation import main_parts

    return main_parts(model)


def _frame(found: "Sequence[Ablated]") -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "part": own.parts[-1].text if own.parts else "nothing",
                "errors": own.errors,
                "accuracy": own.accuracy,
                "logit_change": own.logit_change,
            }
            for own in found
        ]
    )


def _lengths(own: "Ablated") -> pd.DataFrame:
    frame = pd.DataFrame({"at": own.lengths, "strings": own.strings, "right": own.right})
    sums = frame.groupby((frame["at"] - 1) // WIDTH)[["strings", "right"]].sum()
    middle = sums.index * WIDTH + 1 + (WIDTH - 1) / 2
    return pd.DataFrame(
        {
            "length": middle,
            "strings": sums["strings"],
            "accuracy": sums["right"] / sums["strings"],
        }
    )
