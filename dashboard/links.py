"""What a page puts into the address bar, what a link asks for, and links to other pages."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, Literal, TypeVar

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import elements, layout
from dashboard.text import verbatim
from sweeps.api.reading import Selection
from sweeps.results import LEARNED_AT

MODEL_PAGE = "screens/model.py"
CHOSEN = "settings that were clicked"

OWN = ("find", "importance", "language", "sweep_id")
"""Parameters of pages that look like filters' names and are none."""

Mode = Literal["multi-row", "single-row", "single-row-required"]

Option = TypeVar("Option")


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


def to_model(run_id: int, label: str, **query: str) -> None:
    """A link to the page that looks inside a model, at what the query names."""
    wanted = {"run": str(run_id), **query}
    st.page_link(MODEL_PAGE, label=label, icon=":material/search:", query_params=wanted)
