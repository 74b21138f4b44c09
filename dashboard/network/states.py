"""What a model makes of a string, token by token: parts, attention or units, and every prefix."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from dashboard.charts import along
from dashboard.charts.readout import waterfall
from dashboard.drawing import place, spec_of
from dashboard.figures.along import DRAWN, steps_frame, token_names, with_letters, with_margin
from dashboard.network.asked import say
from dashboard.words import verbatim
from seqcls.errors import ConfigError, SeqclsError
from seqcls.interpretability.strings.asked import AskedModel, Letters
from sweeps import looking


@dataclass(frozen=True)
class Look:
    """How one model's figures are drawn beside another's."""

    key: str = ""
    """Tells its figures from the other's."""
    steps: tuple[float, float] | None = None
    """Limits of the sum of parts, where both models' are the same."""
    prefixes: tuple[float, float] | None = None
    """Limits of the prefixes' logits, likewise."""


def show(model: AskedModel, letters: Letters, look: Look | None = None) -> None:
    """Draws the section for one string."""
    look = look or Look()
    try:
        if model.config.architecture == "transformer":
            _steps(model, letters, look)
        _along(model, letters, look)
    except SeqclsError as error:
        say(error)


def show_beside(models: Sequence[AskedModel], names: Sequence[str], letters: Letters) -> None:
    """The same string through two models, side by side: the same figures with the same limits.

    Args:
        models: of one alphabet.
        names: what they are called.
        letters: the string.
    """
    try:
        limits = _limits(models, letters)
    except SeqclsError as error:
        say(error)
        return
    for column, model, name in zip(st.columns(2), models, names, strict=True):
        with column:
            st.markdown(f"**{verbatim(name)}**")
            show(model, letters, Look(name, *limits))


def _limits(models: Sequence[AskedModel], letters: Letters) -> list[tuple[float, float]]:
    """Limits that hold all models' sums of parts, and all their prefixes' logits."""
    from seqcls.interpretability.strings.attribution import logit_steps
    from seqcls.interpretability.strings.states import prefix_logits

    sums = [0.0]
    for model in models:
        if model.config.architecture == "transformer":
            sums += [step.logit for step in logit_steps(model, letters)]
    logits = [x for model in models for x in prefix_logits(model, letters).logits.tolist()]
    return [with_margin(sums), with_margin([x for x in [0.0, *logits] if x == x])]


def _steps(model: AskedModel, letters: Letters, look: Look) -> None:
    from seqcls.interpretability.strings.attribution import logit_steps

    frame = steps_frame(looking.steps_frame(logit_steps(model, letters)), model.text(letters))
    ends: list[float] = frame[["start", "end"]].to_numpy().ravel().tolist()
    st.subheader("What each part adds to the logit")
    place(waterfall(frame, look.steps or with_margin(ends), ""), f"network steps {look.key}")
    st.caption(
        "Direct logit attribution: the logit is a sum over the parts that write into the residual "
        "stream. Norms after a sum are held at the scale that they have for this string."
    )


def _along(model: AskedModel, letters: Letters, look: Look) -> None:
    from seqcls.interpretability.strings.states import prefix_logits

    st.subheader("Along the string")
    names = token_names(model, letters)
    prefixes = looking.prefixes_frame(prefix_logits(model, letters))
    text = [model.text(letters[:end]) or "the empty string" for end in prefixes["length"]]
    frame = prefixes.assign(letter=prefixes["length"], prefix=text, label=prefixes["label"] * 1)
    parts = [along.prefix_logits(frame, names, look.prefixes)]
    if len(letters) > DRAWN:
        st.caption(f"Attention and units are drawn up to {DRAWN} tokens; this string has more.")
    else:
        try:
            parts += _attention(model, letters, names, look)
        except ConfigError:
            parts += _units(model, letters, names, look)
    drawing = along.together(parts)
    st.vega_lite_chart(spec_of(drawing), width="content", key="network along")
    st.caption(
        "Above, each prefix is asked about as a string of its own: where its logit changes sign "
        "the answer changes. Point at a token to see it in every figure."
    )


def _attention(
    model: AskedModel, letters: Letters, names: list[str], look: Look
) -> list[along.Part]:
    from seqcls.interpretability.strings.states import attention_patterns

    frame = looking.attention_frame(attention_patterns(model, letters))
    frame = frame.assign(
        letter=with_letters(model, frame["key"]), query=with_letters(model, frame["query"])
    ).drop(columns="key")
    heads = frame[["block", "head"]].drop_duplicates().to_numpy().tolist()
    if not heads:
        return []
    options = [f"block {block}, head {head}" for block, head in heads]
    chosen = st.segmented_control(
        "Head to open", options, default=options[0], required=True, key=f"network_head {look.key}"
    )
    small = frame[["block", "head", "query", "letter", "weight"]].round({"weight": 3})
    place(along.small_patterns(small[small["weight"] >= 0.002]), f"network patterns {look.key}")
    block, head = heads[options.index(str(chosen))]
    opened = frame[(frame["block"] == block) & (frame["head"] == head)]
    return [along.attention_matrix(opened.drop(columns=["block", "head"]), names, str(chosen))]


def _units(model: AskedModel, letters: Letters, names: list[str], look: Look) -> list[along.Part]:
    from seqcls.interpretability.strings.states import principal_path, recurrent_units

    try:
        found = recurrent_units(model, letters)
    except ConfigError as error:
        say(error)
        return []
    frame = looking.units_frame(found)
    left, right = st.columns(2)
    states = list(dict.fromkeys(frame["state"]))
    state = left.segmented_control(
        "State", states, default=states[0], required=True, key=f"network_state {look.key}"
    )
    layers = sorted(set(frame["layer"]))
    layer = right.segmented_control(
        "Layer", layers, default=layers[-1], required=True, key=f"network_layer {look.key}"
    )
    own = frame[(frame["state"] == state) & (frame["layer"] == layer)]
    own = own.assign(letter=with_letters(model, own["place"]))
    path = principal_path(found.states[int(layer or 0)])
    points = looking.path_frame(path, found.tokens)
    points = points.assign(letter=with_letters(model, points["place"]))
    title = f"layer {layer}: {verbatim(str(state).replace('_', ' '))}"
    return [
        along.unit_states(own[["letter", "unit", "value", "token"]], names, title),
        along.state_path(points, path.shares),
    ]
