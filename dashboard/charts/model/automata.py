"""Learning an automaton, round by round, and its states inside a model."""

import altair as alt
import pandas as pd

from dashboard.charts.style.colors import OKABE_ITO
from dashboard.charts.style.encodings import SIDE, Drawing, reserved
from dashboard.charts.style.scales import titled

HEIGHT = 240

FEW_STATES = len(OKABE_ITO)
"""So many states have a color of their own; of more, numbers tell them apart."""


def states_by_round(frame: pd.DataFrame) -> Drawing:
    """How many states each hypothesis has: a line that flattens, or does not.

    Args:
        frame: round (from 1), states, agreement (share of test strings), refuted (by which string;
            empty for none).
    """
    chart = alt.Chart(frame).mark_line(point=True, interpolate="step-after", color=OKABE_ITO[0])
    return chart.encode(
        x=alt.X("round:Q", title="Hypothesis", axis=alt.Axis(tickMinStep=1, format="d")),
        y=alt.Y("states:Q", title="States", axis=alt.Axis(tickMinStep=1, format="d")),
        tooltip=[
            alt.Tooltip("round:Q", title="Hypothesis"),
            alt.Tooltip("states:Q", title="States"),
            alt.Tooltip("agreement:Q", title="Says what the model says on", format=".2%"),
            alt.Tooltip("refuted:N", title="Refuted by"),
        ],
    ).properties(
        width=2 * SIDE,
        height=HEIGHT,
        title=titled(
            "States by round",
            "Each was refuted by a string, but the last where an automaton is found.",
        ),
        **reserved(HEIGHT),
    )


def probe_by_position(frame: pd.DataFrame, trained: int, commonest: float) -> Drawing:
    """How often a linear probe reads the automaton's state, by the token's position.

    Args:
        frame: layer, position (from 1), share, in [0, 1], of held-out strings.
        trained: tokens of the longest training string.
        commonest: the share that the most frequent state has.
    """
    lines = (
        alt.Chart(frame)
        # A line of one point is not seen.
        .mark_line(point=frame["position"].nunique() == 1)
        .encode(
            x=alt.X("position:Q", title="Position of the token"),
            y=alt.Y(
                "share:Q",
                title="State read rightly",
                scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(format="%"),
            ),
            color=alt.Color(
                "layer:N",
                title="Probe of",
                scale=alt.Scale(range=OKABE_ITO),
                legend=alt.Legend(orient="top"),
            ),
            tooltip=[
                alt.Tooltip("layer:N", title="Probe of"),
                alt.Tooltip("position:Q", title="Position"),
                alt.Tooltip("share:Q", title="Read rightly", format=".1%"),
            ],
        )
    )
    ends = pd.DataFrame({"position": [trained + 0.5]})
    guess = pd.DataFrame({"share": [commonest]})
    rules = [
        alt.Chart(ends).mark_rule(strokeDash=[4, 4]).encode(x="position:Q"),
        alt.Chart(guess).mark_rule(strokeDash=[1, 3]).encode(y="share:Q"),
    ]
    title = titled(
        "The automaton's state, read by a linear probe",
        "Held-out strings. Dashed: the longest training string. Dotted: the most frequent state.",
    )
    return alt.layer(lines, *rules).properties(
        width=2 * SIDE, height=HEIGHT, title=title, **reserved(HEIGHT, legend=True)
    )


def clustered_states(frame: pd.DataFrame) -> Drawing:
    """What a recurrent layer keeps after prefixes, in the plane in which it varies most.

    Args:
        frame: x, y, state (of the automaton, as text), cluster (its number).
    """
    names = sorted(frame["state"].unique(), key=lambda name: int(name.split()[1]))
    points = (
        alt.Chart(frame)
        .mark_circle(size=30, opacity=0.6)
        .encode(
            x=alt.X("x:Q", title="First principal component"),
            y=alt.Y("y:Q", title="Second"),
            color=alt.Color(
                "state:N",
                title="Automaton in",
                sort=names,
                scale=alt.Scale(domain=names, range=OKABE_ITO),
                legend=alt.Legend(orient="top") if len(names) <= FEW_STATES else None,
            ),
            tooltip=[
                alt.Tooltip("state:N", title="Automaton in"),
                alt.Tooltip("cluster:Q", title="Cluster"),
            ],
        )
    )
    centers = frame.groupby("cluster", as_index=False).agg(
        x=("x", "mean"), y=("y", "mean"), state=("state", lambda of: of.mode().iloc[0])
    )
    centers["label"] = centers["state"].str.removeprefix("state ")
    labels = (
        alt.Chart(centers)
        .mark_text(fontSize=15, fontWeight="bold")
        .encode(x="x:Q", y="y:Q", text="label:N")
    )
    title = titled("States of the last layer", "A number a cluster: its state of the automaton.")
    return alt.layer(points, labels).properties(
        width=SIDE, height=SIDE, title=title, **reserved(SIDE, legend=True)
    )
