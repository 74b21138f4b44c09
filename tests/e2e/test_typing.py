"""While a string is typed and while epochs are played, the page is not run again."""

import pytest
from playwright.sync_api import Browser, Page, WebSocket, expect

from tests.e2e.server import AT_REST, new_page, no_traceback

pytestmark = pytest.mark.browser


WATCH = """live => {
    epochs = [];
    new MutationObserver(() => {
        const epoch = Number(live.dataset.epoch);
        if (epoch !== epochs.at(-1) && epoch !== 0) epochs.push(epoch);
    }).observe(live, {attributes: true});
}"""
"""Keeps the epochs that are drawn from now on."""


def frames(page: Page) -> list[str]:
    """What page and server say to each other over the page's socket, from now on, as they do."""
    found: list[str] = []

    def listen(socket: WebSocket) -> None:
        socket.on("framesent", lambda _: found.append("sent"))
        socket.on("framereceived", lambda _: found.append("received"))

    page.on("websocket", listen)
    return found


def test_attention_and_logit_follow_what_is_typed_and_the_film_without_a_rerun(
    browser: Browser, shipped: str
) -> None:
    page = new_page(browser, 1400, 1000)
    heard = frames(page)
    page.goto(f"{shipped}/model?run=5&view=Live&string=baac")
    live = page.locator(".live")
    expect(live).to_have_attribute("data-shown", "baac")
    page.wait_for_function(AT_REST)
    assert heard
    heard.clear()

    canvas = live.locator("canvas").first
    expect(canvas).to_have_attribute("width", "5")
    before = live.locator(".said").inner_text()
    box = live.get_by_role("textbox")
    box.press("End")
    for typed in ("baacb", "baacbb", "baacbbc"):
        page.keyboard.press(typed[-1])
        expect(live).to_have_attribute("data-shown", typed)
        expect(canvas).to_have_attribute("width", str(len(typed) + 1))
        expect(live.locator("circle")).to_have_count(len(typed) + 1)
    assert live.locator(".said").inner_text() != before
    page.keyboard.press("x")
    expect(live.locator(".said")).to_contain_text("unknown letter 'x'")
    page.keyboard.press("Backspace")
    expect(live).to_have_attribute("data-shown", "baacbbc")

    live.get_by_role("slider").press("Home")
    expect(live).to_have_attribute("data-epoch", "0")
    untrained = picture(page)
    live.evaluate(WATCH)
    live.get_by_role("button", name="Play epochs").click()
    last = int(live.get_by_role("slider").get_attribute("max") or 0)
    expect(live).to_have_attribute("data-epoch", str(last))
    expect(live.get_by_role("button", name="Play epochs")).to_be_visible()
    assert page.evaluate("epochs") == list(range(1, last + 1)), "each, once and in order"
    assert picture(page) != untrained
    assert heard == [], "neither typing nor the film is heard by the page's script"

    live.get_by_role("button", name="Use in the other tabs").click()
    page.wait_for_url("**string=baacbbc**")
    no_traceback(page)
    page.close()


def picture(page: Page) -> str:
    """The first head as it is drawn."""
    drawn = page.locator(".live canvas").first.evaluate("canvas => canvas.toDataURL()")
    assert isinstance(drawn, str)
    return drawn
