"""Inside one model: why it fails, where it breaks, and every figure of what it does."""

from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import data, layout, links
from dashboard.every_page import share
from dashboard.failing import remedies
from dashboard.model import sections
from dashboard.model.choosing.run import choose_run, show_missing
from dashboard.model.summary import task_sentence, verdict_sentence
from dashboard.text import verbatim
from seqcls.config import RunConfig
from seqcls.errors import SeqclsError
from sweeps.store.opening import open_reader
from sweeps.store.reading import queries
from sweeps.store.reading.selection import View
from sweeps.store.strings.string_queries import EVERY_ERROR

FORMER_NAMES = {"Surgery": "Ablation"}
"""What links that were made before may call a section."""


def show() -> None:
    header = share.header("Inside a model")
    if (former := st.query_params.get("view")) in FORMER_NAMES:
        st.session_state["view"] = st.query_params["view"] = FORMER_NAMES[former]
    try:
        run_id = choose_run()
        if run_id is None:
            st.info("No model is trained yet. Train the report's models, in about a minute:")
            st.code("seqcls sweep report", language="bash")
            return
        _model(run_id, queries.run_config(open_reader(), run_id), header)
    except SeqclsError as error:
        show_missing(error)


def _model(run_id: int, config: RunConfig, header: DeltaGenerator) -> None:
    layout.name_tab(f"Model {run_id}")
    rows = data.model(run_id)
    if len(rows):
        # As objects: in a row of numbers of one type a large seed would be rounded.
        model = rows.astype(object).iloc[0]
        view = View(model_seeds=(int(model["model_seed"]),), config_ids=(int(model["config_id"]),))
        errors = partial(data.string_errors, run_id, EVERY_ERROR)
        share.offer(header, f"model_{run_id}", errors, view, title=f"Model {run_id}")
        st.caption(verbatim(task_sentence(config)))
        scores = queries.length_scores(open_reader(), [run_id])
        st.markdown(verbatim(verdict_sentence(model, config, scores)))
        diverged = queries.run_status(open_reader(), run_id).engine_reason
        if diverged and queries.why_no_weights(config):
            st.caption(verbatim(f"Its training {diverged}."))
        # Of a run that stopped early no more than its own epochs.
        epochs = len(queries.epochs(open_reader(), run_id))
        if said := data.trained_on((int(model["config_id"]),), epochs or None):
            st.caption(verbatim(said))
        remedies.rounding(run_id)
        links.to_compare_two("run", [run_id], "Compare with another model")
    sections.show(run_id, config)


show()
