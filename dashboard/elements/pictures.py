"""Pictures of inputs whose task draws them: what a model sees."""

from typing import Any

import numpy as np
import streamlit as st
from jaxtyping import Float, UInt8

from seqcls.pictures.own import Ink
from seqcls.pictures.page import COLUMNS, ROWS, Page
from seqcls.tasks import Task
from seqcls.tokens.tokenizer import FIRST_LETTER, Tokenizer

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


def show(task: Task, text: str, marked: int | None = None) -> None:
    """Shows the picture of an input, a token of it marked; nothing where the task draws none."""
    page = page_of(task)
    if page is None:
        return
    place(colored(page, letters_of(task, text), marked))
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


def colored(page: Page, letters: list[int], marked: int | None = None) -> Colors:
    """The picture of an input, dark on white, a few screen pixels a pixel.

    Args:
        page: how it is drawn.
        letters: of the input.
        marked: the place of a letter that gets a frame.
    """
    (ink,) = page.draw(np.array([letters], dtype=np.uint8))
    colors = heated(ink)
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


def heated(ink: Ink, heat: Float[np.ndarray, "memory_row memory_column"] | None = None) -> Colors:
    """A picture in colors, enlarged, with weights laid over it in orange, the largest strongest."""
    colors = np.repeat(255 * (1 - ink[:, :, None]), 3, axis=2)
    if heat is not None:
        tall, wide = (-(-x // y) for x, y in zip(ink.shape, heat.shape, strict=True))
        over = np.kron(heat / max(heat.max(), 1e-9), np.ones((tall, wide)))
        share = 0.7 * over[: ink.shape[0], : ink.shape[1], None]
        colors = colors * (1 - share) + share * np.array(HEAT)
    enlarged = max(min(ENLARGED, LONG_SIDE // max(ink.shape)), 1)
    return colors.astype(np.uint8).repeat(enlarged, axis=0).repeat(enlarged, axis=1)


def place(colors: Colors) -> None:
    """Puts a picture on the page, with the edge of its paper."""
    bordered = np.pad(colors, ((1, 1), (1, 1), (0, 0)), constant_values=EDGE)
    st.image(bordered, width=min(WIDTH, bordered.shape[1]))
