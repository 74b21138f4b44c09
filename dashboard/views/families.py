"""A family of strings: where the answer changes, or the output is wrong, as counts grow."""

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st

from dashboard.charts.colors import GREY, INK
from dashboard.charts.scales import (
    LOG_AXIS,
    OUTCOME_COLORS,
    OUTCOMES,
    OUTPUT_COLORS,
    SIDE,
    Drawing,
    class_color,
    outcome,
    outcome_colors,
    reserve_height,
    share_axis,
    title_params,
)
from dashboard.choosing.opened import AnyModel, remembered, say_of_input
from dashboard.choosing.strings import Chosen, examples
from dashboard.data import explaining
from dashboard.placement import place, stretch
from dashboard.text import verbatim
from dashboard.words.languages import family_example
from seqcls.errors import InvalidStringError
from seqcls.interpretability.families import FamilyAnswers, answers_along, family_text
from seqcls.interpretability.network import sigmoid
from sweeps.api.presentation import display_strings

SURE = 5.0
"""A logit that is drawn in full color: a probability of 0.7%, or of 99.3%."""


def curve_frame(found: FamilyAnswers) -> pd.DataFrame:
    """n, logit, probability, outcome."""
    rows = [
        {
            "n": x.values[0],
            "logit": x.score,
            "probability": float(sigmoid(np.array(x.score))),
            "outcome": outcome(bool(x.target), bool(x.output)),
        }
        for x in found.members
    ]
    return pd.DataFrame(rows)


def flips_frame(found: FamilyAnswers) -> pd.DataFrame:
    """n, logit, label: where the answer changes."""
    name = found.family.names[0]
    rows = [
        {"n": x.values[0], "logit": x.score, "label": f"{name} = {x.values[0]:,}"}
        for _, x in found.changes
    ]
    return pd.DataFrame(rows, columns=["n", "logit", "label"])


def cells_frame(found: FamilyAnswers) -> pd.DataFrame:
    """x, x2, y, y2 (the edges of a cell), first, second, logit, outcome."""
    place, edges = {value: x for x, value in enumerate(found.grid)}, _edges(np.array(found.grid))
    rows = [
        {
            "x": edges[place[x.values[0]]],
            "x2": edges[place[x.values[0]] + 1],
            "y": edges[place[x.values[1]]],
            "y2": edges[place[x.values[1]] + 1],
            "first": x.values[0],
            "second": x.values[1],
            "logit": x.score,
            "outcome": outcome(bool(x.target), bool(x.output)),
            "strength": 0.25 + 0.65 * min(abs(x.score), SURE) / SURE,
        }
        for x in found.members
        if x.values[1] in place
    ]
    return pd.DataFrame(rows)


def boundary_frame(found: FamilyAnswers) -> pd.DataFrame:
    """first, second: for each value of the first count where over the second the answer changes."""
    rows = [{"first": x.values[0], "second": x.values[1]} for _, x in found.changes]
    return pd.DataFrame(rows, columns=["first", "second"])


def _edges(values: np.ndarray) -> np.ndarray:
    """Halfway between neighbours on a logarithmic scale."""
    middles = np.sqrt(values[1:].astype(float) * values[:-1])
    return np.concatenate([[values[0] ** 2 / middles[0]], middles, [values[-1] ** 2 / middles[-1]]])


HEIGHT = 260
_COLORS = dict(zip(OUTCOMES, OUTCOME_COLORS, strict=True))


def family_curve(
    curve: pd.DataFrame,
    flips: pd.DataFrame,
    limit: float | None,
    name: str,
    text: str,
    height: int = HEIGHT,
) -> Drawing:
    """Logit against one free count, on a log scale.

    Args:
        curve: n, logit, probability, outcome.
        flips: n, logit, label (what to write beside the rule): where the answer changes.
        limit: the logit as the count grows without end, where it is known.
        name: of the count.
        text: the family, for the title.
        height: pixels of the plot.
    """
    x = _count_axis(alt.X, "n", f"{name}, the free count")
    y = alt.Y("logit:Q", title="Logit (positive above 0)")
    line = alt.Chart().mark_line(color=GREY, strokeWidth=1.5).encode(x, y)
    dots = (
        alt.Chart()
        .mark_point(filled=True, size=16, opacity=1)
        .encode(
            x,
            y,
            outcome_colors(),
            tooltip=[
                alt.Tooltip("n:Q", title=name, format=","),
                alt.Tooltip("logit:Q", title="Logit", format=".4f"),
                alt.Tooltip("probability:Q", title="Probability", format=".6f"),
                alt.Tooltip("outcome:N", title="Outcome"),
            ],
        )
    )
    ends = pd.DataFrame(
        [] if limit is None else [{"logit": limit, "label": f"limit {limit:.3f}"}],
        columns=["logit", "label"],
    )
    limit_rule = alt.Chart(ends).mark_rule(color=GREY, strokeDash=[2, 4]).encode(y="logit:Q")
    limit_text = (
        alt.Chart(ends)
        .mark_text(align="right", baseline="bottom", dy=-6, color=INK)
        .encode(x=alt.value("width"), y="logit:Q", text="label:N")
    )
    zero = alt.Chart().mark_rule(color=GREY, strokeWidth=0.5).encode(y=alt.datum(0))
    layers = [zero, limit_rule, line, dots, limit_text, *_flip_marks(flips)]
    return alt.layer(*layers, data=curve).properties(
        height=height, title=f"The family {text}", **reserve_height(height, legend=True)
    )


def probability_curve(curve: pd.DataFrame, name: str) -> Drawing:
    """Probability of being in the language against the free count, on a log scale.

    Args:
        curve: n, logit, probability, outcome.
        name: of the count.
    """
    base = alt.Chart(curve).encode(
        _count_axis(alt.X, "n", f"{name}, the free count"),
        share_axis("probability", "Probability"),
    )
    half = alt.Chart().mark_rule(color=GREY, strokeWidth=0.5).encode(y=alt.datum(0.5))
    dots = base.mark_point(filled=True, size=16, opacity=1).encode(
        outcome_colors(legend=False),
        tooltip=[
            alt.Tooltip("n:Q", title=name, format=","),
            alt.Tooltip("probability:Q", title="Probability", format=".6f"),
        ],
    )
    line = base.mark_line(color=GREY, strokeWidth=1.5)
    return alt.layer(half, line, dots, data=curve).properties(
        height=HEIGHT // 2, **reserve_height(HEIGHT // 2)
    )


def family_map(cells: pd.DataFrame, flips: pd.DataFrame, names: tuple[str, str]) -> Drawing:
    """Two free counts as a map of what the model says, with the boundary between its answers.

    Args:
        cells: x, x2, y, y2 (the cell's edges), first, second (the counts), logit, outcome, strength
            (opacity).
        flips: first, second: where the answer changes.
        names: of the two counts, the first one along the horizontal axis.
    """
    x, y = _count_axis(alt.X, "x", names[0]), _count_axis(alt.Y, "y", names[1])
    rectangles = (
        alt.Chart(cells)
        .mark_rect()
        .encode(
            x,
            y,
            x2="x2:Q",
            y2="y2:Q",
            color=class_color("outcome", _COLORS, "Outcome", columns=2),
            opacity=alt.Opacity("strength:Q", scale=None),
            tooltip=[
                alt.Tooltip("first:Q", title=names[0], format=","),
                alt.Tooltip("second:Q", title=names[1], format=","),
                alt.Tooltip("logit:Q", title="Logit", format=".4f"),
                alt.Tooltip("outcome:N", title="Outcome"),
            ],
        )
    )
    boundary = (
        alt.Chart(flips)
        .mark_point(filled=True, size=22, color="black", opacity=1, stroke="white", strokeWidth=0.5)
        .encode(
            alt.X("first:Q"),
            alt.Y("second:Q"),
            tooltip=[
                alt.Tooltip("first:Q", title=names[0], format=","),
                alt.Tooltip("second:Q", title=f"Answer changes at {names[1]}", format=","),
            ],
        )
    )
    side = int(1.3 * SIDE)
    return alt.layer(rectangles, boundary).properties(
        width=side, height=side, **reserve_height(side, legend=True)
    )


def _count_axis(channel: type[alt.X] | type[alt.Y], field: str, name: str) -> alt.X | alt.Y:
    """An axis of counts on a log scale."""
    return channel(
        f"{field}:Q",
        title=f"{name} (log)",
        scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(format="~s", **LOG_AXIS),
    )


def _flip_marks(flips: pd.DataFrame) -> list[alt.Chart]:
    base = alt.Chart(flips).encode(alt.X("n:Q"))
    return [
        base.mark_rule(strokeDash=[6, 4], color=GREY),
        base.mark_text(align="left", dx=5, fontWeight="bold", color=INK).encode(
            y=alt.value(10), text="label:N"
        ),
    ]


answers_of = remembered(answers_along)


def show(chosen: Chosen) -> None:
    """A family of strings, typed in, and what the model says of all of them."""
    text = st.text_input(
        "Family of strings",
        examples(chosen.model.config)[1],
        key="family",
        bind="query-params",
        help="One or two counts are left free, as n or m: ab{n}, a{n}b, bbc{n} (two b's, then "
        "c's), a{m}b{n}.",
    )
    try:
        family = answers_of(chosen.model, text.strip())
    except InvalidStringError as error:
        st.error(verbatim(str(error)))
        return
    said, *rows = family_text(family)
    if len(family.family.names) == 1:
        st.markdown(verbatim(" ".join([said, *rows])))
        _curve(family)
    else:
        st.markdown(verbatim(said))
        _map(family)
        for row in rows:
            st.markdown(f"- {verbatim(row)}")


def _curve(curve: FamilyAnswers) -> None:
    frame, name = curve_frame(curve), curve.family.names[0]
    chart = family_curve(frame, flips_frame(curve), curve.limit, name, curve.family.text)
    stretch(chart, "family_logit")
    stretch(probability_curve(frame, name), "family_probability")


def _map(grid: FamilyAnswers) -> None:
    first, second = grid.family.names
    chart = family_map(cells_frame(grid), boundary_frame(grid), (first, second))
    place(chart, "family_map")
    st.caption(
        "Colored where the model is wrong; the fainter, the nearer its logit is to 0. Dots are the "
        f"changes that show: for each {first} the "
        f"{second} at which the answer changes."
    )


# Of a model that writes: what it writes for each input of a family.

RIGHT = "right"


def outputs_frame(answers: FamilyAnswers) -> pd.DataFrame:
    """A row an input: its counts by their names, outcome, right_tokens, target_tokens, …

    And share (of the target's tokens that are right before the first wrong one, in [0, 1]), input,
    target, output.
    """
    rows = [
        {
            **dict(zip(answers.family.names, each.values, strict=True)),
            "outcome": each.error_kind or RIGHT,
            "right_tokens": each.right_tokens,
            "target_tokens": each.target_tokens,
            "share": (each.right_tokens or 0) / max(each.target_tokens or 0, 1),
            "input": each.input,
            "target": each.target,
            "output": each.output,
        }
        for each in answers.members
    ]
    return pd.DataFrame(rows)


CELL = 30

_OUTPUT_COLOR = class_color(
    "outcome", {RIGHT: GREY, **OUTPUT_COLORS}, "Output is", columns=3, symbolOpacity=1
)


def output_curve(frame: pd.DataFrame, name: str, text: str) -> Drawing:
    """Right tokens of each output against the free count, with the length of the targets.

    Args:
        frame: the count, outcome, right_tokens, target_tokens, target, output.
        name: of the count.
        text: the family, for the title.
    """
    x = alt.X(f"{name}:Q", title=f"{name}, the free count", axis=alt.Axis(tickMinStep=1))
    targets = (
        alt.Chart()
        .mark_line(color=GREY, strokeDash=[4, 4])
        .encode(x, alt.Y("target_tokens:Q", title="Right tokens (dashed: of the target)"))
    )
    points = (
        alt.Chart()
        .mark_point(filled=True, size=50, opacity=1)
        .encode(x, alt.Y("right_tokens:Q"), _OUTPUT_COLOR, tooltip=_tooltip([name]))
    )
    return alt.layer(targets, points, data=frame).properties(
        height=HEIGHT,
        title=title_params(
            f"The family {text}", "A point on the dashed line is right, or went on."
        ),
        **reserve_height(HEIGHT, legend=True),
    )


def output_map(frame: pd.DataFrame, names: tuple[str, str], text: str) -> Drawing:
    """A cell for each input of two free counts, in the color of what its output is.

    Args:
        frame: both counts, outcome, right_tokens, target_tokens, target, output.
        names: of the counts, the first one along the horizontal axis.
        text: the family, for the title.
    """
    columns, rows = (frame[name].nunique() for name in names)
    return (
        alt.Chart(frame)
        .mark_rect()
        .encode(
            alt.X(f"{names[0]}:O", title=names[0], axis=alt.Axis(labelAngle=0)),
            alt.Y(f"{names[1]}:O", title=names[1], sort="descending"),
            _OUTPUT_COLOR,
            tooltip=_tooltip(list(names)),
        )
        .properties(
            width=CELL * columns,
            height=CELL * rows,
            title=title_params(f"The family {text}"),
            **reserve_height(CELL * rows, legend=True),
        )
    )


def _tooltip(names: list[str]) -> list[alt.Tooltip]:
    return [
        *(alt.Tooltip(f"{name}:Q", title=name, format=",") for name in names),
        alt.Tooltip("outcome:N", title="Output is"),
        alt.Tooltip("right_tokens:Q", title="Right tokens"),
        alt.Tooltip("target_tokens:Q", title="Target tokens"),
        alt.Tooltip("target:N", title="Target"),
        alt.Tooltip("output:N", title="Output"),
    ]


outputs_of = remembered(answers_along, "Writing outputs")


@explaining(say_of_input)
def show_outputs(opened: AnyModel) -> None:
    """A family of inputs, typed in, and what the model writes for each."""
    text = st.text_input(
        "Family of inputs",
        family_example(opened.model.task),
        key="family",
        bind="query-params",
        help="One or two counts are left free, as n or m: a{n}, ab{n}, <ab>{n}, a{m}b{n}.",
    )
    answers = outputs_of(opened, text.strip())
    first, *others = family_text(answers)
    st.markdown(verbatim(first))
    for said in others:
        st.markdown(f"- {verbatim(said)}")
    frame = outputs_frame(answers)
    if len(answers.family.names) == 1:
        stretch(output_curve(frame, answers.family.names[0], answers.family.text), "output curve")
    else:
        first_name, second_name = answers.family.names
        place(output_map(frame, (first_name, second_name), answers.family.text), "output map")
    _table(answers, display_strings(frame, opened.model.config))


def _table(answers: FamilyAnswers, frame: pd.DataFrame) -> None:
    names = list(answers.family.names)
    st.dataframe(
        frame[[*names, "outcome", "right_tokens", "target_tokens", "target", "output"]],
        hide_index=True,
        column_config={
            "outcome": st.column_config.TextColumn("Output is"),
            "right_tokens": st.column_config.NumberColumn(
                "Right tokens", help="Before the first in which output and target differ."
            ),
            "target_tokens": st.column_config.NumberColumn("Target tokens"),
            "target": st.column_config.TextColumn("Target"),
            "output": st.column_config.TextColumn("Output"),
        },
    )
