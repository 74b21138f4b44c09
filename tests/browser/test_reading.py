"""Pages of a read-only dashboard in a browser: layout, clicks, typing, history and downloads."""

import csv
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from dashboard.actions import REASON
from tests.browser.conftest import BASE
from tests.browser.server import AT_REST, PATIENCE_MS, new_page, no_traceback, open_page

pytestmark = pytest.mark.browser

POINT = 'path[aria-roledescription="point"]'
HEAD_OF_5 = "on 8,779 of 9,476 longer strings (92.64%)"
SEED_2 = "4 of 5 models learned; of these 3 generalize."


def rests(page: Page, path: str) -> None:
    """Waits until the page with this path is there, and has drawn all."""
    page.wait_for_url(re.compile(path))
    page.wait_for_function(AT_REST)


def test_first_screen_answers_without_a_click(browser: Browser, shipped: str) -> None:
    page = open_page(browser, shipped, 1440)
    page.set_viewport_size({"width": 1440, "height": 900})
    main = page.get_by_test_id("stMain")
    answer = main.get_by_text("41 of 43 models learned; of these 27 generalize.", exact=True)
    table, first = page.get_by_test_id("stDataFrame"), page.get_by_test_id("stVegaLiteChart").first
    for part in (answer, main.get_by_text(re.compile("^Against width 2")), table, first):
        expect(part).to_be_visible()
    page.wait_for_function(AT_REST)
    parts = [part.bounding_box() for part in (answer, table, first)]
    tops = [box["y"] for box in parts if box]
    assert tops == sorted(tops)
    assert tops[-1] < 900
    expect(page.get_by_test_id("stVegaLiteChart")).to_have_count(7)
    no_traceback(page)
    expect(page.get_by_test_id("stSidebar")).to_be_visible()
    page.emulate_media(media="print")
    expect(page.get_by_test_id("stSidebar")).to_be_hidden()
    page.close()


@pytest.mark.parametrize(
    "path",
    ["", "?rows=2&rows=5", "?show=Map", "failures", "sweeps", "guide", "launch",
     "model?run=5&view=Figures"],
)  # fmt: skip
def test_pages_fit_a_phone(browser: Browser, shipped: str, path: str) -> None:
    page = open_page(browser, f"{shipped}/{path}", 390)
    page.wait_for_function(AT_REST)
    for area in ("stMain", "stAppViewContainer"):
        wide, own = page.get_by_test_id(area).evaluate("x => [x.scrollWidth, x.clientWidth]")
        assert wide <= own, f"{area} is {wide} pixels wide in {own}"
    page.close()


def test_back_and_forward_keep_filters(browser: Browser, shipped: str) -> None:
    page = open_page(browser, shipped)
    page.get_by_role("combobox", name="Seeds").click()
    page.get_by_role("option", name="2", exact=True).click()
    main = page.get_by_test_id("stMain")
    expect(main.get_by_text(SEED_2)).to_be_visible()
    page.keyboard.press("Escape")
    rests(page, r"/\?(.*&)?seed=2")
    page.get_by_role("link", name="Failures", exact=True).click()
    rests(page, r"failures\?(.*&)?seed=2")
    fail = re.compile("^2 of 5 tested models fail")
    expect(main.get_by_text(fail)).to_be_visible()
    page.go_back()
    rests(page, r"models/\?(.*&)?seed=2")
    expect(main.get_by_text(SEED_2)).to_be_visible()
    page.go_forward()
    rests(page, r"failures\?(.*&)?seed=2")
    # After that a click keeps the filters, and Back returns to the page before.
    page.get_by_role("link", name="Sweeps", exact=True).click()
    rests(page, r"sweeps\?(.*&)?seed=2")
    page.go_back()
    rests(page, r"failures\?(.*&)?seed=2")
    expect(main.get_by_text(fail)).to_be_visible()
    no_traceback(page)
    page.close()


def test_name_or_line_opens_a_seed_and_back_returns(browser: Browser, shipped: str) -> None:
    page = open_page(browser, f"{shipped}/?rows=2&seed=1&seed=2", 1440)
    page.get_by_role("link", name="width 2, CLS unattended").click()
    # Of the two seeds the one with more errors.
    rests(page, r"model\?(?=.*run=5)(?=.*seed=1&seed=2)")
    expect(page.get_by_text(HEAD_OF_5)).to_be_visible()
    page.go_back()
    rests(page, r"models/\?(?=.*rows=2)(?=.*seed=1&seed=2)")
    # Points of a line can be clicked; the tooltip names their seed.
    points = page.get_by_test_id("stVegaLiteChart").first.locator(POINT)
    expect(points).to_have_count(40)
    found = page.get_by_test_id("stVegaLiteChart").first.locator(f'{POINT}[aria-label*="Seed: 1;"]')
    found.nth(14).hover(force=True)
    expect(page.locator("#vg-tooltip-element")).to_contain_text("Seed")
    found.nth(14).click(force=True)
    rests(page, r"model\?(?=.*run=4)(?=.*seed=1&seed=2)")
    no_traceback(page)
    page.close()


ROW, HEAD = 35, 36
BOX = 17


def test_selected_rows_are_compared_and_linked(browser: Browser, shipped: str) -> None:
    page = open_page(browser, shipped, 1440)
    page.wait_for_function(AT_REST)
    main, table = page.get_by_test_id("stMain"), page.get_by_test_id("stDataFrame").first
    for row in (0, 5):
        box = table.bounding_box()
        assert box is not None
        page.mouse.click(box["x"] + BOX, box["y"] + HEAD + ROW * row + BOX)
        page.wait_for_url(re.compile("rows=" if row == 0 else "rows=.*rows="))
    rests(page, r"\?rows=\d+&rows=2$")
    expect(main.get_by_text("The two that are selected")).to_be_visible()
    verdict = main.get_by_text(re.compile("^Significant differences: share that generalizes"))
    expect(verdict).to_be_visible()
    sentence = verdict.inner_text()
    expect(main.get_by_text("Strings that more seeds of one get wrong")).to_be_visible()
    again = open_page(browser, page.url, 1440)
    expect(again.get_by_test_id("stMain").get_by_text(sentence).first).to_be_visible()
    no_traceback(again)
    for opened in (page, again):
        opened.close()


def saved(page: Page, button: str) -> Path:
    """The file that a button gives."""
    with page.expect_download() as given:
        page.get_by_role("button", name=button).click()
    return Path(given.value.path())


def test_figure_and_table_are_saved_as_selected(browser: Browser, shipped: str) -> None:
    page = open_page(browser, f"{shipped}/?sweep=all_initializations&seed=1&seed=2", 1440)
    page.wait_for_function(AT_REST)
    drawn = saved(page, "Figure SVG").read_text()
    assert "contains all, by length: all_initializations, seed 1, seed 2" in drawn
    for caption in (
        "fails beyond",
        "median",
        "width 2, CLS unattended",
        "trained lengths are shaded",
    ):
        assert caption in drawn, caption
    assert saved(page, "Figure PNG").read_bytes().startswith(b"\x89PNG")
    (row,) = csv.DictReader(saved(page, "Table CSV").read_text().splitlines())
    assert row["configuration"] == "width 2, CLS unattended"
    assert [int(row[x]) for x in ("seeds", "learned", "judged", "generalize")] == [2, 2, 2, 0]
    assert float(row["generalize_low"]) == 0
    assert 0.65 < float(row["generalize_high"]) < 0.66
    no_traceback(page)
    page.close()


def logit(page: Page) -> str:
    """The logit as the bar's sentence gives it."""
    line = page.get_by_test_id("stMain").get_by_text(re.compile("predicted .*logit")).first
    expect(line).to_be_visible()
    found = re.search(r"logit (\S+),", line.inner_text())
    assert found
    return found[0]


def test_failing_seed_is_explained_by_string_epoch_and_family(
    browser: Browser, shipped: str
) -> None:
    page = open_page(browser, f"{shipped}/model?run=5&seed=2", 1440)
    expect(page.get_by_text(HEAD_OF_5)).to_be_visible()
    expect(page.get_by_text("Its attention is diluted (head 0: a by b)")).to_be_visible()
    # The second row is what is left of the string that still fails.
    page.wait_for_function(AT_REST)
    table = page.get_by_test_id("stMain").get_by_test_id("stDataFrame").first
    table.scroll_into_view_if_needed()
    box = table.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + BOX, box["y"] + HEAD + ROW + BOX)
    page.wait_for_url(re.compile(r"string=ab(%7B|\{)66"))
    expect(page.get_by_text("Why ab{66}?")).to_be_visible()

    before = logit(page)
    page.get_by_role("slider").press("ArrowRight")
    page.wait_for_url("**epoch=3**")
    expect(page.get_by_text(before)).to_have_count(0)
    assert logit(page) != before
    page.get_by_role("slider").press("ArrowLeft")
    expect(page.get_by_text(before)).to_be_visible()

    page.get_by_role("tab", name="Limits").click()
    family = page.get_by_role("textbox", name="Family of strings")
    family.fill("ab{n}c{55}")
    family.press("Enter")
    page.wait_for_url("**family=ab**")
    expect(page.get_by_text(re.compile(r"the first with n = "))).to_be_visible()
    expect(page.get_by_test_id("stVegaLiteChart").first).to_contain_text("n = ")
    no_traceback(page)
    page.close()


def test_logit_follows_typing(browser: Browser, shipped: str) -> None:
    page = new_page(browser)
    page.goto(f"{shipped}/model?run=5&view=Inside&part=Live&string=baac")
    box = page.get_by_label("Type a string")
    box.wait_for(timeout=PATIENCE_MS)
    expect(page.get_by_text("baac: is")).to_be_visible(timeout=PATIENCE_MS)
    box.fill("ab")
    box.press_sequentially("{2}c", delay=50)
    expect(page.get_by_text("abbc: is")).to_be_visible(timeout=PATIENCE_MS)
    expect(page.get_by_test_id("stVegaLiteChart").first).to_be_visible()
    box.press_sequentially("d")
    expect(page.get_by_text("unknown letter 'd'")).to_be_visible(timeout=PATIENCE_MS)
    assert "string=baac" in page.url, "the page goes on being about its own string"
    page.get_by_role("button", name="Look at it").click()
    no_traceback(page)
    page.close()


MODEL = "width 16, 2 heads, embeddings init linear like"


def test_read_only_dashboard_stays_below_its_path(browser: Browser, shipped: str) -> None:
    page, requested = new_page(browser), list[str]()
    page.on("request", lambda request: requested.append(request.url))
    page.on("websocket", lambda socket: requested.append(socket.url))
    page.goto(f"{shipped}/")
    page.get_by_role("link", name="Failures").first.click()
    expect(page).to_have_url(re.compile(rf"{BASE}/failures"))
    expect(page.get_by_text("14 beyond the trained lengths").first).to_be_visible()
    page.get_by_role("link", name="Results").first.click()
    page.get_by_role("link", name=MODEL).click()
    expect(page).to_have_url(re.compile(rf"{BASE}/model\?.*run="))
    expect(page.get_by_role("heading", name=MODEL)).to_be_visible()
    no_traceback(page)
    page.reload()
    expect(page.get_by_role("heading", name=MODEL)).to_be_visible()
    page.goto(f"{shipped}/compare?seed=2")
    page.wait_for_url(re.compile(rf"{BASE}/\?seed=2$"))
    page.goto(f"{shipped}/launch")
    button = page.get_by_test_id("stButton").filter(has_text="Launch").get_by_role("button")
    expect(button.first).to_be_disabled()
    page.get_by_test_id("stTooltipHoverTarget").filter(has_text="Launch").last.hover(force=True)
    expect(page.get_by_test_id("stTooltipContent")).to_contain_text(REASON.replace("`", ""))
    assert any(address.startswith("ws") for address in requested)
    paths = {(urlsplit(url).netloc, urlsplit(url).path) for url in requested if url[0] in "hw"}
    elsewhere = {path for host, path in paths if not path.startswith(f"{BASE}/")}
    assert elsewhere <= {"/favicon.ico"}
    assert {host for host, _ in paths} == {urlsplit(shipped).netloc}
    page.close()
