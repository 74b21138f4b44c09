"""A sweep's title, note and tags, its archive, and views that are saved by name."""

from urllib.parse import parse_qs, urlencode

import streamlit as st

from dashboard import data, elements, links
from dashboard.actions import write
from dashboard.text import verbatim
from sweeps.access import control
from sweeps.api.reading import NamedView, Note
from sweeps.store import writer

ARCHIVED = "show_archived"
PAGES = {
    "": (links.COMPARE_PAGE, "Compare"),
    "map": (links.MAP_PAGE, "Map"),
    "failing": (links.FAILING_PAGE, "Failing models"),
    "sweeps": ("screens/sweeps.py", "Sweeps"),
    "model": (links.MODEL_PAGE, "Model"),
}
"""The pages of which a view can be saved, by their paths."""


def form(sweep_id: int, note: Note, known: list[str]) -> None:
    """What is written about a sweep, to be changed.

    Args:
        sweep_id: the sweep.
        note: what is written about it now.
        known: the tags of all sweeps, which are offered.
    """
    with st.popover("Title, note, tags", icon=":material/edit:"), st.form(f"note {sweep_id}"):
        title, text = f"title {sweep_id}", f"note_text {sweep_id}"
        st.text_input("Title", note.title, key=title, max_chars=writer.LONGEST_NAME, **control())
        st.text_area("Note", note.note, key=text, max_chars=writer.LONGEST_NOTE, **control())
        elements.choose_several(
            "Tags",
            sorted({*known, *note.tags}),
            default=list(note.tags),
            key=f"tags {sweep_id}",
            accept_new_options=True,
            placeholder="None",
            **control(),
        )
        st.form_submit_button(
            "Save", on_click=_write, args=(sweep_id,), type="primary", **control()
        )


def archive_button(sweep_id: int, note: Note) -> None:
    """Archives a sweep, or takes that back."""
    archived = note.archived_at is not None
    st.button(
        "Restore from archive" if archived else "Archive",
        key=f"archive {sweep_id}",
        icon=":material/unarchive:" if archived else ":material/archive:",
        on_click=write,
        args=(lambda store: writer.archive(store, sweep_id, not archived),),
        **control("An archived sweep is hidden from lists and filters. Nothing is deleted."),
    )


def show_views(page: str) -> None:
    """The saved views, and a box that saves this one.

    Args:
        page: the path of the page that is shown.
    """
    saved = data.saved_views()
    label = f"Saved views ({len(saved)})" if saved else "Saved views"
    with st.popover(label, icon=":material/bookmark:", width="stretch"):
        for view in saved:
            _view(view)
        if page not in PAGES:
            return
        st.text_input(
            "Name for this view", key="view_name", max_chars=writer.LONGEST_NAME, **control()
        )
        query = urlencode(
            [(key, value) for key in st.query_params for value in st.query_params.get_all(key)]
        )
        st.button(
            "Save this view", key="save_view", on_click=_save, args=(page, query), **control()
        )


def _view(view: NamedView) -> None:
    if view.page not in PAGES:
        return
    file, title = PAGES[view.page]
    left, right = st.columns([5, 1], vertical_alignment="center")
    # An empty parameter says that nothing is chosen, which is not what a page begins with.
    query = parse_qs(view.query, keep_blank_values=True)
    left.page_link(file, label=f"{verbatim(view.name)} ({title})", query_params=query)
    right.button(
        "",
        key=f"forget view {view.name}",
        icon=":material/close:",
        **control("Delete this view."),
        type="tertiary",
        on_click=write,
        args=(lambda store: writer.delete_view(store, view.name),),
    )


def _write(sweep_id: int) -> None:
    title, note, tags = (
        st.session_state[f"{x} {sweep_id}"] for x in ("title", "note_text", "tags")
    )
    write(lambda store: writer.write_note(store, sweep_id, title, note, tags))


def _save(page: str, query: str) -> None:
    name = st.session_state["view_name"]
    write(lambda store: writer.save_view(store, NamedView(name, page, query)))
    st.session_state["view_name"] = ""
