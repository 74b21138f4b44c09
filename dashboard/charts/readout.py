"""The logit as a sum of steps along the residual stream: its frame and its chart."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import altair as alt
import pandas as pd

from dashboard.charts.colors import AWAY, GREY, INK, TOWARDS
from dashboard.charts.parts import Layers, Limits, TokenDrawing, reached_by, unseen
from dashboard.charts.scales import Domain, Drawing, by_panel, reserve_height
from seqcls.interpretability.attribution import LogitStep
from seqcls.interpretability.trained_model import Letters, TrainedModel
from sweeps.api.old_pages import presentation

if TYPE_CHECKING:
    from seqcls.interpretability.states_by_strings import Prefixes

ROW = 26
WIDTH = 210
ROOM_FOR_TEXT = 64
"""Pixels between panels, where the numbers of the left one stand."""

TEXT = alt.Text("change:Q", format="+.3f")
DIRECTIONS = ("toward positive", "toward negative", "the logit")


def waterfall(frame: pd.DataFrame, domain: Domain, title: str) -> Drawing:
    """What each part of the model adds to the logit, from top to bottom, a panel a string.

    Args:
        frame: string, step (its name), change, start and end (the logit before and after it),
            direction (one of `DIRECTIONS`), in the order of the computation; the last row of a
            string is its logit.
        domain: limits of the logit.
        title: above the drawing.
    """
    layers = _steps(alt.Scale(domain=domain, nice=False), columns=2)
    panel = alt.layer(*layers).properties(width=WIDTH, height=alt.Step(ROW), data=frame)
    facet = alt.Facet(**by_panel(frame, "string", WIDTH))
    # Each panel is drawn alone.
    rows = ROW * frame["step"].nunique()
    return panel.facet(facet, columns=2, spacing=ROOM_FOR_TEXT).properties(
        title=title, **reserve_height(rows)
    )


def steps_of_one(frame: pd.DataFrame, limits: Limits | None) -> TokenDrawing:
    """The same of one string, whose name stands elsewhere.

    Args:
        frame: as for `waterfall`.
        limits: logits that the axis reaches at least; those of the steps if none are given.
    """
    columns = ["string", "step", "change", "start", "end", "direction"]
    reached = reached_by("start", limits)
    return TokenDrawing(
        _of_one, (len(frame),), {"steps": frame[columns], "reached_by_steps": reached}
    )


def _of_one(steps: int) -> Layers:
    drawn = alt.layer(
        unseen("reached_by_steps").encode(x="start:Q"), *_steps(alt.Scale(), columns=3)
    )
    return drawn.properties(
        width=WIDTH,
        height=ROW * steps,
        padding={"left": 5, "top": 5, "bottom": 5, "right": ROOM_FOR_TEXT},
        data=alt.NamedData(name="steps"),
    )


def _steps(scale: alt.Scale, columns: int) -> list[alt.Chart]:
    y = alt.Y("step:N", title=None, sort=None, axis=alt.Axis(labelLimit=120))
    x = alt.X("start:Q", title="Running logit", scale=scale)
    base = alt.Chart().encode(
        y,
        tooltip=[
            alt.Tooltip("string:N", title="String"),
            alt.Tooltip("step:N", title="After"),
            alt.Tooltip("change:Q", title="Adds to the logit", format="+.4f"),
            alt.Tooltip("end:Q", title="Logit so far", format=".4f"),
        ],
    )
    bars = base.mark_bar(height=18).encode(
        x,
        x2="end:Q",
        color=alt.Color(
            "direction:N",
            title=None,
            sort=None,
            scale=alt.Scale(domain=DIRECTIONS, range=[TOWARDS, AWAY, GREY]),
            legend=alt.Legend(orient="top", columns=columns),
        ),
    )
    # In a column of their own: beside its bar a number would cross the line at zero, and the sign
    # of -0.871 would look like a plus.
    # Aligned at the right, one sign and one point below the other.
    texts = base.mark_text(align="right", dx=ROOM_FOR_TEXT - 8, color=INK, font="monospace").encode(
        x=alt.value("width"), text=TEXT
    )
    zero = alt.Chart().mark_rule(color=GREY).encode(x=alt.datum(0, scale=scale))
    return [zero, bars, texts]


DRAWN = 64
"""Tokens up to which attention and units are drawn; the logit after each prefix goes further."""


def with_margin(values: Sequence[float]) -> tuple[float, float]:
    """Limits of an axis on which all of these are seen."""
    low, high = min(values), max(values)
    margin = 0.15 * max(high - low, 1e-6)
    return low - margin, high + margin


def steps_frame(steps: Sequence[LogitStep], string: str) -> pd.DataFrame:
    """The waterfall's rows: string, step, change, start, end, direction; the logit comes last."""
    rows = [
        (step.text, step.adds, step.logit - step.adds, step.logit, DIRECTIONS[step.adds < 0])
        for step in steps
    ]
    rows.append(("logit", steps[-1].logit, 0.0, steps[-1].logit, DIRECTIONS[2]))
    columns = ["step", "change", "start", "end", "direction"]
    return pd.DataFrame(rows, columns=columns).assign(string=string)


def token_names(model: TrainedModel, letters: Letters) -> list[str]:
    """The tokens along the axis: what stands before the string, its letters, what stands after.

    Of a model that writes all that it reads: the input, `SEP` and the output.
    """
    # Where an output is read after the string, what is read is known once it is written.
    if model.problem.writes:
        # Imported where it is used: PyTorch takes a second or two to load.
        from seqcls.interpretability import readable_model

        return readable_model.token_names(model, letters)
    before = {"first": "CLS"}.get(model.config.readout, "")
    alphabet = model.tokenizer.alphabet
    after = ["END"] if model.config.readout == "last" else []
    return [before, *(alphabet[letter] for letter in letters), *after]


def with_letters(model: TrainedModel, frame: pd.DataFrame) -> pd.DataFrame:
    """A frame of tokens with the letter of each, from 1 on, beside its place or, of attention, key.

    Places and keys count from 0 and a `CLS`; the query of attention becomes a letter too.
    """
    before = 0 if model.config.readout == "first" else 1
    if "query" not in frame:
        return frame.assign(letter=frame["place"] + before)
    return frame.assign(letter=frame["key"] + before, query=frame["query"] + before)


def prefixes_frame(model: TrainedModel, letters: Letters, prefixes: "Prefixes") -> pd.DataFrame:
    """A row a prefix: length, token, logit, label (0 or 1 of a language), letter, prefix (text)."""
    frame = presentation.prefixes_frame(prefixes)
    labels = [int(x) if isinstance(x, bool) else x for x in frame["label"]]
    return frame.assign(
        letter=frame["length"],
        prefix=[model.display(letters[:end]) or "the empty string" for end in frame["length"]],
        label=pd.Series(labels, dtype=object),
    )
