"""A file of strings is chosen on the page, looked at and trained on."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from benchmarks.served import serve
from tests.e2e.server import PATIENCE_MS, no_traceback, open_page
from tests.e2e.test_copying import TRAINING_MS

pytestmark = pytest.mark.browser


def test_a_file_is_chosen_looked_at_and_trained_on(browser: Browser, tmp_path: Path) -> None:
    refused, accepted = tmp_path / "wrong.csv", tmp_path / "odd.csv"
    refused.write_text("tokens,label\nab,1\nba,maybe\n")
    rows = [f"{number:b},{number.bit_count() % 2}" for number in range(1, 400)]
    accepted.write_text("\n".join(["tokens,label", *rows]))
    with serve(tmp_path / "x.db") as server:
        page = open_page(browser, f"{server.url}/launch")
        main = page.get_by_test_id("stMain")
        main.get_by_role("combobox", name="task").click()
        page.keyboard.type("file")
        page.keyboard.press("Enter")
        chosen = main.locator("input[type=file]")
        chosen.set_input_files(refused)
        expect(main).to_contain_text("wrong.csv: line 3: label is 'maybe'")
        expect(main).to_contain_text("Fix the settings above to launch.")
        chosen.set_input_files(accepted)
        expect(main).to_contain_text("399 rows, task = 'file'; 2 tokens: 0 1; tokens: read as")
        seeds = main.get_by_role("textbox", name="Model seeds")
        seeds.fill("2")
        seeds.press("Enter")
        main.get_by_role("button", name="Launch 2 models").click()
        expect.set_options(timeout=TRAINING_MS)
        expect(main).to_contain_text("2 of 2 models")
        expect.set_options(timeout=PATIENCE_MS)
        no_traceback(page)
        page.close()
