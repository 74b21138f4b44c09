"""Inside one model: why it fails, where it breaks, and every figure of what it does."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from dashboard import data, layout
from dashboard.failing import helping
from dashboard.model import ablation, breaking, choice, figures_tab, plain, verdict, why
from dashboard.model.choice import Chosen
from dashboard.model.opened import open_model
from dashboard.model.summary import task_sentence, verdict_sentence
from dashboard.text import verbatim
from seqcls.config import RunConfig
from seqcls.errors import SeqclsError
from seqcls.interpretability.counts.obstacle import Needs, obstacle
from seqcls.problem import resolve
from sweeps.store.opening import open_reader
from sweeps.store.reading import queries
from sweeps.store.strings.string_queries import ErrorSearch

SECTIONS: dict[str, tuple[Callable[[Chosen], None], Needs]] = {
    "Why": (why.show, "required letters"),
    "Figures": (figures_tab.show, "labels"),
    "Breaking point": (breaking.show, "required letters"),
    "All strings": (verdict.show, "labels"),
    "Ablation": (ablation.show, "labels"),
}
"""Each with what it rests on."""

FORMER_NAMES = {"Surgery": "Ablation"}
"""What links that were made before may call a section."""


def show() -> None:
    st.title("Inside a model")
    if (former := st.query_params.get("view")) in FORMER_NAMES:
        st.session_state["view"] = st.query_params["view"] = FORMER_NAMES[former]
    try:
        run_id = choice.choose_run()
        if run_id is None:
            st.info("No model is trained yet. Train the report's models, in about a minute:")
            st.code("seqcls sweep report", language="bash")
            return
        _model(run_id, queries.run_config(open_reader(), run_id))
    except SeqclsError as error:
        choice.show_missing(error)


def _model(run_id: int, config: RunConfig) -> None:
    layout.name_tab(f"Model {run_id}")
    rows = data.model(run_id)
    if len(rows):
        st.caption(verbatim(task_sentence(config)))
        st.markdown(verbatim(verdict_sentence(rows.iloc[0], config)))
        helping.rounding(run_id)
    reasons = {name: obstacle(resolve(config), needs) for name, (_, needs) in SECTIONS.items()}
    sections = {name: show_it for name, (show_it, _) in SECTIONS.items() if reasons[name] is None}
    # Any model can be ablated; without any section of letter counts that is done in another way.
    absent = reasons if sections else {**reasons, "Ablation": None}
    _say_what_is_absent({name: reason for name, reason in absent.items() if reason})
    if not sections:
        # Imported where it is used: PyTorch takes a second or two to load.
        from dashboard.network import page

        page.show(run_id, config)
        helping.show(run_id)
        return
    model = open_model(run_id)
    chosen = choice.choose_view(model, data.string_errors(run_id, ErrorSearch()))
    of_any_model = ["States"]
    if len(sections) < len(SECTIONS):
        sections = {"Answers": lambda _: plain.show(run_id, config), **sections}
        of_any_model += ["Minimal and nearest", "Patching"]
    sections |= {name: partial(_of_any_model, name, run_id) for name in of_any_model}
    tabs = st.tabs(list(sections), key="view", bind="query-params")
    for tab, section in zip(tabs, sections.values(), strict=True):
        if tab.open:
            with tab:
                section(chosen)
    helping.show(run_id)


def _of_any_model(name: str, run_id: int, chosen: Chosen) -> None:
    """A section that holds of any model, at the string that was chosen."""
    # Imported where it is used: PyTorch takes a second or two to load.
    from dashboard.network import page

    if chosen.model.epoch != chosen.model.stored.kept_epoch:
        st.caption("This is the model at the kept epoch.")
    page.show_section(name, run_id, chosen.string)


def _say_what_is_absent(absent: dict[str, str]) -> None:
    """Which parts of the page do not hold for this model, and why."""
    for reason in dict.fromkeys(absent.values()):
        names = [name for name, given in absent.items() if given == reason]
        listed = ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else names[0]
        st.info(
            f"Sections that rest on letter counts are left out: {listed}. Reason: "
            f"{verbatim(reason)}.",
            icon=":material/info:",
        )


show()
