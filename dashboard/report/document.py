"""One page of a report as HTML: it asks nothing of the network, and runs no program but its own."""

import base64
import hashlib
import html
import json
import sys
from functools import cache
from importlib.resources import files
from subprocess import PIPE, CalledProcessError, Popen, TimeoutExpired
from typing import Any

from seqcls.cancellation import check

ENGINE = "vega.js"
"""What draws the charts, beside the pages of a site."""

LOOK_AGAIN = 0.2
"""Seconds after which it is looked whether anybody still waits."""

_BUNDLE = (
    "import sys, vl_convert; sys.stdout.reconfigure(encoding='utf-8', newline=''); "
    "sys.stdout.write(vl_convert.javascript_bundle('window.vegaEmbed = vegaEmbed;'))"
)

_HERE = files("dashboard.report")


def document(title: str, body: str, *, beside: bool = False) -> str:
    """A page around its parts.

    Args:
        title: as text.
        body: as HTML.
        beside: whether what draws the charts is the file `ENGINE` beside it, not in it.
    """
    script = _HERE.joinpath("page.js").read_text(encoding="utf-8")
    drawing = f'<script src="{ENGINE}"></script>' if beside else f"<script>{engine()}</script>"
    allowed = ["'self'" if beside else _hashed(engine()), _hashed(script)]
    # Charts and tables are styled by attributes; nothing is loaded from anywhere.
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
        f"form-action 'none'; script-src {' '.join(allowed)}"
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{html.escape(title)}</title>\n"
        f"<style>{_HERE.joinpath('page.css').read_text(encoding='utf-8')}</style></head>\n"
        f'<body>\n<div id="root">\n{body}\n</div>\n{drawing}\n'
        f"<script>{script}</script>\n</body></html>\n"
    )


@cache
def engine() -> str:
    """Vega, Vega-Lite and what puts charts onto pages, as the package vl-convert-python has them.

    Raises:
        ValueError: a page could not hold it.
    """
    bundle = _bundle()
    if "</script" in bundle.lower() or "<!--" in bundle:
        raise ValueError("the JavaScript of vl-convert-python would end the element it stands in")
    return bundle


def _bundle() -> str:
    # In a process of its own, which is ended where nobody waits any longer: it takes seconds.
    with Popen([sys.executable, "-c", _BUNDLE], stdout=PIPE, encoding="utf-8") as process:
        try:
            while True:
                check()
                try:
                    bundle, _ = process.communicate(timeout=LOOK_AGAIN)
                except TimeoutExpired:
                    continue
                break
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise CalledProcessError(process.returncode, process.args)
    return bundle


def kept(name: str, value: Any) -> str:
    """Data for the page's program, which no browser takes for anything else.

    Args:
        name: identifies it on the page.
        value: as JSON has it.
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    # Without `<` nothing in it can end the element.
    safe = text.replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{safe}</script>'


def section(title: str, *parts: str) -> str:
    """A heading and what stands under it; nothing where there is nothing."""
    there = [part for part in parts if part]
    return "\n".join([f"<h2>{html.escape(title)}</h2>", *there]) if there else ""


def quiet(text: str) -> str:
    """A paragraph of text that explains."""
    return f'<p class="quiet">{html.escape(text)}</p>'


def _hashed(script: str) -> str:
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
