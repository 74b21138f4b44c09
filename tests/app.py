"""The dashboard under Streamlit's own test runner."""

import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from streamlit import config
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from tests.conftest import ROOT

# A server looks once through all that is installed for components, Streamlit's test runner again
# for every page, which takes half of the time of most tests; no test installs anything.
pytest.MonkeyPatch().setattr(
    manifest_scanner, "scan_component_manifests", cache(manifest_scanner.scan_component_manifests)
)
# As dashboard/.streamlit/config.toml has it: a text of a module is not shown.
config.set_option("runner.magicEnabled", False)

# Likewise a server compiles each page once, the test runner whenever it is drawn.
_script_cache = cache(ScriptCache)
pytest.MonkeyPatch().setattr("streamlit.testing.v1.local_script_runner.ScriptCache", _script_cache)
pytest.MonkeyPatch().setattr("streamlit.testing.v1.app_test.ScriptCache", _script_cache)

PAGES = ("results", "failures", "model", "sweeps", "guide", "launch")
"""Pages by their paths; that of the first is empty."""

FILTERED = ("results", "failures")
"""Pages that are about the models that the sidebar leaves."""


def open_app(
    monkeypatch: pytest.MonkeyPatch, db: Path | str, page: str = "results", **query: str | list[str]
) -> AppTest:
    """A page on a database, as a link with these parameters opens it; it has no traceback."""
    monkeypatch.setenv("SEQCLS_DB", str(db))
    app = AppTest.from_file(str(ROOT / "dashboard" / "app.py"), default_timeout=300)
    for name, value in query.items():
        app.query_params[name] = value
    if page != "results":
        # Before the first run Streamlit's test runner knows no page but by the name of its file.
        app._page_hash = calc_hash(page)
    return rerun(app)


def run(app: AppTest) -> AppTest:
    """Draws the page, and restores the main module of this process.

    Streamlit replaces it by the page, which processes started later would run.
    """
    own = sys.modules["__main__"]
    try:
        return app.run()
    finally:
        sys.modules["__main__"] = own


def rerun(app: AppTest) -> AppTest:
    """Draws the page again, after a click or typing; asserts that there is no exception."""
    run(app)
    assert not app.exception, app.exception[0].value
    return app


def page_text(app: AppTest) -> str:
    """The text of the page."""
    parts = (app.info, app.success, app.error, app.caption, app.markdown, app.text, app.code)
    texts = [str(element.value) for elements in parts for element in elements]
    texts += [bar.proto.text for bar in app.get("progress")]
    # Legends and captions of pictures; what else is HTML is how the page looks.
    html = [element.proto.body for element in app.get("html")]
    texts += [unescape(re.sub("<[^>]*>", "", x)) for x in html if x.startswith("<p ")]
    return "\n".join(texts)


def plain(app: AppTest) -> str:
    """The text of the page as a browser shows it."""
    return unmarked(page_text(app))


def unmarked(text: str) -> str:
    """A text without the signs, seen or not, that keep a browser from interpreting it."""
    return text.replace("\\", "").replace("\N{WORD JOINER}", "")


MADE_OF_MARKDOWN = {"label", "help", "body", "text", "content", "captions"}
"""Fields of elements of which the browser makes Markdown, but those of `PLAIN`."""

PLAIN = {"Text.body", "Html.body", "Json.body"}


def markdown_of(app: AppTest) -> Iterator[str]:
    """Every text of a page of which the browser makes Markdown."""
    for node in app._tree:
        if (proto := getattr(node, "proto", None)) is not None:
            yield from _markdown_in(proto)


def _markdown_in(message: Any) -> Iterator[str]:
    for field, value in message.ListFields():
        is_one = isinstance(value, str | int | float | bytes) or hasattr(value, "ListFields")
        for one in [value] if is_one else value:
            if f"{message.DESCRIPTOR.name}.{field.name}" == "Dataframe.columns":
                # Of a table these are the tooltips of its heads alone.
                heads = json.loads(str(one)).values()
                yield from (x["help"] for x in heads if x and x.get("help"))
            elif isinstance(one, str):
                if (
                    field.name in MADE_OF_MARKDOWN
                    and f"{message.DESCRIPTOR.name}.{field.name}" not in PLAIN
                ):
                    yield one
            elif hasattr(one, "ListFields"):
                yield from _markdown_in(one)
