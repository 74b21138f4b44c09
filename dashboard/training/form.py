"""The form of a new sweep: two lists, lengths, seeds. The page and the sidebar share it."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from dashboard import data, page
from dashboard.text import error_text
from dashboard.training import settings
from seqcls.errors import SeqclsError
from sweeps.api import existing, typed, watching
from sweeps.api.typed import Entry
from sweeps.grid.spec import spec_as_written

TASKS, NETWORKS = "tasks", "networks"
TRAINED, TESTED, SEEDS, NAME = "trained_to", "tested_to", "model_seeds", "sweep_name"
START, EDITS, TEXT = "start", "edits", "toml"
PLACE = "page of the form"
BOX_VALUES = "typed for a new sweep"
"""Key in the session of the boxes' values on the last page."""

SHORT = "short form"
"""Key in the session: the short form in the sidebar is open."""

FIRST = {
    TASKS: "(ab|ba)*, even pairs",
    NETWORKS: "transformer none, transformer rotary, lstm",
}
HELP = {
    TASKS: "With commas between: names, with settings as `dyck max_depth=3`; regular expressions, "
    "as `(ab|ba)*`, also `(ab)* over abc`; formulas over letter counts, as `a > b`; rewritings, as "
    "`ab -> b`; classes of languages, as `SL width=3`; files that were uploaded.",
    NETWORKS: "With commas between: an architecture, its positions and settings, as `transformer "
    "rotary`, `transformer ALiBi 2 blocks width 16`, `lstm hidden_size=64`.",
}


_dataset_names = data.cached(watching.dataset_names)


@dataclass(frozen=True)
class Typed:
    """The typed text as a specification, or its error."""

    table: Mapping[str, Any] | None = None
    problem: str = ""


def lists(*, in_short: bool = False) -> tuple[list[Entry] | None, list[Entry] | None]:
    """Draws the two lists and how each entry was read; None where one cannot be read.

    Args:
        in_short: shows how networks were read in one line.
    """
    _take_over()
    known = files()
    return (
        _list("Tasks", TASKS, lambda text: typed.tasks_of(text, known)),
        _list("Networks", NETWORKS, typed.networks_of, " · " if in_short else "  \n"),
    )


def files() -> dict[str, str]:
    """The digests of the files of strings and automata that may be named."""
    stored = {} if existing() is None else _dataset_names()
    return {name: digest for digest, name in {**stored, **uploads()}.items()}


def uploads() -> dict[str, str]:
    """The names of the files that this session has uploaded, by their digests."""
    known: dict[str, str] = st.session_state.setdefault("uploaded files", {})
    return known


def _list(
    label: str, key: str, read: Callable[[str], list[Entry]], between: str = "  \n"
) -> list[Entry] | None:
    text = keep(st.text_area, label, key, FIRST[key], height=68, help=HELP[key])
    try:
        entries = read(text or "")
    except SeqclsError as error:
        st.error(page.plain(error_text(error)))
        return None
    is_short = between != "  \n"
    lines = (x.read_as if is_short else f"`{_plain(x.text)}`: {x.read_as}" for x in entries)
    st.caption(between.join(map(page.markdown, lines)))
    return entries


def _plain(text: str) -> str:
    # A backquote would end the code around it.
    return text.replace("`", "'").replace("\n", " ")


def numbers(*, with_name: bool) -> tuple[int, int, str, str]:
    """Draws the lengths, the seeds and the name: trained to, tested to, seeds, name."""
    columns = st.columns([2, 2, 2, 3] if with_name else 3)
    limits = {"min_value": 1, "max_value": 10_000}
    trained = keep(columns[0].number_input, "Trained to", TRAINED, 20, **limits)
    tested = keep(columns[1].number_input, "Tested to", TESTED, 100, **limits)
    help_text = "How many, as 8; a range, as 0..31; or a list, as 1, 5, 7."
    seeds = keep(columns[2].text_input, "Seeds", SEEDS, "8", help=help_text)
    free, name = free_name(), ""
    if with_name:
        name = keep(columns[3].text_input, "Name", NAME, "", placeholder=free) or ""
    return int(trained), int(tested), seeds or "8", name.strip() or free


def _take_over() -> None:
    """Puts into the boxes what they held on the page before."""
    state, context = st.session_state, get_script_run_ctx()
    page_shown = None if context is None else context.page_script_hash
    if state.get(PLACE) != page_shown:
        state[PLACE] = page_shown
        # Streamlit forgets what the boxes of another page held.
        state.update(state.get(BOX_VALUES, {}))


def keep(box: Callable[..., Any], label: str, key: str, usual: Any, **given: Any) -> Any:
    """Draws a box that holds what was typed on another page; Streamlit keeps that of no popover.

    Args:
        box: what draws it.
        usual: what it holds at first.
        given: to the box.
    """
    values: dict[str, Any] = st.session_state.setdefault(BOX_VALUES, {})
    # Streamlit drops the state of a box that is not drawn.
    if key not in st.session_state:
        st.session_state[key] = values.get(key, usual)
    values[key] = value = box(label, key=key, **given)
    return value


def free_name(name: str = "sweep 1") -> str:
    """A name that no sweep has: with the next number, where it is taken."""
    # Before the first sweep there is no database to ask.
    taken = set() if existing() is None else {*data.sweep_names().values()}
    stem, _, number = name.rpartition(" ")
    stem = stem if stem and number.isdecimal() else name
    numbered = (f"{stem} {number}" for number in itertools.count(1 if stem != name else 2))
    return name if name not in taken else next(x for x in numbered if x not in taken)


def read(
    tasks: Sequence[Entry] | None,
    networks: Sequence[Entry] | None,
    drawn: tuple[int, int, str, str],
) -> Typed:
    """The typed text as a specification, with the settings of all rows."""
    if tasks is None or networks is None:
        # The error is shown below the list.
        return Typed()
    trained, tested, seeds, name = drawn
    try:
        own = settings.read(st.session_state.get(settings.TYPED))
        lengths = {"train_max_length": [trained], "test_max_length": [tested]}
        shared = lengths | own
        made = typed.specification(name, tasks, networks, typed.seeds_of(seeds), shared)
    except SeqclsError as error:
        return Typed(None, error_text(error))
    return Typed(made)


def as_json(table: Mapping[str, Any]) -> str:
    """A specification as it would be submitted.

    Raises:
        SpecError: it is refused.
    """
    return spec_as_written(table).submitted
