"""The glyphs of a font, as bitmaps."""

from functools import lru_cache
from importlib.resources import files

import numpy as np
from jaxtyping import Float32
from PIL import ImageFont

from seqcls.errors import ConfigError

Glyphs = Float32[np.ndarray, "letter variant row column"]
"""Ink from 0 to 1; of each letter as many variants."""


@lru_cache(maxsize=16)
def glyphs_of(font: str, alphabet: str) -> Glyphs:
    """The glyphs of an alphabet: of Pillow's bitmap font one each, of digits ten by hand.

    Raises:
        ConfigError: a character has no glyph in the font.
    """
    missing = None
    if font == "digits":
        written = _handwritten()
        missing = next((letter for letter in alphabet if letter not in written), None)
        glyphs = [written[letter] for letter in alphabet if letter in written]
        known = "it has the digits 0 to 9"
    else:
        bitmaps = [_bitmap(letter) for letter in alphabet]
        missing = next((x for x, bits in zip(alphabet, bitmaps, strict=True) if bits is None), None)
        glyphs = [bits[None] for bits in bitmaps if bits is not None]
        known = "it has the characters of Latin-1"
    if missing is not None:
        raise ConfigError(
            f"alphabet={alphabet!r}: {missing!r} has no glyph in font={font!r}; {known}"
        )
    return np.stack(glyphs).astype(np.float32)


def _bitmap(letter: str) -> np.ndarray | None:
    """None where the font has nothing to draw."""
    font = ImageFont.load_default_imagefont()
    if ord(letter) > 255:
        return None
    mask = font.getmask(letter)
    width, height = mask.size
    bits = np.array(mask, dtype=np.float32).reshape(height, width) / 255
    return bits if bits.any() else None


@lru_cache(maxsize=1)
def _handwritten() -> dict[str, np.ndarray]:
    """Reads each digit's pictures, (variant, row, column); where they are from, the file says."""
    text = files("seqcls.pictures").joinpath("digits.txt").read_text(encoding="utf-8")
    bitmaps: dict[str, list[list[int]]] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            digit, levels = line.split()
            bitmaps.setdefault(digit, []).append([int(level, 16) for level in levels])
    return {x: np.array(rows, np.float32).reshape(-1, 8, 8) / 15 for x, rows in bitmaps.items()}
