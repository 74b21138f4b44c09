"""Sections as one HTML file, which makes no requests and can be printed.

It runs no program but its own, which pages through strings. Pictures suit both themes.
"""

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader
from markupsafe import Markup, escape

from dashboard import style
from dashboard.section import Panel, Section, Spec, svg
from dashboard.words import columns

Links = Callable[[str, Any], str]
"""Address of what a section opens, such as `("run", 5)`; empty for no link."""

HERE = "https://here.invalid/"
"""Prefix of a picture's addresses while it is drawn: Vega would add its own to relative ones."""

NO_LINK = re.compile(rf'<a [^>]*"{HERE}"[^>]*>(.*?)</a>', re.DOTALL)

WIDTH, SMALL = 760, 300
"""Width of a single picture, and of one of several, in pixels."""


@dataclass(frozen=True)
class Details:
    """Content of an expander: sentences, a text unchanged, or strings to page through."""

    title: str
    note: str = ""
    id: str = ""
    says: Sequence[str] = ()
    code: str = ""
    strings: dict[str, Any] | None = None


@dataclass(frozen=True)
class Part:
    """The part of a page on one task, or on its sweeps."""

    sections: Sequence[Section] = ()
    details: Sequence[Details] = ()
    heading: str = ""


def page(
    title: str,
    parts: Iterable[Part],
    lead: Sequence[str] = (),
    links: Links = lambda *_: "",
    footer: str = "",
) -> str:
    """Parts as one page.

    Args:
        lead: lines below the title, as people wrote them.
        links: addresses of marks, names and rows that open something.
        footer: names the program that wrote it.
    """
    here = files("dashboard.report")
    script = here.joinpath("page.js").read_text(encoding="utf-8")
    # The program that the page may run, as a policy of contents names it.
    digest = hashlib.sha256(script.encode()).digest()
    environment = Environment(
        loader=PackageLoader("dashboard", "report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "strings": _with_strings,
        "picture": lambda panel, section: _picture(panel, section, links),
        "table": lambda section: _table(section, links),
        "json": _as_json,
    }
    css = _variables() + here.joinpath("page.css").read_text(encoding="utf-8")
    return environment.get_template("page.html").render(
        title=title,
        lead=lead,
        parts=list(parts),
        links=links,
        footer=footer,
        css=Markup(css),
        script=Markup(script),
        script_hash=Markup(f"'sha256-{base64.b64encode(digest).decode()}'"),
        colors={name: f"var({_variable(name)})" for name in style.LIGHT},
        legend=columns.LEGEND,
    )


def _with_strings(sentence: str) -> Markup:
    """Renders a sentence; text between backquotes is code."""
    parts = [escape(part) for part in sentence.split("`")]
    marked = (f"<code>{part}</code>" if n % 2 else part for n, part in enumerate(parts))
    return Markup("").join(map(Markup, marked))


def _as_json(value: Any) -> Markup:
    # NaN is refused here: Python would write it, and no browser reads it as JSON.
    text = json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    # Without `<` nothing in it can end the element.
    return Markup(text.replace("<", "\\u003c"))


# Colors of pictures are variables of the page, so that it can be on dark ground.


def _variable(name: str) -> str:
    return f"--{name.replace(' ', '-')}"


def _variables() -> str:
    light, dark = (
        "".join(f"{_variable(name)}:{color};" for name, color in colors.items())
        for colors in (style.LIGHT, style.DARK)
    )
    return f":root{{{light}}}\n@media (prefers-color-scheme: dark){{:root{{{dark}}}}}\n"


def _picture(panel: Panel, section: Section, links: Links) -> Markup:
    width = SMALL if len(section.panels) > 1 else WIDTH
    spec = with_links(panel.spec, section.opens, links) if section.opens else panel.spec
    drawn = NO_LINK.sub(r"\1", svg(spec, width)).replace(HERE, "")
    # Variables in place of colors, so that pictures are right on either ground.
    for name, color in style.LIGHT.items():
        # With its quotes, so that only whole attributes are replaced.
        drawn = drawn.replace(f'"{color}"', f'"var({_variable(name)})"')
    # What reads it aloud names each mark, and so does the pointer.
    return Markup(drawn)


def with_links(spec: Spec, opens: str, links: Links) -> Spec:
    """A picture whose marks that have a value of `opens` lead where it leads."""
    # Sections are cached and shared: a copy gets the links.
    spec = deepcopy(spec)
    for rows in spec.get("datasets", {}).values():
        for row in rows:
            if opens in row:
                row["href"] = f"{HERE}{links(opens, row[opens])}"
    _link_marks(spec, opens)
    return spec


def _link_marks(spec: Any, opens: str) -> None:
    if isinstance(spec, list):
        for part in spec:
            _link_marks(part, opens)
    elif isinstance(spec, dict):
        encoding = spec.get("encoding")
        if "mark" in spec and isinstance(encoding, dict) and f"'{opens}'" in str(encoding):
            encoding["href"] = {"field": "href", "type": "nominal"}
        for value in spec.values():
            _link_marks(value, opens)


def _table(section: Section, links: Links) -> Markup:
    assert section.table is not None
    shown = columns.as_text(section.table, section.shown)
    rows = shown.map(lambda text: str(escape(text)))
    of_runs = columns.column_of("run").title
    for opens, name in ((section.opens, rows.columns[0]), ("run", of_runs)):
        if opens in section.table and name in rows:
            addresses = [links(opens, value) for value in section.table[opens]]
            rows[name] = [
                f'<a href="{escape(address)}">{text}</a>' if address else text
                for text, address in zip(rows[name], addresses, strict=True)
            ]
    # Escaped here, not by pandas, since cells hold links.
    head = pd.Index([str(escape(name)) for name in rows.columns])
    html: str = rows.set_axis(head, axis=1).to_html(index=False, border=0, escape=False)
    return Markup(f'<div class="wide">{html}</div>')
