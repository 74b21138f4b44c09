"""Fixtures of browser tests: a profile, and a dashboard on the shipped database."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from benchmarks.served import FLAGS, find_browser, serve
from tests.conftest import ROOT


@pytest.fixture(scope="package")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser with one profile and its cache."""
    executable = find_browser()
    if executable is None:
        if os.environ.get("CI"):
            pytest.fail("under CI a missing browser is a failure")
        pytest.skip("no browser on this machine")
    with sync_playwright() as playwright:
        profile = playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("profile"), executable_path=executable, args=FLAGS
        )
        assert profile.browser is not None
        yield profile.browser
        profile.close()


BASE = "/lab/models"
"""Below this path is what `shipped` serves."""


@pytest.fixture(scope="package")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a read-only dashboard on a copy of the shipped database, below a path."""
    db = Path(shutil.copy(ROOT / "runs.db", tmp_path_factory.mktemp("public") / "runs.db"))
    with serve(db, "--read-only", base_path=BASE) as server:
        yield server.url
