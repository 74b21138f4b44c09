"""Where a model looks in a picture as it writes: a heat map that plays along with the text."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st
from jaxtyping import Float

from dashboard.elements import pictures
from dashboard.model.by_strings.states import Look, one_of
from dashboard.text import verbatim
from seqcls.interpretability.states.output_tokens import OutputToken
from seqcls.pictures.user_pictures import Ink

SECONDS = 0.8
"""Between two characters, as it plays."""

OF_ALL = "mean of all"

Heat = Float[np.ndarray, "token row column"]


@dataclass(frozen=True, eq=False)
class Seen:
    """A picture, what is written of it, and the weights over it at each token."""

    ink: Ink
    written: Sequence[str]
    weights: Float[np.ndarray, "block head token row column"]

    @classmethod
    def of(cls, ink: Ink, tokens: Sequence[OutputToken], weights: np.ndarray) -> "Seen":
        """Builds what is seen from the tokens that are written."""
        return cls(ink, [token.token for token in tokens][: weights.shape[2]], weights)


def show(seen: Seen, name: str, look: Look) -> None:
    """Draws the picture, the weights over it, and what plays them; nothing is computed again.

    Args:
        seen: what there is to draw.
        name: tells it from others on the page; also of the choice of a head in the link.
        look: of the model.
    """
    st.fragment(_of_head)(seen, name, look)


def _of_head(seen: Seen, name: str, look: Look) -> None:
    blocks, heads = seen.weights.shape[:2]
    options = [f"block {block}, head {head}" for block in range(blocks) for head in range(heads)]
    heat = seen.weights.mean(axis=(0, 1))
    if len(options) > 1:
        chosen = one_of("Head", [OF_ALL, *options], OF_ALL, name, look)
        if chosen in options:
            heat = seen.weights[divmod(options.index(chosen), heads)]
    key = f"{name} {look.name}"
    last = len(seen.written)
    plays = st.session_state.get(_plays(key), False)
    if last > 1:
        st.button(
            "Pause" if plays else "Play",
            key=f"{key} play",
            icon=":material/pause:" if plays else ":material/play_arrow:",
            help="Moves the heat map on, character by character.",
            on_click=_turn,
            args=(key, last),
        )
    st.fragment(_at_token, run_every=SECONDS if plays else None)(seen, heat, key)


def _plays(key: str) -> str:
    return f"{key} plays"


def _at(key: str) -> str:
    return f"{key} step"


def _turn(key: str, last: int) -> None:
    """Plays or pauses; from the start where the end was reached."""
    state = st.session_state
    state[_plays(key)] = not state.get(_plays(key), False)
    if state[_plays(key)] and state.get(_at(key), 1) >= last:
        # The first picture that is drawn goes on by one.
        state[_at(key)] = 0


def _at_token(seen: Seen, heat: Heat, key: str) -> None:
    state, last = st.session_state, len(seen.written)
    step = int(state.get(_at(key), 1))
    if state.get(_plays(key)):
        step += 1
    # Another picture's output may be shorter.
    state[_at(key)] = step = min(max(step, 1), last)
    if last > 1:
        step = st.slider("Written so far", 1, last, key=_at(key))
    pictures.place(pictures.heated(seen.ink, heat[step - 1]))
    before, token = "".join(seen.written[: step - 1]), seen.written[step - 1]
    st.markdown(f"{verbatim(before)}:orange-background[{verbatim(token)}]")
    st.caption(
        "Orange: where the model looks as it writes the marked character. The strongest orange is "
        f"the largest weight, {heat[step - 1].max():.3f}."
    )
    if state.get(_plays(key)) and step == last:
        state[_plays(key)] = False
        # What draws the button, and stops the clock, is around this part.
        st.rerun()
