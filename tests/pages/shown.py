"""The content of a page by label and value: the only place that knows how the screen is built."""

from dataclasses import dataclass
from typing import Any

import pandas as pd
from streamlit.testing.v1 import AppTest

from tests.app import markdown_of, page_text, rerun, unmarked
from tests.shown import charts_of

CONTENT = ("vega_lite_chart", "arrow_data_frame", "dataframe", "metric", "image")
"""Elements of which any is content."""


@dataclass(frozen=True)
class Shown:
    """The content of a page as a user sees it."""

    title: str
    tabs: list[str]
    tables: list[pd.DataFrame]
    charts: list[list[pd.DataFrame]]
    """The data sets of each chart."""
    text: str
    """All text."""
    codes: list[str]
    """Texts to be copied, as strings are."""
    errors: list[str]
    notes: list[str]
    """Warnings and placeholders."""
    markup: list[str]
    """Texts of which a browser makes more than text."""
    links: list[str]
    """Labels of links to other pages."""
    pressable: list[str]
    """Labels of buttons that can be pressed."""
    refused: dict[str, str]
    """The others, and why they cannot."""
    typed_into: list[str]
    """Labels of boxes into which may be typed."""
    has_content: bool

    def rows(self, *columns: str) -> pd.DataFrame:
        """The rows of the first data set of a chart that has these columns."""
        sets = [frame for chart in self.charts for frame in chart]
        return next(frame for frame in sets if set(columns) <= set(frame))


def shown(app: AppTest) -> Shown:
    """Everything that a page shows."""
    codes = [str(code.value) for code in app.code]
    boxes, heads = [*app.text_input, *app.text_area], [*app.header, *app.subheader]
    return Shown(
        title="".join(str(own.value) for own in app.title),
        tabs=[tab.label for tab in app.tabs],
        tables=[own.value for own in app.dataframe],
        charts=charts_of(app),
        text=unmarked("\n".join([page_text(app), *(str(own.value) for own in heads)])),
        codes=codes,
        # The cause is shown below the error.
        errors=[unmarked("\n".join([str(own.value), *codes])) for own in app.error],
        notes=[unmarked(str(own.value)) for own in (*app.warning, *app.info)],
        markup=[*markdown_of(app), *(str(x.value) for x in app.markdown if x.allow_html)],
        links=[link.proto.label for link in app.main.get("page_link")],
        pressable=[own.label for own in app.button if not own.disabled],
        refused={own.label: own.help for own in app.button if own.disabled},
        typed_into=[own.label for own in boxes if not own.disabled],
        has_content=any(len(app.get(part)) for part in CONTENT),
    )


def look(app: AppTest, **state: Any) -> Shown:
    """The page after something was chosen, by the names that links have too."""
    for name, value in state.items():
        app.session_state[name] = value
        if name in app.query_params:
            app.query_params[name] = str(value)
    return shown(rerun(app))


READS = {
    *("Add to the list", "Clear filters", "Compare", "Look at it", "Pause", "Play"),
    "What settings mean",
    # The rows of settings of a new sweep.
    "begun",
}
"""Buttons that change nothing but what the visit itself shows."""


def reads(label: str) -> bool:
    """Return True if a visitor may press a button of this label."""
    return label in READS or label.startswith(("Explain ", "Take {"))
