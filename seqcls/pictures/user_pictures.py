"""Pictures of one's own, as large as those that a model reads: of a PNG, or drawn of any text.

A PNG may be anybody's. It is refused by its bytes and by the sides that its header says, before any
pixel of it is unpacked.
"""

import io
import struct

import numpy as np
from jaxtyping import Float32
from PIL import Image

from seqcls.errors import PictureError
from seqcls.pictures import Page

Ink = Float32[np.ndarray, "row column"]
"""0 is paper, 1 is black."""

MAX_BYTES = 2_000_000
MAX_PIXELS = 4_000_000
SIGNATURE = b"\x89PNG\r\n\x1a\n"
HEADER = 24
"""Bytes up to the end of the sides."""

BREAK = "/"
"""Between the lines of a text."""


def picture_of_png(content: bytes, shape: tuple[int, int]) -> Ink:
    """A PNG in gray, as large as it fits into the upper left of a page of paper.

    Args:
        shape: rows and columns of the page.

    Raises:
        PictureError: it is none that can be read, or too large.
    """
    if len(content) > MAX_BYTES:
        raise PictureError(
            f"the picture has {len(content):,} bytes, more than {MAX_BYTES:,}; make it smaller"
        )
    if not content.startswith(SIGNATURE) or len(content) < HEADER:
        raise PictureError(f"the file begins with {content[:8]!r}: expected a PNG; save it as one")
    _check_size(*struct.unpack(">II", content[HEADER - 8 : HEADER]))
    try:
        with Image.open(io.BytesIO(content), formats=["PNG"]) as opened:
            # A second header may have said otherwise.
            _check_size(*opened.size)
            return _on_page(_gray(opened), shape)
    except PictureError:
        raise
    except Exception as error:
        # Pillow raises whatever its parsers and zlib do.
        said = " ".join(str(error).split())[:100] or type(error).__name__
        raise PictureError(f"the PNG cannot be read ({said}); save it anew") from None


def picture_of_text(text: str, shape: tuple[int, int], font: str, distortion: float) -> Ink:
    """Any text drawn as a task draws its inputs, of whichever characters a font has.

    Args:
        text: lines with `/` between them.

    Raises:
        ConfigError: a character has no glyph in the font.
        PictureError: no text, or more than the page has room for.
    """
    alphabet = "".join(sorted(set(text) - {BREAK}))
    if not alphabet:
        raise PictureError(f"the text {text!r} has no characters to draw; type some, such as 12/3")
    page = Page.of_shape(alphabet, shape, font, distortion)
    lines = text.split(BREAK)
    longest = max(map(len, lines))
    if len(lines) > page.max_lines or longest > page.line_length:
        raise PictureError(
            f"the text has {len(lines)} lines of up to {longest} characters, and the page has room "
            f"for {page.max_lines} of {page.line_length}; shorten it"
        )
    letters = [len(alphabet) if x == BREAK else alphabet.index(x) for x in text]
    (picture,) = page.draw(np.array([letters], dtype=np.uint8))
    ink: Ink = picture
    return ink


def _check_size(columns: int, rows: int) -> None:
    if columns * rows > MAX_PIXELS:
        raise PictureError(
            f"the picture has {columns:,} x {rows:,} pixels, more than {MAX_PIXELS:,} in all; make "
            "it smaller"
        )


def _gray(opened: Image.Image) -> Image.Image:
    """What a viewer shows on white paper, 0 for black."""
    if opened.mode.startswith("I"):
        # 16 bits a pixel, which Pillow would cut off instead of scaling.
        return Image.fromarray((np.asarray(opened) // 257).astype(np.uint8))
    colors = opened.convert("RGBA")
    paper = Image.new("RGBA", colors.size, "white")
    return Image.alpha_composite(paper, colors).convert("L")


def _on_page(gray: Image.Image, shape: tuple[int, int]) -> Ink:
    rows, columns = shape
    scale = min(columns / gray.width, rows / gray.height)
    sides = [min(max(round(x * scale), 1), most) for x, most in
             ((gray.width, columns), (gray.height, rows))]  # fmt: skip
    scaled = gray.resize((sides[0], sides[1]), Image.Resampling.LANCZOS)
    ink = np.zeros(shape, dtype=np.float32)
    ink[: sides[1], : sides[0]] = 1 - np.asarray(scaled, dtype=np.float32) / 255
    return ink
