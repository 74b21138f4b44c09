"""A read-only dashboard below a path, as behind a reverse proxy, in a browser."""

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from dashboard.actions import REASON
from tests.browser.conftest import BASE
from tests.browser.server import new_page, no_traceback

pytestmark = pytest.mark.browser

MODEL = "width 16, 2 heads, embeddings init linear like"


def test_read_only_dashboard_stays_below_its_path(browser: Browser, shipped: str) -> None:
    page, requested = new_page(browser), list[str]()
    page.on("request", lambda request: requested.append(request.url))
    page.on("websocket", lambda socket: requested.append(socket.url))
    page.goto(f"{shipped}/")
    page.get_by_role("link", name="Failures").first.click()
    expect(page).to_have_url(re.compile(rf"{BASE}/failures"))
    expect(page.get_by_text("14 beyond the trained lengths").first).to_be_visible()
    page.get_by_role("link", name="Results").first.click()
    page.get_by_role("link", name=MODEL).click()
    expect(page).to_have_url(re.compile(rf"{BASE}/model\?.*run="))
    expect(page.get_by_role("heading", name=MODEL)).to_be_visible()
    no_traceback(page)
    page.reload()
    expect(page.get_by_role("heading", name=MODEL)).to_be_visible()
    page.goto(f"{shipped}/launch")
    button = page.get_by_test_id("stButton").filter(has_text="Launch").get_by_role("button")
    expect(button.first).to_be_disabled()
    page.get_by_test_id("stTooltipHoverTarget").filter(has_text="Launch").last.hover(force=True)
    expect(page.get_by_test_id("stTooltipContent")).to_contain_text(REASON.replace("`", ""))
    assert any(address.startswith("ws") for address in requested)
    paths = {(urlsplit(url).netloc, urlsplit(url).path) for url in requested if url[0] in "hw"}
    elsewhere = {path for host, path in paths if not path.startswith(f"{BASE}/")}
    assert elsewhere <= {"/favicon.ico"}
    assert {host for host, _ in paths} == {urlsplit(shipped).netloc}
    page.close()
