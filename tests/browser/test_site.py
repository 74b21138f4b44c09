"""A static site in a browser: from a host and from a folder, with nothing from elsewhere."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from sweeps.api import log_results, open_store
from sweeps.store.reads import misclassified
from tests.browser.server import new_page
from tests.commands import run_main
from tests.conftest import ROOT
from tests.oracles.compared import spelled_out

pytestmark = pytest.mark.browser

SHIPPED = str(ROOT / "runs.db")
SWEEPS = ("all_fixed_length_sequences", "all_initializations")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    names = [part for name in SWEEPS for part in ("--sweep", name)]
    assert run_main("report", "--site", str(folder), "--db", SHIPPED, *names).returncode == 0
    return folder


class Quiet(SimpleHTTPRequestHandler):
    """`python -m http.server` without its log."""

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def hosted(folder: Path) -> Iterator[str]:
    """A static host of the folder."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@contextmanager
def watched(browser: Browser, width: int = 1200) -> Iterator[tuple[Page, list[str]]]:
    """A page and its requests; asserts that no error occurs on it."""
    page, requested, wrong = new_page(browser, width), [], []
    page.on("request", lambda request: requested.append(request.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "console", lambda message: wrong.append(message.text) if message.type == "error" else None
    )
    yield page, requested
    page.close()
    assert wrong == []


def ready(page: Page) -> None:
    """Waits until the page's program has run."""
    expect(page.locator("body[data-ready]")).to_have_count(1)


def test_site_index_links_to_wrong_strings(browser: Browser, site: Path) -> None:
    with hosted(site) as base, watched(browser) as (page, requested):
        page.goto(f"{base}/index.html")
        ready(page)
        # Its marks lie beneath those of others.
        page.locator('svg a[*|href$="#run-7"]').first.dispatch_event("click")
        page.wait_for_url("**#run-7")
        ready(page)
        model = page.locator("#run-7")
        expect(model.locator("summary")).to_contain_text("1,040 wrong strings")
        expect(model.locator(".strings tr")).to_have_count(51)
        expect(page.locator("#run-3 .strings")).to_have_count(0)
        icon = "/favicon.ico"  # Browsers look for it by themselves.
        assert all(url.startswith(f"{base}/") or url.endswith(icon) for url in requested)


def test_site_pages_and_searches_strings(browser: Browser, site: Path) -> None:
    errors = misclassified.string_errors(open_store(SHIPPED), 4)["string"]
    with watched(browser, 390) as (page, _):
        page.goto(f"file://{site}/sweep_2_all_initializations.html")
        ready(page)
        model = page.locator("#run-4")
        model.locator("summary").click()
        shown, first = model.locator(".pages span"), model.locator(".strings td").first
        expect(shown).to_have_text(re.compile(f"1 to 50 of {len(errors)}$"))
        before = first.text_content()
        model.get_by_role("button", name="Next").click()
        expect(shown).to_have_text(re.compile(f"51 to 100 of {len(errors)}$"))
        assert first.text_content() != before
        for typed in ("a{100}", "aaaaaaaaaaaa", "aab", "ba{3}", "<ab>{2}", "b{2}a", "nowhere"):
            matches = sum(spelled_out(typed) in spelled_out(text) for text in errors)
            model.get_by_role("searchbox").fill(typed)
            ends = f"of {matches:,}" if matches else "None contains this."
            expect(shown).to_have_text(re.compile(f"{re.escape(ends)}$"))
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


VISIBLE = 'svg path[aria-roledescription="point"]:not([opacity="0"])'


def test_report_draws_seeds_of_one_test_length(browser: Browser, tmp_path: Path) -> None:
    """A line of one point would be invisible."""
    data, db, out = (tmp_path / name for name in ("data.csv", "x.db", "report.html"))
    rows = [f"{first}{second},{int(first == second)}" for first in "ab" for second in "ab"]
    data.write_text("\n".join(["tokens,label", *rows]))
    with log_results(db, sweep="lab", dataset=data) as log:
        right = log.strings["label"].tolist()
        for seed in range(3):
            predicted = [not x if row < seed else x for row, x in enumerate(right)]
            predictions = {"tokens": log.strings["tokens"], "prediction": predicted}
            log.run(model="theirs", seed=seed, predictions=predictions)
    assert run_main("report", "lab", "--db", str(db), "--out", str(out)).returncode == 0
    with watched(browser) as (page, _):
        page.goto(out.as_uri())
        ready(page)
        expect(page.locator(VISIBLE)).to_have_count(3)
