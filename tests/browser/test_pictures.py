"""The pictures in the README and in `docs/` are those that `make pictures` takes."""

import re
import struct
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.pictures import FOLDER, PICTURES, take
from tests.conftest import ROOT

MOST_BYTES = 250_000


def size(picture: Path) -> tuple[int, int]:
    """Width and height of a PNG."""
    width, height = struct.unpack(">II", picture.read_bytes()[16:24])
    return width, height


def test_every_picture_that_is_shown_is_taken_and_every_one_taken_is_shown() -> None:
    pages = (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
    shown = {name for page in pages for name in re.findall(r"pictures/(\S+)\)", page.read_text())}
    there = {path.name for path in FOLDER.iterdir()}
    assert shown == there == {f"{name}.png" for name in PICTURES}
    assert max(path.stat().st_size for path in FOLDER.iterdir()) < MOST_BYTES


@pytest.mark.browser
def test_the_pictures_are_taken_to_the_end_of_a_figure(
    browser: Browser, shipped: str, tmp_path: Path
) -> None:
    take(browser, shipped, tmp_path)
    for name, (_, _, width) in PICTURES.items():
        taken = size(tmp_path / f"{name}.png")
        assert taken[0] == width
        # A page that is otherwise than in the picture is taken anew: fonts move it by little.
        assert taken[1] == pytest.approx(size(FOLDER / f"{name}.png")[1], rel=0.2)
        assert 50_000 < (tmp_path / f"{name}.png").stat().st_size < MOST_BYTES
