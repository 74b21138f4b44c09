"""Page Guide: `guide.md`, its numbers and figures filled in."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from string import ascii_lowercase

import numpy as np
import streamlit as st

from dashboard import data, page
from dashboard.figures import gallery
from dashboard.guide import models, sections
from dashboard.guide.models import (
    DEFAULT,
    ENUMERATED,
    MORE_HEADS,
    SMALLER_OUTPUTS,
    SMALLER_START,
    WIDER,
)
from dashboard.model import family_sections
from dashboard.model.opened import Opened
from dashboard.text import error_text
from seqcls.errors import SeqclsError, StoreMissingError
from seqcls.questions import RunModel
from sweeps.access import is_read_only
from sweeps.api import find_run, open_reader

_BLANK = re.compile(r"\{\{ (.*?) \}\}")


_report, _figures = data.cached(models.report), data.cached(gallery.sections)


def _open(sweep: str, seed: int) -> Opened:
    return Opened(models.find(open_reader(), sweep, seed))


# Numbers, by the names of their blanks.


def _logit(string: str) -> str:
    return f"{_open(DEFAULT, 5).ask(RunModel.predict, (string,))['logit'][0]:.4f}"


def _leads(seed: int) -> str:
    clauses = []
    for head in _open(DEFAULT, seed).ask(RunModel.circuits):
        of_cls = dict(zip(head.token_types, head.scores[0].tolist(), strict=True))
        lead = of_cls["a"] - of_cls["b"]
        clauses.append(
            f"head {head.head} scores {'a' if lead > 0 else 'b'} higher by {abs(lead):.2f}, so "
            # The exponential of more than 709 is beyond the largest double.
            f"that one weighs as much as {np.exp(min(abs(lead), 700)):,.0f} of the other"
        )
    return f"{'; '.join(clauses)}."


def _explain(sweep: str, string: str) -> str:
    return " ".join(_open(sweep, 2).ask(_reasons, string))


def _reasons(model: RunModel, string: str) -> list[str]:
    # The answer and its first reason: the page of the model has the others.
    return [x for x in model.describe(model.explain(string)) if isinstance(x, str)][:2]


def _spare_heads() -> str:
    steps = _open(MORE_HEADS, 0).ask(RunModel.ablate, ("head",), prune=True).outcomes
    # The first is of the whole model, with nothing removed.
    spare = sum(step.errors <= steps[0].errors for step in steps[1:])
    return (
        f"of the {len(steps) - 1} of seed 0, {spare} can go, the cheapest first, before the test "
        "shows an error more."
    )


def _failing(sweep: str) -> str:
    return models.failing(_report(), sweep)


NUMBERS: dict[str, Callable[[], str]] = {
    "all_models": lambda: models.learned_sentence(open_reader(), _report()),
    "logit_aac": partial(_logit, "aac"),
    "logit_baac": partial(_logit, "baac"),
    "leads_right": partial(_leads, 5),
    "leads_wrong": partial(_leads, 2),
    "explain_dilution": partial(_explain, DEFAULT, "ab{100}c{55}"),
    "explain_interference": partial(_explain, DEFAULT, "bbc{152}"),
    "explain_missing": partial(_explain, SMALLER_START, "b{5}c{5}"),
    "failing_enumerated": partial(_failing, ENUMERATED),
    "failing_wider": partial(_failing, WIDER),
    "failing_smaller_start": partial(_failing, SMALLER_START),
    "failing_smaller_outputs": partial(_failing, SMALLER_OUTPUTS),
    "failing_more_heads": partial(_failing, MORE_HEADS),
    "seed_by_seed": lambda: models.seed_by_seed(_report()),
    "spare_heads": _spare_heads,
}


# Figures, likewise.


def _compare(*sweeps: str, number: int) -> None:
    key = f"guide {' '.join(sweeps)}"
    found = sections.compare(_report(), sweeps)
    found = replace(found, caption=f"Figure {number}. {found.caption}")
    if (run := page.render(found, key, heading=False)) is not None:
        page.to_model(int(run))


def _states(sweep: str, seed: int, strings: tuple[str, ...], *own: int, number: int) -> None:
    run = models.find(open_reader(), sweep, seed)
    drawn = _figures(run, strings, own)
    parts = ascii_lowercase if len(drawn) > 1 else ("",)
    # There are more letters than figures.
    for part, section in zip(parts, drawn, strict=False):
        key = f"guide {sweep} {seed} {section.title}"
        caption = f"Figure {number}{part}. {section.caption}"
        numbered = replace(section, title="", caption=caption)
        page.render(numbered, key, heading=False, across=2)


def _family(seed: int, number: int) -> None:
    found = _open(DEFAULT, seed).ask(family_sections.family, "ab{n}")
    caption = f"Figure {number}. Seed {seed}. {' '.join(found.says)}"
    drawn = replace(found, title="", says=(), caption=caption)
    page.render(drawn, f"guide family {seed}", heading=False)


TWO = ("aac", "baac")
FOUR = ("aac", "ab", "ab{100}c{55}", "bbc{152}")

FIGURES: dict[str, Callable[..., None]] = {
    "every_sweep": partial(_compare, DEFAULT, WIDER, SMALLER_START, MORE_HEADS, ENUMERATED),
    "weights": partial(_states, DEFAULT, 5, TWO, 8),
    "boundary": partial(_states, DEFAULT, 5, TWO, 10, 13),
    "family_right": partial(_family, 5),
    "family_wrong": partial(_family, 2),
    "values": partial(_states, DEFAULT, 2, FOUR, 6, 7),
    "data": partial(_compare, DEFAULT, ENUMERATED),
    "start": partial(_compare, DEFAULT, WIDER, SMALLER_START, SMALLER_OUTPUTS),
    "both_heads": partial(_states, SMALLER_START, 2, ("b", "ab"), 8),
    "heads": partial(_compare, SMALLER_START, MORE_HEADS),
}


def _number(blank: re.Match[str]) -> str:
    """A number as Markdown; where its model is not here, that this is so."""
    try:
        return page.markdown(NUMBERS[blank[1]]())
    # Without a database the page reports it once, and not in every blank.
    except StoreMissingError:
        raise
    except SeqclsError as error:
        return page.markdown(f"(not known: {error_text(error)})")


def _figure(name: str, number: int) -> None:
    try:
        FIGURES[name](number=number)
    except StoreMissingError:
        raise
    except SeqclsError as error:
        st.info(page.markdown(f"It cannot be shown: {error_text(error)}"))


def _link(address: str) -> None:
    run, _, query = address.partition("?")
    named = dict(part.split("=", 1) for part in query.split("&"))
    try:
        # Without its model there is no link, rather than one to an error.
        run_id = str(find_run(open_reader(), run))
    except SeqclsError:
        return
    label, icon = f"Look into {run}", ":material/arrow_forward:"
    st.page_link(page.MODEL, label=label, icon=icon, query_params={"run": run_id, **named})


def show() -> None:
    """Draws the page."""
    st.title("How does a small Transformer fail?", anchor=False)
    if _report().empty:
        st.info(
            "This database has none of the report's models, which this guide is about. "
            "`seqcls sweep report` trains them, in about a minute."
        )
        if not is_read_only():
            label = "Train them"
            st.page_link(page.NEW_SWEEP, label=label, query_params={"start": "report"})
        return
    text, number = Path(__file__).with_name("guide.md").read_text(encoding="utf-8"), 0
    with st.container(key="guide"):
        for part in re.split(r"^\{\{ ((?:figure|open) .*) \}\}$", text, flags=re.MULTILINE):
            kind, _, rest = part.partition(" ")
            if kind == "figure":
                number += 1
                _figure(rest, number)
            elif kind == "open":
                _link(rest)
            elif part.strip():
                st.markdown(_BLANK.sub(_number, part))


show()
