"""Pictures of one's own: what is read of them, and what is refused in one line."""

import io
import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image

from seqcls.errors import ConfigError, PictureError
from seqcls.pictures.user_pictures import MAX_BYTES, picture_of_png, picture_of_text
from seqcls.problem import configuration, resolve
from tests.zoo import PICTURES

SHAPE = (48, 24)


def png(*, mode: str = "L", size: tuple[int, int] = (24, 48), color: object = 255) -> bytes:
    return saved(Image.new(mode, size, color))


def saved(image: Image.Image) -> bytes:
    content = io.BytesIO()
    image.save(content, "PNG")
    return content.getvalue()


def chunk(name: bytes, content: bytes) -> bytes:
    checked = name + content
    return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))


def header(columns: int, rows: int) -> bytes:
    return chunk(b"IHDR", struct.pack(">IIBBBBB", columns, rows, 8, 0, 0, 0, 0))


def packed(*chunks: bytes) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def bomb() -> bytes:
    """A small picture by its header, whose pixels go on for a billion bytes.

    Its checksum is wrong, so that who unpacks all of it cannot read it.
    """
    zeros = zlib.compressobj(9)
    first, again = (zeros.compress(bytes(2**20)) + zeros.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    data = first + 999 * again + zeros.flush()
    return packed(header(8, 8), chunk(b"IDAT", data), chunk(b"IEND", b""))


def text_bomb() -> bytes:
    data = zlib.compress(bytes(2**26), 9)
    return packed(header(8, 8), chunk(b"zTXt", b"a\0\0" + data), chunk(b"IEND", b""))


def test_text_is_drawn_as_the_task_draws_it() -> None:
    task = resolve(configuration(PICTURES)).task
    page = task.page  # type: ignore[attr-defined]
    np.testing.assert_array_equal(
        picture_of_text("123/456/789", page.shape, "pillow", 0.0) > 0,
        page.of_shape("123456789", page.shape, "pillow", 0.0).draw(
            np.array([[0, 1, 2, 9, 3, 4, 5, 9, 6, 7, 8]], dtype=np.uint8)
        )[0] > 0,
    )  # fmt: skip
    assert picture_of_text("abc", page.shape, "pillow", 0.5).shape == page.shape


MODES: list[tuple[str, Any, Any]] = [
    ("L", 255, 0), ("1", 1, 0), ("RGB", "white", "black"), ("P", 255, 0),
    ("RGBA", (0, 0, 0, 0), (0, 0, 0, 255)), ("I;16", 65535, 0), ("LA", (0, 0), (0, 255)),
]  # fmt: skip


def test_a_png_of_any_kind_is_ink_on_paper_scaled_into_the_upper_left() -> None:
    for mode, paper, ink in MODES:
        image = Image.new(mode, (24, 48), paper)
        if mode == "P":
            image = Image.new("L", (24, 48), 255).convert("P")
        image.paste(ink, (0, 0, 8, 16))
        found = picture_of_png(saved(image), SHAPE)
        assert found.shape == SHAPE, mode
        assert found[2:14, 2:6].min() > 0.9, mode
        assert found[20:, 12:].max() < 0.1, mode
    for size in ((48, 96), (12, 24), (480, 20), (1, 4000), (3, 1)):
        found = picture_of_png(png(size=size, color=0), SHAPE)
        scale = min(24 / size[0], 48 / size[1])
        assert found.shape == SHAPE
        assert found[0, 0] == 1
        assert found.sum() == max(round(size[0] * scale), 1) * max(round(size[1] * scale), 1)


NO_TEXTS = [
    ("1\u26032", "pillow", "'\u2603' has no glyph in font='pillow'"),
    ("1a", "digits", "'a' has no glyph in font='digits'"),
    ("1 2", "pillow", "' ' has no glyph"),
    ("", "pillow", "has no characters to draw"),
    ("///", "pillow", "has no characters to draw"),
    ("1/2/3/4", "pillow", "the page has room for 3 of 3"),
    ("1234", "pillow", "1 lines of up to 4 characters"),
]
NO_PICTURES: list[tuple[Callable[[], bytes], str]] = [
    (lambda: b"", "expected a PNG"),
    (lambda: b"GIF89a" + bytes(100), "the file begins with b'GIF89a"),
    (lambda: b"\x89PNG\r\n\x1a\n", "expected a PNG"),
    (lambda: b"\x89PNG\r\n\x1a\n" + bytes(MAX_BYTES), "2,000,008 bytes, more than 2,000,000"),
    (lambda: packed(header(2001, 2000), chunk(b"IDAT", b"")), "2,001 x 2,000 pixels"),
    (lambda: packed(header(2**31 - 1, 2**31 - 1)), "2,147,483,647 x 2,147,483,647 pixels"),
    (lambda: packed(header(8, 8), header(9000, 9000), chunk(b"IDAT", b"x")), "9,000 x 9,000"),
    (lambda: packed(header(0, 8), chunk(b"IDAT", b"")), "cannot be read"),
    (lambda: png()[:-30], "cannot be read"),
    (lambda: packed(header(8, 8), chunk(b"IDAT", b"no zlib"), chunk(b"IEND", b"")), "cannot"),
    (text_bomb, "cannot be read"),
]


def test_what_is_no_picture_or_too_large_is_refused_in_one_line() -> None:
    for text, font, message in NO_TEXTS:
        with pytest.raises((ConfigError, PictureError)) as refused:
            picture_of_text(text, SHAPE, font, 0.0)
        assert message in str(refused.value)
        assert "\n" not in str(refused.value)
    for content, message in NO_PICTURES:
        with pytest.raises(PictureError) as damaged:
            picture_of_png(content(), SHAPE)
        assert message in str(damaged.value)
        assert "\n" not in str(damaged.value)


def test_what_a_picture_unpacks_to_beyond_its_size_is_never_unpacked() -> None:
    assert len(bomb()) < MAX_BYTES
    assert picture_of_png(bomb(), SHAPE).shape == SHAPE
