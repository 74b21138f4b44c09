"""The pictures in the README and in `docs/` are those that `make pictures` takes."""

import re

from tests.browser.pictures import FOLDER, PICTURES
from tests.conftest import ROOT

MAX_BYTES = 250_000


def test_pictures_in_docs_are_those_taken() -> None:
    pages = (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
    shown = {name for page in pages for name in re.findall(r"pictures/(\S+)\)", page.read_text())}
    there = {path.name for path in FOLDER.iterdir()}
    assert shown == there == {f"{name}.png" for name in PICTURES}
    assert max(path.stat().st_size for path in FOLDER.iterdir()) < MAX_BYTES
