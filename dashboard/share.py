"""Copy link, Report and Export in the header of a page. Each file is made when it is asked for."""

import re
from collections.abc import Callable
from functools import partial

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import data
from dashboard.server import visitors
from seqcls.errors import UnknownRunError
from sweeps.api.old_pages.reading import Selection

MOST_ROWS = 100_000
"""The most rows of a table that is exported here; `seqcls export` has no limit."""

EXPORTED = (
    f"What this page shows, as a table: its first {MOST_ROWS:,} rows. `seqcls export` has no limit."
)

# Of Streamlit's buttons without a frame, which a component cannot use.
_LOOK = """
button { all: unset; box-sizing: border-box; cursor: pointer; font: inherit; font-size: 0.875rem;
  min-height: 2.5rem; display: inline-flex; align-items: center; white-space: nowrap;
  color: var(--st-text-color); }
button:disabled { cursor: default; opacity: 0.4; }
button:hover:enabled { color: var(--st-primary-color); }
button:focus-visible { outline: 2px solid var(--st-primary-color); border-radius: 0.3rem; }
"""

_COPY = """
export default function ({ parentElement }) {
  const button = parentElement.querySelector("button");
  button.disabled = false; // Before this nothing would have happened.
  button.onclick = async () => {
    const link = window.location.href;
    try {
      await navigator.clipboard.writeText(link);
    } catch {
      // Pages that are not served encrypted have no clipboard.
      const text = document.createElement("textarea");
      text.value = link;
      document.body.append(text);
      text.select();
      document.execCommand("copy");
      text.remove();
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy link"; }, 4000);
  };
}
"""

_copy_link = st.components.v2.component(
    "seqcls.copy_link", html="<button disabled>Copy link</button>", css=_LOOK, js=_COPY
)


def header(title: str) -> DeltaGenerator:
    """The title of a page, and beside it the place for `offer`."""
    with st.container(horizontal=True, vertical_alignment="center", key="header"):
        st.title(title, width="stretch")
        return st.container(
            horizontal=True, vertical_alignment="center", width="content", key="share"
        )


def offer(
    place: DeltaGenerator,
    name: str,
    rows: Callable[[], pd.DataFrame],
    view: Selection,
    *,
    only: str = "",
    title: str = "",
) -> None:
    """The buttons, which write nothing.

    Args:
        place: what `header` returned.
        name: of the files.
        rows: what the page shows, as a table; asked when it is exported.
        view: the models that the page is about, for a report.
        only: which of the models of their sweeps these are, for a report.
        title: the report's; the names of the sweeps where none is given.
    """
    with place:
        _copy_link(key="copy_link", width="content")
        st.download_button(
            "Report",
            visitors.later(partial(_report, view, title, only)),
            file_name=f"{name}.html",
            mime="text/html",
            on_click="ignore",
            type="tertiary",
            help="One HTML file on these models, with live charts, failing strings, causes and "
            "remedies. It takes some seconds.",
            key="report",
        )
        with st.popover("Export", type="tertiary", help=EXPORTED):
            for label, (ending, write) in FORMATS.items():
                st.download_button(
                    label,
                    visitors.later(partial(_export, rows, write)),
                    file_name=f"{name}.{ending}",
                    mime="application/octet-stream",
                    on_click="ignore",
                    key=f"export {ending}",
                    width="stretch",
                )


def file_name(text: str) -> str:
    """A text as part of the name of a file, on any machine."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", text)


@data.shared
def _report(view: Selection, title: str, only: str) -> str:
    # Imported where it is used: what draws pictures takes a second to load.
    from dashboard.report.sweep_report import report

    text = report(data.reader(), view, title=title, only=only)
    if text is None:
        raise UnknownRunError("no finished model matches the filters any longer")
    return text


def _export(rows: Callable[[], pd.DataFrame], write: Callable[[pd.DataFrame], bytes]) -> bytes:
    with data.at_one_revision():
        return write(rows().head(MOST_ROWS).copy())


def _csv(frame: pd.DataFrame) -> bytes:
    return frame.to_csv(index=False).encode()


def csv_for_spreadsheets(frame: pd.DataFrame) -> bytes:
    """A table as CSV with `'` before texts that a spreadsheet would compute as formulas."""
    # Imported where it is used: it loads what writes files.
    from sweeps.api.exports import without_formulas

    return _csv(without_formulas(frame))


FORMATS: dict[str, tuple[str, Callable[[pd.DataFrame], bytes]]] = {
    "CSV": ("csv", _csv),
    "CSV for spreadsheets": ("spreadsheet.csv", csv_for_spreadsheets),
}
