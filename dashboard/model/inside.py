"""The tab *Inside*: what happens in a model as it reads a string, and what it needs for that."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from dashboard import data, page
from dashboard.model import (
    ablation,
    circuits,
    gallery,
    patching,
    pictures,
    string_states,
    writing,
)
from dashboard.model.beside import beside
from dashboard.model.opened import Opened
from dashboard.section import Section
from dashboard.text import error_text
from seqcls.errors import SeqclsError
from seqcls.interpretability.trained_model import Letters
from seqcls.questions import RunModel

ALL_HEADS = "mean of all"

REMOVED = {"each alone": False, "one after another": True}


def show(opened: Opened) -> None:
    """Draws the part that is chosen, which the link names."""
    parts = _parts(opened)
    parts[page.choose("Look at", tuple(parts), "part", hidden=True)](opened)


def _parts(opened: Opened) -> Mapping[str, Callable[[Opened], None]]:
    parts = {
        "Writing": _writing, "States": _states, "Circuits": _circuits, "Patching": _patching,
        "Ablation": _ablation, "Figures": gallery.show, "Live": st.fragment(_show_live),
    }  # fmt: skip
    if opened.problem.lacks("outputs"):
        del parts["Writing"]
    if not opened.ask(circuits.heads_of):
        del parts["Circuits"]
    if not gallery.has_figures(opened):
        del parts["Figures"]
    return parts


def _models(opened: Opened) -> list[Opened]:
    """The model, and the one beside it."""
    return [opened, *([opened.second] if opened.second is not None else [])]


def _draw(opened: Opened, name: str, sections: Sequence[Section | None], across: int = 2) -> None:
    """Draws one section of all models."""
    titles = [each.title for each in _models(opened)]
    section = beside(list(zip(titles, sections, strict=True)))
    if section is not None:
        page.render(section, f"{name} {opened.key}", across=across)


def _ask(opened: Opened, question: Callable[..., Any], *args: Any, across: int = 2) -> None:
    """Draws what a question answers on the bar's string."""
    sections = [each.ask(question, each.letters, *args) for each in _models(opened)]
    _draw(opened, f"{question.__name__} {args}", sections, across)


def _states(opened: Opened) -> None:
    _show_along(opened, [each.letters for each in _models(opened)])


def _show_along(opened: Opened, strings: Sequence[Letters]) -> None:
    """All that happens along a string.

    Args:
        opened: the model.
        strings: its letters, in the alphabet of each model.
    """
    read = []
    for each, letters in zip(_models(opened), strings, strict=True):
        states = each.ask(RunModel.states, each.model.text(letters))
        read.append((each.model, letters, states))
    running = [string_states.running_of(*each) for each in read]
    _draw(opened, "running", running, across=len(read))
    _draw(opened, "stream", [string_states.stream_of(each) for *_, each in read])
    every = any(string_states.reads_several(*each) for each in read) and st.toggle(
        "What every token attends to", key="every", bind="query-params"
    )
    attention = [string_states.attention_of(*each, every=every) for each in read]
    _draw(opened, f"attention {every}", attention)
    units = [each.units for *_, each in read if each.units is not None]
    if not units:
        return
    gates = dict.fromkeys(["state", *(gate for each in units for gate in each.gates)])
    state = page.choose("Of the units", [*gates], "state")
    layers = [*dict.fromkeys(name for each in units for name in each.layers)]
    layer = page.choose("Layer", layers, "layer", first=layers[-1])
    words = [each.ask(string_states.layer_word) for each in _models(opened)]
    held = [
        string_states.units_of(each, state, layer, word)
        for (*_, each), word in zip(read, words, strict=True)
    ]
    _draw(opened, f"units {state} {layer}", held)


def _circuits(opened: Opened) -> None:
    found = [each.ask(circuits.circuits) for each in _models(opened)]
    for number in range(2):
        sections = [each[number] if each else None for each in found]
        _draw(opened, f"circuits {number}", sections)
    _ask(opened, circuits.orders)


def _patching(opened: Opened) -> None:
    source = st.text_input(
        "States of",
        key="source",
        bind="query-params",
        placeholder="the nearest string of this length that is answered rightly and otherwise",
        help="A string with as many tokens, whose states replace those of the string above.",
    )
    _ask(opened, patching.patching, source or "", across=1)


def _ablation(opened: Opened) -> None:
    models = _models(opened)
    kinds_of = ablation.kinds_of(opened.ask(RunModel.ablate))
    with st.container(horizontal=True, gap="large"):
        order = page.choose("Remove parts", tuple(REMOVED), "remove")
        how = page.choose("A removed part adds", tuple(ablation.METHODS), "way")
        kinds = page.choose("Parts", tuple(kinds_of), "kinds")
    asked, prune = (kinds_of[kinds], ablation.METHODS[how]), REMOVED[order]
    found = [each.ask(RunModel.ablate, *asked, prune=prune) for each in models]
    name = f"ablation {asked} {prune}"
    pairs = list(zip(models, found, strict=True))
    _draw(opened, name, [ablation.ablations(x.model, each) for x, each in pairs])
    if prune:
        return
    parts = [each.parts[0].text for each in found[0].outcomes[1:]]
    part = st.selectbox("Accuracy by length, without", parts, key="without", bind="query-params")
    _draw(opened, f"{name} {part}", [ablation.by_length(each, part or "") for each in found])


def _writing(opened: Opened) -> None:
    _ask(opened, writing.transcript, across=1)
    if pictures.page_of(opened.problem.task) is None:
        _ask(opened, writing.attention)
    else:
        heads = pictures.heads_of(opened.ask(pictures.weights_over, opened.letters))
        head = page.choose("Head", (ALL_HEADS, *heads), "head") if len(heads) > 1 else ALL_HEADS
        _ask(opened, pictures.gaze, head, across=4)
    _ask(opened, writing.likeliest, across=1)


def _show_live(opened: Opened) -> None:
    """What the models make of a string while it is typed; nothing else is drawn again."""
    left, right = st.columns([6, 1], vertical_alignment="bottom")
    shown = opened.model.tokenizer.display(opened.string)
    typed = left.text_input("Type a string", shown, live=True, key=f"typed {opened.key}") or ""
    if right.button("Look at it", width="stretch", help="Makes it the string of the page."):
        st.query_params["string"] = typed
        st.rerun()
    with data.at_one_moment():
        try:
            for each in _models(opened):
                page.say([f"{each.ask(RunModel.answer, typed).text}."])
            _show_along(opened, [each.model.letters(typed) for each in _models(opened)])
        except SeqclsError as error:
            st.info(page.plain(error_text(error)), icon=":material/info:")
