"""The pages of results in a browser: what only a browser draws, hits, keeps and fits."""

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from dashboard.charts.legend import ROW_OF_TWO
from tests.browser.server import AT_REST, models_tested, no_traceback, open_page

pytestmark = pytest.mark.browser

FILTERED = "5 of 43 runs match the filters."
CELL = 'path[aria-roledescription="rect mark"]'
POINT = 'path[aria-roledescription="point"]'


def rests(page: Page, path: str) -> None:
    """Waits until the page with this path is there, and has drawn all."""
    page.wait_for_url(f"**/{path}**")
    page.wait_for_function(AT_REST)


def choose_seed(page: Page) -> None:
    page.get_by_role("combobox", name="Model seeds").click()
    page.get_by_role("option", name="2", exact=True).click()


def test_it_opens_on_the_report_draws_it_and_prints_it_without_the_sidebar(
    browser: Browser, shipped: str
) -> None:
    page = open_page(browser, shipped)
    models_tested(page, 43)
    charts = page.get_by_test_id("stVegaLiteChart")
    expect(charts).to_have_count(7)
    outcomes, lines, names = (charts.nth(place) for place in range(3))
    expect(outcomes).to_contain_text("width 16, 2 heads, embeddings init linear like")
    expect(lines).to_contain_text("String length")
    # The names stand beside it; each can be pointed at over all of its row.
    expect(names).to_contain_text("attention init output fan out")
    heights = names.locator(CELL).evaluate_all("rows => rows.map(row => row.getBBox().height)")
    assert heights == [ROW_OF_TWO] * 7
    no_traceback(page)
    expect(page.get_by_test_id("stSidebar")).to_be_visible()
    page.emulate_media(media="print")
    expect(page.get_by_test_id("stSidebar")).to_be_hidden()
    page.close()


def test_pages_fit_a_phone(browser: Browser, shipped: str) -> None:
    for path in ("", "model?run=5&view=Figures"):
        page = open_page(browser, f"{shipped}/{path}", 390)
        wide, own = page.get_by_test_id("stMain").evaluate(
            "main => [main.scrollWidth, main.clientWidth]"
        )
        assert wide <= own, f"{path} is {wide} pixels wide in {own}"
        page.close()


def test_back_and_forward_keep_what_is_filtered(browser: Browser, shipped: str) -> None:
    page = open_page(browser, shipped)
    choose_seed(page)
    expect(page.get_by_text(FILTERED)).to_be_visible()
    page.keyboard.press("Escape")
    rests(page, "?**seed=2")
    page.get_by_role("link", name="Failing models", exact=True).click()
    rests(page, "failing?**seed=2")
    page.go_back()
    rests(page, "?**seed=2")
    expect(page.get_by_text(FILTERED)).to_have_count(1)
    page.go_forward()
    rests(page, "failing?**seed=2")
    # After that a click goes on with the filters, and Back leads to the very page before.
    page.get_by_role("link", name="Sweeps", exact=True).click()
    rests(page, "sweeps?**seed=2")
    expect(page.get_by_text(FILTERED)).to_have_count(1)
    page.go_back()
    rests(page, "failing?**seed=2")
    expect(page.get_by_text(FILTERED)).to_have_count(1)
    no_traceback(page)
    page.close()


def test_a_cell_leads_to_its_models_and_one_press_of_back_to_the_chart_as_it_was(
    browser: Browser, shipped: str
) -> None:
    page = open_page(browser, f"{shipped}/map?seed=2")
    expect(page).to_have_title("Map · seqcls")
    cells = page.get_by_test_id("stVegaLiteChart").first.locator(CELL)
    expect(cells).to_have_count(3)
    words = page.locator('[aria-roledescription="visualization"]').first
    expect(words).to_have_attribute("aria-label", re.compile("Most models fail with width 2,"))
    cells.first.click()
    models_tested(page, 1)
    rests(page, "?**hidden_size=2&num_attention_heads=2")
    expect(page).to_have_title("Compare · seqcls")
    page.go_back()
    page.wait_for_url(f"{shipped}/map?seed=2")
    expect(page.get_by_text(FILTERED)).to_have_count(1)
    page.goto(f"{shipped}/?config=2&seed=2")
    page.locator(f'{CELL}[aria-label*="configuration: width 2;"]').first.click()
    rests(page, "model?**run=5")
    page.go_back()
    page.wait_for_url(f"{shipped}/?config=2&seed=2")
    expect(page.get_by_text(FILTERED)).to_have_count(1)
    no_traceback(page)
    page.close()


def test_two_rows_are_compared_and_a_string_of_one_leads_to_its_model(
    browser: Browser, shipped: str
) -> None:
    page = open_page(browser, f"{shipped}/?config=2&config=5", 1440)
    page.get_by_role("link", name="Compare these two").click()
    page.wait_for_url("**/compare_two?config=2&config=5")
    main = page.get_by_test_id("stMain")
    expect(page.get_by_test_id("stVegaLiteChart").first).to_contain_text("String length")
    box = page.get_by_role("textbox", name="String to ask about")
    box.fill("ab{100}c{55}")
    box.press("Enter")
    expect(main).to_contain_text("8 of 8 right")
    main.get_by_role("radio", name="Models").click()
    page.wait_for_url("**/compare_two?run=3&run=20")
    expect(main).to_contain_text("of 7,933 test strings")
    link = page.url
    main.get_by_role("link", name="Look inside model 3 at this string").click()
    page.wait_for_url("**/model?run=3&string=**")
    no_traceback(page)
    page.go_back()
    page.wait_for_url(link)
    expect(main).to_contain_text("of 7,933 test strings")
    no_traceback(page)
    page.close()


def logit(page: Page) -> str:
    """The logit as the answer's line gives it."""
    line = page.get_by_test_id("stAlert").first
    expect(line).to_contain_text("logit")
    found = re.search(r"logit (\S+),", line.inner_text())
    assert found
    return found[0]


def test_a_failing_seed_of_compare_is_opened_explained_moved_and_broken(
    browser: Browser, shipped: str
) -> None:
    page = open_page(browser, f"{shipped}/?config=2&seed=2")
    # What can be hit of a line are its points; the tooltip tells whose they are.
    points = page.get_by_test_id("stVegaLiteChart").nth(1).locator(POINT)
    expect(points).to_have_count(20)
    points.nth(14).hover()
    expect(page.locator("#vg-tooltip-element")).to_contain_text("Model seed")
    points.nth(14).click()
    page.wait_for_url("**/model?**run=5**")
    # The filters hold.
    page.wait_for_url("**seed=2**")
    expect(page.get_by_text("wrong on 697 of 9,984 test strings")).to_be_visible()
    page.get_by_role("button", name=re.compile("^Explain b")).click()
    expect(page.get_by_text("Value interference: head 0 takes")).to_be_visible()
    page.wait_for_url("**string=b**")

    before = logit(page)
    page.get_by_role("slider").press("ArrowRight")
    page.wait_for_url("**epoch=3**")
    expect(page.get_by_text(before)).to_have_count(0)
    assert logit(page) != before
    page.get_by_role("slider").press("ArrowLeft")
    expect(page.get_by_text(before)).to_be_visible()

    page.get_by_role("tab", name="Breaking point").click()
    family = page.get_by_role("textbox", name="Family of strings")
    family.fill("ab{n}c{55}")
    family.press("Enter")
    page.wait_for_url("**family=ab**")
    expect(page.get_by_text(re.compile(r"From n = \d+ on it predicts negative"))).to_be_visible()
    expect(page.get_by_test_id("stVegaLiteChart").first).to_contain_text("n = ")
    no_traceback(page)
    page.close()


def test_the_link_that_is_copied_opens_what_is_shown_and_a_report_is_downloaded(
    browser: Browser, shipped: str
) -> None:
    page = open_page(browser, f"{shipped}/failing?sweep=all_initializations&seed=0&seed=2")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.wait_for_function(AT_REST)
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.url
    assert "sweep=all_initializations" in copied
    assert "seed=0" in copied
    page.goto(f"{shipped}/?sweep=all_initializations&seed=0&seed=2")
    name, text = reported(page)
    assert name == "configurations.html"
    assert "2 of 2 models that match the filters fail" in text
    assert [f'id="run-{run}"' in text for run in (3, 4, 5)] == [True, False, True]
    page.close()


def reported(page: Page) -> tuple[str, str]:
    """The name and the content of the report that a page gives."""
    # Until then the page may still put other buttons in place of its own.
    page.wait_for_function(AT_REST)
    # A first report loads all that draws and explains.
    with page.expect_download(timeout=200_000) as given:
        page.get_by_role("button", name="Report", exact=True).click()
    no_traceback(page)
    return given.value.suggested_filename, given.value.path().read_text()
