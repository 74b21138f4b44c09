"""What is pointed at is marked in every figure, and a changed string reruns its section alone."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, WebSocket, expect
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from benchmarks.served import serve
from sweeps.grid.spec import parse_spec
from sweeps.store import writer
from sweeps.store.opening import open_writer
from sweeps.work.machine import WorkOptions
from sweeps.work.worker import work
from tests.e2e.server import new_page, no_traceback, open_page

pytestmark = pytest.mark.browser

SPEC = {
    "name": "recurrent",
    "model_seeds": [0],
    "fixed": {
        "task": "even_pairs", "architecture": "lstm", "hidden_size": 4, "readout": "last",
        "train_size": 64, "train_batch_size": 32, "validation_size": 32, "test_size": 200,
        "train_max_length": 8, "validation_max_length": 8, "test_max_length": 16,
        "max_num_epochs": 1, "min_num_epochs": 1,
    },
}  # fmt: skip

MARKED = """() => [...document.querySelectorAll('[data-testid="stVegaLiteChart"]')].map(
    chart => [...chart.querySelectorAll('path[stroke="#D62728"]')]
        .filter(mark => mark.getAttribute('stroke-opacity') !== '0').length)"""
"""How many frames and rings there are in each chart."""


def sent(page: Page) -> list[str | bytes]:
    """What the page sends to its server from now on, as it does."""
    found: list[str | bytes] = []

    def listen(socket: WebSocket) -> None:
        socket.on("framesent", lambda frame: found.append(frame))

    page.on("websocket", listen)
    return found


def marked(page: Page, *charts: bool) -> None:
    """Waits until these of the page's charts, and no others, have something marked."""
    page.wait_for_function(
        f"([charts]) => JSON.stringify(({MARKED})().map(own => own > 0)) === charts",
        arg=[str(list(charts)).lower().replace(" ", "")],
    )


def test_a_token_that_is_pointed_at_is_marked_in_the_figures_of_both_models(
    browser: Browser, shipped: str
) -> None:
    page = new_page(browser, 1400, 1600)
    asked = sent(page)
    page.goto(f"{shipped}/model?run=5&beside=all_initializations/5&view=States&string=baac")
    charts = page.get_by_test_id("stVegaLiteChart")
    # Parts of the logit, prefixes, all heads and the open one, of two models.
    expect(charts).to_have_count(8)
    expect(page.get_by_text("mark it in every figure of both models")).to_be_visible()
    points = charts.nth(2).locator('path[aria-roledescription="point"]')
    expect(points).to_have_count(5)
    # Heads are pictures, in which nothing can be looked up.
    marked(page, *[False] * 8)
    before = len(asked)
    points.nth(2).hover()
    marked(page, False, False, True, True, *[False] * 4)
    page.mouse.move(1, 1)
    marked(page, *[False] * 8)
    assert len(asked) == before > 0, "pointing asks the server for nothing"
    no_traceback(page)
    page.close()


def test_figures_of_letter_counts_mark_token_types_and_strings(
    browser: Browser, shipped: str
) -> None:
    page = open_page(browser, f"{shipped}/model?run=5&view=Figures&group=Attention&string=baac")
    charts = page.get_by_test_id("stVegaLiteChart")
    # Values and keys of tokens, what CLS receives from strings, and weights of tokens, by head.
    expect(charts).to_have_count(6)
    expect(page.get_by_text("Hover over a token or the point of a string")).to_be_visible()
    charts.nth(0).locator('path[aria-roledescription="point"]').first.hover()
    marked(page, True, True, False, False, True, True)
    charts.nth(2).locator('path[aria-roledescription="point"]').last.hover()
    marked(page, False, False, True, True, False, False)
    no_traceback(page)
    page.close()


def test_a_changed_string_reruns_its_section_alone_and_is_in_the_link(
    browser: Browser, tmp_path: Path
) -> None:
    path = tmp_path / "recurrent.db"
    store = open_writer(str(path))
    work(store, [writer.submit(store, parse_spec(SPEC))], WorkOptions(workers=0))
    with serve(path) as server:
        page = new_page(browser)
        told: list[ForwardMsg] = []

        def listen(socket: WebSocket) -> None:
            socket.on("framereceived", lambda frame: told.append(_message(frame)))

        page.on("websocket", listen)
        page.goto(f"{server.url}/model?run=1&view=States&string=0110")
        page.get_by_text("Running logit").first.wait_for()
        expect(page.get_by_test_id("stApp")).to_have_attribute(
            "data-test-script-state", "notRunning"
        )
        assert ForwardMsg.FINISHED_SUCCESSFULLY in [x.script_finished for x in told]
        before = len(told)
        box = page.get_by_role("combobox", name="String to look at")
        box.fill("010101")
        box.press("Enter")
        page.wait_for_url("**string=010101**")
        chart = page.get_by_test_id("stVegaLiteChart")
        expect(chart.locator('path[aria-label*="Prefix: 010101;"]')).to_have_count(1)
        expect(page.get_by_test_id("stApp")).to_have_attribute(
            "data-test-script-state", "notRunning"
        )
        own = told[before:]
        no_traceback(page)
        page.close()
    ended = [x.script_finished for x in own if x.HasField("script_finished")]
    assert set(ended) == {ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY}, "the page is not run"
    (section,) = {x.delta.fragment_id for x in own if x.HasField("delta")}
    assert section, "all that is drawn is of one section"


def _message(frame: str | bytes) -> ForwardMsg:
    assert isinstance(frame, bytes)
    found: ForwardMsg = ForwardMsg.FromString(frame)
    return found
