"""What a model makes of one string, token by token.

Every part has the string's tokens along its horizontal axis. A letter's number counts from 1; 0
stands for a special token before the string, and one beyond the last for one after it.
"""

import math

import altair as alt
import numpy as np
import pandas as pd

from dashboard.charts.colors import AWAY, GREY, INK, TOWARDS, WRONG
from dashboard.charts.parts import (
    TOKENS,
    Layers,
    Limits,
    Names,
    TokenAxis,
    TokenDrawing,
    chart_of,
    column_frame,
    place_axis,
    places_of,
    reached_by,
    title_of,
    token_axis,
    tokens_frame,
    unseen,
    width_of,
)
from dashboard.charts.pointing import pointer
from dashboard.charts.scales import KIND_COLORS, LOW_TO_HIGH, class_color

LINE_HEIGHT = 240
LONG = 66
"""Tokens from which on a string's are counted along the axis, and no longer named."""

ROW = 16

UNKNOWN, UNKNOWN_COLOR = "label not known", "#d9d9d9"
"""The name and color of a prefix whose label no file says."""


def prefix_logits(frame: pd.DataFrame, names: Names, limits: Limits | None = None) -> TokenDrawing:
    """The logit after every prefix; colored where the prefix is misclassified.

    Args:
        frame: letter (the prefix's length), prefix (as text), logit, label (0 or 1, None where it
            is not known; or the target as text, where the logit is the margin of what is right).
        names: of the tokens.
        limits: logits that the axis reaches at least; those of the prefixes if none are given.
    """
    pairs = list(zip(frame["label"], frame["logit"], strict=True))
    of_language = not any(isinstance(label, str) for label, _ in pairs)
    rows = frame[["letter", "prefix", "logit"]].assign(
        answer=[
            _outcome(label, logit > 0) if of_language else ("correct" if logit > 0 else "wrong")
            for label, logit in pairs
        ]
    )
    reached = reached_by("logit", limits)
    data = {
        "prefixes": rows,
        TOKENS: tokens_frame(names),
        "reached_by_prefixes": reached,
        "turn": last_turn(rows),
    }
    some_unknown = UNKNOWN in set(rows["answer"])
    return TokenDrawing(_prefix_logits, (places_of(names), of_language, some_unknown), data)


def last_turn(prefixes: pd.DataFrame) -> pd.DataFrame:
    """Where the sign changes for the last time: letter, said; no row where it never does.

    Args:
        prefixes: letter, logit, in order.
    """
    positive = prefixes["logit"].gt(0)
    turned = prefixes["letter"][positive.ne(positive.shift(fill_value=positive.iloc[0]))]
    last = turned.iloc[-1:]
    return pd.DataFrame({"letter": last, "said": [f"sign last changes at {x:,}" for x in last]})


def _prefix_logits(tokens: TokenAxis, of_language: bool, some_unknown: bool) -> Layers:
    number = "Logit" if of_language else "Margin"
    outcomes = {"correct": GREY, **(KIND_COLORS if of_language else {"wrong": WRONG})}
    if some_unknown:
        outcomes[UNKNOWN] = UNKNOWN_COLOR
    long = tokens.number > LONG
    base = chart_of("prefixes").encode(x=place_axis(tokens) if long else token_axis(tokens))
    line = base.mark_line(color=GREY, strokeWidth=1).encode(
        y=alt.Y("logit:Q", title=f"{number} of the prefix")
    )
    points = (
        base.mark_point(filled=True, opacity=1, size=12 if long else 45)
        .encode(
            y="logit:Q",
            color=class_color("answer", outcomes),
            tooltip=[
                alt.Tooltip("prefix:N", title="Prefix"),
                alt.Tooltip("logit:Q", title=number, format=".4f"),
                alt.Tooltip("answer:N", title="Prediction"),
            ],
        )
        .add_params(pointer())
    )
    zero = alt.Chart(alt.InlineData([{"y": 0.0}])).mark_rule(color=GREY, strokeDash=[4, 4])
    limits = unseen("reached_by_prefixes").encode(y="logit:Q")
    return alt.layer(
        limits,
        zero.encode(y="y:Q"),
        line,
        column_frame(),
        points,
        *(_turn(tokens.number) if long else ()),
    ).properties(width=width_of(tokens.number), height=LINE_HEIGHT)


def _turn(tokens: int) -> list[alt.Chart]:
    """A mark of the turning point of a long string, in which it is not seen at a glance."""
    base = chart_of("turn").encode(x="letter:O")
    # Toward the middle, where there is room.
    left_half = f"datum.letter < {tokens / 2}"
    said = base.mark_text(
        align={"expr": f"{left_half} ? 'left' : 'right'"},
        dx={"expr": f"{left_half} ? 5 : -5"},
        baseline="top",
        color=INK,
    )
    return [
        base.mark_rule(color=INK, strokeDash=[2, 3]),
        said.encode(y=alt.value(0), text="said:N"),
    ]


def compact(frame: pd.DataFrame, row: str, column: str, value: str) -> pd.DataFrame:
    """Cells as small as they may be sent: their row, their column and their value alone."""
    types = {row: np.int16, column: np.int16, value: np.float32}
    return frame[list(types)].astype(types)


def grid(
    tokens: TokenAxis,
    cells: alt.Chart,
    *above: alt.Chart,
    rows: int,
    most: int = 10_000,
    outlined: bool = False,
) -> Layers:
    """Cells that can be pointed at, in so many rows, and what lies above them.

    Outlined where some are missing: white ones would look like these.
    """
    drawn = cells.mark_rect(stroke=GREY, strokeWidth=0.3) if outlined else cells.mark_rect()
    rectangles = drawn.add_params(pointer())
    return alt.layer(rectangles, *above, column_frame()).properties(
        width=width_of(tokens.number), height=min(max(ROW * rows, 60), most)
    )


def unit_states(
    frame: pd.DataFrame, names: Names, title: str, reach: float | None = None
) -> TokenDrawing:
    """A recurrent layer's units, or one of its gates, after every token.

    Args:
        frame: letter, unit, value.
        names: of the tokens.
        title: above it.
        reach: the greatest value that its colors tell, rounded up; at least that of its own.
    """
    reach = rounded_up(max(reach or 0.0, float(frame["value"].abs().max()), 1e-9))
    cells = compact(frame, "unit", "letter", "value").assign(after=np.array(names)[frame["letter"]])
    units = int(frame["unit"].max()) + 1
    data = {"units": cells, TOKENS: tokens_frame(names)}
    return TokenDrawing(_unit_states, (places_of(names), units, title, reach), data, True)


def rounded_up(value: float) -> float:
    """The next number of one digit, so that the scales of most strings are the same."""
    power = 10.0 ** math.floor(math.log10(value))
    # The power itself is rounded: 10 ** -1 times 3 is not 0.3.
    return float(f"{math.ceil(value / power - 1e-9) * power:.1g}")


def _unit_states(tokens: TokenAxis, units: int, title: str, reach: float) -> Layers:
    scale = alt.Scale(
        domain=[-reach, 0, reach], range=[AWAY, "#ffffff", TOWARDS], interpolate="rgb"
    )
    cells = chart_of("units").encode(
        x=token_axis(tokens),
        y=alt.Y("unit:O", title="Unit", axis=alt.Axis(labelOverlap=True)),
        color=alt.Color("value:Q", title="Value", scale=scale),
        tooltip=[
            alt.Tooltip("after:N", title="After"),
            alt.Tooltip("unit:O", title="Unit"),
            alt.Tooltip("value:Q", title="Value", format=".4f"),
        ],
    )
    return grid(tokens, cells, rows=units, most=420).properties(title=title_of(title))


def state_path(frame: pd.DataFrame, shares: tuple[float, float]) -> TokenDrawing:
    """The path of a state in its first two principal components, with the tokens along it.

    Args:
        frame: letter, token, first, second.
        shares: of the variance along each.
    """
    said = f"{shares[0]:.0%} and {shares[1]:.0%} of the variance"
    columns = ["letter", "token", "first", "second"]
    return TokenDrawing(_state_path, (), {"path": frame[columns], "shares": _text(said)}, True)


def _text(said: str) -> pd.DataFrame:
    return pd.DataFrame([{"said": said}])


def _state_path() -> Layers:
    base = chart_of("path").encode(
        x=alt.X("first:Q", title="First principal component"),
        y=alt.Y("second:Q", title="Second"),
    )
    line = base.mark_line(color=GREY, strokeWidth=1).encode(order="letter:Q")
    points = (
        base.mark_point(filled=True, opacity=1)
        .encode(
            color=alt.Color(
                "letter:Q",
                title="Place",
                scale=alt.Scale(scheme=LOW_TO_HIGH),
                legend=alt.Legend(tickCount=3),
            ),
            size=alt.when(pointer()).then(alt.value(240)).otherwise(alt.value(50)),
            tooltip=[
                alt.Tooltip("letter:Q", title="Place"),
                alt.Tooltip("token:N", title="After"),
            ],
        )
        .add_params(pointer())
    )
    texts = base.mark_text(dy=-9, color=GREY, fontSize=11).encode(text="token:N")
    shares = (
        chart_of("shares")
        .mark_text(align="left", baseline="bottom", color=GREY)
        .encode(x=alt.value(0), y=alt.value(-4), text="said:N")
    )
    return alt.layer(line, points, texts, shares).properties(width=420, height=300)


def patching_chart(
    frame: pd.DataFrame, base_names: Names, base: float, source: float, unit: str = "logit"
) -> TokenDrawing:
    """The logit with one state carried over from the other string, by state and place.

    Args:
        frame: site, letter, base_token, source_token, logit, flips; sites in the order of the
            computation.
        base_names: of the base string's tokens.
        base: the base string's logit.
        source: that of the string whose states are carried over.
        unit: what the logits are.
    """
    reach = max(abs(base), abs(source), 1e-9)
    sites = tuple(dict.fromkeys(frame["site"]))
    some_missing = len(frame) < len(sites) * len(base_names)
    columns = ["site", "letter", "base_token", "source_token", "logit", "flips"]
    data = {"patched": frame[columns], TOKENS: tokens_frame(base_names)}
    shape = places_of(base_names), sites, reach, unit, some_missing
    return TokenDrawing(_patch_layers, shape, data, True)


def _patch_layers(
    tokens: TokenAxis, sites: tuple[str, ...], reach: float, unit: str, some_missing: bool
) -> Layers:
    colors = [AWAY, "#ffffff", TOWARDS]
    scale = alt.Scale(domain=[-reach, 0, reach], range=colors, interpolate="rgb", clamp=True)
    cells = chart_of("patched").encode(
        x=token_axis(tokens),
        y=alt.Y(
            "site:N",
            title=None,
            sort=list(sites),
            axis=alt.Axis(labelLimit=240, labelOverlap=False, labelFlush=False),
        ),
    )
    colored = cells.encode(
        color=alt.Color(
            "logit:Q",
            title=f"Patched {unit}",
            scale=scale,
            legend=alt.Legend(orient="top", titleLimit=300, gradientLength=120, tickCount=3),
        ),
        tooltip=[
            alt.Tooltip("site:N", title="State"),
            alt.Tooltip("base_token:N", title="Token"),
            alt.Tooltip("source_token:N", title="Source token"),
            alt.Tooltip("logit:Q", title=f"Patched {unit}", format=".4f"),
            alt.Tooltip("flips:N", title="Flips the prediction"),
        ],
    )
    turned = cells.transform_filter("datum.flips").mark_text(text="●", fontSize=9, color="black")
    return grid(tokens, colored, turned, rows=len(sites), outlined=some_missing)


def _outcome(label: int | None, predicted: bool) -> str:
    if label is None:
        return UNKNOWN
    if bool(label) == predicted:
        return "correct"
    return "false negative" if label else "false positive"
