"""Tab *Automaton*: what is learned by asking the model, beside the language's own automaton."""

import json
from typing import Any

import streamlit as st

from dashboard import page, style
from dashboard.model import automaton_sections as sections
from dashboard.model.opened import Opened
from dashboard.words.sentences import say
from seqcls.interpretability.automaton import dot
from seqcls.questions import RunModel

BUDGETS = (40, 100, 200)
"""States of a hypothesis at most, to choose from."""

DRAWN = 60
"""States of the largest graph that is drawn: the exports have larger ones."""


def show(opened: Opened) -> None:
    """Draws the tab."""
    answer, bar = st.container(), st.container(horizontal=True, vertical_alignment="bottom")
    with bar:
        tooltip = "The learning also ends after 100 hypotheses or 60 seconds."
        most = page.choose("States at most", BUDGETS, "automaton_states", meaning=tooltip)
    with answer:
        learned = opened.ask(RunModel.automaton, states=most)
        found = sections.learning(opened.model, learned)
        page.say(found.says)
    made = _choose(learned, bar)
    _export(opened, learned, bar)
    left, right = st.columns([3, 2], gap="large")
    with left:
        st.header(_title(learned, made))
        _draw(made.automaton, learned)
        st.caption(page.markdown(sections.hypothesis(opened.model, learned, made)))
    with right:
        if learned.language is not None:
            st.header("The language's")
            _draw(learned.language, learned)
            number = say("states", number=len(learned.language.table))
            st.caption(f"{number}, minimal. Double circle: accepting.")
    if found.panels:
        page.say_legend(found)
        page.draw(found, f"rounds {opened.key}")
    st.header("Are its states inside the model?")
    if st.toggle("Look for them", key="automaton_inside", bind="query-params"):
        key = f"probes {opened.run} {opened.epoch} {most}"
        page.render(opened.ask(_inside, most), key)
    else:
        st.caption("By a linear probe of every block or layer. It takes some seconds.")


def _title(learned: Any, made: Any) -> str:
    if made.counterexample is None:
        return "The model's"
    is_first = made is learned.main_hypothesis and made is not learned.rounds[-1]
    return "The smallest with nearly all of its errors" if is_first else "A refuted hypothesis"


def _inside(model: RunModel, most: int) -> Any:
    return sections.inside(model, model.automaton(states=most))


def _choose(learned: Any, bar: Any) -> Any:
    """The hypothesis to draw: first the smallest that makes nearly all of the test errors."""
    rounds = learned.rounds
    first = rounds.index(learned.main_hypothesis)
    if len(rounds) < 2:
        return rounds[first]
    names = [f"{n}: {say('states', number=x.states)}" for n, x in enumerate(rounds, start=1)]
    with bar:
        name = st.select_slider(
            "Hypothesis",
            names,
            names[first],
            # Other hypotheses are another slider, whose options may lack the old value.
            key=f"hypothesis {len(rounds)} {rounds[-1].states}",
            help="Each is refuted by a string that the model answers differently, which leads to "
            "the next. The one shown first is the smallest that makes nearly all of the model's "
            "test errors.",
        )
    return rounds[names.index(name)]


def _draw(drawn: Any, learned: Any) -> None:
    if len(drawn.table) > DRAWN:
        number = say("states", number=len(drawn.table))
        st.info(f"{number} are too many to draw; the exports have them.")
        return
    # Graphviz takes colors from its text alone, not from the theme of the page.
    ink = (style.DARK if page.is_dark() else style.LIGHT)["ink"]
    st.graphviz_chart(dot(drawn, learned.alphabet, ink, learned.names), width="stretch")


def _export(opened: Opened, learned: Any, bar: Any) -> None:
    with bar:
        for kind, text in (
            ("DOT", learned.dot()),
            ("JSON", json.dumps(learned.record(), indent=1)),
        ):
            st.download_button(
                kind,
                text,
                f"automaton-{opened.run}.{kind.lower()}",
                key=f"automaton {kind}",
                icon=":material/download:",
                type="tertiary",
                on_click="ignore",
            )
