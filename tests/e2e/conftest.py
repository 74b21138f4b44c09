"""What the tests in a browser share."""

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.conftest import ROOT
from tests.e2e.browser import FLAGS, find_browser
from tests.e2e.server import serve


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="session")
def shipped() -> Iterator[str]:
    """The address of a dashboard on the shipped database."""
    with serve(ROOT / "runs.db") as server:
        yield server.url
