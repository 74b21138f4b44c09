"""What is pointed at, typed and played is drawn by the browser: the server is not asked."""

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.server import AT_REST, Heard, new_page, no_traceback

pytestmark = pytest.mark.browser

POINT = 'path[aria-roledescription="point"]'

MARKED = """() => [...document.querySelectorAll('[data-testid="stVegaLiteChart"]')].map(
    chart => [...chart.querySelectorAll('path[stroke="#D62728"]')]
        .filter(mark => mark.getAttribute('stroke-opacity') !== '0').length)"""
"""How many frames and rings there are in each chart."""


def marked(page: Page, *charts: bool) -> None:
    """Waits until these of the page's charts, and no others, have something marked."""
    page.wait_for_function(
        f"([charts]) => JSON.stringify(({MARKED})().map(own => own > 0)) === charts",
        arg=[str(list(charts)).lower().replace(" ", "")],
    )


def test_what_is_pointed_at_is_marked_in_every_figure_without_asking_the_server(
    browser: Browser, shipped: str
) -> None:
    page = new_page(browser, 1400, 1600)
    heard = Heard(page)
    page.goto(f"{shipped}/model?run=5&beside=all_initializations/5&view=States&string=baac")
    charts = page.get_by_test_id("stVegaLiteChart")
    # Parts of the logit, prefixes, all heads and the open one, of two models.
    expect(charts).to_have_count(8)
    expect(page.get_by_text("mark it in every figure of both models")).to_be_visible()
    points = charts.nth(2).locator(POINT)
    expect(points).to_have_count(5)
    # Heads are pictures, in which nothing can be looked up.
    marked(page, *[False] * 8)
    before = len(heard.sent)
    points.nth(2).hover()
    marked(page, False, False, True, True, *[False] * 4)
    page.mouse.move(1, 1)
    marked(page, *[False] * 8)
    assert len(heard.sent) == before > 0
    no_traceback(page)
    page.close()


WATCH = """live => {
    epochs = [];
    new MutationObserver(() => {
        const epoch = Number(live.dataset.epoch);
        if (epoch !== epochs.at(-1) && epoch !== 0) epochs.push(epoch);
    }).observe(live, {attributes: true});
}"""
"""Keeps the epochs that are drawn from now on."""


def test_attention_and_logit_follow_what_is_typed_and_the_film_without_a_rerun(
    browser: Browser, shipped: str
) -> None:
    page = new_page(browser, 1400, 1000)
    heard = Heard(page)
    page.goto(f"{shipped}/model?run=5&view=Live&string=baac")
    live = page.locator(".live")
    expect(live).to_have_attribute("data-shown", "baac")
    page.wait_for_function(AT_REST)
    before = heard.frames
    assert before > 0

    canvas, said = live.locator("canvas").first, live.locator(".said").inner_text()
    expect(canvas).to_have_attribute("width", "5")
    live.get_by_role("textbox").press("End")
    for typed in ("baacb", "baacbb", "baacbbc"):
        page.keyboard.press(typed[-1])
        expect(live).to_have_attribute("data-shown", typed)
        expect(canvas).to_have_attribute("width", str(len(typed) + 1))
        expect(live.locator("circle")).to_have_count(len(typed) + 1)
    assert live.locator(".said").inner_text() != said
    page.keyboard.press("x")
    expect(live.locator(".said")).to_contain_text("unknown letter 'x'")
    page.keyboard.press("Backspace")
    expect(live).to_have_attribute("data-shown", "baacbbc")

    live.get_by_role("slider").press("Home")
    expect(live).to_have_attribute("data-epoch", "0")
    picture = "canvas => canvas.toDataURL()"
    untrained = canvas.evaluate(picture)
    live.evaluate(WATCH)
    live.get_by_role("button", name="Play epochs").click()
    last = int(live.get_by_role("slider").get_attribute("max") or 0)
    expect(live).to_have_attribute("data-epoch", str(last))
    expect(live.get_by_role("button", name="Play epochs")).to_be_visible()
    assert page.evaluate("epochs") == list(range(1, last + 1)), "each, once and in order"
    assert canvas.evaluate(picture) != untrained
    assert heard.frames == before, "neither typing nor the film is heard by the page's script"

    live.get_by_role("button", name="Use in the other tabs").click()
    page.wait_for_url("**string=baacbbc**")
    no_traceback(page)
    page.close()
