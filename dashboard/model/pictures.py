"""Pictures that a model reads, as panels: the input as it is drawn, and where the model looks."""

import base64
import io
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image

from dashboard.model import inside_words as words
from dashboard.section import Panel, Section, Spec
from dashboard.words.sentences import say
from seqcls.errors import ConfigError
from seqcls.interpretability.trained_model import Letters
from seqcls.pictures import COLUMNS, ROWS, Page
from seqcls.questions import RunModel
from seqcls.strings.tokenizer import FIRST_LETTER, Tokenizer
from seqcls.tasks import Task

LONG_SIDE = 300
"""Longer side of a single picture, in screen pixels."""

SMALL_SIDE = 200
"""The same of one of several."""

EDGE = 170
RED = (204, 60, 60)
HEAT = (230, 120, 0)

DRAWN = 24
"""Characters of an output, each of which has a picture."""

Ink = Float[np.ndarray, "row column"]
Weights = Float[np.ndarray, "block head token row column"]
Colors = UInt8[np.ndarray, "row column color"]


def page_of(task: Task) -> Page | None:
    """The page on which a task draws its inputs; None if it draws none."""
    page: Any = getattr(task, "page", None)
    return page if isinstance(page, Page) else None


def picture(task: Task, text: str, marked: int | None = None) -> Panel | None:
    """The picture of an input; None where the task draws none.

    Args:
        task: draws it.
        text: the input, in the usual notation.
        marked: the place of a character that gets a frame.
    """
    if (page := page_of(task)) is None:
        return None
    letters = [x - FIRST_LETTER for x in Tokenizer(task.alphabet).encode(text)[1:]]
    colors = _colors(_ink(page, letters))
    if marked is not None and marked < len(letters):
        # The letter behind those of the page's alphabet breaks a line.
        breaks = [x for x in range(marked) if letters[x] == len(page.alphabet)]
        line, column = len(breaks), marked - (breaks[-1] + 1 if breaks else 0)
        framed = colors[line * ROWS : (line + 1) * ROWS, column * COLUMNS : (column + 1) * COLUMNS]
        # A frame one pixel wide: what it surrounds is put back.
        inner = framed[1:-1, 1:-1].copy()
        framed[...] = RED
        framed[1:-1, 1:-1] = inner
    return Panel(_spec(colors, LONG_SIDE))


def _ink(page: Page, letters: Any) -> Ink:
    (ink,) = page.draw(np.array([letters], dtype=np.uint8))
    return np.asarray(ink)


def _colors(ink: Ink, heat: Float[np.ndarray, "memory_row memory_column"] | None = None) -> Colors:
    """Dark on white, with weights laid over it in orange, the largest strongest."""
    colors = np.repeat(255 * (1 - ink[:, :, None]), 3, axis=2)
    if heat is not None:
        # A weight is of a block of pixels; blocks at the edge may be cut.
        tall, wide = (-(-x // y) for x, y in zip(ink.shape, heat.shape, strict=True))
        over = np.kron(heat / max(heat.max(), 1e-9), np.ones((tall, wide)))
        share = 0.7 * over[: ink.shape[0], : ink.shape[1], None]
        colors = colors * (1 - share) + share * np.array(HEAT)
    return colors.astype(np.uint8)


def _spec(colors: Colors, side: int) -> Spec:
    """A picture as Vega-Lite draws it, with the edge of its paper."""
    pixel = max(side // max(colors.shape[:2]), 1)
    # Enlarged here by whole pixels, as a browser would blur them.
    large = colors.repeat(pixel, axis=0).repeat(pixel, axis=1)
    bordered = np.pad(large, ((1, 1), (1, 1), (0, 0)), constant_values=EDGE)
    file = io.BytesIO()
    Image.fromarray(bordered).save(file, "PNG")
    url = f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
    height, width = bordered.shape[:2]
    middle = {"x": {"value": width / 2}, "y": {"value": height / 2}}
    return {
        "data": {"values": [{"url": url}]},
        "mark": {"type": "image", "width": width, "height": height},
        "encoding": {"url": {"field": "url", "type": "nominal"}, **middle},
        "width": width, "height": height, "autosize": {"type": "pad"},
    }  # fmt: skip


def weights_over(model: RunModel, letters: Letters) -> Weights | None:
    """The weights over the picture of an input at each token that is written.

    Returns:
        None where nothing of the model attends to the picture.

    Raises:
        InvalidStringError: the string is no input of the task, or too long.
    """
    # Imported where it is used: PyTorch takes a second or two to load.
    from seqcls.interpretability.states_by_strings import picture_attention

    try:
        return picture_attention(model, letters)
    except ConfigError:
        return None


def heads_of(weights: Weights | None) -> dict[str, tuple[int, int]]:
    """The block and the number of each head, by what it is called."""
    if weights is None:
        return {}
    pairs = [(block, head) for block, head in np.ndindex(weights.shape[:2])]
    return {f"block {block}, head {head}": (block, head) for block, head in pairs}


def gaze(model: RunModel, letters: Letters, head: str = "") -> Section | None:
    """Attention to the picture at each character written; None if the model reads no pictures.

    Args:
        model: the model.
        letters: of the input.
        head: as `heads_of` calls it; the mean of all heads where it has none of that name.

    Raises:
        InvalidStringError: the string is no input of the task, or too long.
    """
    if (page := page_of(model.task)) is None:
        return None
    ink, weights = _ink(page, letters), weights_over(model, letters)
    if weights is None:
        panel = Panel(_spec(_colors(ink), LONG_SIDE))
        return Section(words.LOOKED_AT, (say("picture"),), None, (panel,))
    named = heads_of(weights)
    heat = weights[named[head]] if head in named else weights.mean(axis=(0, 1))
    output = [x.token for x in model.states(model.text(letters)).output or ()]
    panels = tuple(
        Panel(_spec(_colors(ink, at), SMALL_SIDE), token)
        for token, at in list(zip(output, heat, strict=False))[:DRAWN]
    )
    return Section(words.LOOKED_AT, (), None, panels, words.HEAT)
