"""What a page puts into the address bar, what a link asks for, and links to other pages."""

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from typing import Any, Literal, TypeVar

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import get_script_run_ctx

from dashboard import elements, layout
from dashboard.text import verbatim
from sweeps.api.old_pages.reading import Selection
from sweeps.results import LEARNED_AT

MODEL_PAGE = "screens/model.py"
COMPARE_PAGE = "screens/compare.py"
COMPARE_TWO_PAGE = "screens/compare_two.py"
MAP_PAGE = "screens/map.py"
FAILING_PAGE = "failures/page.py"
SWEEPS_PAGE = "screens/sweeps.py"
LAUNCH_PAGE = "screens/launch.py"
SWITCHED = "switched"
LAST_PAGE = "last page"
CHOSEN = "settings that were clicked"

OWN = ("find", "importance", "language", "sweep_id")
"""Parameters of pages that look like filters' names and are none."""

Mode = Literal["multi-row", "single-row", "single-row-required"]

Option = TypeVar("Option")


@dataclass(frozen=True)
class AskedFilters:
    """What a link asks of the filters, by the parameter; each value is in one of the two."""

    known: Mapping[str, Sequence[Any]]
    """Values that may be chosen, and so are what is shown."""
    unknown: Mapping[str, Sequence[str]]
    """What cannot be chosen, as the link has it: it restricts nothing, and is said."""


def read_filters(
    given: Mapping[str, Sequence[str]],
    several: Mapping[str, Sequence[Any]],
    one: Mapping[str, Callable[[str], Any]],
    others: Iterable[str] = (),
) -> AskedFilters:
    """What a link asks for.

    Args:
        given: the values of each parameter of the link, in order.
        several: the values of each filter of which any number may be chosen.
        one: how the text of each other filter is read; None where it cannot be chosen.
        others: names of settings that are no filter here, no value of which can be chosen.
    """
    known: dict[str, list[Any]] = {}
    unknown: dict[str, list[str]] = {}
    names = {*several, *one, *others}
    for name, texts in given.items():
        # An empty parameter says that nothing is chosen.
        wanted = list(dict.fromkeys(text for text in texts if text))
        if name in several:
            by_text = {str(value): value for value in several[name]}
            read = {text: by_text.get(text) for text in wanted}
            known[name] = [value for value in read.values() if value is not None]
        elif name in one:
            read = {text: one[name](text) for text in wanted}
            # Of several values Streamlit takes the last, and none where that cannot be read.
            known[name] = [value for text, value in read.items() if value is not None][-1:]
        else:
            read = dict.fromkeys(wanted if name in names or _is_almost(name, names) else [])
        if refused := [text for text, value in read.items() if value is None]:
            unknown[name] = refused
    return AskedFilters(known, unknown)


def percentage(text: str) -> float | None:
    """The number from 0 to 100 that a link has; None where it has another text."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number <= 100 else None


THRESHOLDS = {"below": 100.0, "learned": 100 * LEARNED_AT}
"""The filters that say from which accuracies in percent a model fails or has learned, as is usual.
"""


def thresholds() -> Selection:
    """All runs, judged by the accuracies that are set now."""
    chosen = {name: st.session_state.get(name) for name in THRESHOLDS}
    # A threshold of 0 is one, too.
    shares = {
        name: as_share(usual if (own := chosen[name]) is None else float(own))
        for name, usual in THRESHOLDS.items()
    }
    return Selection(below=shares["below"], learned_at=shares["learned"])


def as_share(percent: float) -> float:
    """A percentage as a share in [0, 1]: the float that the same share of strings is.

    As floats 99.9 / 100 is more than 999 / 1000.
    """
    return float(Decimal(str(percent)) / 100)


def _is_almost(name: str, names: Iterable[str]) -> bool:
    """Whether a parameter is most likely a slip in the name of a filter, and no page's own."""
    return name not in OWN and bool(difflib.get_close_matches(name, names, n=1, cutoff=0.75))


def numbers_of(param: str) -> list[int]:
    """The whole numbers that the link gives for a parameter."""
    return [int(x) for x in st.query_params.get_all(param) if x.isdecimal() and len(x) < 19]


def put(param: str, values: Sequence[int]) -> None:
    """Makes the link give these values for a parameter."""
    if numbers_of(param) != list(values):
        st.query_params[param] = [str(value) for value in values]
    if not values and param in st.query_params:
        del st.query_params[param]


def say_what_is_not(param: str, offered: Iterable[Any]) -> None:
    """Says what the link gives for a parameter and is not offered; it is as if it were not there.

    To be called before the control that has the parameter: what it does not know it takes out. What
    was chosen by hand, and is offered no longer, no link asked for.
    """
    if param in st.session_state:
        return
    known = {str(value) for value in offered}
    if unknown := [x for x in st.query_params.get_all(param) if x and x not in known]:
        listed = ", ".join(value[:60] for value in unknown[:10])
        what = "is not one of the choices" if len(unknown) == 1 else "are not among the choices"
        st.warning(verbatim(f"The link asks for {param} {listed}, which {what} here."))


def choice(
    label: str,
    options: Sequence[Option],
    key: str,
    first: Option,
    *,
    place: DeltaGenerator | None = None,
    **more: Any,
) -> Option:
    """One of a few options, which the link names by the key once it is not the first.

    Args:
        label: above them.
        options: all of them.
        key: of the control, and the parameter of the link.
        first: what is chosen until another one is.
        place: where they are drawn, if not next on the page.
        **more: as for `st.segmented_control`.
    """
    say_what_is_not(key, options)
    draw: Any = st if place is None else place
    chosen: Option = draw.segmented_control(
        label, options, default=first, required=True, key=key, bind="query-params", **more
    )
    return chosen


def columns(offered: Sequence[str], always: str) -> list[str]:
    """The columns of a table that are shown: those of the link, else all.

    Args:
        offered: the columns that may be shown, in order.
        always: the column that names the rows, which is always shown.
    """
    given = [] if "columns" in st.session_state else st.query_params.get_all("columns")
    if unknown := [x for x in given if x not in offered]:
        told = verbatim(", ".join(unknown))
        st.caption(f"The link names columns that this table does not have: {told}.")
    with st.popover("Columns", icon=":material/view_column:"):
        chosen = elements.choose_several(
            f"Columns beside {verbatim(always)}",
            list(offered),
            key="columns",
            placeholder="Those that fit",
            bind="query-params",
        )
    return [name for name in offered if name in chosen] or list(offered)


def first_of_page(rows: int, a_page: int, key: str) -> int:
    """The first row of the page that is chosen, from 0; nothing to choose where one page is enough.

    Args:
        rows: how many there are.
        a_page: how many a page has.
        key: of the parameter of the link.
    """
    pages = -(-rows // a_page)
    if pages <= 1:
        return 0
    return (min(st.pagination(pages, key=key, bind="query-params"), pages) - 1) * a_page


def selectable(
    frame: pd.DataFrame,
    ids: Sequence[int],
    param: str,
    *,
    mode: Mode,
    columns: Any,
    most: int = 320,
    order: Sequence[str] | None = None,
) -> list[int]:
    """A table whose selected rows are in the link.

    Args:
        frame: what is shown.
        ids: what each row is called in the link.
        param: the parameter of the link.
        mode: whether any number of rows may be selected, one at most, or one always is, the first
            by itself.
        columns: how the columns are shown.
        most: pixels of its height.
        order: the columns that are shown, in order; all of the frame where it is None.

    Returns:
        The selected ids; where nothing is selected, those of the link that the table does not show.
    """
    before = numbers_of(param)
    rows = [place for place, row_id in enumerate(ids) if row_id in before]
    # Rows are selected by their place: other rows are another table.
    key = f"{param}-{sha256(repr(list(ids)).encode()).hexdigest()[:16]}"
    chosen = [ids[row] for row in _select_rows(frame, rows, mode, columns, key, most, order)]
    if not chosen and not rows:
        return before
    put(param, chosen)
    return chosen


def texts(
    frame: pd.DataFrame, values: Sequence[str], param: str, *, columns: Any, key: str
) -> str | None:
    """A table of which one row may be selected; the text that it is known by is in the link.

    Args:
        frame: what is shown; the link may name its `string`, too.
        values: what each row is called in the link.
        param: the parameter of the link.
        columns: how the columns are shown.
        key: tells the table from others; other rows are another table.

    Returns:
        The selected text; None where no row is selected.
    """
    linked, shown = st.query_params.get(param), frame["string"]
    rows = [row for row, known in enumerate(zip(values, shown, strict=True)) if linked in known]
    chosen = [values[x] for x in _select_rows(frame, rows[:1], "single-row", columns, key)]
    if chosen:
        st.query_params[param] = chosen[0]
    elif rows:
        del st.query_params[param]
    return chosen[0] if chosen else None


def _select_rows(
    frame: pd.DataFrame,
    rows: Sequence[int],
    mode: Mode,
    columns: Any,
    key: str,
    most: int = 320,
    order: Sequence[str] | None = None,
) -> list[int]:
    """A table with these rows selected at first; those that are now."""
    selected = st.dataframe(
        frame,
        column_config=columns,
        column_order=order,
        hide_index=True,
        placeholder="",
        height=layout.table_height(len(frame), most),
        on_select="rerun",
        selection_mode=mode,
        selection_default={"selection": {"rows": list(rows)}},
        key=key,
    )
    return [row for row in selected["selection"]["rows"] if row < len(frame)]


def to_compare(settings: Mapping[str, Any], sweeps: Sequence[str] = ()) -> None:
    """Goes to the page Compare, filtered by these and by what is filtered already.

    Args:
        settings: the value of each field, as the database has it or as text.
        sweeps: names; where none are given those that are chosen stay.
    """
    if sweeps:
        st.session_state["sweep"] = list(sweeps)
    st.session_state[SWITCHED] = True
    st.session_state[CHOSEN] = {
        name: str(value) for name, value in settings.items() if not pd.isna(value)
    }
    # Without any parameters it would ask that filters in the link be cleared, and may not.
    st.switch_page(COMPARE_PAGE, query_params={})


def is_another_page(path: str) -> bool:
    """Whether the session's last run of the script drew another page."""
    before = st.session_state.get(LAST_PAGE, path)
    st.session_state[LAST_PAGE] = path
    return bool(before != path)


def went_back() -> bool:
    """Whether the browser's Back or Forward led here, whose link has the filters of that time."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


def was_switched() -> bool:
    """Whether this run of the script is the first after a click on a chart led to another page."""
    return bool(st.session_state.pop(SWITCHED, False))


def to_model(run_id: int, label: str, **query: str) -> None:
    """A link to the page that looks inside a model, at what the query names."""
    wanted = {"run": str(run_id), **query}
    st.page_link(MODEL_PAGE, label=label, icon=":material/search:", query_params=wanted)
