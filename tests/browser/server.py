"""Pages in a browser as a user has it."""

from playwright.sync_api import Browser, Page, expect

PATIENCE_MS = 90_000

AT_REST = """() => {
    const app = document.querySelector('[data-testid="stApp"]');
    return app && app.getAttribute('data-test-script-state') === 'notRunning'
        && !document.querySelector('[data-testid="stSkeleton"]');
}"""
"""JavaScript that is true once a page is drawn completely."""


def new_page(browser: Browser, width: int = 1200, height: int = 1000) -> Page:
    """An empty page of the browser's profile, of that many pixels."""
    page = browser.contexts[0].new_page()
    page.set_viewport_size({"width": width, "height": height})
    page.set_default_timeout(PATIENCE_MS)
    expect.set_options(timeout=PATIENCE_MS)
    return page


def open_page(browser: Browser, url: str, width: int = 1200) -> Page:
    """A page, so many pixels wide, whose first heading is there."""
    page = new_page(browser, width)
    page.goto(url)
    expect(page.get_by_test_id("stMain").get_by_test_id("stHeading").first).to_be_visible()
    return page


def no_traceback(page: Page) -> None:
    """Asserts that the page shows no exception."""
    expect(page.get_by_test_id("stException")).to_have_count(0)
