"""Back and Forward lead from page to page, one press each, with the filters as they were."""

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.server import AT_REST, no_traceback, open_page

pytestmark = pytest.mark.browser

FILTERED = "5 of 43 runs match the filters."


def rests(page: Page, path: str) -> None:
    """Waits until the page with this path is there, and has drawn all."""
    page.wait_for_url(f"**/{path}**")
    page.wait_for_function(AT_REST)


PAGES = {"": "Compare", "map": "Map", "failing": "Failing models", "sweeps": "Sweeps"}


@pytest.mark.parametrize("path", PAGES)
def test_back_and_forward_keep_what_is_filtered(browser: Browser, shipped: str, path: str) -> None:
    second, third = [other for other in PAGES if other not in (path, "")][:2]
    page = open_page(browser, f"{shipped}/{path}")
    page.get_by_role("combobox", name="Model seeds").click()
    page.get_by_role("option", name="2", exact=True).click()
    expect(page.get_by_text(FILTERED)).to_be_visible()
    page.keyboard.press("Escape")
    rests(page, f"{path}?**seed=2")
    page.get_by_role("link", name=PAGES[second], exact=True).click()
    rests(page, f"{second}?**seed=2")
    page.go_back()
    rests(page, f"{path}?**seed=2")
    expect(page.get_by_text(FILTERED)).to_have_count(1)
    page.go_forward()
    rests(page, f"{second}?**seed=2")
    # After that a click goes on with the filters, and Back leads to the very page before.
    page.get_by_role("link", name=PAGES[third], exact=True).click()
    rests(page, f"{third}?**seed=2")
    expect(page.get_by_text(FILTERED)).to_have_count(1)
    page.go_back()
    rests(page, f"{second}?**seed=2")
    expect(page.get_by_text(FILTERED)).to_have_count(1)
    no_traceback(page)
    page.close()


@pytest.mark.parametrize(
    ("path", "mark", "leads_to"),
    [
        ("?config=2&seed=2", '[aria-label*="configuration: width 2;"]', "model?**run=5"),
        ("map?seed=2", "", "?**hidden_size=2"),
    ],
    ids=["compare", "map"],
)
def test_one_press_of_back_leads_from_what_was_clicked_to_the_chart_as_it_was(
    browser: Browser, shipped: str, path: str, mark: str, leads_to: str
) -> None:
    page = open_page(browser, f"{shipped}/{path}")
    page.locator(f'path[aria-roledescription="rect mark"]{mark}').first.click()
    rests(page, leads_to)
    page.go_back()
    page.wait_for_url(f"{shipped}/{path}")
    expect(page.get_by_text(FILTERED)).to_have_count(1)
    no_traceback(page)
    page.close()
