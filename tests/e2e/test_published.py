"""A read-only dashboard below a path, behind a reverse proxy, in a browser."""

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import quote, urlsplit

import psutil
import pytest
from playwright.sync_api import Browser, Dialog, expect

from benchmarks.served import serve, wait_for
from sweeps.access import REASON
from tests.conftest import ROOT
from tests.e2e.conftest import BASE
from tests.e2e.server import AT_REST, PATIENCE_MS, new_page, no_traceback, open_page

HOSTILE = '"><img src=x onerror=alert(1)><script>alert(1)</script>'


@contextmanager
def proxy(port: int, base: str) -> Iterator[tuple[str, list[str]]]:
    """A reverse proxy that has one thing at a path, and nothing elsewhere.

    Yields:
        Its address, and the paths elsewhere that it is asked for.
    """
    elsewhere: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(
                        target=pass_on, args=listening.accept()[:1], daemon=True
                    ).start()

        def pass_on(browser: socket.socket) -> None:
            with browser, suppress(OSError):
                head = b""
                while b"\r\n\r\n" not in head:
                    if not (more := browser.recv(65536)):
                        return
                    head += more
                path = head.split(b" ", 2)[1].decode()
                if path != base and not path.startswith(f"{base}/"):
                    elsewhere.append(path)
                    browser.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                    return
                if b"\r\nupgrade: websocket" not in head.lower():
                    # One request a connection, so that the path of each is seen.
                    head = re.sub(rb"\r\nconnection: [^\r]*", b"", head, flags=re.IGNORECASE)
                    head = head.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)
                with socket.create_connection(("127.0.0.1", port)) as server:
                    server.sendall(head)
                    threading.Thread(target=copy, args=(browser, server), daemon=True).start()
                    copy(server, browser)

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}{base}", elsewhere


def copy(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while more := one.recv(65536):
            other.sendall(more)
        other.shutdown(socket.SHUT_WR)


@pytest.fixture(scope="module")
def public(read_only: str) -> Iterator[tuple[str, list[str]]]:
    """The address of the proxy, and what it was asked for beside the path."""
    port = urlsplit(read_only).port
    assert port is not None
    with proxy(port, BASE) as behind:
        yield behind


def test_pages_links_and_what_they_load_stay_below_the_path(
    browser: Browser, public: tuple[str, list[str]]
) -> None:
    url, elsewhere = public
    page = open_page(browser, f"{url}/")
    no_traceback(page)
    page.get_by_role("link", name="Failing models").first.click()
    expect(page).to_have_url(re.compile(rf"{BASE}/failing"))
    page.get_by_role("link", name="Look inside this model").first.click()
    expect(page).to_have_url(re.compile(rf"{BASE}/model\?.*run="))
    expect(page.get_by_role("heading", name="Inside a model")).to_be_visible()
    no_traceback(page)
    page.reload()
    expect(page.get_by_role("heading", name="Inside a model")).to_be_visible()
    page.goto(url)
    expect(page.get_by_test_id("stMain").get_by_test_id("stHeading").first).to_be_visible()
    assert set(elsewhere) <= {"/favicon.ico"}
    page.close()


def test_a_visitor_sees_why_nothing_can_be_launched(
    browser: Browser, public: tuple[str, list[str]]
) -> None:
    page = open_page(browser, f"{public[0]}/launch")
    button = page.get_by_test_id("stButton").filter(has_text="Launch").get_by_role("button")
    expect(button.first).to_be_disabled()
    page.get_by_test_id("stTooltipHoverTarget").filter(has_text="Launch").last.hover(force=True)
    expect(page.get_by_test_id("stTooltipContent")).to_contain_text(REASON.replace("`", ""))
    page.close()


@pytest.mark.parametrize("path", ["", "map", "failing", "sweeps", "model", "guide", "launch"])
def test_nothing_of_a_link_is_run_by_the_browser(
    browser: Browser, public: tuple[str, list[str]], path: str
) -> None:
    page = new_page(browser)
    dialogs: list[str] = []

    def note(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", note)
    names = ("run", "sweep", "seed", "string", "strings", "family", "columns", "find", "beside")
    page.goto(f"{public[0]}/{path}?" + "&".join(f"{name}={quote(HOSTILE)}" for name in names))
    page.wait_for_function(AT_REST, timeout=2 * PATIENCE_MS)
    assert page.locator('img[src="x"]').count() == 0
    assert dialogs == []
    no_traceback(page)
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
