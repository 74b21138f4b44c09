"""From an empty database to trained models; clicks are counted."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from benchmarks.served import Server, serve, wait_for
from seqcls.errors import UnknownRunError
from sweeps.store.opening import open_reader
from sweeps.store.reads import sweep_queries
from sweeps.work import background_worker
from tests.browser.server import AT_REST, no_traceback, open_page

pytestmark = pytest.mark.browser

TRAINING_SECONDS = 240
"""Enough for a slow machine that has to compile first."""

COUNT = "clicks = 0; addEventListener('pointerdown', () => { clicks += 1 }, true)"
SMALL = "train_size=2000 test_size=500 max_num_epochs=1"


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The path of a database that does not exist yet."""
    return tmp_path_factory.mktemp("launched") / "x.db"


@pytest.fixture(scope="module")
def server(db: Path) -> Iterator[Server]:
    with serve(db) as started:
        yield started


@pytest.fixture
def page(browser: Browser, server: Server) -> Iterator[Page]:
    """The page Guide, on which clicks are counted."""
    opened = open_page(browser, f"{server.url}/guide")
    opened.set_viewport_size({"width": 1440, "height": 900})
    opened.evaluate(COUNT)
    yield opened
    no_traceback(opened)
    opened.close()


def write(page: Page, box: str, text: str) -> None:
    """Clicks on a box, and types into it."""
    found = page.get_by_role("textbox", name=box, exact=True)
    found.click()
    found.fill(text)
    found.press("Control+Enter" if box in ("Tasks", "Networks") else "Enter")
    page.wait_for_function(AT_REST)


def trained(db: Path, sweep_id: int) -> int:
    return int(sweep_queries.runs_by_state(open_reader(str(db)), [sweep_id]).get("done", 0))


def test_sweep_is_launched_from_the_sidebar_and_followed_to_results(page: Page, db: Path) -> None:
    main, sidebar = page.get_by_test_id("stMain"), page.get_by_test_id("stSidebar")
    sidebar.get_by_role("button", name="New sweep").click()
    write(page, "Tasks", f"copy {SMALL}, reverse {SMALL}")
    write(page, "Networks", "gru, lstm")
    write(page, "Seeds", "2")
    line = page.locator("p", has_text=re.compile(r"^8 models"))
    expect(line).to_contain_text(re.compile("about|roughly|under"))
    page.get_by_role("button", name="Launch").click()
    expect(page).to_have_url(re.compile(r"/sweeps\?shown=sweep(\+|%20)1$"))
    expect(main).to_contain_text("of 8 models")
    expect(main).to_contain_text(" left")
    assert page.evaluate("clicks") <= 6
    page.get_by_text("Worker log").click()
    wait_for(lambda: db.exists() and trained(db, 1) == 8, TRAINING_SECONDS)
    # Nobody touches the page: it goes on by itself, and shows the results at the end.
    expect(main).to_contain_text("Nothing is in training.")
    expect(main).to_contain_text("of 8 models learned")
    # What was unfolded meanwhile is so still.
    expect(page.get_by_text("trained 8 runs")).to_be_visible()
    main.get_by_role("link", name="Results").click()
    expect(page).to_have_url(re.compile(r"/\?sweep=sweep(\+|%20)1$"))


def test_typed_settings_stay_when_a_file_is_dropped(page: Page, tmp_path: Path) -> None:
    refused, accepted = tmp_path / "wrong.csv", tmp_path / "odd.csv"
    refused.write_text("tokens,label\nab,1\nba,maybe\n")
    rows = [f"{number:b},{number.bit_count() % 2}" for number in range(1, 400)]
    accepted.write_text("\n".join(["tokens,label", *rows]))
    main, sidebar = page.get_by_test_id("stMain"), page.get_by_test_id("stSidebar")
    sidebar.get_by_role("button", name="New sweep").click()
    write(page, "Networks", "rnn")
    page.get_by_role("link", name="All settings").click()
    networks = main.get_by_role("textbox", name="Networks", exact=True)
    expect(networks).to_have_value("rnn")
    main.get_by_role("button", name="Other task").click()
    chosen = page.locator("input[type=file]")
    chosen.set_input_files(refused)
    expect(main).to_contain_text("wrong.csv: line 3: label is 'maybe'")
    chosen.set_input_files(accepted)
    expect(main).to_contain_text("399 rows, task = 'file'; 2 tokens: 0 1; tokens: read as")
    tasks = main.get_by_role("textbox", name="Tasks", exact=True)
    expect(tasks).to_have_value("(ab|ba)*, even pairs, odd.csv")
    expect(page.get_by_role("button", name="Launch")).to_be_enabled()


def test_sweep_is_launched_once_stopped_resumed_and_outlives_the_page(
    browser: Browser, server: Server, page: Page, db: Path
) -> None:
    main, sidebar = page.get_by_test_id("stMain"), page.get_by_test_id("stSidebar")
    sidebar.get_by_role("button", name="New sweep").click()
    write(page, "Tasks", "parity train_size=20000 max_num_epochs=20")
    write(page, "Networks", "lstm, gru, rnn")
    expect(page.get_by_text("24 models")).to_be_visible()
    page.get_by_role("button", name="Launch").dblclick()
    main.get_by_role("button", name="Stop").click()
    expect(main).to_contain_text("stopped")
    store = open_reader(str(db))
    with pytest.raises(UnknownRunError):  # Two clicks launch one sweep.
        sweep_queries.runs_by_state(store, [3])
    wait_for(lambda: not background_worker.has_worker(store, 2), TRAINING_SECONDS)
    assert trained(db, 2) < 24, "what was not done is left"
    main.get_by_role("button", name="Resume").click()
    expect(main.get_by_role("button", name="Stop")).to_be_visible()
    wait_for(lambda: background_worker.has_worker(store, 2), 20)
    server.kill()
    assert background_worker.has_worker(store, 2), "the worker does not need the page"
    wait_for(lambda: trained(db, 2) == 24, TRAINING_SECONDS)
    with serve(db) as again:
        reopened = open_page(browser, f"{again.url}/sweeps?shown=sweep+2")
        expect(reopened.get_by_test_id("stMain")).to_contain_text("of 24 models learned")
        no_traceback(reopened)
        reopened.close()
