"""Patching: states carried over from another string, and the answer that they turn."""

from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from dashboard import marks, token_marks
from dashboard.model import inside_words as words
from dashboard.section import Panel, Section
from dashboard.words.sentences import say
from seqcls.interpretability.trained_model import Letters
from seqcls.questions import RunModel

UNITS = 16
"""Units of recurrent layers that are drawn, those that restore the most."""

LISTED = 12
"""States that turn the answer of which the table has no more."""


def patching(model: RunModel, letters: Letters, source: str = "") -> Section:
    """Each state of another string put in the place of a string's own.

    Args:
        model: the model.
        letters: of the string whose states are replaced.
        source: the other string, of the same length; if empty, the nearest one that is answered
            rightly and otherwise.

    Raises:
        ConfigError: the states of such a model cannot be carried over.
        InvalidStringError: there is no such other string.
    """
    found = model.patch(model.text(letters), source or None)
    cells = _cells(found)
    base, other = found.base, found.source
    numbers = {"turns": int(found.flips.sum()), "states": int(found.is_place.sum())}
    says = [
        say("turns", **numbers, source=other.name, base=base.name),
        say("side", side="This string", string=base.name, verdict=base.verdict),
        say("side", side="The other", string=other.name, verdict=other.verdict),
    ]
    if cells["restored"].notna().any():
        # By size, since a state may also lead away from the other string's answer.
        most = cells.iloc[int(cells["restored"].abs().argmax())]
        where = {"site": most["state"], "place": most["place"], "token": most["base_token"]}
        says.insert(1, say("carries", **where, share=most["restored"]))
    caption = words.RESTORED.format(number=found.unit)
    return Section(
        words.CARRIES,
        tuple(says),
        _turning(found, cells[cells["flips"]]),
        (Panel.of(_picture(cells, found.base_tokens)),),
        caption + words.FORCED * found.of_output,
    )


def _cells(patched: Any) -> pd.DataFrame:
    """Site and place of every state: state, place, base_token, source_token, restored, flips."""
    # A layer may have hundreds of units, each of which would be a row.
    units = set(patched.most_restoring_units(UNITS))
    restored, flips = patched.restored, patched.flips
    rows = [
        {
            "site": site,
            "state": named.text,
            "place": place,
            "base_token": patched.base_tokens[place],
            "source_token": patched.source_tokens[place],
            "restored": float(restored[site, place]),
            "flips": bool(flips[site, place]),
        }
        for site, named in enumerate(patched.sites)
        if named.name != "unit" or site in units
        for place in np.flatnonzero(patched.is_place[site]).tolist()
    ]
    return pd.DataFrame(rows)


def _turning(patched: Any, turning: pd.DataFrame) -> pd.DataFrame:
    """The states that turn the answer, in the order of the sentences."""
    order = {place: number for number, place in enumerate(patched.ranked)}
    ranks = [order[place] for place in zip(turning["site"], turning["place"], strict=True)]
    table = turning.assign(rank=ranks).sort_values("rank").head(LISTED)
    return table[["state", "place", "base_token", "source_token", "restored"]]


def _picture(cells: pd.DataFrame, tokens: tuple[str, ...]) -> Any:
    states = list(dict.fromkeys(cells["state"]))
    tooltip = marks.tips(
        state="State",
        base_token="Here",
        source_token="There",
        restored="Of the way:.1%",
        flips="Turns the answer",
    )
    axis = alt.Axis(labelLimit=260, labelOverlap=False, domain=False, ticks=False)
    base = alt.Chart(cells).encode(
        token_marks.along("place", tokens),
        alt.Y("state:N", sort=states, title=None, axis=axis),
        tooltip=tooltip,
    )
    return token_marks.share_map(base, "restored", len(states), dots="flips")
