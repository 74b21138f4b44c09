"""Two rows of Compare are compared, down to a string that only one gets wrong."""

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.server import no_traceback, open_page

pytestmark = pytest.mark.browser


def test_two_rows_are_compared_and_a_string_of_one_leads_to_its_model(
    browser: Browser, shipped: str
) -> None:
    page = open_page(browser, f"{shipped}/?config=2&config=5", 1440)
    page.get_by_role("link", name="Compare these two").click()
    page.wait_for_url("**/compare_two?config=2&config=5")
    main = page.get_by_test_id("stMain")
    expect(main).to_contain_text("More than chance explains: share that generalizes")
    expect(main).to_contain_text("Seeds are not paired: hidden_size differs")
    expect(page.get_by_test_id("stVegaLiteChart").first).to_contain_text("String length")
    box = page.get_by_role("textbox", name="String to ask about")
    box.fill("ab{100}c{55}")
    box.press("Enter")
    expect(main).to_contain_text("8 of 8 right")
    main.get_by_role("radio", name="Models").click()
    page.wait_for_url("**/compare_two?run=3&run=20")
    expect(main).to_contain_text("of 7,933 test strings")
    expect(main).to_contain_text("hidden_size 2 → 16")
    link = page.url
    main.get_by_role("link", name="Look inside model 3 at this string").click()
    page.wait_for_url("**/model?run=3&string=**")
    no_traceback(page)
    page.go_back()
    page.wait_for_url(link)
    expect(main).to_contain_text("of 7,933 test strings")
    no_traceback(page)
    page.close()
