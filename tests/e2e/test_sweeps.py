"""Real sweeps, launched and steered from the page."""

from math import prod
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from benchmarks.served import serve, wait_for
from sweeps.store.opening import open_reader
from sweeps.store.reads import sweep_queries
from sweeps.work import background_worker
from tests.e2e.server import AT_REST, models_tested, no_traceback, open_page

pytestmark = pytest.mark.browser

TRAINING_SECONDS = 240
"""Enough for a slow machine that has to compile first."""


def start_from_report(page: Page) -> None:
    """Chooses the report's model, which trains in a moment."""
    main = page.get_by_test_id("stMain")
    main.get_by_role("combobox", name="Start from", include_hidden=True).click()
    page.keyboard.type("The report")
    page.keyboard.press("Enter")
    expect(main.get_by_role("textbox", name="Model seeds", include_hidden=True)).to_have_value(
        "0..7"
    )
    page.wait_for_function(AT_REST)


def launch_own(page: Page, name: str, seeds: str, hidden_sizes: list[int], models: int) -> None:
    """Fills in the panel, first a size that is not the report's; launches with a double click."""
    page.get_by_text("Launch a sweep").click()
    start_from_report(page)
    for label, text in (("Name", name), ("Model seeds", seeds)):
        page.get_by_role("textbox", name=label).fill(text)
        page.keyboard.press("Enter")
    main = page.get_by_test_id("stMain")
    expect(main).to_contain_text(f"{models // len(hidden_sizes)} models")
    # By the keyboard: a list that is open closes where the panel below it still moves.
    sizes = ", ".join(map(str, hidden_sizes))
    main.get_by_role("combobox", name="hidden_size").click()
    page.keyboard.type(sizes)
    page.keyboard.press("Enter")
    expect(main).to_contain_text(f"hidden_size 2 → {sizes}.")
    page.keyboard.press("Escape")
    expect(main).to_contain_text(f"{models} models")
    button = main.get_by_role("button", name="Launch", exact=False)
    expect(button.last).to_be_enabled()
    button.last.dblclick()


MOST_ACTIONS = 8
"""That launching a study of two axes may take; what is typed belongs to the click on its field."""


def launch_study(page: Page, seeds: str, axes: dict[str, str], models: int) -> int:
    """Launches as a new user would, who clicks on a field before typing; says how many clicks.

    A list that is still open hides all else from assistive technology, but not from the mouse.
    """
    page.evaluate("clicks = 0; addEventListener('pointerdown', () => { clicks += 1 }, true)")
    main = page.get_by_test_id("stMain")
    page.get_by_text("Launch a sweep").click()
    start_from_report(page)
    box = page.get_by_role("textbox", name="Model seeds")
    box.click()
    box.fill(seeds)
    box.press("Enter")
    expect(box).to_have_value(seeds)
    made = models // prod(len(values.split(", ")) for values in axes.values())
    for field, values in axes.items():
        # What is typed while the page is drawn anew may be lost: it is once it tells their number.
        expect(main).to_contain_text(f"{made} {'model' if made == 1 else 'models'} to train")
        page.wait_for_function(AT_REST)
        main.get_by_role("combobox", name=field, include_hidden=True).click()
        page.keyboard.type(values)
        page.keyboard.press("Enter")
        expect(main).to_contain_text(values)
        made *= len(values.split(", "))
    name = f"Launch {models} models"
    main.get_by_role("button", name=name, include_hidden=True).click()
    return int(page.evaluate("clicks"))


def trained(db: Path) -> int:
    return int(sweep_queries.counts_by_state(open_reader(str(db)), [1]).get("done", 0))


def test_a_study_is_launched_in_few_actions_and_its_outcome_needs_no_scrolling(
    browser: Browser, tmp_path: Path
) -> None:
    db = tmp_path / "launched.db"
    with serve(db) as server:
        page = open_page(browser, server.url)
        page.set_viewport_size({"width": 1440, "height": 900})
        axes = {"hidden_size": "2, 3, 4", "num_attention_heads": "1, 2"}
        assert launch_study(page, "0-0", axes, 6) <= MOST_ACTIONS
        expect(page.get_by_role("heading", name="Running")).to_be_visible()
        expect(page.get_by_test_id("stSidebar")).to_contain_text("of 6 models")
        expect(page.get_by_role("heading", name="Sweep 1")).to_be_visible()
        expect(page.get_by_test_id("stMain").get_by_text("of 6 models").last).to_be_in_viewport()
        wait_for(lambda: trained(db) == 6, TRAINING_SECONDS)
        # Nobody touches the page: it goes on by itself, and shows the results at the end.
        expect(page.get_by_role("heading", name="Running")).to_have_count(0)
        # A toast says it too, for a moment.
        done = page.get_by_test_id("stAlertContentInfo").get_by_text("my_sweep is done")
        expect(done).to_be_in_viewport()
        learned = page.get_by_text("of 6 models learned the trained lengths")
        expect(learned).to_be_in_viewport()
        page.get_by_role("link", name="Compare: this sweep").click()
        models_tested(page, 6)
        expect(learned).to_be_in_viewport()
        expect(page.get_by_test_id("stDataFrame").first).to_be_in_viewport(ratio=1)
        expect(page.get_by_test_id("stVegaLiteChart").nth(2)).to_contain_text("width 4")
        no_traceback(page)
        page.get_by_role("link", name="Sweeps").click()
        page.get_by_text("Worker log").click()
        expect(page.get_by_text("trained 6 runs")).to_be_visible()
        page.close()
    assert len(list(background_worker.log_folder(open_reader(str(db))).glob("*.log"))) == 1
    assert trained(db) == 6


def test_a_sweep_is_stopped_and_resumed_and_outlives_the_page(
    browser: Browser, tmp_path: Path
) -> None:
    db = tmp_path / "outliving.db"
    with serve(db) as server:
        page = open_page(browser, server.url)
        launch_own(page, "sizes", "0..7", [4, 2, 8, 16], 32)
        sidebar = page.get_by_test_id("stSidebar")
        sidebar.get_by_role("button", name="Stop").click()
        expect(sidebar).to_contain_text("stopped")
        wait_for(
            lambda: not background_worker.has_worker(open_reader(str(db)), 1), TRAINING_SECONDS
        )
        assert trained(db) < 32, "what was not nearly done is left"
        sidebar.get_by_role("button", name="Resume").click()
        expect(sidebar.get_by_role("button", name="Stop")).to_be_visible()
        store = open_reader(str(db))
        wait_for(lambda: background_worker.has_worker(store, 1), 20)
        server.kill()
        page.close()
    assert background_worker.has_worker(store, 1), "the worker does not need the page"
    wait_for(lambda: trained(db) == 32, TRAINING_SECONDS)
    with serve(db) as server:
        page = open_page(browser, server.url)
        models_tested(page, 32)
        no_traceback(page)
        page.close()
