"""The pages on a database of 100,000 runs, in a real browser.

python -m benchmarks.pages [DB] [outputs]

measures on that database, or on one in a temporary folder, which it makes first: of a language, or
of models that copy. Cold is the first
page of a new server: from the request to the drawn page. Warm is the same page of a server that has
shown it before, by a click in a window that is open.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from playwright.sync_api import Browser, Page, WebSocket, sync_playwright

from benchmarks.large import ERRORS, LENGTHS, SEEDS, count_configs, make_database
from benchmarks.served import FLAGS, Server, find_browser, serve

PAGES = {
    "Results": "",
    "Failures": "failures",
    "Sweeps": "sweeps",
    "Model": "model",
}
"""The address of each page, by its name."""

FILTERED = {
    "Results, 50 seeds": f"?{'&'.join(f'seed={seed}' for seed in range(50))}",
    "Results, below 99%": "?below=99.0",
    "Results, a map": "?show=Map",
    "Failures, not learned": "failures?outcome=not+learned",
}
"""Views whose answers are not those of all runs."""

MOST_SECONDS = 120
QUIET_SECONDS = 0.15
"""A page is drawn once the script is over and nothing has changed for so long."""


@dataclass
class Shown:
    """The seconds until a page was drawn, and the work of its server."""

    seconds: float
    processor: float
    """Seconds of processors that the server took, which a busy machine changes less."""
    sent: int
    """Bytes."""

    def __str__(self) -> str:
        return f"{self.seconds:5.2f} s (server {self.processor:.2f} s)"


@dataclass
class Window:
    """A page in a browser, and the sizes of what its server sends, as they come."""

    page: Page
    server: Server
    sent: list[int]

    @property
    def processor(self) -> float:
        """Seconds of processors that the server has taken."""
        times = psutil.Process(self.server.process.pid).cpu_times()
        return float(times.user + times.system)


def main(db: str | None = None, kind: str = "") -> None:
    """Prints what `measure` does, of a database that is made first if it is missing."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(db) if db else Path(folder) / "large.db"
        make_if_missing(path, outputs=kind == "outputs")
        measure(str(path))


def measure(db: str) -> None:
    """Prints each page's seconds, cold and warm, what was sent, and the server's memory.

    Args:
        db: a file, or the URL of a server's database.
    """
    executable = find_browser()
    if executable is None:
        print("pages: no browser on this machine, so nothing is measured")
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        _baseline(browser, db)
        colds = {name: _cold(browser, db, where) for name, where in PAGES.items()}
        _warm(browser, db, colds)
        browser.close()


def make_if_missing(path: Path, *, outputs: bool = False) -> None:
    if not path.exists():
        started = time.perf_counter()
        make_database(str(path), outputs=outputs)
        seconds = time.perf_counter() - started
        print(f"made {path.stat().st_size / 1e6:.0f} MB in {seconds:.0f} s")
    runs = SEEDS * count_configs()
    errors = (runs - runs // 4) * ERRORS
    print(f"pages on {runs:,} runs, {runs * LENGTHS:,} lengths, {errors:,} errors")


def _baseline(browser: Browser, db: str) -> None:
    """Measures the page with the fewest queries: the time of the browser and of Streamlit."""
    shown = _cold(browser, db, "guide")
    print(f"  {'Guide (for comparison)':28} cold {shown}", flush=True)


def _cold(browser: Browser, db: str, where: str) -> Shown:
    with serve(db) as server, browser_window(browser, server) as window:
        return _opened(window, f"{server.url}/{where}")


def _warm(browser: Browser, db: str, colds: dict[str, Shown]) -> None:
    """One server shows every page again; prints all that is known of each."""
    with serve(db) as server:
        for where in (*PAGES.values(), *FILTERED.values()):
            with browser_window(browser, server) as window:
                _opened(window, f"{server.url}/{where}")
        with browser_window(browser, server) as window:
            _opened(window, f"{server.url}/guide")
            for name, cold in colds.items():
                warm = _clicked(window, name)
                _clicked(window, "Guide")
                most = max(cold.sent, warm.sent)
                print(f"  {name:28} cold {cold}, warm {warm}, {most / 1e3:5.0f} kB", flush=True)
        for name, where in FILTERED.items():
            with browser_window(browser, server) as window:
                shown = _opened(window, f"{server.url}/{where}")
            print(f"  {name:28} opened again {shown}, {shown.sent / 1e3:5.0f} kB", flush=True)
        print(f"  the server took {megabytes(server):.0f} MB at most")


@contextmanager
def browser_window(browser: Browser, server: Server) -> Iterator[Window]:
    context = browser.new_context(viewport={"width": 1200, "height": 1000})
    page = context.new_page()
    page.set_default_timeout(1e3 * MOST_SECONDS)
    sent: list[int] = []

    def listen(socket: WebSocket) -> None:
        socket.on("framereceived", lambda frame: sent.append(len(frame)))

    page.on("websocket", listen)
    yield Window(page, server, sent)
    context.close()


def _opened(window: Window, url: str) -> Shown:
    return drawn(window, lambda: window.page.goto(url), "")


def _clicked(window: Window, name: str) -> Shown:
    heading = window.page.get_by_test_id("stMain").get_by_test_id("stHeading").first.inner_text()
    link = window.page.get_by_role("link", name=name, exact=True).first
    return drawn(window, link.click, heading)


def drawn(window: Window, do: Callable[[], object], before: str) -> Shown:
    """Waits until a page other than that with the heading `before` is whole and at rest.

    Raises:
        AssertionError: it shows an exception.
    """
    page, frames = window.page, len(window.sent)
    started, processor = time.perf_counter(), window.processor
    do()
    page.wait_for_function(
        """([quiet, before]) => {
            const app = document.querySelector('[data-testid="stApp"]');
            const heading = document.querySelector(
                '[data-testid="stMain"] [data-testid="stHeading"]');
            const done = app && heading && heading.innerText !== before
                && !document.querySelector('[data-testid="stSkeleton"]')
                && app.getAttribute('data-test-script-state') === 'notRunning';
            // Watched, not looked through again and again: that would keep it from drawing.
            if (!window.watched) {
                window.watched = new MutationObserver(
                    () => { window.changedAt = performance.now(); });
                const what = {subtree: true, childList: true, characterData: true};
                window.watched.observe(document.body, what);
                window.changedAt = performance.now();
            }
            if (!done) window.changedAt = performance.now();
            return performance.now() - window.changedAt > 1e3 * quiet;
        }""",
        arg=[QUIET_SECONDS, before],
        polling=20,
    )
    # That it was waited for, to see the page at rest, is none of its time.
    seconds = time.perf_counter() - started - QUIET_SECONDS
    assert page.get_by_test_id("stException").count() == 0, page.url
    return Shown(seconds, window.processor - processor, sum(window.sent[frames:]))


def megabytes(server: Server) -> float:
    """The most memory that the server has had at once."""
    status = Path(f"/proc/{server.process.pid}/status")
    if status.exists():
        peak = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        # The peak of resident memory, in kB.
        return int(peak.split()[1]) / 1024
    return float(psutil.Process(server.process.pid).memory_info().rss) / 2**20


if __name__ == "__main__":
    main(*sys.argv[1:])
