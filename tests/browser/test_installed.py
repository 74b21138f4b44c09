"""A wheel that is installed outside of the clone shows the report's models in a browser."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from benchmarks.served import running
from tests.browser.server import no_traceback, open_page
from tests.conftest import ROOT

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One in which the packages are those of a wheel, and all else is as it is here."""
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", folder, ROOT], check=True, timeout=240)
    (wheel,) = folder.glob("seqcls-*.whl")
    site = folder / "site"
    subprocess.run([*pip, "install", "--no-deps", "--target", site, wheel], check=True, timeout=240)
    data = str(folder / "data")
    return {**os.environ, "PYTHONPATH": str(site), "XDG_DATA_HOME": data, "HOME": data}


@pytest.mark.timeout(600)
def test_installed_dashboard_shows_the_shipped_models(
    environment: dict[str, str], tmp_path: Path, browser: Browser
) -> None:
    environment = {x: y for x, y in environment.items() if x != "SEQCLS_DB"}
    ask = [sys.executable, "-c", "import sweeps, dashboard; print(sweeps.__file__)"]
    imported = subprocess.run(ask, env=environment, cwd=tmp_path, capture_output=True, check=True)
    assert imported.stdout.decode().startswith(environment["PYTHONPATH"])
    command = [sys.executable, "-m", "sweeps", "dashboard"]
    with running(lambda port: [*command, f"--port={port}"], environment, folder=tmp_path) as server:
        page = open_page(browser, server.url)
        expect(page.get_by_test_id("stMain")).to_contain_text("generalize")
        page.goto(f"{server.url}/failures")
        expect(page.get_by_test_id("stMain")).to_contain_text("16 failing models")
        no_traceback(page)
        page.close()
    assert not list(tmp_path.iterdir())
