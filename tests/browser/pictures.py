"""The pictures of the README and of `docs/`, taken of the pages on the shipped database.

python -m tests.browser.pictures [FOLDER]
"""

import shutil
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, sync_playwright

from benchmarks.served import FLAGS, find_browser, serve
from tests.browser.server import AT_REST, new_page, no_traceback
from tests.conftest import ROOT

FOLDER = ROOT / "docs" / "pictures"

TALLEST = 2000
MARGIN = 8

FIGURES = "[class*=st-key-panel], [data-testid=stVegaLiteChart], li"
BELOW = "xpath=following::*[@data-testid='stDataFrame'][1]"

SETTLING_MS = 1_000
"""Charts find their width after the page is at rest."""


class Picture(NamedTuple):
    """A page from its top to the end of one of its figures, sentences or tables."""

    path: str
    last: str
    """Text in the last figure or sentence, or in the heading of the last table."""
    width: int = 1440
    awaited: str = ""
    """A sentence without which the page is not complete, such as one on causes."""


PICTURES = {
    "results": Picture("", "width 2, CLS unattended, fixed length strings"),
    "failures": Picture(
        "failures?sweep=all_initializations",
        "Which strings break most of them?",
        awaited="7 fail by dilution",
    ),
    "model": Picture("model?run=5&string=ab{100}c{55}", "The nearest string that is right", 1280),
}


def take(browser: Browser, url: str, folder: Path) -> None:
    """Takes every picture of the dashboard at this address."""
    for name, (path, last, width, awaited) in PICTURES.items():
        page = new_page(browser, width, TALLEST)
        page.goto(f"{url}/{path}")
        if awaited:
            page.get_by_text(awaited).wait_for()
        table = page.locator("h2").filter(has_text=last).locator(BELOW)
        end = page.locator(FIGURES).filter(has_text=last).or_(table).first
        end.wait_for()
        page.wait_for_function(AT_REST)
        page.wait_for_timeout(SETTLING_MS)
        box = end.bounding_box()
        assert box is not None
        no_traceback(page)
        height = round(box["y"] + box["height"]) + MARGIN
        page.screenshot(
            path=folder / f"{name}.png",
            clip={"x": 0, "y": 0, "width": width, "height": height},
            animations="disabled",
        )
        page.close()


def main(folder: Path) -> None:
    """Takes the pictures with the browser of this machine."""
    executable = find_browser()
    if executable is None:
        sys.exit("no Chromium or Chrome: run `python -m tests.browser.browser`, which installs one")
    folder.mkdir(parents=True, exist_ok=True)
    with (
        sync_playwright() as playwright,
        tempfile.TemporaryDirectory() as profile,
        # A dashboard stores the causes that it finds.
        tempfile.TemporaryDirectory() as copied,
        serve(shutil.copy(ROOT / "runs.db", copied)) as server,
    ):
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=executable, args=FLAGS
        )
        assert context.browser is not None
        take(context.browser, server.url, folder)
        context.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
