"""Read a paragraph from its picture: an encoder sees a picture of the input, not its tokens.

Input and target are the text. Lines end with `/`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from seqcls.declarations import About
from seqcls.errors import ConfigError
from seqcls.pictures import Page, glyphs_of
from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks.base import Alphabet, LetterRow
from seqcls.tasks.transductions import INPUT, FormTransduction

BREAK = "/"
MAX_PIXELS = 2**20
"""The most pixels of a picture."""

CHARACTERS, LINES = "characters", "lines"
"""Names of features."""


@dataclass(frozen=True)
class PageFields(Alphabet):
    """line_length: Characters of a line of `paragraph` at most.
    max_lines: Lines that a picture has room for.
    font: `pillow`: its bitmap font; `digits`: ten handwritten ones of each.
    distortion: Jitter, spacing, slant, faint ink and noise of pictures; 0 for none.
    """

    line_length: Annotated[int, Field(ge=1, le=200), About("Task", 17)] = 6
    max_lines: Annotated[int, Field(ge=1, le=200), About("Task", 18)] = 6
    font: Annotated[Literal["pillow", "digits"], About("Task", 19)] = "pillow"
    distortion: Annotated[float, Field(ge=0, le=1), About("Task", 20)] = 0.0


@dataclass(frozen=True)
class Paragraph(PageFields, FormTransduction):
    """The text of a picture: `12/3` becomes `12/3`.

    Up to `max_lines` lines, none empty and none longer than `line_length`.

    An input of some length has as few lines as possible; the cells that these leave free are taken
    from uniform lines, one after another. Characters are uniform.
    """

    decided_by = INPUT

    def __post_init__(self) -> None:
        text = self.alphabet or "0123456789"
        if " " in text or BREAK in text:
            raise ConfigError(
                f"alphabet={text!r}: expected characters without {BREAK!r}, which ends a line, and "
                "without spaces"
            )
        object.__setattr__(self, "alphabet", text + BREAK)
        # Called for what it refuses: characters that the font lacks.
        glyphs_of(self.font, text)
        rows, columns = self.page.shape
        if rows * columns > MAX_PIXELS:
            raise ConfigError(
                f"max_lines={self.max_lines}: pictures of {rows} x {columns} pixels are larger "
                f"than {MAX_PIXELS:,}; lower max_lines or line_length"
            )

    @property
    def page(self) -> Page:
        """The layout, font and distortion of pictures."""
        text = self.alphabet.removesuffix(BREAK)
        return Page(text, self.line_length, self.max_lines, self.font, self.distortion)

    @property
    def _break(self) -> int:
        """The letter that ends a line, after those of the text."""
        return len(self.alphabet) - 1

    @property
    def form(self) -> str:
        return (
            f"1 to {self.max_lines} lines of 1 to {self.line_length} characters, with {BREAK!r} "
            "between them"
        )

    def answer(self, letters: list[int]) -> list[int] | None:
        breaks = [place for place, letter in enumerate(letters) if letter == self._break]
        lengths = np.diff([-1, *breaks, len(letters)]) - 1
        fits = len(lengths) <= self.max_lines and lengths.max() <= self.line_length
        return letters if fits and lengths.min() >= 1 else None

    def features(self, strings: TokenStrings) -> Mapping[str, np.ndarray]:
        """Features of a page: characters without line breaks, and lines."""
        breaks = (strings.letters == self._break).sum(axis=1)
        lines = breaks + (strings.lengths > 0)
        page_features = {CHARACTERS: strings.lengths - breaks, LINES: lines}
        return {**page_features, **super().features(strings)}

    def has_input(self, length: int) -> bool:
        lines = self._lines(length)
        return 1 <= lines <= self.max_lines and length - lines + 1 >= lines

    def draw_input(self, rng: np.random.Generator, length: int) -> LetterRow:
        lines = self._lines(length)
        letters = rng.integers(self._break, size=length, dtype=np.uint8)
        # As few lines as possible have little room: the free cells are laid out, not the lines.
        free = lines * self.line_length - (length - lines + 1)
        lengths = np.full(lines, self.line_length)
        while free:
            left = rng.integers(lines)
            if lengths[left] > 1:
                lengths[left] -= 1
                free -= 1
        letters[np.cumsum(lengths + 1)[:-1] - 1] = self._break
        return letters

    def _lines(self, length: int) -> int:
        # Every line but the last takes one token more, for its break; the quotient is rounded up.
        return -(-(length + 1) // (self.line_length + 1)) if length > 0 else 0

    def describe(self) -> str:
        return (
            f"Pictures of up to {self.max_lines} lines of up to {self.line_length} characters are "
            "read; the output is their text."
        )
