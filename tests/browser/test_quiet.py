"""What a page does by itself: it asks for nothing, and ends with its visitor.

How busy the machine is decides that too: it is looked at in `make chaos` alone.
"""

import psutil
import pytest
from playwright.sync_api import Browser, WebSocket

from benchmarks.served import serve, wait_for
from dashboard.training import running
from tests.browser.server import AT_REST, PATIENCE_MS, new_page, open_page
from tests.conftest import LONG, ROOT

pytestmark = [pytest.mark.browser, pytest.mark.skipif(not LONG, reason="a part of `make chaos`")]


def test_a_page_asks_for_nothing_while_nothing_is_trained(browser: Browser, shipped: str) -> None:
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


def test_what_a_visitor_has_begun_ends_when_they_leave(browser: Browser) -> None:
    """A first report takes some seven seconds of processor."""
    with serve(ROOT / "runs.db", "--read-only") as server:
        process = psutil.Process(server.process.pid)

        def used() -> float:
            times = [x.cpu_times() for x in (process, *process.children(recursive=True))]
            return sum(x.user + x.system for x in times)

        page = open_page(browser, server.url)
        page.wait_for_function(AT_REST, timeout=PATIENCE_MS)
        before = used()
        page.get_by_role("button", name="Report").click()
        wait_for(lambda: used() > before + 1, PATIENCE_MS / 1e3)
        page.close()
        left = used()
        wait_for(lambda: process.cpu_percent(1) < 20, PATIENCE_MS / 1e3)
        assert used() - left < 2
