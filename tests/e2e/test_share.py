"""Copy link, Report and Export on the pages: what they give is what is shown."""

import io
import json
from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import Browser, Page, expect

from sweeps.store.opening import open_reader
from sweeps.store.reads.string_queries import string_errors
from tests.conftest import ROOT
from tests.e2e.server import AT_REST, no_traceback, open_page

pytestmark = pytest.mark.browser

SHIPPED = ROOT / "runs.db"
PATIENCE_MS = 200_000
"""For a first report, which loads all that draws and explains."""


@pytest.fixture
def public(read_only: str) -> str:
    """The address of a read-only dashboard on the shipped database."""
    return read_only


def downloaded(page: Page, *clicked: str) -> tuple[str, bytes]:
    """The name and the content of the file that the last of these buttons gives."""
    # Until then the page may still put others in place of its buttons.
    page.wait_for_function(AT_REST)
    for name in clicked[:-1]:
        page.get_by_role("button", name=name, exact=True).click()
    with page.expect_download(timeout=PATIENCE_MS) as given:
        page.get_by_role("button", name=clicked[-1], exact=True).click()
    no_traceback(page)
    return given.value.suggested_filename, Path(given.value.path()).read_bytes()


def test_the_link_that_is_copied_opens_what_is_shown(browser: Browser, public: str) -> None:
    page = open_page(browser, f"{public}/failing?sweep=all_initializations&seed=0&seed=2")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.wait_for_function(AT_REST)
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.url
    assert "sweep=all_initializations" in copied
    assert "seed=0" in copied
    no_traceback(page)
    page.close()


def test_the_report_of_a_page_is_of_the_models_that_match_its_filters(
    browser: Browser, public: str
) -> None:
    page = open_page(browser, f"{public}/?sweep=all_initializations&seed=0&seed=2")
    name, content = downloaded(page, "Report")
    page.close()
    assert name == "configurations.html"
    text = content.decode()
    assert "<h1>all_initializations" in text
    assert "<strong>2 of 2 models that match the filters fail</strong>" in text
    assert "Filtered by seed = 0, 2." in text
    assert [run in text for run in ('id="run-3"', 'id="run-5"', 'id="run-4"')] == [
        True,
        True,
        False,
    ]


def test_the_report_of_a_model_is_of_that_model_alone(browser: Browser, public: str) -> None:
    page = open_page(browser, f"{public}/model?run=5")
    name, content = downloaded(page, "Report")
    page.close()
    assert name == "model_5.html"
    assert "<h1>Model 5</h1>" in content.decode()
    assert content.decode().count("<details id=") == 1


def test_tables_are_exported_in_three_formats(browser: Browser, public: str) -> None:
    page = open_page(browser, f"{public}/?sweep=all_initializations&sweep=attend_cls")
    name, content = downloaded(page, "Export", "CSV")
    table = pd.read_csv(io.BytesIO(content))
    assert name == "configurations.csv"
    assert table["failing"].tolist() == [7, 0]
    _, content = downloaded(page, "Parquet")
    pd.testing.assert_series_equal(
        pd.read_parquet(io.BytesIO(content))["median_accuracy"], table["median_accuracy"]
    )
    page.goto(f"{public}/model?run=5")
    name, content = downloaded(page, "Export", "JSON Lines")
    assert name == "model_5.jsonl"
    strings = [json.loads(line)["string"] for line in content.decode().splitlines()]
    assert sorted(strings) == sorted(string_errors(open_reader(str(SHIPPED)), 5)["string"])
    page.close()


@pytest.mark.parametrize(
    ("path", "file", "rows"),
    [
        ("failing?sweep=all_initializations", "failing_models.csv", 7),
        ("map", "map.csv", 3),
        ("sweeps?sweep_id=2", "all_initializations.csv", 8),
    ],
)
def test_every_page_of_results_exports_what_it_shows(
    browser: Browser, public: str, path: str, file: str, rows: int
) -> None:
    page = open_page(browser, f"{public}/{path}")
    name, content = downloaded(page, "Export", "CSV")
    page.close()
    assert name == file
    assert len(pd.read_csv(io.BytesIO(content))) == rows
