"""The bar above the tabs: a string, an epoch, a second model; and the models' answers."""

import re
from typing import Any

import streamlit as st

from dashboard import data, filters, page
from dashboard.model.opened import Opened
from dashboard.words.sentences import add_sentences, say
from seqcls.errors import ConfigError, InvalidStringError, SeqclsError, VisitorError
from seqcls.interpretability.wording import sign
from seqcls.questions import RunModel
from sweeps.api import find_run, predict
from sweeps.api.trials import judging

LONGEST_TYPED = 60
"""Letters of what is typed as a model that an error quotes."""

OFFERED = 200
"""Wrong test strings that the box offers, the shortest first; any other can be typed."""

add_sentences(
    {
        "answered": "`{string}` is {label}, predicted {predicted} (logit {logit:+.4g}, "
        "probability {probability:.4g}).",
        "answered_unknown": "`{string}` is predicted {predicted} (logit {logit:+.4g}, probability "
        "{probability:.4g}); its label is not known.",
        "answered_stored": "`{string}` is {label}, predicted {predicted}.",
        "written": "`{string}` should give `{target}`; the model gives `{output}` ({number} "
        "{score:.4g}).",
        "written_unknown": "`{string}` gives `{output}` ({number} {score:.4g}); its target is not "
        "known.",
        "unanswered": "The model has no answer to `{string}`.",
        "of_second": "{title}: {sentence}",
        "no_such_second": "Second model {typed}: expected a model's number or SWEEP/SEED, with "
        "@EPOCH behind it for another epoch; {error}",
        "no_such_epoch": "No weights of epoch {epoch} of run {run} are stored: expected {known}.",
    }
)


def choose(run: int) -> Opened:
    """The model at the epoch, with the string and the second model that the bar has.

    Raises:
        SeqclsError: the run has no results.
    """
    opened = Opened(run, judged=judging(filters.of_every_task()))
    # Refuses a run that is not finished, before anything is drawn.
    assert opened.row
    left, middle, right = st.columns([5, 4, 3])
    with left:
        string = _choose_string(opened)
    if opened.lacks_weights:
        # Results are of the tested epoch; other epochs cannot be evaluated without weights.
        return Opened(run, None, string, judged=opened.judged)
    with middle:
        epoch = _choose_epoch(opened)
    with right:
        second = _choose_second(string)
    return Opened(run, epoch, string, second, opened.judged)


def _from_link(name: str, otherwise: Any) -> Any:
    """Sets a box to what the link has."""
    st.session_state[name] = otherwise
    return otherwise


def _into_link(name: str) -> None:
    """Writes what a box has into the link."""
    value = st.session_state[name]
    if value in (None, ""):
        st.query_params.pop(name, None)
    else:
        st.query_params[name] = str(value)


def _choose_string(opened: Opened) -> str:
    display = opened.problem.tokenizer.display
    offered = opened.errors["string"].head(OFFERED).tolist()
    if not opened.problem.config.is_imported:
        offered += opened.examples
    linked = st.query_params.get("string", next(iter(offered), ""))
    # A link may name a string as it is stored, or as it is shown.
    linked = next((text for text in offered if display(text) == display(linked)), linked)
    _from_link("string", linked)
    typed = st.selectbox(
        "String",
        list(dict.fromkeys([*offered, linked])),
        key="string",
        format_func=opened.display,
        accept_new_options=True,
        on_change=_into_link,
        args=("string",),
        help="Its wrong test strings, the shortest first. Any other can be typed: `ab{100}c` is "
        "an a, a hundred b's and a c, `<ab>{50}` fifty times ab.",
    )
    return typed or ""


def _choose_epoch(opened: Opened) -> int | None:
    """The epoch that the link names; None if it is the tested one."""
    kept_epoch = opened.kept_epoch
    # Of a model that was trained elsewhere nothing is known before.
    epochs = [*opened.epochs] if opened.config.is_loaded else [0, *opened.epochs]
    if len(epochs) < 2:
        return None
    linked = st.query_params.get("epoch", "")
    if linked and linked not in map(str, epochs):
        known = ", ".join(map(str, epochs))
        no_such = say("no_such_epoch", epoch=linked[:LONGEST_TYPED], run=opened.run, known=known)
        st.warning(page.markdown(no_such))
        del st.query_params["epoch"]
    _from_link("epoch", next((x for x in epochs if str(x) == linked), kept_epoch))
    epoch = st.select_slider(
        f"Epoch (kept: {kept_epoch}; 0 is untrained)",
        epochs,
        key="epoch",
        on_change=_into_link,
        args=("epoch",),
    )
    return None if epoch == kept_epoch else int(epoch)


def _choose_second(string: str) -> Opened | None:
    """The model to show beside; None where none is named, or it cannot be opened."""
    _from_link("beside", linked_second())
    typed = st.text_input(
        "Second model",
        key="beside",
        on_change=_into_link,
        args=("beside",),
        placeholder="its number, or SWEEP/SEED",
        help="Shown beside this one: strings that only one gets wrong in *Errors*, the same string "
        "in *Inside*. `51@4` is model 51 after epoch 4.",
    )
    if not typed:
        return None
    typed = typed if len(typed) <= LONGEST_TYPED else f"{typed[:LONGEST_TYPED]}…"
    try:
        return second_model(typed, string)
    except SeqclsError as error:
        st.error(page.markdown(say("no_such_second", typed=typed, error=error)))
        return None


def linked_second() -> str:
    """The second model of the link; earlier ones name its epoch apart."""
    typed = st.query_params.get("beside", "")
    if typed and (epoch := st.query_params.pop("beside_epoch", "")):
        typed = st.query_params["beside"] = f"{typed}@{epoch}"
    return typed


def second_model(typed: str, string: str) -> Opened:
    """A model as it is named: a number or SWEEP/SEED, and its epoch behind an `@`.

    Raises:
        SeqclsError: there is no such model.
    """
    # It always matches, as the first group takes whatever is no epoch.
    name, _, epoch = re.fullmatch(r"(.*?)(@(\d{1,9}))?", typed.strip(), re.DOTALL).groups()  # type: ignore[union-attr]
    opened = Opened(find_run(data.reader(), name), None, string)
    # None is the tested epoch: either way to name it shares cached answers.
    if epoch is None or int(epoch) == opened.kept_epoch:
        return opened
    if int(epoch) not in (0, *opened.epochs):
        known = ", ".join(map(str, (0, *opened.epochs)))
        raise ConfigError(say("no_such_epoch", epoch=epoch, run=opened.run, known=known))
    return Opened(opened.run, int(epoch), string)


def show_answers(opened: Opened) -> None:
    """Shows the models' answers on the string: label, logit and probability."""
    if opened.lacks_weights and not opened.problem.config.is_imported:
        return
    try:
        reply = answer_sentence(opened)
        if opened.second is not None:
            other = answer_sentence(opened.second)
            reply = say("of_second", title=opened.title, sentence="") + reply
            st.markdown(page.markdown(reply))
            reply = say("of_second", title=opened.second.title, sentence="") + other
        st.markdown(page.markdown(reply))
    except InvalidStringError as error:
        st.error(page.plain(str(error)))
    except VisitorError as error:
        st.info(page.plain(str(error)))


def answer_sentence(opened: Opened) -> str:
    """The label or target of the bar's string, and the model's prediction.

    Raises:
        InvalidStringError: it is not of this alphabet, or is no input of the task.
    """
    if opened.lacks_weights:
        frame = _predict(opened.run, (opened.string,))
        (row,) = frame.astype(object).where(frame.notna(), None).to_dict("records")
    else:
        columns = opened.ask(RunModel.predict, (opened.string,))
        row = {name: values[0] for name, values in columns.items()}
    shown = opened.display(opened.string)
    # Every kind has its columns in this order: string, what is right, the answer, its number.
    _, right, answer, number, *_ = map(str, row)
    if row[answer] is None:
        return say("unanswered", string=shown)
    if right == "label":
        label = None if row[right] is None else sign(bool(row[right]))
        values = {"string": shown, "label": label, "predicted": sign(bool(row[answer]))}
        # A stored answer may have no number; NaN is unlike itself.
        if row[number] is None or row[number] != row[number]:
            return say("answered_stored", **values)
        key = "answered" if label is not None else "answered_unknown"
        return say(key, **values, logit=row[number], probability=row["probability"])
    key = "written" if row[right] is not None else "written_unknown"
    return say(
        key,
        string=shown,
        target=opened.display(row[right] or ""),
        output=opened.display(row[answer]),
        number=number.replace("_", " "),
        score=float("nan") if row[number] is None else row[number],
    )


_predict = data.cached(predict)
