"""Gray pictures of text: the glyphs of a font, and pages drawn with them.

A page has room for `max_lines` lines of `line_length` characters, each in a cell of 16 x 8 pixels.
With `distortion` above 0 characters are moved, lines are set narrower and slanted, ink is fainter
and all pixels have noise. A hash of the string determines these, so a string always has the same
picture.
"""

from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

import numpy as np
from jaxtyping import Float32, Float64, UInt8, UInt64
from PIL import ImageFont

from seqcls.errors import ConfigError
from seqcls.strings.token_strings import NO_LETTER

__all__ = ["COLUMNS", "ROWS", "Page", "glyphs_of"]

Glyphs = Float32[np.ndarray, "letter variant row column"]
"""Ink from 0 to 1; all letters have the same number of variants."""


@lru_cache(maxsize=16)
def glyphs_of(font: str, alphabet: str) -> Glyphs:
    """Returns the glyphs of an alphabet: one each of Pillow's bitmap font, or ten written digits.

    Raises:
        ConfigError: a character has no glyph in the font.
    """
    if font == "digits":
        glyphs, known = _handwritten(), "it has the digits 0 to 9"
    else:
        bitmaps = {letter: _bitmap(letter) for letter in alphabet}
        glyphs = {letter: bits[None] for letter, bits in bitmaps.items() if bits is not None}
        known = "it has the characters of Latin-1"
    for letter in alphabet:
        if letter not in glyphs:
            raise ConfigError(
                f"alphabet={alphabet!r}: {letter!r} has no glyph in font={font!r}; {known}"
            )
    return np.stack([glyphs[letter] for letter in alphabet]).astype(np.float32)


def _bitmap(letter: str) -> np.ndarray | None:
    """Renders a letter of Pillow's bitmap font; None if the font has no glyph for it."""
    font = ImageFont.load_default_imagefont()
    # The bitmap font holds Latin-1, and no character beyond.
    if ord(letter) > 255:
        return None
    mask = font.getmask(letter)
    width, height = mask.size
    bits = np.array(mask, dtype=np.float32).reshape(height, width) / 255
    return bits if bits.any() else None


@lru_cache(maxsize=1)
def _handwritten() -> dict[str, np.ndarray]:
    """Reads each digit's pictures, (variant, row, column); the file names their source."""
    text = files("seqcls.pictures").joinpath("digits.txt").read_text(encoding="utf-8")
    bitmaps: dict[str, list[list[int]]] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            digit, levels = line.split()
            bitmaps.setdefault(digit, []).append([int(level, 16) for level in levels])
    # Levels are single hexadecimal digits, so that 15 is black.
    return {x: np.array(rows, np.float32).reshape(-1, 8, 8) / 15 for x, rows in bitmaps.items()}


ROWS, COLUMNS = 16, 8
"""Size of a character's cell in pixels."""

LEFT_OUT = 0.15
"""The largest narrowing of a character's step, in cell widths."""
SLANT = 0.25
"""The largest slant, in columns a row."""
FAINTEST = 0.5
NOISE = 0.4

Pictures = Float32[np.ndarray, "string row column"]
"""Ink: 0 is paper, 1 is black."""
Hashes = UInt64[np.ndarray, " string"]

_ODD = np.uint64(0x9E3779B97F4A7C15)
# Numbers of a string, and of its pixels, begin beyond those of all its characters.
_STRING_STREAM, _PIXEL_STREAM = 1 << 20, 1 << 21


@dataclass(frozen=True)
class Page:
    """The layout of paragraphs over an alphabet."""

    alphabet: str
    line_length: int
    max_lines: int
    font: str
    distortion: float

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of a picture."""
        return self.max_lines * ROWS, self.line_length * COLUMNS

    def draw(self, letters: UInt8[np.ndarray, "string position"]) -> Pictures:
        """Draws strings with `NO_LETTER` after each; ink beyond the page is cut off.

        The letter after the alphabet's last begins a line.
        """
        strings, hashes = len(letters), _hashes(letters)
        breaks = letters == len(self.alphabet)
        lines = breaks.cumsum(axis=1)
        places = np.arange(letters.shape[1])
        starts = np.maximum.accumulate(np.where(breaks, places + 1, 0), axis=1)
        string, at = np.nonzero(letters < len(self.alphabet))
        line, column = lines[string, at], (places - starts)[string, at]

        def by_character(number: int) -> Float64[np.ndarray, " character"]:
            # Each character has a range of eight numbers.
            return _uniform(hashes[string] + _ODD * (8 * at + number).astype(np.uint64))

        def shared(number: int) -> Float64[np.ndarray, " string"]:
            return _uniform(hashes + _ODD * np.array([_STRING_STREAM + number], np.uint64))

        glyphs = glyphs_of(self.font, self.alphabet)
        variants, height, width = glyphs.shape[1:]
        drawn = glyphs[letters[string, at], (by_character(0) * variants).astype(np.int64)]
        free = (ROWS - height) / 2
        top = line * ROWS + free + (2 * by_character(1) - 1) * free * self.distortion
        step = COLUMNS * (1 - LEFT_OUT * self.distortion * shared(0))
        left = (
            column * step[string]
            + (COLUMNS - width) / 2
            + (2 * by_character(2) - 1) * self.distortion
        )
        slant = SLANT * self.distortion * (2 * shared(1) - 1)
        character, row, across = np.nonzero(drawn)
        shift = slant[string][character] * (height / 2 - row)
        # Halves are rounded up: rounding to even would leave out every other row of a glyph.
        y = np.floor(top[character] + row + 0.5).astype(np.int64)
        x = np.floor(left[character] + across + shift + 0.5).astype(np.int64)
        rows, columns = self.shape
        inside = (y >= 0) & (y < rows) & (x >= 0) & (x < columns)
        pixels = ((string[character] * rows + y) * columns + x)[inside]
        ink = drawn[character, row, across][inside]
        ink_sums = np.bincount(pixels, ink, minlength=strings * rows * columns)
        pictures = np.minimum(ink_sums, 1).astype(np.float32).reshape(strings, rows * columns)
        if self.distortion:
            faint = 1 - (1 - FAINTEST) * self.distortion * shared(2)
            pictures *= faint[:, None].astype(np.float32)
            pictures += self._noise(hashes)
        return pictures.clip(0, 1).reshape(strings, rows, columns)

    def _noise(self, hashes: Hashes) -> Float32[np.ndarray, "string pixel"]:
        rows, columns = self.shape
        # Four pixels a number: 16 bits each.
        numbers = np.arange(_PIXEL_STREAM, _PIXEL_STREAM + -(-rows * columns // 4), dtype=np.uint64)
        mixed = _mix_bits(hashes[:, None] + _ODD * numbers)
        noise = mixed.view(np.uint16)[:, : rows * columns].astype(np.float32)
        noise *= 2 * NOISE * self.distortion / 65535
        return noise - np.float32(NOISE * self.distortion)


def _hashes(letters: UInt8[np.ndarray, "string position"]) -> Hashes:
    """Hashes each string; padding after its end does not count."""
    places = np.arange(letters.shape[1], dtype=np.uint64) << np.uint64(8)
    # A letter is hashed with its position, so that a sum over letters depends on their order.
    mixed = _mix_bits((letters.astype(np.uint64) + places) * _ODD)
    return _mix_bits(np.where(letters == NO_LETTER, np.uint64(0), mixed).sum(axis=1))


def _uniform(numbers: UInt64[np.ndarray, "*shape"]) -> Float64[np.ndarray, "*shape"]:
    # The upper 53 bits are as many as a float's fraction holds.
    return (_mix_bits(numbers) >> np.uint64(11)) * 2.0**-53


def _mix_bits(numbers: UInt64[np.ndarray, "*shape"]) -> UInt64[np.ndarray, "*shape"]:
    """The finalizer of SplitMix64 (Steele et al. 2014)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: UInt64[np.ndarray, "*shape"] = numbers ^ (numbers >> np.uint64(31))
    return mixed
