"""The dashboard as a user starts it, in a browser as a user has it."""

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.conftest import ROOT

START_SECONDS = 60
PATIENCE_MS = 30_000

AT_REST = """() => {
    const app = document.querySelector('[data-testid="stApp"]');
    return app && app.getAttribute('data-test-script-state') === 'notRunning'
        && !document.querySelector('[data-testid="stSkeleton"]');
}"""
"""Whether a page has drawn all that it was asked for."""


@dataclass
class Server:
    """A dashboard that is being served."""

    url: str
    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        """Ends it at once, as a crash would."""
        self.process.kill()
        self.process.wait(timeout=20)


@contextmanager
def serve(db: Path) -> Iterator[Server]:
    """`seqcls dashboard` on a free port of this machine; stopped afterwards."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "sweeps", "dashboard", "--db", str(db), "--port", str(port)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    server = Server(f"http://127.0.0.1:{port}", process)
    try:
        wait_for(lambda: _answers(f"{server.url}/_stcore/health"), START_SECONDS)
        yield server
    finally:
        process.terminate()
        process.wait(timeout=20)


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=1):
            return True
    except (URLError, ConnectionError, TimeoutError):
        return False


def wait_for(holds: Callable[[], bool], seconds: float) -> None:
    """Waits until something holds; the test fails where it does not in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            pytest.fail(f"it did not come to be within {seconds} s")
        time.sleep(0.1)


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


def models_tested(page: Page, number: int) -> None:
    """Waits until the page says that so many models are tested."""
    metric = page.get_by_test_id("stMetric").filter(has_text="Models tested")
    expect(metric).to_contain_text(f"{number}")


def no_traceback(page: Page) -> None:
    """No exception is shown anywhere on the page."""
    expect(page.get_by_test_id("stException")).to_have_count(0)
