"""The automaton that a model has become: learned from its answers, drawn, and found inside."""

import json
from typing import TYPE_CHECKING

import altair as alt
import pandas as pd
import streamlit as st

from dashboard import links
from dashboard.charts.colors import INK, OKABE_ITO
from dashboard.charts.scales import SIDE, Drawing, reserve_height, share_axis, title_params
from dashboard.choosing.opened import key_of, open_any, say
from dashboard.data import explaining
from dashboard.placement import ground, stretch
from dashboard.server.visitors import ask
from dashboard.text import verbatim
from seqcls.config import RunConfig
from seqcls.interpretability.automaton import (
    LearnedAutomaton,
    Round,
    dot,
    learned_text,
    name_string,
    obstacle,
    states,
)
from seqcls.interpretability.wording import percent
from seqcls.problem import resolve
from seqcls.tasks.automaton import Automaton
from sweeps.api import automaton, automaton_inside, open_reader

if TYPE_CHECKING:
    from seqcls.interpretability.automaton_inside import Inside


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
            alt.Tooltip("agreement:Q", title="Says what the model says on", format=".2~%"),
            alt.Tooltip("refuted:N", title="Refuted by"),
        ],
    ).properties(
        width=2 * SIDE,
        height=HEIGHT,
        title=title_params(
            "States by round",
            "Each was refuted by a string, except the last if an automaton is found.",
        ),
        **reserve_height(HEIGHT),
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
            y=share_axis("share", "State read rightly"),
            color=alt.Color(
                "layer:N",
                title="Probe of",
                scale=alt.Scale(range=OKABE_ITO),
                legend=alt.Legend(orient="top"),
            ),
            tooltip=[
                alt.Tooltip("layer:N", title="Probe of"),
                alt.Tooltip("position:Q", title="Position"),
                alt.Tooltip("share:Q", title="Read rightly", format=".1~%"),
            ],
        )
    )
    ends = pd.DataFrame({"position": [trained + 0.5]})
    guess = pd.DataFrame({"share": [commonest]})
    rules = [
        alt.Chart(ends).mark_rule(strokeDash=[4, 4]).encode(x="position:Q"),
        alt.Chart(guess).mark_rule(strokeDash=[1, 3]).encode(y="share:Q"),
    ]
    title = title_params(
        "The automaton's state, read by a linear probe",
        "Held-out strings. Dashed: the longest training string. Dotted: the most frequent state.",
    )
    return alt.layer(lines, *rules).properties(
        width=2 * SIDE, height=HEIGHT, title=title, **reserve_height(HEIGHT, legend=True)
    )


BUDGETS = (40, 100, 200)
"""States of a hypothesis, to choose from."""

DRAWN = 60
"""States of the largest graph that is drawn: of more, a table says more."""


def is_offered(config: RunConfig) -> bool:
    """Whether a model of this configuration may have an automaton."""
    return obstacle(resolve(config)) is None


@explaining(say)
def show(run_id: int, config: RunConfig) -> None:
    """Learns a model's automaton, draws it beside the language's, and says what was tried."""
    said = "The learning also ends after 100 hypotheses or 60 seconds."
    most = links.choice("States at most", BUDGETS, "automaton_states", BUDGETS[0], help=said)
    learned = _learn(run_id, most)
    finding, *others = learned_text(learned)
    (st.success if learned.found else st.warning)(verbatim(finding))
    for said in others:
        st.markdown(f"- {verbatim(said)}")
    chosen = _graphs(learned)
    stretch(states_by_round(_rounds(learned)), "automaton rounds")
    _inside(run_id, config, learned, chosen)
    _exports(run_id, learned)


def _learn(run_id: int, most: int) -> LearnedAutomaton:
    """What is learned of a run's model, once for all who look at it."""
    told = st.empty()

    def tell(made: Round) -> None:
        told.caption(f"Asking the model: {states(made.states)}, {made.asked:,} strings asked.")

    def learn() -> LearnedAutomaton:
        open_any(run_id)
        told.caption("Asking the model: all short strings, then its test set.")
        return automaton(open_reader(), run_id, states=most, on_round=tell)

    learned = ask(("automaton", key_of(run_id), most), learn, "Learning the automaton")
    told.empty()
    return learned


def _graphs(learned: LearnedAutomaton) -> Round:
    """The hypothesis that is chosen, beside the language's automaton."""
    rounds = learned.rounds
    first = rounds.index(learned.main_hypothesis)
    names = [f"{number}: {states(made.states)}" for number, made in enumerate(rounds, start=1)]
    shown = rounds[first]
    columns = st.columns([3, 2] if learned.language is not None else 1)
    with columns[0]:
        heading = st.empty()
        if len(rounds) > 1:
            name = st.select_slider(
                "Hypothesis",
                names,
                names[first],
                key=f"hypothesis {len(rounds)} {rounds[-1].states}",
                help="Each is refuted by a string that the model answers differently, which leads "
                "to the next. The one shown first is the smallest that makes nearly all of the "
                "model's test errors.",
            )
            shown = rounds[names.index(name)]
        is_found = shown.counterexample is None
        heading.subheader("The model's" if is_found else "A refuted hypothesis")
        _graph(shown.automaton, learned)
        st.caption(verbatim(_of_round(learned, shown)))
    if learned.language is not None:
        with columns[1]:
            st.subheader("The language's")
            if len(rounds) > 1:
                st.caption("Minimal. Double circle: accepting. Unlabeled arrow: the start.")
            _graph(learned.language, learned)
            st.caption(states(len(learned.language.table)) + ".")
    return shown


def _of_round(learned: LearnedAutomaton, made: Round) -> str:
    """What is known of a hypothesis."""
    said = (
        f"{states(made.states)}; agrees with the model on {percent(made.agreement)} of test strings"
    )
    if learned.wrong:
        said += f", and makes {made.explained:,} of its {learned.wrong:,} test errors"
    if made.counterexample is not None:
        return f"{said}. The model answers {name_string(learned, made.counterexample)} differently."
    return f"{said}. No string tried refutes it."


def _graph(drawn: Automaton, learned: LearnedAutomaton) -> None:
    if len(drawn.table) > DRAWN:
        st.info(f"{states(len(drawn.table))} are too many to draw; the exports have them.")
        return
    color = ground().colors.get(INK, INK)
    st.graphviz_chart(dot(drawn, learned.alphabet, color, learned.names), width="stretch")


def _rounds(learned: LearnedAutomaton) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "round": range(1, len(learned.rounds) + 1),
            "states": [made.states for made in learned.rounds],
            "agreement": [made.agreement for made in learned.rounds],
            "refuted": [
                "nothing" if made.counterexample is None else made.counterexample or "(empty)"
                for made in learned.rounds
            ],
        }
    )


@explaining(say)
def _inside(run_id: int, config: RunConfig, learned: LearnedAutomaton, chosen: Round) -> None:
    st.subheader("Inside the model")
    if not st.toggle(
        "Look for the automaton's states in the model", key="automaton_inside", bind="query-params"
    ):
        st.caption("By a linear probe of every block or layer. It takes some seconds.")
        return
    if chosen is not learned.main_hypothesis:
        number = states(learned.main_hypothesis.states)
        st.caption(f"Looking for the states of the hypothesis with {number}.")
    within = _looked_for(run_id, learned)
    frame = pd.concat(
        pd.DataFrame(
            {"layer": probe.layer, "position": probe.positions, "share": probe.by_position}
        )
        for probe in within.probes
    )
    trained = resolve(config).train.lengths[-1]
    stretch(probe_by_position(frame, trained, within.commonest), "automaton probe")
    st.dataframe(_probes(within), hide_index=True)


def _looked_for(run_id: int, learned: LearnedAutomaton) -> "Inside":
    key = ("automaton inside", key_of(run_id), learned.budget.states)
    return ask(key, lambda: automaton_inside(open_reader(), run_id, learned), "Looking inside")


def _probes(within: "Inside") -> pd.DataFrame:
    return pd.DataFrame(
        {
            "probe of": [probe.layer for probe in within.probes],
            "training's lengths": [percent(probe.trained, 1) for probe in within.probes],
            "longer strings": [
                "not tested" if probe.beyond is None else percent(probe.beyond, 1)
                for probe in within.probes
            ],
            "most frequent state": percent(within.commonest, 1),
        }
    )


def _exports(run_id: int, learned: LearnedAutomaton) -> None:
    left, right, _ = st.columns([1, 1, 3])
    name = f"automaton-{run_id}"
    left.download_button("DOT", learned.dot(), f"{name}.dot", key="automaton dot")
    text = json.dumps(learned.record(), indent=1)
    right.download_button("JSON", text, f"{name}.json", key="automaton json")
