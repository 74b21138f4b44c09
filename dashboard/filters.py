"""The state that every page shares, kept in the address bar so that a link reproduces the view."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from dashboard import data, elements, links
from dashboard.text import verbatim, without_folder
from dashboard.words import measures, outcomes
from seqcls.config import default_fields
from seqcls.errors import SeqclsError
from seqcls.imported import PREFIX, fields_known
from seqcls.text import count
from sweeps.access import is_read_only
from sweeps.api.old_pages.reading import KINDS, Note, Selection, WrittenValue
from sweeps.results import Outcome
from sweeps.statistics.populations import CLASS

PLAIN: dict[str, Any] = {
    "sweep": [],
    "tag": [],
    "seed": [],
    "outcome": [],
    "failing": False,
    "kind": None,
    **links.THRESHOLDS,
}
"""The filters' keys, which are also their names in the link, with the values that restrict nothing.

The fields of the configuration go by their own names.
"""


ONE = ("failing", "kind", "below", "learned")
"""Filters of one value."""

THRESHOLDS = {"below": "fails below (%)", "learned": "learned from (%)"}
"""What the thresholds are called where filters are listed."""

UNKNOWN = "unknown in the link"
"""What the link asked for and no filter has, by the parameter, until the filters are cleared."""


def show(applied: bool, judges: bool = False) -> None:
    """Draws the filters in the sidebar, where there is anything to filter.

    Args:
        applied: whether the page obeys them; else they are put away, and kept for the others.
        judges: whether a page that does not obey them judges models by their thresholds.
    """
    try:
        offered = _offer()
        if applied:
            # Other pages have parameters of their own, which may be named like settings.
            _take_in()
    except SeqclsError:
        return
    if not offered["seed"]:
        return
    if applied:
        st.header("Filters")
        _show(offered)
    else:
        label = "Filters for other pages"
        # What models are judged by here is seen, once it is not as usual.
        judged = judges and any(name in st.query_params for name in links.THRESHOLDS)
        label = f"Thresholds, and {label[0].lower()}{label[1:]}" if judges else label
        with st.expander(label, expanded=judged):
            _show(offered)


def _show(offered: dict[str, list[Any]]) -> None:
    offered = dict(offered)
    # What is archived is not offered, but can be chosen by a link.
    named = {*(st.session_state.get("sweep") or []), *st.query_params.get_all("sweep")}
    hidden = archived_sweeps() - named
    sweeps = [name for name in offered.pop("sweep") if name not in hidden]
    tags, seeds, came_to = offered.pop("tag"), offered.pop("seed"), offered.pop("outcome")
    if tags:
        elements.choose_several("Tags", tags, key="tag", placeholder="Any", bind="query-params")
    elements.choose_several(
        "Sweeps",
        sweeps,
        key="sweep",
        placeholder="All sweeps",
        bind="query-params",
    )
    elements.choose_several(
        "Model seeds",
        seeds,
        key="seed",
        placeholder="All seeds",
        bind="query-params",
    )
    _results(came_to)
    if offered:
        # Of a link that is followed only now the boxes inside know nothing yet.
        linked = _read_link({name: st.query_params.get_all(name) for name in offered}).known
        chosen = sum(bool(st.session_state.get(name, linked[name])) for name in offered)
        with st.popover(f"Settings ({chosen} chosen)" if chosen else "Settings", width="stretch"):
            for name, values in offered.items():
                # Settings of models trained elsewhere have any signs in their names.
                label = verbatim(name) if name.startswith(PREFIX) else name
                elements.choose_several(
                    label,
                    values,
                    key=name,
                    placeholder="Any",
                    bind="query-params",
                )
    _say_what_is_left()


def send_again() -> None:
    """Has the browser put every filter that is set into the address bar once more.

    A switch of the page from within the script names only the new page's own parameters. To be
    called before the filters are drawn: what is assigned then is sent, changed or not.
    """
    try:
        names = [*PLAIN, *_fields()]
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
        known = _read_link({name: _named_by_link(name) for name in st.query_params}).known
    except SeqclsError:
        return
    for name, values in known.items():
        if values and name in st.session_state:
            st.session_state[name] = values[-1] if name in ONE else values


def _named_by_link(name: str) -> list[str]:
    """What the link itself gives for a filter: the browser puts what was set already before it."""
    given = st.query_params.get_all(name)
    chosen = st.session_state.get(name)
    before = [str(value) for value in chosen] if isinstance(chosen, list) else []
    merged = len(given) > len(before) and given[: len(before)] == before
    return given[len(before) :] if merged else given


def _offer() -> dict[str, list[Any]]:
    """What may be chosen in each filter of several values."""
    sweeps = list(data.sweep_names().values())
    tags = sorted({tag for note in _notes().values() for tag in note.tags})
    came_to = [outcome.value for outcome in Outcome]
    seeds = data.model_seeds()
    return {"sweep": sweeps, "tag": tags, "seed": seeds, "outcome": came_to, **_fields()}


def _read_link(given: Mapping[str, Sequence[str]]) -> links.AskedFilters:
    """What a link asks of the filters."""
    several, defaults = _offer(), default_fields()
    one: dict[str, Callable[[str], Any]] = {
        "failing": lambda text: {"true": True, "false": False}.get(text.lower()),
        "kind": lambda text: text if text in _kinds() else None,
        "below": links.percentage,
        "learned": links.percentage,
    }
    foreign = [name for name in given if name.startswith(PREFIX)]
    if alike := [name for name in given if name in {*defaults, *foreign} - several.keys()]:
        # All configurations have the same value of them.
        for config in data.some_configs((*data.languages(),)[:1]).values():
            fields = fields_known(config)
            one |= {name: partial(_read, [fields.get(name)]) for name in alike}
    if CLASS in given and CLASS not in several:
        one[CLASS] = partial(_read, data.classes().dropna().unique().tolist())
    return links.read_filters(given, several, one, [*defaults, *foreign])


def _kinds() -> Sequence[str]:
    return KINDS if measures.has_cells(data.languages()) else ()


def _read(values: Sequence[Any], text: str) -> Any:
    """The one of these values that a text means; None where it means none."""
    return next(iter(WrittenValue(text).matching(values)), None)


def _take_in() -> None:
    """Remembers what the link asks for and no filter has: Streamlit takes it out of the link."""
    given = {name: st.query_params.get_all(name) for name in st.query_params}
    for name, values in _read_link(given).unknown.items():
        before = st.session_state.setdefault(UNKNOWN, {}).get(name, [])
        st.session_state[UNKNOWN][name] = list(dict.fromkeys([*before, *values]))


def say_read_only() -> None:
    """Says above a page that only reads what it shows."""
    if not is_read_only():
        return
    try:
        name, runs = without_folder(data.reader().name), data.count_runs(Selection())
    except SeqclsError:
        return
    models = count(runs, "model")
    st.caption(verbatim(f"Read-only: {models} of {name}. Nothing can be changed here."))


def say_what_is_unknown() -> None:
    """Says above a page what its link asks for and no filter has; it restricts nothing."""
    if not (asked := st.session_state.get(UNKNOWN)):
        return
    try:
        still = _read_link(asked).unknown
    except SeqclsError:
        return
    for name, values in still.items():
        listed = ", ".join(value[:60] for value in values[:10])
        be, they = ("is", "it restricts") if len(values) == 1 else ("are", "they restrict")
        where = "not in this database"
        if name in links.THRESHOLDS:
            where, they = "not a number from 0 to 100", they.replace("restrict", "change")
        st.warning(
            verbatim(f"The link asks for {name} {listed}, which {be} {where}; {they} nothing.")
        )


def _take_clicked() -> None:
    """Filters by the settings of a cell that was clicked on a map."""
    fields = _fields()
    for name, text in st.session_state.pop(links.CHOSEN, {}).items():
        if name in fields:
            st.session_state[name] = WrittenValue(text).matching(fields[name])


def archived_sweeps() -> set[str]:
    """The names of the sweeps that are archived."""
    return {name for name, note in _notes().items() if note.archived_at is not None}


def _notes() -> dict[str, Note]:
    """What is written about sweeps, by their names."""
    written = data.sweep_notes()
    return {name: written[key] for key, name in data.sweep_names().items() if key in written}


def _sweeps(chosen: Sequence[str], tags: Sequence[str]) -> tuple[str, ...] | None:
    """The sweeps that pass these filters; empty means all, None means none."""
    if not tags:
        return tuple(chosen)
    hidden, written = archived_sweeps(), _notes()
    names = chosen or [name for name in data.sweep_names().values() if name not in hidden]
    return tuple(x for x in names if {*tags} & {*written.get(x, Note()).tags}) or None


def _chosen_values() -> dict[str, Any]:
    set_to = {key: st.session_state.get(key) for key in PLAIN}
    # A threshold of 0 is one, too.
    return {key: PLAIN[key] if value is None else value for key, value in set_to.items()}


def describe_filters() -> str:
    """What is chosen beside sweeps, in a line; empty where nothing is."""
    chosen = {key: value for key, value in _chosen_values().items() if value != PLAIN[key]}
    chosen.pop("sweep", None)
    chosen |= {name: st.session_state.get(name) for name in _fields()}
    said = [
        f"{THRESHOLDS.get(name, name)} = "
        f"{', '.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in chosen.items()
        if value not in (None, [])
    ]
    return f"Filtered by {'; '.join(said)}." if said else ""


NONE_TESTED = (
    "No model that matches the filters is trained and tested. Clear them in the sidebar, or wait "
    "for the first results."
)


def say_none(said: str = NONE_TESTED) -> None:
    """Says that a page has nothing to show; where there is no sweep, what to do."""
    if data.progress():
        st.info(said)
        return
    st.info("No sweeps yet.")
    # The sidebar, where such a link is too, is folded in a narrow window.
    if not is_read_only():
        st.page_link(links.LAUNCH_PAGE, label="Launch a sweep", icon=":material/rocket_launch:")


def current() -> Selection:
    """The filters as they are set now."""
    state = _chosen_values()
    sweeps = _sweeps(state["sweep"], state["tag"])
    return replace(
        links.thresholds(),
        sweeps=sweeps or (),
        # What is named is shown, archived or not.
        without=() if sweeps else tuple(sorted(archived_sweeps())),
        model_seeds=tuple(state["seed"]),
        config_ids=() if sweeps is None else _config_ids(),
        failing=state["failing"],
        outcomes=tuple(map(Outcome, state["outcome"])),
        kind=state["kind"],
    )


def describe_picked(view: Selection) -> list[str]:
    """What each model does that the filters pick by its results, as Markdown, such as `fails`."""
    picked = ["fails"] if view.failing else []
    if view.outcomes:
        picked.append(f"has the outcome {' or '.join(f'*{each}*' for each in view.outcomes)}")
    return picked if view.kind is None else [*picked, f"has {view.kind}"]


def _results(came_to: Sequence[str]) -> None:
    words = measures.words_of(data.languages()).words
    missed = words.misses.format(f"at least one of its {words.plural('test')}")
    elements.choose_several(
        "Outcome",
        came_to,
        key="outcome",
        placeholder="Any",
        bind="query-params",
        help=f"{verbatim(outcomes.meaning(words))} Shares and medians still cover all models.",
    )
    st.toggle(
        "Only failing models",
        key="failing",
        bind="query-params",
        help="Lists and plots only models that fail on the whole test, whether they learned or "
        "not. Shares and medians still cover all models.",
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
        help=f"At 100, a model fails if it {verbatim(missed)}. For its outcome, its accuracy on "
        f"{verbatim(words.plural(''))} longer than those of training counts.",
    )
    st.number_input(
        "Learned: accuracy of at least (%)",
        min_value=0.0,
        max_value=100.0,
        value=PLAIN["learned"],
        step=0.5,
        format="%.1f",
        key="learned",
        bind="query-params",
        help=f"On {verbatim(words.plural(''))} of trained lengths. Longer ones say nothing about a "
        "model that has not learned these.",
    )
    if not measures.has_cells(data.languages()):
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
    if CLASS not in settings and data.classes().nunique() > 1:
        settings = settings.assign(**{CLASS: data.classes()})
    return {str(name): data.sorted_values(settings[name]) for name in settings}


def _config_ids() -> tuple[int, ...] | None:
    settings = data.settings()
    chosen = {name: st.session_state.get(name) for name in _fields()}
    if not any(chosen.values()):
        return None
    # As on maps: a model has no value of a setting that it does not read.
    settings = data.read_settings(tuple(settings.index.tolist()))
    for name, values in chosen.items():
        if values:
            settings = settings[settings[name].isin(values)]
    return tuple(settings.index.tolist())


def _say_what_is_left() -> None:
    view = current()
    left, runs = data.count_runs(view), data.count_runs(Selection())
    st.caption(f"{left:,} of {count(runs, 'run')} match the filters.{_say_what_is_summed(view)}")
    st.button("Clear filters", key="clear_filters", on_click=clear, disabled=_is_plain())


def _say_what_is_summed(view: Selection) -> str:
    if not view.picks:
        return ""
    whichever = "whatever its outcome" if view.outcomes else "whether it fails or not"
    return f" Shares and medians of a configuration count each of its models, {whichever}."


def _is_plain() -> bool:
    if st.session_state.get(UNKNOWN):
        return False
    return _chosen_values() == PLAIN and not any(st.session_state.get(x) for x in _fields())


def clear(keep: Collection[str] = ()) -> None:
    """Takes every filter back but those of these keys."""
    # The parameters of filters are theirs, and are cleared with them.
    for name in {*st.session_state.pop(UNKNOWN, {})} - {*PLAIN, *_fields()}:
        st.query_params.pop(name, None)
    st.session_state.update({key: value for key, value in PLAIN.items() if key not in keep})
    for name in _fields():
        st.session_state[name] = []
