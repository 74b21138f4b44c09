"""The state that every page shares, kept in the address bar so that a link reproduces the view."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from dashboard import data, links
from dashboard.sweeps_page import annotating
from dashboard.text import verbatim
from dashboard.words import kind_words
from seqcls.errors import SeqclsError
from seqcls.fields.imported import PREFIX
from sweeps.store.reading.selection import KINDS, View
from sweeps.store.runs.notes import Note

PLAIN: dict[str, Any] = {
    "sweep": [],
    "tag": [],
    "seed": [],
    "failing": False,
    "kind": None,
    "below": 100.0,
}
"""The filters' keys, which are also their names in the link, with the values that restrict nothing.

The fields of the configuration go by their own names.
"""


UNKNOWN = "unknown in the link"


def show(applied: bool, page: str) -> None:
    """Draws the filters in the sidebar, where there is anything to filter.

    Args:
        applied: whether the page obeys them; else they are put away, and kept for the others.
        page: the path of the page that is shown.
    """
    try:
        names = [x for x in dict.fromkeys(data.memberships()["sweep"]) if x not in archived()]
        seeds = data.model_seeds()
        fields = _fields()
    except SeqclsError:
        return
    if not seeds:
        return
    if applied:
        st.header("Filters")
        _show(names, seeds, fields)
    else:
        with st.expander("Filters for other pages"):
            _show(names, seeds, fields)
    annotating.show_views(page)


def _show(names: list[str], seeds: list[int], fields: dict[str, list[Any]]) -> None:
    _say_what_is_unknown("sweep", names)
    _say_what_is_unknown("seed", list(map(str, seeds)))
    _tags()
    st.multiselect("Sweeps", names, key="sweep", placeholder="All sweeps", bind="query-params")
    st.multiselect("Model seeds", seeds, key="seed", placeholder="All seeds", bind="query-params")
    _outcome()
    if fields:
        chosen = sum(bool(st.session_state.get(name)) for name in fields)
        with st.popover(f"Settings ({chosen} chosen)" if chosen else "Settings", width="stretch"):
            for name, values in fields.items():
                # Settings of models trained elsewhere have any signs in their names.
                label = verbatim(name) if name.startswith(PREFIX) else name
                st.multiselect(label, values, key=name, placeholder="Any", bind="query-params")
    _say_what_is_left()


def send_again() -> None:
    """Has the browser put every filter that is set into the address bar once more.

    A switch of the page from within the script names only the new page's own parameters. To be
    called before the filters are drawn: what is assigned then is sent, changed or not.
    """
    try:
        names = [*PLAIN, *map(str, data.settings())]
    except SeqclsError:
        return
    _take_clicked()
    for name in names:
        if name in st.session_state:
            st.session_state[name] = st.session_state[name]


def take_from_link() -> None:
    """Sets the filters that the link names, after a link within the page led to another page.

    The widgets are there already, and by themselves would keep what they were set to.
    """
    try:
        offered = _offered()
    except SeqclsError:
        return
    for name, known in offered.items():
        wanted = _named_by_link(name)
        values = [value for value in known if str(value) in wanted]
        if values and name in st.session_state:
            st.session_state[name] = values
    if "failing" in st.session_state and "failing" in st.query_params:
        st.session_state["failing"] = st.query_params["failing"] == "true"
    if st.query_params.get("kind") in KINDS and "kind" in st.session_state:
        st.session_state["kind"] = st.query_params["kind"]


def _named_by_link(name: str) -> list[str]:
    """What the link itself gives for a filter: the browser puts what was set already before it."""
    given = st.query_params.get_all(name)
    before = [str(value) for value in st.session_state.get(name) or []]
    merged = len(given) > len(before) and given[: len(before)] == before
    return given[len(before) :] if merged else given


def _offered() -> dict[str, list[Any]]:
    """What may be chosen in each filter of several values."""
    sweeps = list(data.sweep_names().values())
    tags = sorted({tag for note in _notes().values() for tag in note.tags})
    return {"sweep": sweeps, "tag": tags, "seed": data.model_seeds(), **_fields()}


def _take_clicked() -> None:
    """Filters by the settings of a cell that was clicked on a map."""
    settings = data.settings()
    for name, text in st.session_state.pop(links.CHOSEN, {}).items():
        st.session_state[name] = [x for x in settings[name].unique().tolist() if str(x) == text]


def archived() -> set[str]:
    """The names of the sweeps that are archived."""
    return {name for name, note in _notes().items() if note.archived_at is not None}


def _notes() -> dict[str, Note]:
    """What is written about sweeps, by their names."""
    written = data.sweep_notes()
    return {name: written[key] for key, name in data.sweep_names().items() if key in written}


def _tags() -> None:
    if known := sorted({tag for note in _notes().values() for tag in note.tags}):
        st.multiselect("Tags", known, key="tag", placeholder="Any", bind="query-params")


def _sweeps(chosen: Sequence[str], tags: Sequence[str]) -> tuple[str, ...] | None:
    """The sweeps that pass these filters; empty means all, None means none."""
    if not tags and (chosen or not archived()):
        return tuple(chosen)
    hidden, written = archived(), _notes()
    names = chosen or [name for name in data.sweep_names().values() if name not in hidden]
    left = [x for x in names if not tags or {*tags} & {*written.get(x, Note()).tags}]
    return tuple(left) or None


def _chosen() -> dict[str, Any]:
    set_to = {key: st.session_state.get(key) for key in PLAIN}
    # A threshold of 0 is one, too.
    return {key: PLAIN[key] if value is None else value for key, value in set_to.items()}


def told() -> str:
    """What is chosen beside sweeps, in a line; empty where nothing is."""
    chosen = {key: value for key, value in _chosen().items() if value != PLAIN[key]}
    chosen.pop("sweep", None)
    chosen |= {str(name): st.session_state.get(str(name)) for name in data.settings()}
    said = [
        f"{name} = {', '.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in chosen.items()
        if value not in (None, [])
    ]
    return f"Filtered by {'; '.join(said)}." if said else ""


def none_shown(said: str) -> str:
    """What a page says that has nothing to show: that, or what to do where there is no sweep."""
    return said if data.progress() else "No sweeps yet. Launch one from the sidebar."


def current() -> View:
    """The filters as they are set now."""
    state = _chosen()
    sweeps = _sweeps(state["sweep"], state["tag"])
    return View(
        sweeps=sweeps or (),
        model_seeds=tuple(state["seed"]),
        config_ids=() if sweeps is None else _config_ids(),
        below=state["below"] / 100,
        failing=state["failing"],
        kind=state["kind"],
    )


def _say_what_is_unknown(param: str, known: list[str]) -> None:
    """What the link filters by and the database does not have; it restricts nothing."""
    if unknown := [x for x in st.query_params.get_all(param) if x not in known]:
        st.session_state[UNKNOWN] = (param, unknown)
    if missing := st.session_state.get(UNKNOWN):
        name, values = missing
        if name == param and not any(x in known for x in values):
            listed = ", ".join(values)
            st.warning(
                verbatim(f"The link asks for {name} {listed}, which is not in this database.")
            )


def _outcome() -> None:
    words = kind_words.of(data.languages()).words
    missed = words.misses.format(f"at least one of its {words.plural('test')}")
    st.toggle(
        "Only failing models",
        key="failing",
        bind="query-params",
        help="Lists and plots only failing models. Shares and medians still cover all models.",
    )
    st.number_input(
        "A model fails below an accuracy of (%)",
        min_value=0.0,
        max_value=100.0,
        value=PLAIN["below"],
        step=0.5,
        format="%.1f",
        key="below",
        bind="query-params",
        help=f"At 100, a model fails if it {missed}.",
    )
    if not kind_words.has_cells(data.languages()):
        return
    st.selectbox(
        "Error type",
        KINDS,
        index=None,
        placeholder="Any",
        key="kind",
        bind="query-params",
        help="False positive: predicted positive, but negative. False negative: predicted "
        "negative, but positive.",
    )


@data.shared
def _fields() -> dict[str, list[Any]]:
    settings = data.settings()
    return {str(name): data.sorted_values(settings[name]) for name in settings}


def _config_ids() -> tuple[int, ...] | None:
    settings = data.settings()
    chosen = {str(name): st.session_state.get(str(name)) for name in settings}
    if not any(chosen.values()):
        return None
    for name, values in chosen.items():
        if values:
            settings = settings[settings[name].isin(values)]
    return tuple(settings.index.tolist())


def _say_what_is_left() -> None:
    view = current()
    left, runs = data.count_runs(view), data.count_runs(View())
    st.caption(f"{left:,} of {runs:,} runs match the filters.{_say_what_is_summed(view)}")
    st.button("Clear filters", key="clear_filters", on_click=_clear, disabled=_is_plain())


def _say_what_is_summed(view: View) -> str:
    if not view.failing and view.kind is None:
        return ""
    every = data.count_runs(replace(view, failing=False, kind=None))
    return f" Shares and medians are over {every:,}, whether they fail or not."


def _is_plain() -> bool:
    fields = map(str, data.settings())
    return _chosen() == PLAIN and not any(st.session_state.get(x) for x in fields)


def _clear() -> None:
    st.session_state.pop(UNKNOWN, None)
    st.session_state.update(PLAIN)
    for name in data.settings():
        st.session_state[str(name)] = []
