"""From nothing to which of one's models fail, and on what; clicks are counted."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from benchmarks.served import Server, serve, wait_for
from sweeps.store.opening import open_reader
from sweeps.store.reads import sweep_queries
from sweeps.work import background_worker
from tests.browser.server import AT_REST, models_tested, no_traceback, open_page

pytestmark = pytest.mark.browser

TRAINING_SECONDS = 240
"""Enough for a slow machine that has to compile first."""

COUNT = "clicks = 0; addEventListener('pointerdown', () => { clicks += 1 }, true)"


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where nothing is yet."""
    return tmp_path_factory.mktemp("launched") / "x.db"


@pytest.fixture(scope="module")
def server(db: Path) -> Iterator[Server]:
    with serve(db) as started:
        yield started


@pytest.fixture
def page(browser: Browser, server: Server) -> Iterator[Page]:
    """The page that launches, on which clicks are counted from the sidebar's on."""
    opened = open_page(browser, server.url)
    opened.set_viewport_size({"width": 1440, "height": 900})
    opened.evaluate(COUNT)
    opened.get_by_text("Launch a sweep").first.click()
    yield opened
    no_traceback(opened)
    opened.close()


def choose(page: Page, field: str, *values: str) -> None:
    """Clicks on a field of the form, and types and enters each value once the page has the last.

    A list that is still open hides all else from assistive technology, but not from the mouse.
    """
    main = page.get_by_test_id("stMain")
    page.wait_for_function(AT_REST)
    main.get_by_role("combobox", name=field, include_hidden=True).click()
    for value in values:
        page.keyboard.type(value)
        # Enter takes what was typed, and nothing like it, such as `slstm`.
        option = page.get_by_role("option", name=value, exact=True)
        if len(values) > 1:
            option.wait_for()
        page.keyboard.press("Enter")
        page.wait_for_function(AT_REST)


def choose_seeds(page: Page, seeds: str) -> None:
    box = page.get_by_test_id("stMain").get_by_role(
        "textbox", name="Model seeds", include_hidden=True
    )
    box.click()
    box.fill(seeds)
    box.press("Enter")
    page.wait_for_function(AT_REST)


def trained(db: Path, sweep_id: int) -> int:
    return int(sweep_queries.counts_by_state(open_reader(str(db)), [sweep_id]).get("done", 0))


def test_a_newcomer_learns_which_copying_models_fail_and_on_what(page: Page, db: Path) -> None:
    main, sidebar = page.get_by_test_id("stMain"), page.get_by_test_id("stSidebar")
    choose(page, "task", "copy")
    choose(page, "architecture", "gru")
    # Said before anything is launched: what is other than in the model that it starts from.
    expect(main).to_contain_text("architecture transformer → gru")
    choose(page, "More settings: training", "max_num_epochs")
    choose(page, "max_num_epochs", "1")
    expect(main).to_contain_text("max_num_epochs 50 → 1")
    choose_seeds(page, "2")
    main.get_by_role("button", name="Launch 2 models", include_hidden=True).click()
    expect(page.get_by_role("heading", name="Sweep 1")).to_be_visible()
    expect(sidebar).to_contain_text("of 2 models")
    expect(main.get_by_text("of 2 models").last).to_be_in_viewport()
    wait_for(lambda: db.exists() and trained(db, 1) == 2, TRAINING_SECONDS)
    # Nobody touches the page: it goes on by itself, and shows the results at the end.
    expect(page.get_by_role("heading", name="Running")).to_have_count(0)
    expect(main).to_contain_text("2 of 2 models")
    # A toast says it too, for a moment.
    said = page.get_by_test_id("stAlertContentInfo").get_by_text("my_sweep is done")
    expect(said).to_be_in_viewport()
    page.get_by_role("link", name="Failing models: this sweep").click()
    expect(main).to_contain_text("Look inside this model")
    # A wrong output, token by token below its target.
    aligned = main.locator(".aligned").first
    expect(aligned).to_contain_text("Target")
    expect(aligned).to_contain_text("Output")
    assert page.evaluate("clicks") <= 8
    page.get_by_role("link", name="Compare", exact=True).click()
    models_tested(page, 2)
    expect(page.get_by_test_id("stDataFrame").first).to_be_in_viewport(ratio=1)
    page.get_by_role("link", name="Sweeps").click()
    page.get_by_text("Worker log").click()
    expect(page.get_by_text("trained 2 runs")).to_be_visible()


def test_a_file_of_strings_is_chosen_and_looked_at(page: Page, tmp_path: Path) -> None:
    refused, accepted = tmp_path / "wrong.csv", tmp_path / "odd.csv"
    refused.write_text("tokens,label\nab,1\nba,maybe\n")
    rows = [f"{number:b},{number.bit_count() % 2}" for number in range(1, 400)]
    accepted.write_text("\n".join(["tokens,label", *rows]))
    main = page.get_by_test_id("stMain")
    choose(page, "task", "file")
    chosen = main.locator("input[type=file]")
    chosen.set_input_files(refused)
    expect(main).to_contain_text("wrong.csv: line 3: label is 'maybe'")
    chosen.set_input_files(accepted)
    expect(main).to_contain_text("399 rows, task = 'file'; 2 tokens: 0 1; tokens: read as")
    expect(main.get_by_role("button", name="Launch", exact=False).last).to_be_enabled()


def test_a_double_click_launches_once_and_a_sweep_is_stopped_resumed_and_outlives_the_page(
    browser: Browser, server: Server, page: Page, db: Path
) -> None:
    main, sidebar = page.get_by_test_id("stMain"), page.get_by_test_id("stSidebar")
    choose(page, "Start from", "The report")
    choose_seeds(page, "0-7")
    choose(page, "hidden_size", "4, 2, 8")
    expect(main).to_contain_text("24 models")
    main.get_by_role("button", name="Launch 24 models", include_hidden=True).dblclick()
    sidebar.get_by_role("button", name="Stop").click()
    expect(sidebar).to_contain_text("stopped")
    store = open_reader(str(db))
    assert len(sweep_queries.counts_by_state(store, [3])) == 0, "two clicks launch one sweep"
    wait_for(lambda: not background_worker.has_worker(store, 2), TRAINING_SECONDS)
    assert trained(db, 2) < 24, "what was not done is left"
    sidebar.get_by_role("button", name="Resume").click()
    expect(sidebar.get_by_role("button", name="Stop")).to_be_visible()
    wait_for(lambda: background_worker.has_worker(store, 2), 20)
    server.kill()
    assert background_worker.has_worker(store, 2), "the worker does not need the page"
    wait_for(lambda: trained(db, 2) == 24, TRAINING_SECONDS)
    with serve(db) as again:
        reopened = open_page(browser, f"{again.url}/?sweep_id=2")
        models_tested(reopened, 26)
        no_traceback(reopened)
        reopened.close()
