"""Chips of settings, and pictures of inputs."""

import html
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from jaxtyping import Float, UInt8

from dashboard.text import format_value
from seqcls.pictures import COLUMNS, ROWS, Page
from seqcls.pictures.user_pictures import Ink
from seqcls.strings.tokenizer import FIRST_LETTER, Tokenizer
from seqcls.tasks import Task

NOTHING = "none"
"""A value that is the empty text."""


def choose_several(label: str, offered: Sequence[Any], **given: Any) -> list[Any]:
    """A box for several values, given what `st.multiselect` is.

    Enter takes what was typed; by itself Streamlit would take all that is like it.
    """
    return st.multiselect(label, offered, select_all=False, **given)


def show_chips(settings: Mapping[str, object], *, empty: str = "") -> None:
    """A row of chips.

    Args:
        settings: values by the names of the settings; what is missing has no chip, and where the
            value is empty the name stands alone.
        empty: what is said where there is none.
    """
    known = {name: value for name, value in settings.items() if not _is_missing(value)}
    if known or empty:
        st.html(f'<div class="chips">{"".join(map(_chip, known, known.values())) or empty}</div>')


def _chip(name: str, value: object) -> str:
    told = _value(value) if value != "" else ""
    return f"<span><em>{html.escape(name)}</em> {told}</span>"


def _value(value: object) -> str:
    said = "not read" if _is_missing(value) else format_value(value) or NOTHING
    return f"<b>{html.escape(said)}</b>"


def _is_missing(value: object) -> bool:
    return value is None or bool(pd.isna(value))  # type: ignore[call-overload]


WIDTH = 640
"""Screen pixels of a picture at most."""
ENLARGED = 10
"""Screen pixels of a pixel's side at most."""
LONG_SIDE = 480
"""Screen pixels of what is enlarged."""

EDGE = 170
RED = (204, 60, 60)
HEAT = (230, 120, 0)

Colors = UInt8[np.ndarray, "row column color"]


def show_picture(task: Task, text: str, marked: int | None = None) -> None:
    """Shows the picture of an input, a token of it marked; nothing where the task draws none."""
    page = page_of(task)
    if page is None:
        return
    place_picture(color_picture(page, letters_of(task, text), marked))
    st.caption(
        "What the model saw." + ("" if marked is None else " Framed: the first wrong character.")
    )


def page_of(task: Task) -> Page | None:
    """How a task draws its inputs; None where it draws none."""
    page: Any = getattr(task, "page", None)
    return page if isinstance(page, Page) else None


def letters_of(task: Task, text: str) -> list[int]:
    """The letters of a text in the usual notation."""
    ids = Tokenizer(task.alphabet).encode(text)[1:]
    return [token - FIRST_LETTER for token in ids]


def color_picture(page: Page, letters: list[int], marked: int | None = None) -> Colors:
    """The picture of an input, dark on white, a few screen pixels a pixel.

    Args:
        page: how it is drawn.
        letters: of the input.
        marked: the place of a letter that gets a frame.
    """
    (ink,) = page.draw(np.array([letters], dtype=np.uint8))
    colors = overlay_heat(ink)
    if marked is not None and marked < len(letters):
        breaks = [x for x in range(marked) if letters[x] == len(page.alphabet)]
        line, column = len(breaks), marked - (breaks[-1] + 1 if breaks else 0)
        tall, wide = (x * len(colors) // len(ink) for x in (ROWS, COLUMNS))
        top, left = line * tall, column * wide
        framed = colors[top : top + tall, left : left + wide]
        inner = framed[2:-2, 2:-2].copy()
        framed[...] = RED
        framed[2:-2, 2:-2] = inner
    return colors


def overlay_heat(
    ink: Ink, heat: Float[np.ndarray, "memory_row memory_column"] | None = None
) -> Colors:
    """A picture in colors, enlarged, with weights laid over it in orange, the largest strongest."""
    colors = np.repeat(255 * (1 - ink[:, :, None]), 3, axis=2)
    if heat is not None:
        tall, wide = (-(-x // y) for x, y in zip(ink.shape, heat.shape, strict=True))
        over = np.kron(heat / max(heat.max(), 1e-9), np.ones((tall, wide)))
        share = 0.7 * over[: ink.shape[0], : ink.shape[1], None]
        colors = colors * (1 - share) + share * np.array(HEAT)
    enlarged = max(min(ENLARGED, LONG_SIDE // max(ink.shape)), 1)
    return colors.astype(np.uint8).repeat(enlarged, axis=0).repeat(enlarged, axis=1)


def place_picture(colors: Colors) -> None:
    """Puts a picture on the page, with the edge of its paper."""
    bordered = np.pad(colors, ((1, 1), (1, 1), (0, 0)), constant_values=EDGE)
    st.image(bordered, width=min(WIDTH, bordered.shape[1]))
