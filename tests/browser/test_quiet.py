"""Traffic of an idle page. It depends on how busy the machine is: only `make chaos` tests it."""

import pytest
from playwright.sync_api import Browser, WebSocket

from dashboard.training import running
from tests.browser.server import AT_REST, PATIENCE_MS, new_page
from tests.conftest import LONG

pytestmark = [pytest.mark.browser, pytest.mark.skipif(not LONG, reason="a part of `make chaos`")]


def test_idle_page_receives_nothing(browser: Browser, shipped: str) -> None:
    page = new_page(browser)
    sent: list[str | bytes] = []

    def listen(socket: WebSocket) -> None:
        socket.on("framereceived", lambda frame: sent.append(frame))

    page.on("websocket", listen)
    page.goto(f"{shipped}/sweeps")
    page.get_by_text("Nothing is in training").wait_for(timeout=PATIENCE_MS)
    page.wait_for_function(AT_REST)
    page.wait_for_timeout(1_000)
    before = len(sent)
    page.wait_for_timeout(1e3 * running.SECONDS + 1_000)
    assert len(sent) == before > 0
    page.close()
