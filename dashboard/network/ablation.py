"""What the model can do without: each part ablated alone, by length, and pruned one by one."""

from operator import attrgetter
from typing import Any

import streamlit as st

from dashboard.charts.model.ablations import accuracy_by_length, part_ranking, pruning_curve
from dashboard.drawing import stretch
from dashboard.figures.ablations import lengths_frame, pruning_frame, ranking_frame
from dashboard.network.opened_string import say
from seqcls.errors import SeqclsError
from seqcls.interpretability.ablation import Ablated, prune, rank
from seqcls.interpretability.strings.trained_model import TrainedModel

SAMPLE = 200
WAYS = {"zero": "zero: the part adds nothing", "mean": "mean: it adds its mean"}
TEXT = attrgetter("text")
"""What a part is called."""


def show(run_id: int, model: TrainedModel) -> None:
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
    frame = ranking_frame({str(way): ranked}, TEXT)
    stretch(part_ranking(frame, whole.errors), "network costs")
    named = {own.parts[0].text: own for own in ranked}
    chosen = st.selectbox(
        "Accuracy by length without", list(named), key="without", bind="query-params"
    )
    if chosen is not None:
        frame = lengths_frame({"as trained": whole, f"without {chosen}": named[chosen]})
        stretch(accuracy_by_length(frame), "network lengths")
    _pruned(run_id, model, str(way))


def _pruned(run_id: int, model: TrainedModel, way: str) -> None:
    st.subheader("Pruning, the cheapest part first")
    if not st.toggle("Remove them one by one", key="prune", bind="query-params"):
        return
    try:
        steps: tuple[Ablated, ...] = _steps((run_id, way), model, way)
    except SeqclsError as error:
        say(error)
        return
    stretch(pruning_curve(pruning_frame(steps, TEXT)), "network pruning")


@st.cache_resource(show_spinner="Ablating", max_entries=32)
def _ranked(key: Any, _model: TrainedModel, way: Any) -> Any:  # noqa: ARG001 - which model
    from seqcls.interpretability.strings.ablation import SampledJudge, main_parts

    judge = SampledJudge(_model, SAMPLE)
    return judge.without({}), *rank(judge, main_parts(_model), way)


@st.cache_resource(show_spinner="Pruning", max_entries=32)
def _steps(key: Any, _model: TrainedModel, way: Any) -> Any:  # noqa: ARG001 - which model
    from seqcls.interpretability.strings.ablation import SampledJudge, main_parts

    return tuple(prune(SampledJudge(_model, SAMPLE), main_parts(_model), way))
