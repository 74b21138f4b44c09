"""From nothing to which of one's copying models fail, and on what."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from benchmarks.served import serve
from tests.e2e.server import PATIENCE_MS, models_tested, no_traceback, open_page

pytestmark = pytest.mark.browser

MOST_ACTIONS = 8
"""Clicks; what is typed belongs to the click on its field."""

TRAINING_MS = 240_000
"""Enough for a slow machine; it takes some ten seconds."""


def fill(page: Page, field: Locator, text: str) -> None:
    """Clicks on a field, types, and enters it."""
    field.click()
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.type(text)
    page.keyboard.press("Enter")


def test_a_newcomer_learns_which_copying_models_fail_and_on_what(
    browser: Browser, tmp_path: Path
) -> None:
    with serve(tmp_path / "copying.db") as server:
        page = open_page(browser, server.url)
        page.set_viewport_size({"width": 1440, "height": 900})
        page.evaluate("clicks = 0; addEventListener('pointerdown', () => { clicks += 1 }, true)")
        sidebar = page.get_by_test_id("stSidebar")
        page.get_by_text("Launch a sweep").click()
        sidebar.get_by_text("Your own").click()
        fill(page, page.get_by_role("textbox", name="Model seeds"), "0, 1")
        box = sidebar.get_by_role("combobox", name="task", include_hidden=True)
        fill(page, box, "copy")
        expect(sidebar).to_contain_text("the output is the same string")
        fill(
            page, sidebar.get_by_role("combobox", name="architecture", include_hidden=True), "lstm"
        )
        longest = sidebar.get_by_role("combobox", name="train_max_length", include_hidden=True)
        fill(page, longest, "4")
        expect(sidebar).to_contain_text("train_max_length 10 → 4")
        # Said before anything is launched: what is other than in the model that it starts from.
        expect(sidebar).to_contain_text("architecture transformer → lstm")
        expect(sidebar).to_contain_text("hidden_size 2 → 32")
        launch = sidebar.get_by_role("button", name="Launch 2 models", include_hidden=True)
        launch.click()
        expect.set_options(timeout=TRAINING_MS)
        models_tested(page, 2)
        expect.set_options(timeout=PATIENCE_MS)
        page.get_by_role("link", name="Failing models").click()
        main = page.get_by_test_id("stMain")
        expect(main).to_contain_text("Look inside this model")
        # The first wrong output, token by token below its target.
        aligned = main.locator(".aligned").first
        expect(aligned).to_contain_text("Target")
        expect(aligned).to_contain_text("Output")
        no_traceback(page)
        assert page.evaluate("clicks") <= MOST_ACTIONS
        page.close()
