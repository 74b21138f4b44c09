"""From nothing to which of one's copying models fail, and on what."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from benchmarks.served import serve
from tests.e2e.server import PATIENCE_MS, no_traceback, open_page

pytestmark = pytest.mark.browser

MOST_ACTIONS = 8
"""Clicks; what is typed belongs to the click on its field."""

TRAINING_MS = 180_000
"""Enough for a slow machine; it takes some twenty seconds."""


def choose(page: Page, field: str, value: str) -> None:
    """Clicks on a field of the form, types, and enters it."""
    main = page.get_by_test_id("stMain")
    # A list that is still open hides all else from assistive technology, but not from the mouse.
    main.get_by_role("combobox", name=field, include_hidden=True).click()
    page.keyboard.type(value)
    page.keyboard.press("Enter")


def test_a_newcomer_learns_which_copying_models_fail_and_on_what(
    browser: Browser, tmp_path: Path
) -> None:
    with serve(tmp_path / "copying.db") as server:
        page = open_page(browser, server.url)
        page.set_viewport_size({"width": 1440, "height": 900})
        page.evaluate("clicks = 0; addEventListener('pointerdown', () => { clicks += 1 }, true)")
        main = page.get_by_test_id("stMain")
        page.get_by_text("Launch a sweep").click()
        choose(page, "task", "copy")
        choose(page, "architecture", "gru")
        # Said before anything is launched: what is other than in the model that it starts from.
        expect(main).to_contain_text("architecture transformer → gru")
        choose(page, "More settings: training", "max_num_epochs")
        choose(page, "max_num_epochs", "1")
        expect(main).to_contain_text("max_num_epochs 50 → 1")
        seeds = main.get_by_role("textbox", name="Model seeds", include_hidden=True)
        seeds.click()
        seeds.fill("2")
        seeds.press("Enter")
        main.get_by_role("button", name="Launch 2 models", include_hidden=True).click()
        expect.set_options(timeout=TRAINING_MS)
        expect(main).to_contain_text("2 of 2 models")
        expect.set_options(timeout=PATIENCE_MS)
        page.get_by_role("link", name="Failing models: this sweep").click()
        expect(main).to_contain_text("Look inside this model")
        # A wrong output, token by token below its target.
        aligned = main.locator(".aligned").first
        expect(aligned).to_contain_text("Target")
        expect(aligned).to_contain_text("Output")
        no_traceback(page)
        assert page.evaluate("clicks") <= MOST_ACTIONS
        page.close()
