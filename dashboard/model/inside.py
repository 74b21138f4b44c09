"""The tab *Inside*: what happens in a model as it reads a string, and what it needs for that."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from dashboard import page
from dashboard.model import ablation, circuits, patching, pictures, string_states, writing
from dashboard.model.beside import beside
from dashboard.model.opened import Opened
from dashboard.section import Section
from seqcls.interpretability.trained_model import Letters
from seqcls.questions import RunModel

ALL = "mean of all"


def show(opened: Opened) -> None:
    """Draws the part that is chosen, which the link names."""
    parts = _parts(opened)
    first = next(iter(parts))
    # A link may name a part that this model does not have.
    if st.query_params.get("part", first) not in parts:
        st.session_state["part"] = st.query_params["part"] = first
    chosen = st.segmented_control(
        "Look at",
        list(parts),
        default=first,
        required=True,
        key="part",
        bind="query-params",
        label_visibility="collapsed",
    )
    parts[chosen or first](opened)


def _parts(opened: Opened) -> Mapping[str, Callable[[Opened], None]]:
    parts: dict[str, Callable[[Opened], None]] = {"Writing": _writing} if _writes(opened) else {}
    parts |= {"States": _states}
    if opened.ask(circuits.circuits):
        parts |= {"Circuits": _circuits}
    return parts | {"Patching": _patching, "Ablation": _ablation, "Live": _live}


def _writes(opened: Opened) -> bool:
    return bool(opened.model.problem.writes)


def _models(opened: Opened) -> list[tuple[str, Opened]]:
    """The model, and the one beside it, each with its name."""
    both = [opened, *([opened.second] if opened.second is not None else [])]
    return [(each.title, each) for each in both]


def _show(opened: Opened, make: Callable[..., Any], *args: Any, across: int = 2) -> None:
    """Draws what a question makes of the bar's string, in each model."""
    _draw(opened, make, lambda each: (each.letters, *args), across)


def _draw(
    opened: Opened,
    make: Callable[..., Any],
    args: Callable[[Opened], Sequence[Any]],
    across: int = 2,
) -> None:
    section = beside([(name, each.ask(make, *args(each))) for name, each in _models(opened)])
    if section is not None:
        page.render(section, f"{make.__name__} {opened.key}", across=across)


def _states(opened: Opened) -> None:
    _along(opened, lambda each: each.letters)


def _along(opened: Opened, letters: Callable[[Opened], Letters]) -> None:
    """All that happens along a string."""
    found = [each.ask(RunModel.states, letters(each)) for _, each in _models(opened)]
    key, models = opened.key, _models(opened)

    def draw(name: str, make: Callable[[Opened, Any], Section | None]) -> None:
        made = [(title, make(x, y)) for (title, x), y in zip(models, found, strict=True)]
        if (section := beside(made)) is not None:
            page.render(section, f"{name} {key}", across=2)

    draw("running", lambda x, states: string_states.running_of(x.model, letters(x), states))
    draw("stream", lambda _, states: string_states.stream_of(states))
    every = any(string_states.has_choice(x.model, states) for (_, x), states in zip(models, found))
    every = every and st.toggle("What every token attends to", key="every", bind="query-params")
    draw(
        "attention",
        lambda x, states: string_states.attention_of(x.model, letters(x), states, every),
    )
    gates = list(dict.fromkeys(gate for states in found for gate in _gates(states)))
    layers = list(dict.fromkeys(name for x in found if x.units for name in x.units.layers))
    state = _choose("State", gates, "state", "state") if len(gates) > 1 else ""
    layer = _choose("Layer", layers, layers[-1], "layer") if len(layers) > 1 else ""
    draw("units", lambda _, states: string_states.units_of(states, state, layer))


def _gates(states: Any) -> list[str]:
    return [] if states.units is None else ["state", *states.units.gates]


def _choose(label: str, options: Sequence[str], first: str, key: str) -> str:
    """A choice that the link names."""
    if st.query_params.get(key, first) not in options:
        st.session_state[key] = st.query_params[key] = first
    return str(
        st.segmented_control(
            label, options, default=first, required=True, key=key, bind="query-params"
        )
        or first
    )


def _circuits(opened: Opened) -> None:
    made = [(name, each.ask(circuits.circuits)) for name, each in _models(opened)]
    for number, question in enumerate(("looks", "writes")):
        section = beside([(name, x[number] if x else None) for name, x in made])
        if section is not None:
            page.render(section, f"{question} {opened.key}", across=2)
    _show(opened, circuits.orders)


def _patching(opened: Opened) -> None:
    source = st.text_input(
        "States of",
        key="source",
        bind="query-params",
        placeholder="the nearest string of this length that is answered rightly and otherwise",
        help="A string with as many tokens, whose states replace those of the string above.",
    )
    _show(opened, patching.patching, source or "", across=1)


def _ablation(opened: Opened) -> None:
    left, middle, right = st.columns(3)
    with left:
        order = _choose("Remove", ("each alone", "one after another"), "each alone", "remove")
    with middle:
        how = _choose("A removed part", ("zero", "mean"), "zero", "how")
    with right:
        kinds = _choose(
            "Parts", ("usual", "head", "feed-forward", "unit"), "usual", "kinds"
        )
    asked = (() if kinds == "usual" else (kinds,), how, order != "each alone")
    found = [(name, x, x.ask(ablation.ablate, *asked)) for name, x in _models(opened)]
    made = [(name, ablation.ablations(x.model, y)) for name, x, y in found]
    page.render(beside(made) or Section(""), f"ablation {asked} {opened.key}")
    if asked[-1]:
        return
    names = [x.parts[0].text for x in found[0][2].outcomes[1:]]
    part = st.selectbox("By length, without", names, key="without", bind="query-params")
    made = [(name, ablation.by_length(y, part or "")) for name, _, y in found]
    page.render(beside(made) or Section(""), f"lengths {asked} {part} {opened.key}")


def _writing(opened: Opened) -> None:
    _show(opened, writing.written, across=1)
    if pictures.page_of(opened.model.task) is None:
        _show(opened, writing.attention)
    else:
        network = opened.model.problem.network
        heads = list(pictures.heads_of(network.num_blocks, network.num_attention_heads))
        head = _choose("Head", [ALL, *heads], ALL, "head") if len(heads) > 1 else ALL
        _show(opened, pictures.seen, head, across=4)
    _show(opened, writing.outputs, across=1)


def _live(opened: Opened) -> None:
    st.fragment(_typed)(opened)


def _typed(opened: Opened) -> None:
    """What the model makes of a string while it is typed."""
    left, right = st.columns([5, 1], vertical_alignment="bottom")
    typed = left.text_input(
        "Type a string", opened.display_typed(), live=True, key=f"typed {opened.key}"
    )
