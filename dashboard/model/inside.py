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
    titles = [model.title for model in _models(opened)]
    section = beside(list(zip(titles, sections, strict=True)))
    if section is not None:
        page.render(section, f"{name} {opened.key}", across=across)


def _ask(opened: Opened, question: Callable[..., Any], *args: Any, across: int = 2) -> None:
    """Draws what a question answers on the bar's string."""
    sections = [model.ask(question, model.letters, *args) for model in _models(opened)]
    _draw(opened, f"{question.__name__} {args}", sections, across)


def _states(opened: Opened) -> None:
    _show_along(opened, [model.letters for model in _models(opened)])


def _show_along(opened: Opened, strings: Sequence[Letters]) -> None:
    """All that happens along a string.

    Args:
        opened: the model.
        strings: its letters, in the alphabet of each model.
    """
    read = []
    for model, letters in zip(_models(opened), strings, strict=True):
        states = model.ask(RunModel.states, model.model.text(letters))
        read.append((model.model, letters, states))
    running = [string_states.running_of(*reading) for reading in read]
    _draw(opened, "running", running, across=len(read))
    _draw(opened, "stream", [string_states.stream_of(states) for *_, states in read])
    # If one row is read, its bars are complete: the other rows do not reach the answer.
    every = any(string_states.reads_several(*reading) for reading in read) and st.toggle(
        "What every token attends to", key="every", bind="query-params"
    )
    attention = [string_states.attention_of(*reading, every=every) for reading in read]
    _draw(opened, f"attention {every}", attention)
    units = [states.units for *_, states in read if states.units is not None]
    if not units:
        return
    gates = dict.fromkeys(["state", *(gate for layered in units for gate in layered.gates)])
    state = page.choose("Of the units", [*gates], "state")
    layers = [*dict.fromkeys(name for layered in units for name in layered.layers)]
    layer = page.choose("Layer", layers, "layer", first=layers[-1])
    words = [model.ask(string_states.layer_word) for model in _models(opened)]
    held = [
        string_states.units_of(states, state, layer, word)
        for (*_, states), word in zip(read, words, strict=True)
    ]
    _draw(opened, f"units {state} {layer}", held)


def _circuits(opened: Opened) -> None:
    found = [model.ask(circuits.circuits) for model in _models(opened)]
    for number in range(2):
        sections = [pair[number] if pair else None for pair in found]
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
    ablate_arguments, prune = (kinds_of[kinds], ablation.METHODS[how]), REMOVED[order]
    found = [model.ask(RunModel.ablate, *ablate_arguments, prune=prune) for model in models]
    name = f"ablation {ablate_arguments} {prune}"
    pairs = list(zip(models, found, strict=True))
    _draw(opened, name, [ablation.ablations(x.model, ablated) for x, ablated in pairs])
    if prune:
        return
    # The first outcome is of the whole model.
    parts = [outcome.parts[0].text for outcome in found[0].outcomes[1:]]
    part = st.selectbox("Accuracy by length, without", parts, key="without", bind="query-params")
    _draw(opened, f"{name} {part}", [ablation.by_length(ablated, part or "") for ablated in found])


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
    """Shows the models' answers on a string while it is typed; nothing else is drawn again."""
    left, right = st.columns([6, 1], vertical_alignment="bottom")
    shown = opened.model.tokenizer.display(opened.string)
    typed = left.text_input("Type a string", shown, live=True, key=f"typed {opened.key}") or ""
    if right.button("Look at it", width="stretch", help="Makes it the string of the page."):
        st.query_params["string"] = typed
        st.rerun()
    # A fragment runs without the page around it, and so without its moment.
    with data.at_one_moment():
        try:
            for model in _models(opened):
                page.say([f"{model.ask(RunModel.answer, typed).text}."])
            _show_along(opened, [model.model.letters(typed) for model in _models(opened)])
        except SeqclsError as error:
            st.info(page.plain(error_text(error)), icon=":material/info:")
