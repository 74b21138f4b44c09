"""The section in which a string is typed, and epochs are played, without a rerun of the page."""

from collections.abc import Callable, Sequence
from pathlib import Path

import streamlit as st

from dashboard.charts.colors import AWAY, FALSE_NEGATIVE, GREY, TOWARDS
from dashboard.placement import ground

HERE = Path(__file__).parent
HINT = (
    "Each row of a map is a token that attends, or a unit; hover over a cell for its number. Green "
    "dots are prefixes that the model predicts positive, or tokens that it is sure of."
)
NO_FILM = (
    "No film: only the best epoch of this model is stored. A sweep keeps every epoch with "
    '`checkpoints = "every_epoch"`, or the box *Keep the weights of every epoch* on the page '
    "Launch."
)

_typed = st.components.v2.component(
    "seqcls_live",
    html=(HERE / "typed.html").read_text(encoding="utf-8"),
    css=(HERE / "typed.css").read_text(encoding="utf-8"),
    js=(HERE / "typed.js").read_text(encoding="utf-8"),
)


def show(
    run_id: int, string: str, epochs: Sequence[int], kept: int, take: Callable[[str], None]
) -> None:
    """Draws it.

    Args:
        run_id: of the model.
        string: that it begins with.
        epochs: whose weights can be looked at, in order, 0 among them.
        kept: the best of them.
        take: makes a string that of the other sections.
    """
    key = f"live {run_id}"

    def took() -> None:
        taken = st.session_state[key].get("taken")
        if isinstance(taken, str):
            take(taken)

    on = ground()
    colors = {"away": AWAY, "towards": TOWARDS, "wrong": FALSE_NEGATIVE, "grey": GREY}
    _typed(
        key=key,
        data={
            "run": run_id,
            "string": string,
            "epochs": list(epochs),
            "kept": kept,
            "has_film": len(epochs) > 2,
            "colors": {name: on.colors.get(color, color) for name, color in colors.items()},
            "amounts": list(on.amounts),
            "background": on.background,
        },
        on_taken_change=took,
    )
    st.caption(HINT)
    if len(epochs) <= 2:
        st.caption(NO_FILM)
