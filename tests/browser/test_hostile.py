"""Foreign texts are shown unchanged on pages, in reports, sites and figures; none runs or loads."""

import itertools
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import vl_convert
from playwright.sync_api import Browser, Page
from playwright.sync_api import TimeoutError as TooLateError
from sqlalchemy import text

from benchmarks.served import serve
from dashboard.text import UNSEEN
from dashboard.words.sentences import LOOKS_ALIKE
from sweeps import api
from sweeps.store import writer
from tests.app import PAGES
from tests.browser.server import AT_REST, PATIENCE_MS, new_page, no_traceback
from tests.browser.test_site import watched
from tests.commands import printed
from tests.databases import put_failure, rows

DRAW = vl_convert.vegalite_to_svg

OUTSIDE = "outside.example"
HOSTILE = (
    f"![x](http://{OUTSIDE}/p) **b** :red[y] `c` <img src=http://{OUTSIDE}/i> www.{OUTSIDE} "
    f"a@{OUTSIDE} :material/home: $x^2$ -> -- <- [[n]] ~~s~~ _u_"
)
RUNNING = (
    "</title></style></script><script>ran=1</script> <svg/onload=ran=1> <img src=x onerror=ran=1> "
    "\"+(ran=1)+' ${ran=1} <!-- ]]>"
)
LONG = (
    f"{HOSTILE} {RUNNING} [l](http://{OUTSIDE}/l) $\\href{{http://{OUTSIDE}}}{{x}}$ {{{{x}}}} "
    f"=HYPERLINK(http://{OUTSIDE}) \u202e\u05d0\u200f {'long ' * 40}e"
)
TOKENS = ("**t**", f"![x](http://{OUTSIDE}/t)", f"<img/src=http://{OUTSIDE}/t>")
WRITTEN = " ".join(x.replace("<", "{<}").replace(">", "{>}") for x in TOKENS)
PARAMETERS = (
    *("task", "sweep", "seed", "outcome", "tag", "below", "learned", "config.model", "hidden_size"),
    *("rows", "baseline", "measure", "columns", "by", "show", "across", "up", "of", "facet"),
    *("run", "view", "epoch", "beside", "string", "family", "head", "shown", "start"),
    *("config", "kind", "failing", "x", "y", "language", "lengths"),
)
MADE_OF_IT = """outside => {
    const app = document.querySelector('[data-testid="stApp"]') ?? document.documentElement;
    const leads = e => e.hostname?.includes(outside) || e.protocol === 'mailto:'
        || (e.src ?? e.data ?? e.href?.baseVal ?? '').includes(outside);
    const loads = [...app.querySelectorAll('a[href], img, image, script, iframe, object, use')];
    const marks = 'strong, em, del, code, .katex, .stMarkdownColoredText';
    const marked = [...app.querySelectorAll(marks)].filter(
        e => e.matches('.katex') || ['b', 'y', 'c', 's', 'u', 't'].includes(e.textContent.trim()));
    return [...loads.filter(leads), ...marked, ...(window.ran ? [app] : [])].map(
        e => e.outerHTML.slice(0, 200));
}"""
"""JavaScript that lists elements made of the texts: links outside, and marked-up text."""


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of models trained here and elsewhere, all of whose texts are hostile."""
    folder = tmp_path_factory.mktemp("hostile")
    store = api.open_store(folder / "x.db")
    strings = [list(x) for n in range(1, 4) for x in itertools.product(TOKENS, repeat=n)]
    split = ["train", "test"]
    lines = [
        {"tokens": x, "label": row % 2, "split": split[row % 2], "id": f"{HOSTILE} {row}"}
        for row, x in enumerate(strings)
    ]
    data = folder / "data.jsonl"
    data.write_text("\n".join(map(json.dumps, lines)))
    ids = [row["id"] for row in lines if row["split"] == "test"]
    with api.log_results(store, sweep=HOSTILE, dataset=data) as log:
        for seed, width in itertools.product((0, 1), (1, 2)):
            log.run(
                model=f"{HOSTILE}{width}",
                seed=seed,
                config={HOSTILE: f"{RUNNING}{width}", "image": f"http://{OUTSIDE}/{width}"},
                predictions={
                    "id": ids,
                    "prediction": [(x + seed) % 3 == 0 for x in range(len(ids))],
                },
            )
    fixed: dict[str, Any] = {"task": "file", "path": str(data), "hidden_size": 4}
    fixed |= {"max_num_epochs": 1, "attention_head_size": 2}
    spec = {"name": RUNNING, "description": LONG, "model_seeds": [0], "fixed": fixed}
    api.submit(store, {**spec, "axes": {"positions": ["none", "sinusoidal"]}})
    api.work(store)
    api.submit(store, {**spec, "name": f"{RUNNING} failed", "model_seeds": [1]})
    # What is queued ends with a hostile error, as the first attempts of runs that are done.
    failures = [run_id for (run_id,) in rows(store, "SELECT id FROM run WHERE id > 4")]
    put_failure(store, failures, LONG)
    failed = "UPDATE run SET state = 'failed', attempt = 1, error = :error WHERE state = 'queued'"
    with store.write(quiet=True) as connection:
        assert connection.execute(text(failed), {"error": LONG}).rowcount
    for sweep_id in (1, 2, 3):
        writer.write_note(store, sweep_id, title=HOSTILE, note=LONG, tags=[HOSTILE])
    return folder / "x.db"


@pytest.fixture(scope="module")
def served(stored: Path) -> Iterator[str]:
    with serve(stored) as server:
        yield server.url


def _open_all(page: Page) -> Iterator[str]:
    """The page as it is, and with each part unfolded, and each little window open in turn."""
    page.wait_for_function(AT_REST, timeout=PATIENCE_MS)
    unfold = "all => all.forEach(folded => folded.click())"
    page.locator("details:not([open]) > summary").evaluate_all(unfold)
    page.wait_for_function(AT_REST, timeout=PATIENCE_MS)
    yield page.inner_text("body")
    window = page.get_by_test_id("stPopoverBody").first
    for button in page.locator('[data-testid="stPopover"] button:enabled:visible').all():
        # A press while the page is drawn anew is lost.
        while not window.is_visible():
            button.click(timeout=PATIENCE_MS)
            with suppress(TooLateError):
                window.wait_for(timeout=3_000)
        yield page.inner_text("body")
        page.keyboard.press("Escape")
        page.wait_for_function(AT_REST, timeout=PATIENCE_MS)


@pytest.mark.parametrize(
    "opened",
    [
        "",
        *PAGES[1:],
        "model?run=1",
        "model?run=5",
        "?rows=1&rows=2",
        "?show=Map",
        "?by=config.image",
    ],
)
def test_page_interprets_no_text_and_requests_nothing_elsewhere(
    browser: Browser, served: str, opened: str
) -> None:
    path, _, query = opened.partition("?")
    page = new_page(browser)
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    given = query or urlencode([(name, f"{HOSTILE} {RUNNING}") for name in PARAMETERS])
    page.goto(f"{served}/{path}?{given}")
    for shown in _open_all(page):
        assert page.evaluate(MADE_OF_IT, OUTSIDE) == []
        if opened.startswith("?rows"):
            # In a sentence a backquote would begin a string of letters: one like it is shown.
            seen = shown.replace(UNSEEN, "").replace("`", LOOKS_ALIKE)
            assert HOSTILE.replace("`", LOOKS_ALIKE) in seen, "it is there as it is"
    own = (f"{served}/", "data:", "blob:")
    assert [url for url in requested if not url.startswith(own)] == []
    no_traceback(page)
    page.close()


def test_page_may_load_nothing_from_elsewhere(browser: Browser, served: str) -> None:
    """Even if a text were interpreted."""
    page = new_page(browser)
    loaded: list[str] = []
    page.on("response", lambda response: loaded.append(response.url))
    page.goto(served)
    refused = page.evaluate(
        """outside => new Promise(told => {
            addEventListener('securitypolicyviolation', event => told(event.effectiveDirective));
            document.body.append(Object.assign(new Image(), {src: `http://${outside}/p`}));
        })""",
        OUTSIDE,
    )
    assert refused == "img-src"
    assert not any(OUTSIDE in url for url in loaded)
    page.close()


FILES = (
    ("report", RUNNING, "--out", "report.html"),
    ("site", "site"),
    ("figures", "5", WRITTEN, "--out", "figures"),
)
"""Commands that write what a browser opens."""


@pytest.mark.usefixtures("undrawn")
def test_written_file_interprets_no_text(
    browser: Browser, stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command's first picture is drawn, and no other: browsers draw what reports show."""
    monkeypatch.chdir(tmp_path)
    not_drawn = vl_convert.vegalite_to_svg
    for command in FILES:
        first = iter([DRAW])
        monkeypatch.setattr(
            vl_convert, "vegalite_to_svg", lambda chart, first=first: next(first, not_drawn)(chart)
        )
        printed(*command, "--db", str(stored))
    pages, pictures = sorted(tmp_path.rglob("*.html")), sorted(tmp_path.rglob("*.svg"))
    assert len(pages) > 3
    assert pictures
    own = (tmp_path.as_uri(), "data:", "blob:")
    for file in (*pages, *pictures):
        with watched(browser) as (page, requested):
            page.goto(file.as_uri())
            if file.suffix == ".html":
                page.locator("body[data-ready]").wait_for()
                page.locator("details").evaluate_all("all => all.forEach(x => { x.open = true; })")
            assert page.evaluate(MADE_OF_IT, OUTSIDE) == [], file.name
            assert [url for url in requested if not url.startswith(own)] == []
