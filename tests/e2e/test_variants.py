"""A question of several networks, asked on the page that launches."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from benchmarks.served import serve, wait_for
from sweeps import api
from sweeps.store import writer
from sweeps.store.opening import open_writer
from sweeps.work import background_worker
from tests.e2e.server import AT_REST, no_traceback, open_page
from tests.e2e.test_sweeps import TRAINING_SECONDS

pytestmark = pytest.mark.browser

MOST_ACTIONS = 14
"""For three languages by four variants, 5 seeds; typing belongs to the click on its field."""

VARIANTS = ("transformer, positions rotary", "transformer, positions none", "lstm", "gru")
MORE = ("dyck", "even_pairs")


def test_three_languages_by_four_variants_are_launched_in_fourteen_actions(
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
            # Enter takes what was typed, and nothing like it, such as `slstm`.
            page.keyboard.type(name)
            page.get_by_role("option", name=name, exact=True).wait_for()
            page.keyboard.press("Enter")
            expect(main).to_contain_text(f"{5 * number} models")
            page.wait_for_function(AT_REST)
        main.get_by_role("combobox", name="task", include_hidden=True).click()
        page.keyboard.type("parity")
        page.keyboard.press("Enter")
        expect(main).to_contain_text("an odd number of 1s")
        page.wait_for_function(AT_REST)
        main.get_by_role("combobox", name="More languages", include_hidden=True).click()
        for number, name in enumerate(MORE, 2):
            page.keyboard.type(name)
            page.get_by_role("option", name=name, exact=True).wait_for()
            page.keyboard.press("Enter")
            expect(main).to_contain_text(f"{20 * number} models")
            page.wait_for_function(AT_REST)
        main.get_by_role("button", name="Launch 60 models", include_hidden=True).click()
        expect(page.get_by_test_id("stSidebar")).to_contain_text("of 60 models")
        expect(page.get_by_role("heading", name="Sweep 1")).to_be_visible()
        no_traceback(page)
        assert page.evaluate("clicks") <= MOST_ACTIONS
        page.close()
    store = open_writer(str(db))
    launched = api.runs(store)
    assert len(launched) == 60
    # What each network is read at follows it: recurrent ones have no CLS that knows the string.
    assert set(zip(launched["architecture"], launched["readout"], strict=True)) == {
        ("transformer", "first"), ("lstm", "last"), ("gru", "last"),
    }  # fmt: skip
    # Its worker would train beside all tests that follow.
    writer.stop(store, [1])
    wait_for(lambda: not background_worker.has_worker(store, 1), TRAINING_SECONDS)
