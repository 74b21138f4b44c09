"""The pages in a real browser."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, WebSocket, expect
from playwright.sync_api import TimeoutError as TooLateError

from benchmarks.served import serve
from dashboard.charts.legend import ROW_OF_TWO
from dashboard.views import running
from tests.e2e.server import AT_REST, PATIENCE_MS, models_tested, new_page, no_traceback, open_page

pytestmark = pytest.mark.browser

WATCH = """
window.moved = [];
new PerformanceObserver(list => {
    for (const shift of list.getEntries()) {
        if (!shift.hadRecentInput) {
            window.moved.push([shift.startTime, shift.value, shift.sources.map(source => {
                const found = source.node && (source.node.closest ? source.node
                    : source.node.parentElement);
                return found ? found.innerText.slice(0, 40) : '';
            })]);
        }
    }
}).observe({type: 'layout-shift', buffered: true});
"""
"""Keeps how much of the window moved by itself, and what it was."""

MOST_MOVED = 0.1
"""What the Web Vitals call good."""

SLOWER = 6
"""Times that a processor takes longer than this machine's."""


def test_it_opens_on_the_report_draws_it_and_prints_it_without_the_sidebar(
    browser: Browser, shipped: str
) -> None:
    page = open_page(browser, shipped)
    models_tested(page, 43)
    outcomes, lines = (page.get_by_test_id("stVegaLiteChart").nth(place) for place in (0, 1))
    said = "41 of 43 models learned the trained lengths; of these 27 generalize to longer strings."
    expect(page.get_by_text(said)).to_be_visible()
    expect(outcomes).to_contain_text("width 16, 2 heads, embeddings init linear like")
    expect(lines).to_contain_text("String length")
    expect(lines).to_contain_text("end of training")
    # The names stand beside it.
    names = page.get_by_test_id("stVegaLiteChart").nth(2)
    expect(names).to_contain_text("attention init output fan out")
    # Each can be pointed at over all of its row.
    heights = names.locator('path[aria-roledescription="rect mark"]').evaluate_all(
        "rows => rows.map(row => row.getBBox().height)"
    )
    assert heights == [ROW_OF_TWO] * 7
    expect(page.get_by_test_id("stVegaLiteChart")).to_have_count(7)
    no_traceback(page)

    expect(page.get_by_test_id("stSidebar")).to_be_visible()
    page.emulate_media(media="print")
    expect(page.get_by_test_id("stSidebar")).to_be_hidden()
    page.close()


def test_a_page_asks_for_nothing_while_nothing_is_trained(browser: Browser, shipped: str) -> None:
    page = new_page(browser)
    sent: list[str | bytes] = []

    def listen(socket: WebSocket) -> None:
        socket.on("framereceived", lambda frame: sent.append(frame))

    page.on("websocket", listen)
    page.goto(f"{shipped}/sweeps")
    page.get_by_text("Specification").wait_for(timeout=PATIENCE_MS)
    page.wait_for_function(AT_REST)
    page.wait_for_timeout(1_000)
    before = len(sent)
    page.wait_for_timeout(1e3 * running.SECONDS + 1_000)
    assert before > 0
    assert len(sent) == before
    page.close()


@pytest.mark.parametrize("path", ["map", "failing", "sweeps"])
def test_every_page_opens_by_its_link_with_the_filters(
    browser: Browser, shipped: str, path: str
) -> None:
    page = open_page(browser, f"{shipped}/{path}?seed=2&kind=false+positives")
    expect(page.get_by_text("2 of 43 runs match the filters.")).to_be_visible()
    no_traceback(page)
    page.close()


def test_it_filters_by_seed_and_by_failing_and_the_link_reproduces_the_view(
    browser: Browser, shipped: str
) -> None:
    page = open_page(browser, shipped)
    page.get_by_role("combobox", name="Model seeds").click()
    page.get_by_role("option", name="2", exact=True).click()
    models_tested(page, 5)
    page.keyboard.press("Escape")
    page.get_by_text("Only failing models").click()
    drawn = page.get_by_test_id("stVegaLiteChart").nth(2)
    expect(drawn).not_to_contain_text("16 heads")
    expect(drawn).to_contain_text("width 16")
    page.wait_for_url("**failing=true**")

    # The filters hold on other pages.
    page.get_by_role("link", name="Failing models").click()
    expect(page.get_by_text("2 models misclassify test strings")).to_be_visible()
    page.wait_for_url("**run=38**")
    link = page.url
    page.close()
    assert "seed=2" in link
    assert "failing=true" in link

    copied = open_page(browser, link)
    expect(copied.get_by_text("2 models misclassify test strings")).to_be_visible()
    expect(copied.get_by_role("heading", name="Model 38", exact=True)).to_be_visible()
    copied.get_by_role("button", name="Clear filters").click()
    expect(copied.get_by_text("43 of 43 runs match the filters.")).to_be_visible()
    expect(copied.get_by_text("16 models misclassify test strings")).to_be_visible()
    copied.close()


def test_a_slash_finds_a_model_and_a_question_mark_lists_the_keys(
    browser: Browser, shipped: str
) -> None:
    page = open_page(browser, f"{shipped}/sweeps")
    expect(page.get_by_text("lists all keys")).to_be_visible()
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys).to_be_hidden()
    page.keyboard.press("?")
    expect(keys).to_be_visible()
    page.keyboard.press("?")
    expect(keys).to_be_hidden()
    page.keyboard.press("/")
    box = page.locator(".st-key-model_run input")
    expect(box).to_be_focused()
    # While one types they are characters.
    page.keyboard.type("?")
    expect(box).to_have_value("?")
    expect(keys).to_be_hidden()
    page.close()


def test_a_cell_leads_to_its_model(browser: Browser, shipped: str) -> None:
    page = open_page(browser, f"{shipped}/?seed=2")
    # Lines of another chart have such names too, and either may be drawn first.
    page.locator(
        'path[aria-roledescription="rect mark"]'
        '[aria-label*="configuration: width 16, 2 heads, embeddings init linear like;"]'
    ).click()
    page.wait_for_url("**/model?**run=38**")
    page.close()


def test_without_a_database_it_says_what_to_run(browser: Browser, tmp_path: Path) -> None:
    with serve(tmp_path / "none.db") as server:
        page = open_page(browser, server.url)
        expect(page.get_by_text("There are no models to show yet")).to_be_visible()
        command = f"seqcls sweep report --db {tmp_path / 'none.db'}"
        expect(page.get_by_text(command, exact=True)).to_be_visible()
        page.close()
    assert list(tmp_path.iterdir()) == []


def test_a_sweep_s_links_filter_by_it_whatever_was_filtered_before(
    browser: Browser, shipped: str
) -> None:
    page = open_page(browser, f"{shipped}/sweeps?sweep_id=9&sweep=attend_cls&sweep=walkthrough")
    page.get_by_role("link", name="Compare: this sweep").click()
    models_tested(page, 1)
    sidebar = page.get_by_test_id("stSidebar")
    expect(sidebar.get_by_text("walkthrough")).to_be_visible()
    expect(sidebar.get_by_text("attend_cls")).to_have_count(0)
    no_traceback(page)
    page.close()


def test_a_cell_of_a_map_leads_to_its_models_and_the_tab_and_the_chart_have_words(
    browser: Browser, shipped: str
) -> None:
    page = open_page(browser, f"{shipped}/map?seed=2")
    expect(page).to_have_title("Map · seqcls")
    chart = page.get_by_test_id("stVegaLiteChart").first
    expect(chart.locator('path[aria-roledescription="rect mark"]')).to_have_count(3)
    words = page.locator('[aria-roledescription="visualization"]').first
    expect(words).to_have_attribute("aria-label", re.compile("Most models fail with width 2,"))
    chart.locator('path[aria-roledescription="rect mark"]').first.click()
    models_tested(page, 1)
    page.wait_for_url("**hidden_size=2&num_attention_heads=2**")
    expect(page).to_have_title("Compare · seqcls")
    expect(page.locator("h1")).to_have_count(1)
    page.close()


@pytest.mark.parametrize("width", [390, 820])
def test_pages_fit_narrow_windows(browser: Browser, shipped: str, width: int) -> None:
    for path in ("", "map", "failing", "model?run=5&view=Figures", "compare_two"):
        page = open_page(browser, f"{shipped}/{path}", width)
        no_traceback(page)
        main = page.get_by_test_id("stMain")
        wide, own = main.evaluate("main => [main.scrollWidth, main.clientWidth]")
        assert wide <= own, f"{path} is {wide} pixels wide in {own}"
        title = page.locator("h1").first.bounding_box()
        assert title is not None
        assert title["y"] < 150, "nothing stands above the title"
        expect(page.get_by_test_id("stSidebar")).to_have_attribute("data-collapsed", "true")
        if width > 768:
            launch = page.get_by_test_id("stTopNav").get_by_role("link", name="Launch")
            expect(launch).to_be_in_viewport()
        page.close()


def layout_shift(moved: list[tuple[float, float, list[str]]]) -> float:
    """Cumulative layout shift: of the worst seconds, in which no pause is longer than one."""
    worst = first = last = total = 0.0
    for at, share, _ in moved:
        if at - last > 1e3 or at - first > 5e3:
            first, total = at, 0.0
        last, total = at, total + share
        worst = max(worst, total)
    return worst


def test_nothing_moves_while_a_page_is_opened_for_the_first_time(
    browser: Browser, shipped: str
) -> None:
    """On a machine so slow that parts of a page are there long before the programs of others."""
    for path in ("", "failing", "model?run=5&view=Figures", "launch"):
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        slow = context.new_cdp_session(page)
        slow.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
        page.add_init_script(WATCH)
        page.goto(f"{shipped}/{path}")
        page.get_by_test_id("stMain").get_by_test_id("stHeading").first.wait_for()
        page.wait_for_function(AT_REST)
        page.wait_for_timeout(500)
        moved = page.evaluate("window.moved")
        assert layout_shift(moved) <= MOST_MOVED, f"/{path}: {moved}"
        context.close()


OPACITIES = """chart => [...chart.querySelectorAll('g[class*="mark-line"] path')]
    .map(line => +getComputedStyle(line).opacity).filter(opacity => opacity > 0.01)"""


def test_a_line_is_hit_between_its_points_and_lengths_are_brushed_and_shown_again(
    browser: Browser, shipped: str
) -> None:
    page = open_page(browser, f"{shipped}/?config=2&seed=2&lengths=20", 1440)
    # The first is of outcomes.
    lengths = page.get_by_test_id("stVegaLiteChart").nth(1)
    points = lengths.locator('path[aria-roledescription="point"]')
    expect(points).to_have_count(10)
    page.wait_for_function(AT_REST)
    # The last part of the chart, so that all of it is in the window.
    below = lengths.locator(".role-scope .background").last
    below.scroll_into_view_if_needed()
    points.nth(8).hover()
    first, second = (points.nth(place).bounding_box() for place in (7, 8))
    assert first is not None
    assert second is not None
    x = (first["x"] + second["x"] + first["width"]) / 2
    y = (first["y"] + second["y"] + first["height"]) / 2
    page.mouse.move(x, y)
    expect(page.locator("#vg-tooltip-element")).to_contain_text("width 2")
    # Along the strip below, the lengths that are shown are chosen, and all are shown again.
    axis = lengths.locator(".role-axis-label text")
    expect(axis.filter(has_text=re.compile("^100$"))).to_have_count(1)
    strip = below.bounding_box()
    assert strip is not None
    across = strip["y"] + strip["height"] / 2
    page.mouse.move(strip["x"] + strip["width"] * 0.1, across)
    page.mouse.down()
    page.mouse.move(strip["x"] + strip["width"] * 0.3, across, steps=5)
    page.mouse.up()
    expect(axis.filter(has_text=re.compile("^100$"))).to_have_count(0)
    expect(axis.filter(has_text=re.compile("^50$"))).to_have_count(1)
    page.mouse.dblclick(strip["x"] + strip["width"] * 0.2, across)
    expect(axis.filter(has_text=re.compile("^100$"))).to_have_count(1)
    page.mouse.click(x, y)
    page.wait_for_url("**/model?**run=5**")
    no_traceback(page)
    page.close()


def test_an_entry_of_the_legend_marks_its_lines(browser: Browser, shipped: str) -> None:
    page = open_page(browser, f"{shipped}/?seed=2", 1440)
    lines, names = (page.get_by_test_id("stVegaLiteChart").nth(place) for place in (1, 2))
    expect(names).to_contain_text("16 heads")
    page.wait_for_function(AT_REST)
    entry = names.get_by_text("16 heads")
    differ = f"chart => new Set(({OPACITIES})(chart)).size > 1"
    for tried in range(3):
        # A chart that is drawn anew under the mouse has not seen it come.
        page.mouse.move(1, 1)
        entry.hover(force=True)
        try:
            page.wait_for_function(differ, arg=lines.element_handle(), timeout=10_000)
            break
        except TooLateError:
            assert tried < 2, "no line is marked"
    page.mouse.move(1, 1)
    page.wait_for_function(
        f"chart => new Set(({OPACITIES})(chart)).size === 1", arg=lines.element_handle()
    )
    page.close()


CONTROLS = "button, input, [role=combobox], [role=tab]"


def test_no_toolbar_covers_a_control_and_no_table_needs_scrolling_sideways(
    browser: Browser, shipped: str
) -> None:
    for path in ("", "failing", "sweeps", "compare_two"):
        page = open_page(browser, f"{shipped}/{path}", 1440)
        page.wait_for_function(AT_REST)
        main = page.get_by_test_id("stMain")
        for drawn in main.locator("[data-testid=stDataFrame], .stVegaLiteChart").all():
            drawn.hover()
            for bar in main.get_by_test_id("stElementToolbar").all():
                covered = bar.evaluate(
                    """(bar, controls) => {
                        const box = bar.getBoundingClientRect();
                        return [...document.querySelectorAll(controls)].filter(control => {
                            const own = control.getBoundingClientRect();
                            return !bar.contains(control) && own.width > 0
                                && own.left < box.right && box.left < own.right
                                && own.top < box.bottom && box.top < own.bottom;
                        }).map(control => control.innerText);
                    }""",
                    CONTROLS,
                )
                assert covered == [], path
        scroller = page.locator(".stDataFrame .dvn-scroller").first
        wide, own = scroller.evaluate("table => [table.scrollWidth, table.clientWidth]")
        assert wide <= own, f"the table of /{path} is {wide} pixels wide in {own}"
        page.close()


def test_on_a_phone_the_sidebar_closes_after_a_choice(browser: Browser, shipped: str) -> None:
    page = open_page(browser, shipped, 390)
    opens = page.get_by_test_id("stExpandSidebarButton")
    opens.click()
    expect(opens).to_have_count(0)
    seeds = page.get_by_role("combobox", name="Model seeds")
    # A list that has opened closes when what is around it scrolls, as it does to show the field.
    seeds.scroll_into_view_if_needed()
    page.wait_for_function(AT_REST)
    seeds.click()
    page.get_by_role("option", name="2", exact=True).click()
    expect(opens).to_be_visible()
    models_tested(page, 5)
    page.close()
