"""The sidebar of pages about results: one task, and which of its models. The link has all of it."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import streamlit as st

from dashboard import data
from dashboard.text import plain
from dashboard.words.sentences import no_sweep, say
from dashboard.words.tasks import task_name as task_name
from dashboard.words.tasks import task_names
from seqcls.config import default_fields
from seqcls.imported import PREFIX
from sweeps.api.reading import Note, Selection
from sweeps.results import LEARNED_AT, Outcome
from sweeps.statistics.populations import CLASS

EVERY = "every task"
EVERY_SHOWN = "Every task, one below the other"
MOST_TASKS = 4
"""Tasks that may be shown one below the other."""

SELECTIONS = "selections"
"""Key of the sidebar's selections in the session, by task."""

NAMES = ("task", "sweep", "seed", "outcome", "tag", "learned", "below")
"""Parameters of the link, which are also the widgets' keys; settings go by their own names."""


def show() -> None:
    """Draws the filters, and has `selections` give what they leave."""
    # It is shown first and filled last: the filters below decide which tasks there are.
    task_box = st.container()
    sweeps = _several("Sweeps", _sweeps_offered(), "sweep", "All sweeps")
    seeds = _several("Seeds", data.model_seeds(), "seed", "All seeds")
    outcomes = _several("Outcome", [x.value for x in Outcome], "outcome", "Any outcome")
    with st.popover("More", width="stretch"):
        judged = _thresholds()
        tags = sorted({tag for note in _notes().values() for tag in note.tags})
        tagged = _several("Tags", tags, "tag", "Any") if tags else []
        named = _with_tags(sweeps, tagged)
        found = replace(
            judged,
            sweeps=named or (),
            # What is named is shown, archived or not.
            # Sorted, since the selection's text is a key of what is cached.
            without=() if named else tuple(sorted(archived_sweeps())),
            model_seeds=tuple(seeds),
            outcomes=tuple(map(Outcome, outcomes)),
            # Tags that no sweep has leave nothing; without tags, all are left.
            config_ids=() if named is None else None,
        )
        known = tasks_of(found)
        chosen = _choose_task(task_box, known, is_any=bool(sweeps))
        tasks = known if chosen == EVERY else [chosen] if chosen else []
        configurations = _settings([x for x, task in data.languages().items() if task in tasks])
    of_task = data.languages()
    st.session_state[EVERY] = replace(found, config_ids=_with_settings())
    st.session_state[SELECTIONS] = {
        task: replace(found, config_ids=tuple(x for x in configurations if of_task[x] == task))
        for task in tasks
    }


def selections() -> dict[str, Selection]:
    """The models that the filters leave, by the task that the page is about."""
    chosen: dict[str, Selection] = st.session_state.get(SELECTIONS, {})
    return chosen


def why_empty() -> str:
    """Why there is no trained model to show.

    Raises:
        SeqclsError: the database cannot be shown.
    """
    if data.count_tested(Selection()):
        return say("no_models")
    return say("none_trained") if data.sweep_names() else no_sweep()


def of_every_task() -> Selection:
    """The models that the filters leave of all tasks, whichever the page is about."""
    chosen: Selection = st.session_state.get(EVERY, Selection())
    return chosen


def _with_settings() -> tuple[int, ...]:
    """The configurations of every task that have the chosen values of settings."""
    read = data.read_settings(tuple(data.languages()))
    for name in (x for x in map(str, read) if x not in NAMES and st.session_state.get(x)):
        read = read[read[name].isin(st.session_state[name])]
    return tuple(read.index.tolist())


def current() -> Selection:
    """The models that the filters leave of the first task; all, judged as usual, where none is."""
    return next(iter(selections().values()), Selection())


def tasks_of(selection: Selection) -> list[str]:
    """The tasks of the runs in scope, those with most runs first."""
    # A task stays on offer while none of its models has the chosen outcome.
    counts = data.configurations(replace(selection, outcomes=()))
    number = counts["config_id"].map(data.languages())
    return [str(task) for task in number.value_counts().index] if len(counts) else []


def describe() -> str:
    """The choices beside the task, in a line, for titles of figures and files."""
    chosen = current()
    parts = [
        *chosen.sweeps,
        *(f"seed {x}" for x in chosen.model_seeds),
        *chosen.outcomes,
        *(f"{x}={y}" for x in map(str, data.settings()) for y in st.session_state.get(x) or ()),
    ]
    return ", ".join(map(str, parts)) or "all sweeps"


def _several(label: str, options: Sequence[Any], key: str, placeholder: str) -> list[Any]:
    return st.multiselect(
        label,
        options,
        key=key,
        bind="query-params",
        persist_state="session",
        placeholder=placeholder,
        # Enter takes what was typed; Streamlit would take all that is like it.
        select_all=False,
    )


def _choose_task(container: Any, known: Sequence[str], *, is_any: bool) -> str:
    """The task, or every task; where none was chosen, the one with most runs.

    Args:
        container: of the box.
        known: tasks in scope, those with most runs first.
        is_any: whether all tasks are shown where none was chosen, as of a sweep that was opened.
    """
    several = 1 < len(known) <= MOST_TASKS
    usual = EVERY if several and is_any else next(iter(known), "")
    names = task_names(known)
    names |= {EVERY: EVERY_SHOWN} if several else {}
    offered = [*([EVERY] if several else []), *known]
    chosen = container.selectbox(
        "Task",
        offered,
        index=None,
        placeholder=names.get(usual, "No task"),
        key="task",
        bind="query-params",
        persist_state="session",
        format_func=lambda task: names.get(task, task),
    )
    return chosen if chosen in offered else usual


def _thresholds() -> Selection:
    """All runs, judged by the accuracies that are set."""
    learned = _percent(
        "Learned from (%)",
        "learned",
        100 * LEARNED_AT,
        "A model has learned if it is right on so many test strings of the trained lengths.",
    )
    below = _percent(
        "Fails beyond below (%)",
        "below",
        100.0,
        "A model that has learned fails beyond if it is right on fewer of the longer test strings.",
    )
    return Selection(below=below, learned_at=learned)


def _percent(label: str, key: str, usual: float, meaning: str) -> float:
    chosen = st.number_input(
        label,
        0.0,
        100.0,
        usual,
        0.5,
        key=key,
        format="%.1f",
        bind="query-params",
        persist_state="session",
        help=meaning,
    )
    return as_share(chosen)


def as_share(percent: float) -> float:
    """A percentage as a share in [0, 1]: the float that the same share of strings is.

    As floats 99.9 / 100 is more than 999 / 1000.
    """
    return float(Decimal(str(percent)) / 100)


def _settings(config_ids: Sequence[int]) -> tuple[int, ...]:
    """The configurations that have the chosen values of the settings in which these differ."""
    read = data.read_settings(tuple(config_ids)) if config_ids else None
    if read is None:
        return ()
    # Streamlit refuses two boxes of one key, and the filters above have these names.
    for name in (str(x) for x in read if read[x].nunique() > 1 and x not in NAMES):
        # Settings of imported models have the names that others gave them.
        label = plain(name) if name.startswith(PREFIX) else name
        offered = data.sorted_values(read[name])
        if values := _several(label, offered, name, "Any"):
            read = read[read[name].isin(values)]
    return tuple(read.index.tolist())


def _sweeps_offered() -> list[str]:
    """All sweeps; one that is archived only if the link or the session names it."""
    named = {*st.query_params.get_all("sweep"), *(st.session_state.get("sweep") or [])}
    return [x for x in data.sweep_names().values() if x not in archived_sweeps() - named]


def archived_sweeps() -> set[str]:
    """The names of the sweeps that are archived."""
    return {name for name, note in _notes().items() if note.archived_at is not None}


def _notes() -> dict[str, Note]:
    """Notes on sweeps, by name."""
    written = data.sweep_notes()
    return {name: written[key] for key, name in data.sweep_names().items() if key in written}


def _with_tags(chosen: Sequence[str], tags: Iterable[str]) -> tuple[str, ...] | None:
    """The sweeps that have one of these tags; empty means all, None means none."""
    if not (chosen_tags := {*tags}):
        return tuple(chosen)
    written = _notes()
    names = chosen or _sweeps_offered()
    return tuple(x for x in names if chosen_tags & {*written.get(x, Note()).tags}) or None


def _shown_names(tasks: Iterable[str]) -> set[str]:
    """Possible names of tasks in the sidebar, whichever others are in scope."""
    return {task_name(task, usual_too=usual_too) for task in tasks for usual_too in (False, True)}


def unknown_in_link() -> list[str]:
    """Parameters of the link that the database does not have, as sentences; they restrict nothing.

    Call it before the filters are drawn, which remove unknown parameters from the link.
    """
    names = {*data.languages().values()}
    known: dict[str, set[str]] = {
        "sweep": {*data.sweep_names().values()},
        "seed": {str(x) for x in data.model_seeds()},
        "outcome": {x.value for x in Outcome},
        "tag": {tag for note in _notes().values() for tag in note.tags},
        # The link names a choice as the page does.
        "task": {EVERY, EVERY_SHOWN, *names, *_shown_names(names)},
    }
    settings = data.settings()
    known |= {str(x): {str(y) for y in settings[x].dropna().unique()} for x in settings}
    # A setting that no configuration changes has its usual value in all of them.
    known |= {x: {str(y)} for x, y in default_fields().items() if x not in {*known, "task"}}
    return [
        f"The link asks for {name} {value[:60]}, which is not in this database; it restricts "
        "nothing."
        for name in {*st.query_params} & known.keys() - {CLASS}
        for value in st.query_params.get_all(name)
        if value and value not in known[name]
    ]
