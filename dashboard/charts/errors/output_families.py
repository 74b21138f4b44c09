"""A family of inputs: up to which token each output is right."""

import altair as alt
import pandas as pd

from dashboard.charts.style.colors import GREY
from dashboard.charts.style.encodings import Drawing, reserved
from dashboard.charts.style.scales import OUTPUT_COLORS, class_color, titled

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
