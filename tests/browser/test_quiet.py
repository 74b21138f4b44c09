"""What a page does by itself: it moves nothing, asks for nothing, and ends with its visitor.

How busy the machine is decides that too: it is looked at in `make chaos` alone.
"""

import psutil
import pytest
from playwright.sync_api import Browser, WebSocket

from benchmarks.served import serve, wait_for
from dashboard.views import running
from tests.browser.server import AT_REST, PATIENCE_MS, new_page, open_page
from tests.conftest import LONG, ROOT

pytestmark = [pytest.mark.browser, pytest.mark.skipif(not LONG, reason="a part of `make chaos`")]

WATCH = """
window.moved = [];
new PerformanceObserver(list => {
    for (const shift of list.getEntries()) {
        if (!shift.hadRecentInput) {
            window.moved.push([shift.startTime, shift.value, shift.sources.map(source => {
                const found = source.node && (source.node.closest ? source.node
                    : source.node.parentElement);
                return found ? found.innerText.slice(0, 40) : '';
            })]);
        }
    }
}).observe({type: 'layout-shift', buffered: true});
"""
"""Keeps how much of the window moved by itself, and what it was."""

MOST_MOVED = 0.1
"""What the Web Vitals call good."""

SLOWER = 6
"""Times that a processor takes longer than this machine's."""


def layout_shift(moved: list[tuple[float, float, list[str]]]) -> float:
    """Cumulative layout shift: of the worst seconds, in which no pause is longer than one."""
    worst = first = last = total = 0.0
    for at, share, _ in moved:
        if at - last > 1e3 or at - first > 5e3:
            first, total = at, 0.0
        last, total = at, total + share
        worst = max(worst, total)
    return worst


@pytest.mark.parametrize("path", ["", "failing", "model?run=5&view=Figures", "launch"])
def test_nothing_moves_while_a_page_is_opened_for_the_first_time(
    browser: Browser, shipped: str, path: str
) -> None:
    """On a machine so slow that parts of a page are there long before the programs of others."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    slow = context.new_cdp_session(page)
    slow.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
    page.add_init_script(WATCH)
    page.goto(f"{shipped}/{path}")
    page.get_by_test_id("stMain").get_by_test_id("stHeading").first.wait_for()
    page.wait_for_function(AT_REST)
    page.wait_for_timeout(500)
    moved = page.evaluate("window.moved")
    assert layout_shift(moved) <= MOST_MOVED, moved
    context.close()


def test_a_page_asks_for_nothing_while_nothing_is_trained(browser: Browser, shipped: str) -> None:
    page = new_page(browser)
    sent: list[str | bytes] = []

    def listen(socket: WebSocket) -> None:
        socket.on("framereceived", lambda frame: sent.append(frame))

    page.on("websocket", listen)
    page.goto(f"{shipped}/sweeps")
    page.get_by_text("Specification").wait_for(timeout=PATIENCE_MS)
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
