"""Deleting a sweep from the page, and taking that back."""

import streamlit as st

from dashboard.sweeps_page import sweep_actions
from dashboard.sweeps_page.deletions import deletions
from dashboard.text import verbatim
from sweeps.read_only import control, refuse_writes
from sweeps.store.opening import open_reader

LOOK_SECONDS = 1.0


def begin(sweep_id: int, name: str) -> None:
    """Has a sweep deleted, unless that is taken back."""

    def do() -> None:
        refuse_writes("deleting a sweep")
        deletions().begin(open_reader().address, sweep_id, name)

    sweep_actions.tried(do)


def hidden() -> set[int]:
    """The sweeps that are shown no longer."""
    return set(deletions().waiting(open_reader().address))


def show() -> None:
    """Offers to take back what was deleted, for as long as that can be done."""
    for problem in deletions().problems():
        st.error(verbatim(problem))
    waiting = deletions().waiting(open_reader().address)
    if waiting:
        # In sight wherever the page is: what deletes stands at its end.
        with st.container(key="undo", border=True):
            st.fragment(_offer, run_every=LOOK_SECONDS)(set(waiting))


def _offer(shown: set[int]) -> None:
    address = open_reader().address
    waiting = deletions().waiting(address)
    if set(waiting) != shown:
        # Done, or taken back elsewhere: what is listed has changed.
        st.rerun()
    for sweep_id, (name, seconds) in waiting.items():
        with st.container(horizontal=True, vertical_alignment="center"):
            st.text(f"{name} is deleted. It can be restored for {seconds:.0f} more seconds.")
            st.button(
                "Undo",
                key=f"undo {sweep_id}",
                on_click=deletions().undo,
                args=(address, sweep_id),
                **control(),
            )
