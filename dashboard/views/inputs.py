"""Many inputs of a model that writes: families of them, and every one up to a length."""

from typing import get_args

import altair as alt
import pandas as pd
import streamlit as st

from dashboard.charts.colors import GREY
from dashboard.charts.scales import OUTPUT_COLORS, Drawing, class_color, reserved, titled
from dashboard.choosing.opened import AnyModel, remembered, say_of_input
from dashboard.placement import place, stretch
from dashboard.text import verbatim
from dashboard.words.languages import family_example
from seqcls.errors import SeqclsError
from seqcls.interpretability.domains import MAX_STRINGS
from seqcls.interpretability.families import output_family
from seqcls.interpretability.family import OutputFamily, output_family_text
from seqcls.interpretability.verdicts import (
    MAX_INPUTS,
    OutputVerdict,
    output_verdict,
    output_verdict_text,
)
from seqcls.results import ErrorKind
from sweeps.api.presentation import displayed

RIGHT = "right"


def outputs_frame(answers: OutputFamily) -> pd.DataFrame:
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
            "share": each.right_tokens / max(each.target_tokens, 1),
            "input": each.input,
            "target": each.target,
            "output": each.output,
        }
        for each in answers.outputs
    ]
    return pd.DataFrame(rows)


HEIGHT = 260
CELL = 30

OUTCOMES = {"right": GREY, **OUTPUT_COLORS}
_COLOR = class_color("outcome", OUTCOMES, "Output is", columns=3, symbolOpacity=1)


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
        .encode(x, alt.Y("right_tokens:Q"), _COLOR, tooltip=_tooltip([name]))
    )
    return alt.layer(targets, points, data=frame).properties(
        height=HEIGHT,
        title=titled(f"The family {text}", "A point on the dashed line is right, or went on."),
        **reserved(HEIGHT, legend=True),
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
            _COLOR,
            tooltip=_tooltip(list(names)),
        )
        .properties(
            width=CELL * columns,
            height=CELL * rows,
            title=titled(f"The family {text}"),
            **reserved(CELL * rows, legend=True),
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


family_of = remembered(output_family, "Writing outputs")


def show_families(opened: AnyModel) -> None:
    """A family of inputs, typed in, and what the model writes for each."""
    text = st.text_input(
        "Family of inputs",
        family_example(opened.model.task),
        key="family",
        bind="query-params",
        help="One or two counts are left free, as n or m: a{n}, ab{n}, <ab>{n}, a{m}b{n}.",
    )
    try:
        answers = family_of(opened, text.strip())
    except SeqclsError as error:
        say_of_input(error)
        return
    first, *others = output_family_text(answers)
    st.markdown(verbatim(first))
    for said in others:
        st.markdown(f"- {verbatim(said)}")
    frame = outputs_frame(answers)
    if len(answers.family.names) == 1:
        stretch(output_curve(frame, answers.family.names[0], answers.family.text), "output curve")
    else:
        first_name, second_name = answers.family.names
        place(output_map(frame, (first_name, second_name), answers.family.text), "output map")
    _table(answers, displayed(frame, opened.model.config))


def _table(answers: OutputFamily, frame: pd.DataFrame) -> None:
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


BY_LENGTH_HEIGHT = 260


def wrong_by_length(frame: pd.DataFrame) -> alt.Chart:
    """Stacked bars, one for each length.

    Args:
        frame: length, kind (of error), wrong, inputs (of that length), share in [0, 1].
    """
    lengths = [str(length) for length in sorted(set(frame["length"]))]
    return (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            x=alt.X(
                "length:O", title="Input length (tokens)", sort=lengths, axis=alt.Axis(labelAngle=0)
            ),
            y=alt.Y(
                "share:Q",
                title="Inputs with a wrong output",
                axis=alt.Axis(format="%"),
                scale=alt.Scale(domain=[0, 1]),
            ),
            color=class_color("kind", OUTPUT_COLORS, "Output", columns=4),
            tooltip=[
                alt.Tooltip("kind:N", title="Output"),
                alt.Tooltip("length:O", title="Length"),
                alt.Tooltip("wrong:Q", title="Inputs", format=","),
                alt.Tooltip("inputs:Q", title="Of all of that length", format=","),
                alt.Tooltip("share:Q", title="Share", format=".2%"),
            ],
        )
        .properties(
            height=BY_LENGTH_HEIGHT,
            title=titled("Errors by length"),
            **reserved(BY_LENGTH_HEIGHT, legend=True),
        )
    )


ERROR_KINDS: tuple[ErrorKind, ...] = get_args(ErrorKind)

every_output = remembered(output_verdict, "Trying every input")


def show_all(opened: AnyModel) -> None:
    """What trying every input finds; it takes seconds, and so is asked for."""
    st.caption(
        f"Every input of the task up to the greatest length at which there are no more than "
        f"{MAX_STRINGS:,} strings and {MAX_INPUTS:,} inputs, at most the longest test length."
    )
    if not st.toggle("Try every input", key="every_input", bind="query-params"):
        return
    verdict = every_output(opened)
    for said in output_verdict_text(verdict):
        st.markdown(verbatim(said))
    if not verdict.wrong:
        return
    stretch(wrong_by_length(_by_length(verdict)), "all inputs by length")
    st.markdown(f"**The shortest {len(verdict.shortest)}**")
    display = opened.model.tokenizer.display
    rows = [
        [display(str(text)) for text in (each.string, each.label, each.predicted)]
        for each in verdict.shortest
    ]
    names = ["input", "target", "output"]
    shortest = pd.DataFrame(rows, columns=names)
    titles = {name: st.column_config.TextColumn(name.capitalize()) for name in names}
    st.dataframe(shortest, hide_index=True, column_config=titles)


def _by_length(verdict: OutputVerdict) -> pd.DataFrame:
    """A frame as `wrong_by_length` takes it; of a length without errors one row of none."""
    rows = [
        {
            "length": each.length,
            "kind": kind,
            "wrong": wrong,
            "inputs": each.inputs,
            "share": wrong / each.inputs,
        }
        for each in verdict.by_length
        for kind, wrong in (each.wrong or {ERROR_KINDS[0]: 0}).items()
    ]
    return pd.DataFrame(rows)
