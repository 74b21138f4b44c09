"""A question of several networks, asked on the page that launches."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from benchmarks.served import serve, wait_for
from sweeps.store import writer
from sweeps.store.opening import open_writer
from sweeps.work import background_worker
from tests.databases import rows
from tests.e2e.server import AT_REST, no_traceback, open_page
from tests.e2e.test_sweeps import TRAINING_SECONDS

pytestmark = pytest.mark.browser

MOST_ACTIONS = 8
"""For "rotary against none against LSTM, 5 seeds"; typing belongs to the click on its field."""

VARIANTS = ("transformer, positions rotary", "transformer, positions none", "lstm")


def test_rotary_against_none_against_lstm_is_launched_in_eight_actions(
    browser: Browser, tmp_path: Path
) -> None:
    db = tmp_path / "variants.db"
    with serve(db) as server:
        page = open_page(browser, server.url)
        page.set_viewport_size({"width": 1440, "height": 900})
        page.evaluate("clicks = 0; addEventListener('pointerdown', () => { clicks += 1 }, true)")
        page.get_by_test_id("stSidebar").get_by_text("Launch a sweep").click()
        main = page.get_by_test_id("stMain")
        seeds = main.get_by_role("textbox", name="Model seeds")
        seeds.click()
        seeds.fill("5")
        seeds.press("Enter")
        expect(main).to_contain_text("Seeds 0..4")
        page.wait_for_function(AT_REST)
        main.get_by_role("combobox", name="Variants").click()
        for number, name in enumerate(VARIANTS, 1):
            # The list has more than it shows.
            page.keyboard.type(name)
            page.get_by_role("option", name=name, exact=True).click()
            expect(main).to_contain_text(f"{5 * number} models")
            page.wait_for_function(AT_REST)
        expect(main).to_contain_text("Set so that training works: readout = last.")
        main.get_by_role("button", name="Launch 15 models", include_hidden=True).click()
        expect(page.get_by_test_id("stSidebar")).to_contain_text("of 15 models")
        no_traceback(page)
        assert page.evaluate("clicks") <= MOST_ACTIONS
        page.close()
    store = open_writer(str(db))
    assert rows(store, "SELECT count(*) FROM run") == [(15,)]
    # Its worker would train beside all tests that follow.
    writer.stop(store, [1])
    wait_for(lambda: not background_worker.has_worker(store, 1), TRAINING_SECONDS)
