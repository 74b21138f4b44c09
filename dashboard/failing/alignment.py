"""A wrong output of a transduction under its input and its target, token by token."""

import html
from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.elements import pictures, placement
from seqcls.config import RunConfig
from seqcls.errors import InvalidStringError
from seqcls.problem import missing_plugin, resolve
from seqcls.tokens.tokenizer import FIRST_LETTER, Tokenizer

MOST_TOKENS = 300
"""That are shown of each string."""

BEFORE = 20
"""Tokens that are shown before the first wrong one, where it is far behind."""

END = "END"
GOES_ON = "\N{HORIZONTAL ELLIPSIS}"


def show(config: RunConfig, errors: pd.DataFrame) -> None:
    """Draws the first of some errors; nothing where models write no outputs.

    Args:
        config: of the model.
        errors: string, target, output, first_wrong and error_kind, where they are of outputs.
    """
    if "output" not in errors or errors.empty or missing_plugin(config) is not None:
        return
    error = errors.iloc[0]
    try:
        rows = aligned(resolve(config).tokenizer, error)
    except InvalidStringError:
        # Of what stands in a database nothing is certain.
        st.caption("This output cannot be read.")
        return
    first_wrong = int(error["first_wrong"])
    pictures.show(resolve(config).task, error["string"], first_wrong)
    start = max(0, first_wrong - BEFORE) if first_wrong >= MOST_TOKENS else 0
    st.html(table(rows, first_wrong, start, placement.ground().background))
    part = f" Shown from token {start + 1:,} on." if start else ""
    st.caption(
        "Marked: the first wrong token of the output; dimmed: those after it. END: the string ends "
        f"there.{part}"
    )


def aligned(tokenizer: Tokenizer, error: "pd.Series[Any]") -> dict[str, list[str]]:
    """Input, target and output as tokens, each with what follows its last one, where it is known.

    Raises:
        InvalidStringError: one is not of this alphabet.
    """
    # A model that was trained elsewhere may write tokens that the task does not have.
    known = tokenizer.with_tokens_of(error["output"])
    rows = {
        name: [known.alphabet[x - FIRST_LETTER] for x in known.encode(error[column])[1:]]
        for name, column in (("Input", "string"), ("Target", "target"), ("Output", "output"))
    }
    target, output = rows["Target"], rows["Output"]
    if error["error_kind"] == "stopped early":
        output.append(END)
    elif output == target:
        output.append(GOES_ON)
    target.append(END)
    return rows


def table(rows: dict[str, list[str]], first_wrong: int, start: int, ground: str) -> str:
    """The strings as HTML, one below the other.

    Args:
        rows: tokens by what they are; the output is the last.
        first_wrong: tokens of the output that are right before the first wrong one.
        start: tokens of each that are left out at its beginning.
        ground: the color of the page, over which long strings are scrolled.
    """
    body = "".join(
        f'<tr><th scope="row" style="background:{ground}">{html.escape(name)}</th>'
        + "".join(_cells(tokens, first_wrong if name == "Output" else None, start))
        + "</tr>"
        for name, tokens in rows.items()
    )
    return f'<div class="aligned" tabindex="0"><table><tbody>{body}</tbody></table></div>'


def _cells(tokens: Sequence[str], first_wrong: int | None, start: int) -> list[str]:
    return [
        _cell(token, None if first_wrong is None else place - first_wrong)
        for place, token in list(enumerate(tokens))[start : start + MOST_TOKENS]
    ]


def _cell(token: str, behind: int | None) -> str:
    """A token; `behind` places after the first wrong one."""
    text = html.escape(token)
    if behind == 0:
        return f"<td><mark>{text}</mark></td>"
    return f'<td class="after">{text}</td>' if behind and behind > 0 else f"<td>{text}</td>"
