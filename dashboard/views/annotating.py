"""A sweep's title, note and tags, and its archive."""

import streamlit as st

from dashboard import elements
from dashboard.actions import write
from sweeps.api.old_pages.database import control
from sweeps.api.old_pages.reading import Note
from sweeps.store import writer

ARCHIVED = "show_archived"


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


def _write(sweep_id: int) -> None:
    title, note, tags = (
        st.session_state[f"{x} {sweep_id}"] for x in ("title", "note_text", "tags")
    )
    write(lambda store: writer.write_note(store, sweep_id, title, note, tags))
