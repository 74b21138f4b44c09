"""Which strings, which epoch and which second model the page shows."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from dashboard.choosing.opened import AnyModel, OpenedModel, open_any, say
from dashboard.text import verbatim
from dashboard.words.languages import first_strings, shortest_strings
from seqcls.config import REPORT_TASK, RunConfig
from seqcls.errors import InvalidStringError, SeqclsError
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.problem import resolve
from seqcls.tasks import LanguageTask
from sweeps.api import open_reader
from sweeps.api.old_pages import reading
from sweeps.api.old_pages.reading import stored_epochs


def from_link(name: str, otherwise: str) -> str:
    """Sets a widget to what the link says. The link decides: another run's has nothing of this."""
    value = st.query_params.get(name, otherwise)
    st.session_state[name] = value
    return value


def into_link(name: str) -> None:
    """Writes what a widget holds into the link."""
    value = st.session_state[name]
    st.query_params[name] = "" if value is None else str(value)


EPOCH = "epoch"
BESIDE = "beside"
BESIDE_EPOCH = "beside_epoch"
"""Parameters of the link: the epoch, a second model, and its epoch."""


@dataclass(frozen=True, eq=False)
class Named:
    """A model at an epoch, and what it is called beside another."""

    name: str
    opened: AnyModel

    @property
    def model(self) -> TrainedModel:
        return self.opened.model


def choose_epoch(
    config: RunConfig, stored: Sequence[int], kept: int, parameter: str = EPOCH
) -> int:
    """The epoch that the link names, or the kept one; a slider to choose another.

    Args:
        config: of the model; of one that was trained elsewhere there are no others.
        stored: the epochs whose weights are stored, in order.
        kept: one of them.
        parameter: of the link.
    """
    if config.is_loaded:
        return kept
    epochs = [0, *stored]
    linked = st.query_params.get(parameter, "")
    st.session_state[parameter] = next((x for x in epochs if str(x) == linked), kept)
    return int(
        st.select_slider(
            f"Epoch (best: {kept}; 0 = untrained)",
            epochs,
            key=parameter,
            on_change=into_link,
            args=(parameter,),
        )
    )


def choose_model(run_id: int, parameter: str = EPOCH) -> Named:
    """A run's model at the epoch that is chosen.

    Raises:
        SeqclsError: the run has no model.
    """
    *others, kept = stored_epochs(open_reader(), run_id)
    config = reading.run_config(open_reader(), run_id)
    epoch = choose_epoch(config, sorted([*others, kept]), kept, parameter)
    name = f"Model {run_id}" if epoch == kept else f"Model {run_id}, epoch {epoch}"
    return Named(name, open_any(run_id, epoch))


def type_second(meaning: str) -> str:
    """A box for a second model, which the link names; empty where there is none.

    Args:
        meaning: what it is compared by.
    """
    from_link(BESIDE, "")
    return st.text_input(
        "Compare with a second model",
        key=BESIDE,
        on_change=into_link,
        args=(BESIDE,),
        placeholder="a run's number, or SWEEP/SEED",
        help=meaning,
    )


def second_model(first: Named) -> Named | None:
    """The model to show beside, as typed or linked; None where none is named or can be opened."""
    left, right = st.columns(2)
    with left:
        typed = type_second(
            "Shows the same string in both models, side by side, on the same axes. The same "
            "model's number compares two of its epochs."
        )
    if not typed:
        return None
    try:
        run_id = reading.find_run(open_reader(), typed)
        with right:
            second = choose_model(run_id, BESIDE_EPOCH)
    except SeqclsError as error:
        say(error)
        return None
    # Widgets and figures are told apart by the names.
    same = second.name == first.name
    return Named(f"{second.name} again", second.opened) if same else second


NOTATION = (
    "Any other string can be typed, token by token or shortened: a{5} is five times a, and <ab>{5} "
    "five times ab."
)

OFFERED_ERRORS = 200
"""A run's shortest errors, which are offered; any other string can be typed."""

MOST_STRINGS = 8
"""Strings that are drawn beside each other at most."""

STRING = "string"
"""The parameter of the link."""


@dataclass(frozen=True)
class Chosen:
    """What the page shows of a run."""

    model: OpenedModel
    string: str
    """The one that is explained."""
    strings: tuple[str, ...]
    """Those that are drawn, the explained one among them."""
    errors: tuple[str, ...]
    """The run's misclassified test strings, the shortest first."""


def choose_view(model: OpenedModel, errors: pd.DataFrame) -> Chosen:
    """The strings and the epoch, as typed or as the link says; what is wrong is said in a line.

    Args:
        model: at its kept epoch.
        errors: its misclassified test strings, the shortest first.
    """
    left, middle, right = st.columns([2, 2, 3])
    with left:
        string = _choose_to_explain(model.config, errors)
    with middle:
        others = _beside(model.config)
    with right:
        epoch = choose_epoch(model.config, [*model.stored.networks], model.stored.kept_epoch)
    strings = [*others, string] if string not in others else others
    if len(strings) > MOST_STRINGS:
        st.error(f"{len(strings)} strings are too many to draw at once: expected {MOST_STRINGS}.")
        strings = [*strings[: MOST_STRINGS - 1], string]
    return Chosen(model.at(epoch), string, tuple(dict.fromkeys(strings)), tuple(errors["string"]))


def choose_string(config: RunConfig, errors: pd.DataFrame) -> str:
    """The string to look at, of any model, as chosen, typed or linked; an error is offered first.

    Args:
        config: the model's.
        errors: its misclassified test strings, the shortest first.
    """
    offered = _offer(config, errors)
    help_text = f"The model's own errors are offered, the shortest first. {NOTATION}"
    first = first_shown(errors, offered)
    return _choose(config, "String to look at", offered, first, help_text)


def first_shown(errors: pd.DataFrame, offered: Sequence[str]) -> str:
    """The string that is looked at first: an error whose states can be shown, else an example.

    Args:
        errors: the model's misclassified test strings, the shortest first, with their lengths.
        offered: errors and then examples.
    """
    from seqcls.interpretability.states_by_strings import MAX_TOKENS

    if len(errors) and int(errors["length"].iloc[0]) > MAX_TOKENS:
        return offered[-1]
    return next(iter(offered), "")


def string_of_link(config: RunConfig, errors: pd.DataFrame) -> str:
    """The string that the link names, else the one that is looked at first; as `choose_string`."""
    return st.query_params.get(STRING) or first_shown(errors, _offer(config, errors))


def look_at(string: str) -> None:
    """Makes a string the one that the page is about, when a button is clicked."""
    st.query_params[STRING] = string


def _offer(config: RunConfig, errors: pd.DataFrame) -> list[str]:
    return [*errors["string"].head(OFFERED_ERRORS).tolist(), *examples(config)[0]]


def _choose(
    config: RunConfig, label: str, offered: Sequence[str], first: str, help_text: str
) -> str:
    display = resolve(config).tokenizer.display
    linked = from_link(STRING, first)
    # A link may name a string as it is stored, or as it is shown.
    linked = next((text for text in offered if display(text) == display(linked)), linked)
    st.session_state[STRING] = linked
    typed = st.selectbox(
        label,
        list(dict.fromkeys([*offered, linked])),
        format_func=display,
        key=STRING,
        on_change=into_link,
        args=(STRING,),
        accept_new_options=True,
        help=help_text,
    )
    return typed or ""


def _choose_to_explain(config: RunConfig, errors: pd.DataFrame) -> str:
    offered = _offer(config, errors)
    help_text = (
        "Offers the model's own errors, shortest first. You can type any other string: "
        "ab{100} is an a and a hundred b's, <ab>{50} is ab fifty times."
    )
    chosen = _choose(config, "String to explain", offered, offered[0], help_text)
    return _readable(config, chosen) or offered[0]


def _beside(config: RunConfig) -> list[str]:
    tokenizer = resolve(config).tokenizer
    from_link("strings", tokenizer.line_of(examples(config)[0]))
    typed = st.text_input(
        "Comparison strings",
        key="strings",
        on_change=into_link,
        args=("strings",),
        help=f"Separated by {separated_by(config)}, as in `aac baac ab{{100}}c{{55}}`; a{{100}} is "
        "a hundred a's, <ab>{50} is ab fifty times.",
    )
    return [
        string for string in tokenizer.strings_of(typed) if _readable(config, string) is not None
    ]


def separated_by(config: RunConfig) -> str:
    """What stands between strings that are typed in one line."""
    return "two spaces" if resolve(config).tokenizer.separator else "spaces"


def _readable(config: RunConfig, string: str) -> str | None:
    try:
        resolve(config).tokenizer.counts(string)
    except InvalidStringError as error:
        st.error(verbatim(str(error)))
        return None
    return string


def examples(config: RunConfig) -> tuple[tuple[str, ...], str]:
    """A short negative and a short positive string, and a family that may break.

    The family is of tasks with required letters only.
    """
    task = resolve(config).task
    required = config.required_letters
    other = next((x for x in task.alphabet if x not in required), None)
    if config.task == REPORT_TASK and other is not None:
        negative = f"{required[0] * 2 if len(required) > 1 else other}{other}"
        return (negative, f"{required[::-1]}{required[0]}{other}"), f"{required}{{n}}"
    if not isinstance(task, LanguageTask):
        return tuple(first_strings(task, 2)), f"{required}{{n}}"
    positive, negative_ones = (list(filter(None, x)) for x in shortest_strings(task))
    return (*negative_ones[-1:], *positive[-1:]), f"{required}{{n}}"
