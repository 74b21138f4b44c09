"""Tables of commands, files and pages, read back as rows."""

import json
import re
from html.parser import HTMLParser
from itertools import takewhile
from typing import Any

import pandas as pd
import pyarrow as pa
from streamlit.testing.v1 import AppTest


def printed_rows(text: str) -> list[dict[str, str]]:
    """The rows of a table for the terminal, by its columns."""
    lines = text.splitlines()
    rules = [
        number for number, line in enumerate(lines) if re.fullmatch(" *\u2500[ \u2500]*", line)
    ]
    if not rules or not rules[0]:
        return []
    body = list(takewhile(str.strip, lines[rules[0] + 1 :]))
    head = lines[rules[0] - 1]
    width = max(map(len, [head, *body]))
    blank = [all(line.ljust(width)[x] == " " for line in [head, *body]) for x in range(width)]
    gaps = "".join(" " if empty else "x" for empty in blank)
    spans = [found.span() for found in re.finditer(r"x+( x+)*", gaps)]
    names = [head.ljust(width)[a:b].strip().lower().replace(" ", "_") for a, b in spans]
    return [
        {name: line.ljust(width)[a:b].strip() for name, (a, b) in zip(names, spans, strict=True)}
        for line in body
    ]


class Tables(HTMLParser):
    """The tables of a page, as rows by their columns."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[dict[str, str]] = []
        self._head: list[str] = []
        self._cells: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        del attrs
        if tag == "tr":
            self._cells, self._is_head = [], False
        elif tag in ("th", "td"):
            self._cells.append("")
            self._is_head = tag == "th"

    def handle_data(self, data: str) -> None:
        if self._cells:
            self._cells[-1] = self._cells[-1] or data.strip()

    def handle_endtag(self, tag: str) -> None:
        if tag == "table":
            self._cells = []
        elif tag == "tr" and self._is_head:
            self._head = [name.lower().replace(" ", "_") for name in self._cells]
        elif tag == "tr" and len(self._cells) == len(self._head):
            self.rows.append(dict(zip(self._head, self._cells, strict=True)))


def page_data(page: str) -> dict[str, Any]:
    """The data that an HTML page has for its program, by name."""
    found = re.findall(
        r'<script type="application/json" id="([^"]*)">(.*?)</script>', page, re.DOTALL
    )
    return {name: json.loads(text) for name, text in found}


def charts_of(app: AppTest) -> list[list[pd.DataFrame]]:
    """The data of every chart of a page of the dashboard, beside its picture or within it."""
    return [
        [
            *(pa.ipc.open_stream(own.data.data).read_pandas() for own in chart.proto.datasets),
            *map(pd.DataFrame, json.loads(chart.proto.spec).get("datasets", {}).values()),
        ]
        for chart in app.get("vega_lite_chart")
    ]
