"""Texts of others are shown as they are, and have the browser ask nobody, on every page."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page

from benchmarks.served import serve
from dashboard.server.first_page import PAGES
from dashboard.text import UNSEEN
from sweeps import api
from sweeps.store.databases.engine import Store
from sweeps.store.writes import sweep_actions
from tests.e2e.server import AT_REST, PATIENCE_MS, new_page, no_traceback

OUTSIDE = "outside.example"
HOSTILE = (
    f"![x](http://{OUTSIDE}/p) **b** :red[y] `c` <img src=http://{OUTSIDE}/i> www.{OUTSIDE} "
    f"a@{OUTSIDE} :material/home: $x^2$ -> -- <- [[n]] ~~s~~ _u_"
)
TOKENS = ("**t**", f"![x](http://{OUTSIDE}/t)", f"<img/src=http://{OUTSIDE}/t>")
PARAMETERS = (
    *("run", "config", "sweep", "seed", "tag", "below", "kind", "failing", "view", "epoch", "find"),
    *("beside", "string", "strings", "family", "columns", "width", "x", "y", "facet", "mechanism"),
    *("measure", "language", "hidden_size", "config.model", "two_string", "group", "head"),
)
MADE_OF_IT = """outside => {
    const app = document.querySelector('[data-testid="stApp"]');
    const leads = e => e.hostname?.includes(outside) || e.protocol === 'mailto:'
        || (e.src ?? e.data ?? e.href?.baseVal ?? '').includes(outside);
    const loads = [...app.querySelectorAll('a[href], img, image, script, iframe, object, use')];
    const marks = 'strong, em, del, code, .katex, .stMarkdownColoredText';
    const marked = [...app.querySelectorAll(marks)].filter(
        e => e.matches('.katex') || ['b', 'y', 'c', 's', 'u', 't'].includes(e.textContent.trim()));
    return [...loads.filter(leads), ...marked].map(e => e.outerHTML.slice(0, 200));
}"""
"""What the browser made of the texts: what leads outside or is set in another type."""


def hostile(folder: Path) -> Store:
    """Models trained here and elsewhere, all of whose texts are hostile."""
    store = api.open_store(folder / "x.db")
    strings = [list(x) for n in range(1, 4) for x in itertools.product(TOKENS, repeat=n)]
    split = ["train", "test"]
    rows = [
        {"tokens": tokens, "label": row % 2, "split": split[row % 2], "id": f"{HOSTILE} {row}"}
        for row, tokens in enumerate(strings)
    ]
    data = folder / "data.jsonl"
    data.write_text("\n".join(map(json.dumps, rows)))
    ids = [row["id"] for row in rows if row["split"] == "test"]
    with api.log_results(store, sweep=HOSTILE, dataset=data) as log:
        for seed, width in itertools.product((0, 1), (1, 2)):
            log.run(
                model=f"{HOSTILE}{width}",
                seed=seed,
                config={HOSTILE: f"{HOSTILE}{width}", "image": f"http://{OUTSIDE}/{width}"},
                predictions={
                    "id": ids,
                    "prediction": [(x + seed) % 3 == 0 for x in range(len(ids))],
                },
            )
    fixed: dict[str, Any] = {"task": "file", "path": str(data), "hidden_size": 4}
    fixed |= {"max_num_epochs": 1, "attention_head_size": 2}
    spec = {"name": f"{HOSTILE} own", "description": HOSTILE, "model_seeds": [0], "fixed": fixed}
    api.submit(store, {**spec, "axes": {"positions": ["none", "sinusoidal"]}})
    api.work(store)
    for sweep_id in (1, 2):
        sweep_actions.write_note(store, sweep_id, title=HOSTILE, note=HOSTILE, tags=[HOSTILE])
    sweep_actions.save_view(store, sweep_actions.NamedView(HOSTILE[:60], "map", ""))
    return store


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("hostile")
    hostile(folder)
    with serve(folder / "x.db") as server:
        yield server.url


def _open_all(page: Page) -> Iterator[str]:
    """The page as it is, and with each part unfolded, and each little window open in turn."""
    page.wait_for_function(AT_REST, timeout=PATIENCE_MS)
    unfold = "all => all.forEach(folded => folded.click())"
    page.locator("details:not([open]) > summary").evaluate_all(unfold)
    page.wait_for_function(AT_REST, timeout=PATIENCE_MS)
    yield page.inner_text("body")
    for button in page.locator('[data-testid="stPopover"] button:enabled:visible').all():
        button.click(timeout=PATIENCE_MS)
        page.get_by_test_id("stPopoverBody").first.wait_for()
        yield page.inner_text("body")
        page.keyboard.press("Escape")


@pytest.mark.parametrize(
    "opened", [*PAGES, "model?run=1", "model?run=5", "compare_two?config=1", "map?x=config.model"]
)
def test_nothing_of_a_text_is_interpreted_and_nobody_is_asked(
    browser: Browser, served: str, opened: str
) -> None:
    path, _, query = opened.partition("?")
    page = new_page(browser)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    given = query or urlencode([(name, HOSTILE) for name in PARAMETERS])
    page.goto(f"{served}/{path}?{given}")
    for shown in _open_all(page):
        assert page.evaluate(MADE_OF_IT, OUTSIDE) == []
        if path == "" and "Settings" in shown:
            assert HOSTILE in shown.replace(UNSEEN, ""), "it is there as it is"
    own = (f"{served}/", "data:", "blob:")
    assert [url for url in asked if not url.startswith(own)] == []
    no_traceback(page)
    page.close()


def test_a_page_may_load_nothing_from_elsewhere(browser: Browser, served: str) -> None:
    """Even if a text were interpreted."""
    page = new_page(browser)
    asked: list[str] = []
    page.on("response", lambda response: asked.append(response.url))
    page.goto(served)
    refused = page.evaluate(
        """outside => new Promise(told => {
            addEventListener('securitypolicyviolation', event => told(event.effectiveDirective));
            document.body.append(Object.assign(new Image(), {src: `http://${outside}/p`}));
        })""",
        OUTSIDE,
    )
    assert refused == "img-src"
    assert not any(OUTSIDE in url for url in asked)
    page.close()
