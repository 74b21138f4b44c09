"""A read-only dashboard below a path, behind a reverse proxy, in a browser."""

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from sweeps.access import REASON
from tests.browser.conftest import BASE
from tests.browser.server import no_traceback, open_page

pytestmark = pytest.mark.browser


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


def test_pages_and_all_that_they_load_stay_below_the_path_and_nothing_can_be_launched(
    browser: Browser, shipped: str
) -> None:
    port = urlsplit(shipped).port
    assert port is not None
    with proxy(port, BASE) as (url, elsewhere):
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
        page.goto(f"{url}/launch")
        button = page.get_by_test_id("stButton").filter(has_text="Launch").get_by_role("button")
        expect(button.first).to_be_disabled()
        page.get_by_test_id("stTooltipHoverTarget").filter(has_text="Launch").last.hover(force=True)
        expect(page.get_by_test_id("stTooltipContent")).to_contain_text(REASON.replace("`", ""))
        assert set(elsewhere) <= {"/favicon.ico"}
        page.close()
