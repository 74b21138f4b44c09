"""Inside one model: why it fails, where it breaks, and every figure of what it does."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import streamlit as st

from dashboard import data, filters, layout, links, page
from dashboard.choosing.opened import open_any, open_model, say
from dashboard.choosing.run import choose_run, show_missing
from dashboard.choosing.strings import (
    Chosen,
    Named,
    choose_model,
    choose_string,
    choose_view,
    look_at,
    second_model,
    string_of_link,
    type_second,
)
from dashboard.data import explaining
from dashboard.live import section
from dashboard.results import models
from dashboard.text import verbatim
from dashboard.views import (
    ablation,
    answers,
    automaton,
    families,
    protocol,
    remedies,
    shortcuts,
    verdict,
    why,
)
from dashboard.words.languages import verdict_sentence
from dashboard.words.outcomes import describe_outcome
from seqcls.config import RunConfig
from seqcls.errors import VisitorError
from seqcls.interpretability.network import Needs, obstacle
from seqcls.problem import Problem, resolve
from seqcls.proofs.cells import why_not_proved
from seqcls.tasks.automaton import language_automaton
from sweeps.api import open_reader
from sweeps.api.old_pages import reading
from sweeps.api.old_pages.reading import ErrorSearch, stored_epochs

ANSWERS, ABLATION, AUTOMATON, LIVE = "Answers", "Ablation", "Automaton", "Live"
BREAKING, ALL_STRINGS = "Breaking point", "All strings"

BY_COUNTS: dict[str, tuple[Callable[[Chosen], None], Needs]] = {
    "Why": (why.show, "required letters"),
    "Figures": (why.show_figures, "labels"),
    BREAKING: (families.show, "required letters"),
    ALL_STRINGS: (verdict.show, "labels"),
    ABLATION: (ablation.show, "labels"),
}
"""Each with what it rests on."""

WRITING, ALL_INPUTS = "Writing", "All inputs"
"""Those of models that write."""

OF_A_STRING = STATES, MINIMAL, PATCHING = "States", "Minimal and nearest", "Patching"
"""Those of one string and any model."""


def show_sections(run_id: int, config: RunConfig) -> None:
    """Draws the sections that hold for a model, and says which do not; PyTorch is loaded late."""
    problem = resolve(config)
    if (reason := reading.why_no_weights(config)) is not None:
        st.info(
            f"Analyses that look inside this model are left out, since {verbatim(reason)}.",
            icon=":material/info:",
        )
        answers.show_results(run_id, config)
        remedies.show(run_id, links.thresholds())
        return
    absent = {name: obstacle(problem, needs) for name, (_, needs) in BY_COUNTS.items()}
    by_counts = {name: section for name, (section, _) in BY_COUNTS.items() if absent[name] is None}
    if not by_counts:
        # Any model can be ablated; without letter counts that is done in another way. So are
        # families and all strings of a model that writes.
        others = [ABLATION, *([BREAKING, ALL_STRINGS] if _writes(problem) else [])]
        others += [ALL_STRINGS] * _is_proved(problem)
        absent = {name: absent[name] for name in absent if name not in others}
        if _writes(problem):
            absent |= dict.fromkeys((BREAKING, ALL_INPUTS), problem.unknown_labels)
    _say_what_is_absent(absent)
    string, sections = (
        _by_counts(run_id, config, by_counts) if by_counts else _of_any_model(run_id, config)
    )
    sections[LIVE] = partial(_live, run_id, string)
    if automaton.is_offered(config):
        sections[AUTOMATON] = partial(_show_automaton, run_id, config)
    sections[SECOND] = partial(_beside, run_id)
    _show_tabs(run_id, sections)


SECOND = "Second model"

two_models = data.cached(models.two_models)


@st.fragment
def _beside(run_id: int) -> None:
    """Another model on the same test strings."""
    typed = type_second("Says which test strings only one of the two gets wrong.")
    with data.at_one_moment(), explaining(say):
        if typed:
            compared = two_models(run_id, reading.find_run(open_reader(), typed))
            page.render(compared, f"beside {run_id} {typed}", select="")


Sections = dict[str, Callable[[], None]]


def _by_counts(
    run_id: int, config: RunConfig, by_counts: Mapping[str, Callable[[Chosen], None]]
) -> tuple[str, Sections]:
    """The string that is looked at and the sections, where letter counts give an account."""
    chosen = choose_view(open_model(run_id), data.string_errors(run_id, ErrorSearch()))
    sections: Sections = {name: partial(section, chosen) for name, section in by_counts.items()}
    of_a_string: Sequence[str] = [STATES]
    if len(by_counts) < len(BY_COUNTS):
        sections = {ANSWERS: partial(answers.show, run_id, config), **sections}
        of_a_string = OF_A_STRING
    sections |= {name: partial(_of_chosen, name, run_id, chosen) for name in of_a_string}
    return chosen.string, sections


def _writes(problem: Problem) -> bool:
    """Whether there are tabs about outputs: those are other questions than about answers."""
    return problem.writes or problem.at_places


def _is_proved(problem: Problem) -> bool:
    """Whether it may be decided if a model is right on every string there is."""
    return why_not_proved(problem) is None and language_automaton(problem.task) is not None


def _of_any_model(run_id: int, config: RunConfig) -> tuple[str, Sections]:
    """The string that is looked at first and the sections, where strings are run."""
    sections: Sections = {ANSWERS: partial(answers.show, run_id, config)}
    problem = resolve(config)
    # How an answer came about token by token is asked of outputs alone.
    for name in (WRITING, *OF_A_STRING) if problem.writes else OF_A_STRING:
        sections[name] = partial(_of_a_string, run_id, config, name)
    if _writes(problem) and problem.unknown_labels is None:
        for name in (BREAKING, ALL_INPUTS):
            sections[name] = partial(_of_inputs, run_id, name)
    if _is_proved(problem):
        sections[ALL_STRINGS] = partial(_of_every_string, run_id)
    sections[ABLATION] = lambda: ablation.show_by_strings(open_any(run_id))
    string = string_of_link(config, data.string_errors(run_id, ErrorSearch()))
    return problem.tokenizer.display(string), sections


@explaining(say)
def _live(run_id: int, string: str) -> None:
    """A string as it is typed, and epochs as a film."""
    *others, kept = stored_epochs(open_reader(), run_id)
    section.show(run_id, string, [0, *sorted([*others, kept])], kept, look_at)


@st.fragment
def _show_automaton(run_id: int, config: RunConfig) -> None:
    """The automaton that a model has become."""
    with data.at_one_moment():
        automaton.show(run_id, config)


def _show_tabs(run_id: int, sections: Mapping[str, Callable[[], None]]) -> None:
    first, *_ = tabs = st.tabs(list(sections), key="view", bind="query-params")
    for tab, draw in zip(tabs, sections.values(), strict=True):
        if tab.open:
            with tab:
                try:
                    draw()
                except VisitorError as error:
                    say(error)
                if tab is first:
                    remedies.show(run_id, links.thresholds())


@explaining(say)
def _of_chosen(name: str, run_id: int, chosen: Chosen) -> None:
    """A section that holds of any model, at the string that was chosen."""
    if chosen.model.epoch != chosen.model.stored.kept_epoch:
        st.caption("This is the model at the kept epoch.")
    opened = open_any(run_id)
    _section(Named(f"Model {run_id}", opened), chosen.string, name)


@st.fragment
def _of_a_string(run_id: int, config: RunConfig, name: str) -> None:
    """A section and its string; where another is chosen, nothing else of the page is run again."""
    with data.at_one_moment(), explaining(show_missing):
        left, right = st.columns(2)
        with left:
            string = choose_string(config, data.string_errors(run_id, ErrorSearch()))
        with right:
            named = choose_model(run_id)
        _section(named, string, name)


@st.fragment
def _of_inputs(run_id: int, name: str) -> None:
    """A section on many inputs of a model that writes."""
    with data.at_one_moment(), explaining(show_missing):
        opened = choose_model(run_id).opened
        (families if name == BREAKING else verdict).show_outputs(opened)


@st.fragment
def _of_every_string(run_id: int) -> None:
    """Whether the model is right on every string."""
    with data.at_one_moment(), explaining(show_missing):
        verdict.show_every_string(choose_model(run_id).opened)


@explaining(say)
def _section(named: Named, string: str, name: str) -> None:
    model = named.model
    letters = model.letters(string)
    # Imported where it is used: PyTorch takes a second or two to load.
    from dashboard.views import patching, states, written

    if name == WRITING:
        written.show(named, letters, second_model(named))
    elif name == STATES:
        states.show(named, letters, second_model(named))
    elif name == MINIMAL:
        patching.show_minimal(named.opened, letters)
    else:
        patching.show(named.opened, letters)


def _say_what_is_absent(absent: Mapping[str, str | None]) -> None:
    """Which parts of the page do not hold for this model, and why."""
    for reason in dict.fromkeys(filter(None, absent.values())):
        names = [name for name, given in absent.items() if given == reason]
        listed = ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else names[0]
        st.info(
            f"Sections that do not hold for this model are left out: {listed}. Reason: "
            f"{verbatim(reason)}.",
            icon=":material/info:",
        )


FORMER_NAMES = {"Surgery": "Ablation"}
"""What links that were made before may call a section."""


@explaining(show_missing)
def show() -> None:
    st.title("Inside a model", anchor=False)
    if (former := st.query_params.get("view")) in FORMER_NAMES:
        st.session_state["view"] = st.query_params["view"] = FORMER_NAMES[former]
    run_id = choose_run(filters.current())
    if run_id is None:
        st.info(filters.why_empty())
        return
    _model(run_id, reading.run_config(open_reader(), run_id))


def _model(run_id: int, config: RunConfig) -> None:
    layout.name_tab(f"Model {run_id}")
    judged = links.thresholds()
    rows = data.model(run_id, judged)
    if len(rows):
        # As objects: in a row of numbers of one type a large seed would be rounded.
        model = rows.astype(object).iloc[0]
        config_id = int(model["config_id"])
        st.caption(verbatim(resolve(config).task.describe()))
        protocol.show(run_id, config_id, config)
        scores = reading.length_scores(open_reader(), [run_id])
        st.markdown(verbatim(describe_outcome(run_id, config, judged)))
        st.markdown(verbatim(verdict_sentence(model, config, scores)))
        diverged = reading.run_status(open_reader(), run_id).engine_reason
        if diverged and diverged.startswith("diverged") and reading.why_no_weights(config):
            st.caption(verbatim(f"Its training {diverged}."))
        # Of a run that stopped early no more than its own epochs.
        epochs = len(reading.epochs(open_reader(), run_id))
        if said := data.trained_on((config_id,), epochs or None):
            st.caption(verbatim(said))
        remedies.rounding(run_id)
        shortcuts.say_no_better(run_id, config_id)
        shortcuts.say_border(run_id)
        shortcuts.show(run_id, config_id, config)
    show_sections(run_id, config)


show()
