"""From a failing model to the cause of its failure, in a real browser."""

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.server import no_traceback, open_page

pytestmark = pytest.mark.browser


def test_a_failing_seed_of_compare_is_opened_explained_moved_and_broken(
    browser: Browser, shipped: str
) -> None:
    page = open_page(browser, f"{shipped}/?config=2&seed=2")
    # What can be hit of a line are its points; the tooltip tells whose they are.
    lines = page.get_by_test_id("stVegaLiteChart").nth(1)
    point = lines.locator('path[aria-roledescription="point"]')
    expect(point).to_have_count(20)
    point.nth(14).hover()
    expect(page.locator("#vg-tooltip-element")).to_contain_text("Model seed")
    point.nth(14).click()
    page.wait_for_url("**/model?**run=5**")
    # The filters hold.
    page.wait_for_url("**seed=2**")

    expect(page.get_by_text("wrong on 697 of 9,984 test strings")).to_be_visible()
    expect(page.get_by_text("dilution in head 0: a is drowned by b")).to_be_visible()
    page.get_by_role("button", name=re.compile("^Explain b")).click()
    expect(page.get_by_text("a false positive.")).to_be_visible()
    expect(page.get_by_text("Value interference: head 0 takes")).to_be_visible()
    page.wait_for_url("**string=b**")

    before = logit(page)
    page.get_by_role("slider").press("ArrowRight")
    page.wait_for_url("**epoch=3**")
    expect(page.get_by_text(before)).to_have_count(0)
    assert logit(page) != before

    page.get_by_role("slider").press("ArrowLeft")
    expect(page.get_by_text(before)).to_be_visible()
    page.get_by_role("tab", name="Breaking point").click()
    family = page.get_by_role("textbox", name="Family of strings")
    family.fill("ab{n}c{55}")
    family.press("Enter")
    page.wait_for_url("**family=ab**")
    expect(
        page.get_by_text(re.compile(r"From n = \d+ on it predicts negative .wrong."))
    ).to_be_visible()
    expect(page.get_by_test_id("stVegaLiteChart").first).to_contain_text("n = ")
    no_traceback(page)
    page.close()


def logit(page: Page) -> str:
    """The logit as the answer's line gives it."""
    line = page.get_by_test_id("stAlert").first
    expect(line).to_contain_text("logit")
    found = re.search(r"logit (\S+),", line.inner_text())
    assert found
    return found[0]


def test_a_link_opens_the_figures_of_a_string_at_an_epoch(browser: Browser, shipped: str) -> None:
    page = open_page(
        browser,
        f"{shipped}/model?run=5&string=ab{{100}}c{{55}}&epoch=20&view=Figures&group=The+stream",
    )
    expect(page.get_by_text("CLS after the block").first).to_be_visible()
    expect(page.get_by_test_id("stVegaLiteChart").nth(3)).to_contain_text("ab{100}c{55}")
    expect(page.get_by_role("slider")).to_have_attribute("aria-valuetext", "20")
    no_traceback(page)
    page.close()


def test_a_step_of_the_guide_leads_to_its_string(browser: Browser, shipped: str) -> None:
    page = open_page(browser, f"{shipped}/guide")
    page.get_by_role("link", name="Why bbc{152} fails").click()
    page.wait_for_url("**/model?**run=5**")
    expect(
        page.get_by_text("bbc{152} is negative, but the model predicts positive")
    ).to_be_visible()
    no_traceback(page)
    page.close()
