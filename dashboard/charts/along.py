"""What a model makes of one string, token by token; pointing at a token marks it in every part.

Every part has the string's tokens along its horizontal axis. A letter's number counts from 1; 0
stands for a special token before the string, and one beyond the last for one after it.
"""

import json
import warnings
from collections.abc import Sequence

import altair as alt
import pandas as pd

from dashboard.charts.colors import AWAY, FALSE_NEGATIVE, FALSE_POSITIVE, GREY, TOWARDS
from dashboard.charts.scales import LOW_TO_HIGH

WIDTH = 640
LEAST_STEP, STEP = 14, 28
NARROW_STEP = 9
"""The least where two models share the page."""

LINE_HEIGHT = 140
ROW = 16
SMALL = 92
POINTED = "pointed"

NO_WEIGHT = "#440154"
"""The darkest color of the scheme of weights."""

Names = Sequence[str]
"""What each place along the axis is called, that of letter 0 first."""

Part = alt.Chart | alt.LayerChart | alt.FacetChart


def together(parts: Sequence[Part]) -> alt.VConcatChart:
    """Parts below one another; pointing at a token marks it in all of them."""
    with warnings.catch_warnings():
        # That the parts share one mark is what is meant.
        warnings.filterwarnings("ignore", "Automatically deduplicated selection parameter")
        found: alt.VConcatChart = alt.vconcat(*parts, spacing=14)
    drawing: alt.VConcatChart = found.resolve_scale(color="independent")
    return drawing


def prefix_logits(
    frame: pd.DataFrame,
    names: Names,
    limits: tuple[float, float] | None = None,
    room: int = WIDTH,
) -> Part:
    """The logit after every prefix; colored where the prefix is misclassified.

    Args:
        frame: letter (the prefix's length), prefix (as text), logit, label (0 or 1).
        names: of the tokens.
        limits: of the logit; those of the prefixes if none are given.
        room: pixels for all tokens, about.
    """
    frame = frame.assign(
        answer=[
            _outcome(bool(y), z > 0) for y, z in zip(frame["label"], frame["logit"], strict=True)
        ]
    )
    scale = alt.Scale() if limits is None else alt.Scale(domain=limits, nice=False)
    base = alt.Chart(frame).encode(x=_tokens(names))
    line = base.mark_line(color=GREY, strokeWidth=1).encode(
        y=alt.Y("logit:Q", title="Logit of the prefix", scale=scale)
    )
    points = (
        base.mark_point(filled=True, opacity=1)
        .encode(
            y="logit:Q",
            color=alt.Color(
                "answer:N",
                title=None,
                scale=alt.Scale(
                    domain=["correct", "false positive", "false negative"],
                    range=[GREY, FALSE_POSITIVE, FALSE_NEGATIVE],
                ),
                legend=alt.Legend(orient="top"),
            ),
            size=alt.when(_pointed()).then(alt.value(160)).otherwise(alt.value(45)),
            tooltip=[
                alt.Tooltip("prefix:N", title="Prefix"),
                alt.Tooltip("logit:Q", title="Logit", format=".4f"),
                alt.Tooltip("answer:N", title="Prediction"),
            ],
        )
        .add_params(_pointed())
    )
    zero = alt.Chart(pd.DataFrame([{"y": 0.0}])).mark_rule(color=GREY, strokeDash=[4, 4])
    layers = alt.layer(zero.encode(y="y:Q"), line, points)
    return layers.properties(width=_width(names, room), height=LINE_HEIGHT)


def attention_matrix(frame: pd.DataFrame, names: Names, title: str, room: int = WIDTH) -> Part:
    """What each token attends to in one head, a row a token that attends.

    Args:
        frame: letter (attended to), query (the letter that attends), weight in [0, 1].
        names: of the tokens.
        title: above it.
        room: pixels for all tokens, about.
    """
    row = alt.Y(
        "query:O",
        title="Token that attends",
        axis=_axis(names, title="Token that attends"),
    )
    chart: alt.Chart = (
        _in_rows(frame, ["query"], ["letter", "weight"])
        .transform_calculate(
            query_token=_token_of("query", names), key_token=_token_of("letter", names)
        )
        .mark_rect()
        .encode(
            x=_tokens(names, "Token attended to"),
            y=row,
            color=_weight(),
            stroke=alt.when(_pointed()).then(alt.value(FALSE_NEGATIVE)).otherwise(alt.value(None)),
            tooltip=[
                alt.Tooltip("query_token:N", title="Attends"),
                alt.Tooltip("key_token:N", title="To"),
                alt.Tooltip("weight:Q", title="Weight", format=".4f"),
            ],
        )
        .add_params(_pointed())
    )
    return chart.properties(
        width=_width(names, room), height=max(ROW * len(names), 60), title=_title(title)
    )


def small_patterns(frame: pd.DataFrame, room: int = WIDTH) -> Part:
    """All heads as small pictures: a row a block, a column a head.

    Args:
        frame: block, head, query, letter, weight in [0, 1].
        room: pixels for four of them, about.
    """
    side = min(SMALL, room // 4)
    chart = (
        _in_rows(frame, ["block", "head", "query"], ["letter", "weight"])
        .mark_rect()
        .encode(
            x=alt.X("letter:O", axis=None),
            y=alt.Y("query:O", axis=None),
            color=_weight(),
            stroke=alt.when(_pointed()).then(alt.value(FALSE_NEGATIVE)).otherwise(alt.value(None)),
        )
        .add_params(_pointed())
        # What is left out for weighing next to nothing has the color of no weight.
        .properties(width=side, height=side, view=alt.ViewBackground(fill=NO_WEIGHT))
    )
    pictures: Part = chart.facet(
        row=alt.Row("block:O", title="Block"), column=alt.Column("head:O", title="Head"), spacing=6
    )
    return pictures


def _in_rows(frame: pd.DataFrame, by: list[str], cells: list[str]) -> alt.Chart:
    """A chart of cells, whose data have one row for all cells of a row: a tenth of the bytes.

    Args:
        frame: a row a cell.
        by: what all cells of a row have in common.
        cells: what they differ in, as numbers.
    """
    texts = frame[by].assign(**{name: frame[name].map("{:.6g}".format) for name in cells})
    rows = texts.groupby(by, sort=False)[cells].agg(" ".join).reset_index()
    split = {name: f"split(datum.{name}, ' ')" for name in cells}
    numbers = {name: f"toNumber(datum.{name})" for name in cells}
    whole: alt.Chart = alt.Chart(rows).transform_calculate(**split)
    chart: alt.Chart = whole.transform_flatten([*cells]).transform_calculate(**numbers)
    return chart


def _token_of(field: str, names: Names) -> str:
    """A Vega expression for the token at the place that a field has."""
    return f"{json.dumps(list(names))}[datum.{field}]"


def unit_states(
    frame: pd.DataFrame,
    names: Names,
    title: str,
    reach: float | None = None,
    room: int = WIDTH,
) -> Part:
    """A recurrent layer's units, or one of its gates, after every token.

    Args:
        frame: letter, unit, value.
        names: of the tokens.
        title: above it.
        reach: the greatest value that its colors tell; at least that of its own.
        room: pixels for all tokens, about.
    """
    reach = max(reach or 0.0, float(frame["value"].abs().max()), 1e-9)
    scale = alt.Scale(domain=[-reach, 0, reach], range=[AWAY, "#ffffff", TOWARDS])
    units = int(frame["unit"].max()) + 1
    chart: alt.Chart = (
        _in_rows(frame, ["unit"], ["letter", "value"])
        .transform_calculate(token=_token_of("letter", names))
        .mark_rect()
        .encode(
            x=_tokens(names),
            y=alt.Y("unit:O", title="Unit", axis=alt.Axis(labelOverlap=True)),
            color=alt.Color("value:Q", title="Value", scale=scale),
            stroke=alt.when(_pointed()).then(alt.value(FALSE_NEGATIVE)).otherwise(alt.value(None)),
            tooltip=[
                alt.Tooltip("token:N", title="After"),
                alt.Tooltip("unit:O", title="Unit"),
                alt.Tooltip("value:Q", title="Value", format=".4f"),
            ],
        )
        .add_params(_pointed())
    )
    return chart.properties(
        width=_width(names, room), height=min(max(ROW * units, 60), 420), title=_title(title)
    )


def state_path(frame: pd.DataFrame, shares: tuple[float, float], room: int = WIDTH) -> Part:
    """The path of a state in its first two principal components, with the tokens along it.

    Args:
        frame: letter, token, first, second.
        shares: of the variance along each.
        room: pixels that it may be wide.
    """
    base = alt.Chart(frame).encode(
        x=alt.X("first:Q", title=f"First component ({shares[0]:.0%} of the variance)"),
        y=alt.Y("second:Q", title=f"Second ({shares[1]:.0%})"),
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
            size=alt.when(_pointed()).then(alt.value(240)).otherwise(alt.value(50)),
            tooltip=[
                alt.Tooltip("letter:Q", title="Place"),
                alt.Tooltip("token:N", title="After"),
            ],
        )
        .add_params(_pointed())
    )
    texts = base.mark_text(dy=-9, color=GREY, fontSize=11).encode(text="token:N")
    return alt.layer(line, points, texts).properties(width=min(420, room), height=300)


def patched(frame: pd.DataFrame, base_names: Names, base: float, source: float) -> Part:
    """The logit with one state carried over from the other string, by state and place.

    Args:
        frame: site, letter, base_token, source_token, logit, flips; sites in the order of the
            computation.
        base_names: of the base string's tokens.
        base: the base string's logit.
        source: that of the string whose states are carried over.
    """
    sites = list(dict.fromkeys(frame["site"]))
    reach = max(abs(base), abs(source), 1e-9)
    scale = alt.Scale(domain=[-reach, 0, reach], range=[AWAY, "#ffffff", TOWARDS], clamp=True)
    cells = alt.Chart(frame).encode(
        x=_tokens(base_names),
        y=alt.Y("site:N", title=None, sort=sites, axis=alt.Axis(labelLimit=200)),
    )
    rectangles = (
        cells.mark_rect()
        .encode(
            color=alt.Color("logit:Q", title="Logit", scale=scale),
            stroke=alt.when(_pointed()).then(alt.value(GREY)).otherwise(alt.value(None)),
            tooltip=[
                alt.Tooltip("site:N", title="State"),
                alt.Tooltip("base_token:N", title="Token"),
                alt.Tooltip("source_token:N", title="Source token"),
                alt.Tooltip("logit:Q", title="Patched logit", format=".4f"),
                alt.Tooltip("flips:N", title="Flips the prediction"),
            ],
        )
        .add_params(_pointed())
    )
    turned = cells.transform_filter("datum.flips").mark_text(text="●", fontSize=9, color="black")
    return alt.layer(rectangles, turned).properties(
        width=_width(base_names), height=max(ROW * len(sites), 60)
    )


def _pointed() -> alt.Parameter:
    # The same name everywhere: parts of one drawing share it.
    return alt.selection_point(
        name=POINTED, fields=["letter"], on="pointerover", clear="pointerout", empty=False
    )


def _tokens(names: Names, title: str | None = None) -> alt.X:
    letters = list(range(len(names)))
    return alt.X("letter:O", title=title, scale=alt.Scale(domain=letters), axis=_axis(names, title))


def _axis(names: Names, title: str | None) -> alt.Axis:
    expression = f"{json.dumps(list(names))}[datum.value]"
    return alt.Axis(labelExpr=expression, labelAngle=0, labelOverlap=False, title=title)


def _title(text: str) -> alt.TitleParams:
    return alt.TitleParams(text, anchor="start", fontSize=12)


def _weight() -> alt.Color:
    return alt.Color(
        "weight:Q",
        title="Weight",
        scale=alt.Scale(scheme=LOW_TO_HIGH, domain=[0, 1]),
        legend=alt.Legend(format="~%", tickCount=3),
    )


def _width(names: Names, room: int = WIDTH) -> int:
    least = LEAST_STEP if room == WIDTH else NARROW_STEP
    return len(names) * min(max(room // max(len(names), 1), least), STEP)


def _outcome(label: bool, predicted: bool) -> str:
    if label == predicted:
        return "correct"
    return "false negative" if label else "false positive"
