"""The first page in a real browser."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.conftest import ROOT
from tests.e2e.browser import FLAGS, find_browser

pytestmark = pytest.mark.browser
START_SECONDS = 60


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    executable = find_browser()
    if executable is None:
        if os.environ.get("CI"):
            pytest.fail("under CI a missing browser is a failure")
        pytest.skip("no browser on this machine")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        yield browser
        browser.close()


def serve(db: Path) -> Iterator[str]:
    """The dashboard as a user starts it, on a free port of this machine; stopped afterwards."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "dashboard/app.py"]
    options = ["--server.headless=true", f"--server.port={port}"]
    environment = {**os.environ, "SEQCLS_DB": str(db)}
    process = subprocess.Popen(
        [*command, *options], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for(f"{url}/_stcore/health")
        yield url
    finally:
        process.terminate()
        process.wait(timeout=20)


def wait_for(url: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            with urlopen(url, timeout=1):
                return
        except (URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
    pytest.fail(f"the dashboard did not start within {START_SECONDS} s")


@pytest.fixture(scope="module")
def shipped() -> Iterator[str]:
    yield from serve(ROOT / "runs.db")


def open_page(browser: Browser, url: str) -> Page:
    page = browser.new_page(viewport={"width": 1200, "height": 1000})
    page.set_default_timeout(30_000)
    expect.set_options(timeout=30_000)
    page.goto(url)
    expect(page.get_by_role("heading", name="Which models generalize")).to_be_visible()
    return page


def models_shown(page: Page, number: int) -> None:
    metric = page.get_by_test_id("stMetric").filter(has_text="Models trained and tested")
    expect(metric).to_contain_text(str(number))


def test_it_opens_on_the_report_and_draws_it(browser: Browser, shipped: str) -> None:
    page = open_page(browser, shipped)
    models_shown(page, 43)
    chart = page.get_by_test_id("stVegaLiteChart")
    expect(chart).to_contain_text("String length (letters)")
    expect(chart).to_contain_text("lower_magnitude_initializations")
    expect(chart).to_contain_text("end of training")
    expect(page.get_by_test_id("stException")).to_have_count(0)
    page.close()


def test_it_filters_by_seed_and_by_failing_and_the_link_reproduces_the_view(
    browser: Browser, shipped: str
) -> None:
    page = open_page(browser, shipped)
    page.get_by_label("Model seeds").click()
    page.get_by_role("option", name="2", exact=True).click()
    models_shown(page, 5)
    page.keyboard.press("Escape")
    page.get_by_text("Only failing models").click()
    chart = page.get_by_test_id("stVegaLiteChart")
    expect(chart).not_to_contain_text("increased_dimensionality")
    expect(chart).to_contain_text("lower_magnitude_initializations")
    page.wait_for_url("**failing=true**")
    link = page.url
    page.close()
    assert "seed=2" in link

    fresh = browser.new_context()
    copied = fresh.new_page()
    copied.goto(link)
    models_shown(copied, 5)
    expect(copied.get_by_test_id("stVegaLiteChart")).not_to_contain_text("increased_dimension")
    copied.get_by_role("button", name="Clear filters").click()
    models_shown(copied, 43)
    fresh.close()


def test_without_a_database_it_says_what_to_run(browser: Browser, tmp_path: Path) -> None:
    for url in serve(tmp_path / "none.db"):
        page = open_page(browser, url)
        expect(page.get_by_text("There are no models to show yet")).to_be_visible()
        expect(page.get_by_text("seqcls sweep report", exact=True)).to_be_visible()
        page.close()
    assert list(tmp_path.iterdir()) == []
