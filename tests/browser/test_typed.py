"""Strings in *Inside · Live* are answered while they are typed."""

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.server import PATIENCE_MS, new_page, no_traceback

pytestmark = pytest.mark.browser


def test_logit_follows_typing(browser: Browser, shipped: str) -> None:
    page = new_page(browser)
    page.goto(f"{shipped}/model?run=5&view=Inside&part=Live&string=baac")
    box = page.get_by_label("Type a string")
    box.wait_for(timeout=PATIENCE_MS)
    expect(page.get_by_text("baac: is")).to_be_visible(timeout=PATIENCE_MS)
    box.fill("ab")
    box.press_sequentially("{2}c", delay=50)
    expect(page.get_by_text("abbc: is")).to_be_visible(timeout=PATIENCE_MS)
    expect(page.get_by_test_id("stVegaLiteChart").first).to_be_visible()
    box.press_sequentially("d")
    expect(page.get_by_text("unknown letter 'd'")).to_be_visible(timeout=PATIENCE_MS)
    assert "string=baac" in page.url, "the page goes on being about its own string"
    page.get_by_role("button", name="Look at it").click()
    no_traceback(page)
    page.close()
