"""The automaton that a model has become: what was found, how, and whether its states are inside."""

from typing import Any

import altair as alt
import pandas as pd

from dashboard import marks
from dashboard.section import Panel, Section
from dashboard.words.columns import Column, add_columns
from dashboard.words.sentences import add_sentences, say
from seqcls.interpretability.wording import percent
from seqcls.questions import RunModel

add_columns(
    {
        "layer": Column("Probe of", width=200),
        "of_trained": Column("Trained lengths", "percent", width=130),
        "of_longer": Column("Longer strings", "percent", width=130),
        "commonest": Column(
            "Most frequent state", "percent", "What a probe that reads nothing gets.", 160
        ),
    }
)

add_sentences(
    {
        "states": "{number:,} {number:state|states}",
        "hypothesis": "{states:,} {states:state|states}; it agrees with the model on {agreement} "
        "of test strings",
        "explains": ", and makes {explained:,} of its {wrong:,} test errors",
        "refuted": "{known}. The model answers `{string}` differently.",
        "not_refuted": "{known}. No string that was tried refutes it.",
        "probe": "A linear probe of {layer} reads the automaton's state after {share:.1%} of "
        "tokens of held-out strings of trained lengths; the most frequent state has {least:.1%}.",
    }
)


def learning(model: RunModel, learned: Any) -> Section:
    """The automaton learned from the model by queries, and how the hypotheses grew.

    Args:
        model: the model.
        learned: as `model.automaton` gives it.
    """
    _, *says = [x for x in learned.describe(model) if isinstance(x, str)]
    frame = pd.DataFrame(
        {
            "hypothesis": range(1, len(learned.rounds) + 1),
            "states": [x.states for x in learned.rounds],
            "agreement": [x.agreement for x in learned.rounds],
            "refuted": [
                "nothing" if string is None else string or "the empty string"
                for string in (x.counterexample for x in learned.rounds)
            ],
        }
    )
    whole = alt.Axis(tickMinStep=1, format="d", grid=False)
    lines = alt.Chart(frame, height=160).mark_line(
        point=True, interpolate="step-after", color="~accent"
    )
    chart = lines.encode(
        alt.X("hypothesis:Q", title="Hypothesis", axis=whole),
        marks.y_axis("states:Q", "States", form="d"),
        tooltip=marks.tips(
            hypothesis="Hypothesis:",
            states="States:",
            agreement="Says what the model says on:.2~%",
            refuted="Refuted by",
        ),
    )
    caption = "States of each hypothesis; each was refuted by a string, but for the last if found."
    # One hypothesis alone makes no line.
    return Section("", tuple(says), None, (Panel.of(chart),) * (len(frame) > 1), caption)


def hypothesis(model: RunModel, learned: Any, made: Any) -> str:
    """Describes one hypothesis in a sentence or two."""
    known = say("hypothesis", states=made.states, agreement=percent(made.agreement))
    if learned.wrong:
        # It goes on with the sentence.
        known += say("explains", explained=made.explained, wrong=learned.wrong)
    if made.counterexample is None:
        return say("not_refuted", known=known)
    string = model.tokenizer.display(made.counterexample) or "the empty string"
    return say("refuted", known=known, string=string)


def inside(model: RunModel, learned: Any) -> Section:
    """Accuracy of linear probes of every block or layer for the automaton's state.

    Args:
        model: the model.
        learned: as `model.automaton` gives it.

    Raises:
        ConfigError: the model names no states of its blocks or layers.
    """
    found = model.automaton_inside(learned)
    best = max(found.probes, key=lambda probe: float(probe.trained))
    says = say("probe", layer=best.layer, share=best.trained, least=found.commonest)
    table = pd.DataFrame(
        {
            "layer": [probe.layer for probe in found.probes],
            "of_trained": [probe.trained for probe in found.probes],
            "of_longer": [probe.beyond for probe in found.probes],
            "commonest": found.commonest,
        }
    )
    frames = [
        pd.DataFrame({"layer": x.layer, "position": x.positions, "share": x.by_position})
        for x in found.probes
    ]
    layers = [probe.layer for probe in found.probes]
    # Lines are distinguished by the colors of letters as well; there are eight.
    colors = [f"letter {place % 8}" for place in range(len(layers))]
    lines = marks.lines(
        pd.concat(frames),
        "layer",
        marks.tips(layer="Probe of", position="Position:", share="Read rightly:.1~%"),
        marks.x_axis("position:Q", "Position of the token"),
        marks.y_axis("share:Q", "State read rightly", form="%", domain=[0, 1]),
        marks.color("layer", layers, colors, legend=marks.TOP, title=None),
    )
    layered: list[Any] = [lines, marks.rule("y", found.commonest, strokeDash=[2, 3])]
    if model.problem.config.knows_trained_lengths:
        layered.insert(0, marks.trained_band(model.problem.trained_lengths))
    chart = alt.layer(*layered).properties(height=220)
    caption = (
        "The share of held-out strings whose state is read rightly, by position; trained lengths "
        "are shaded, dotted is the most frequent state."
    )
    return Section("", (says,), table, (Panel.of(chart),), caption)
