"""All strings or inputs up to a length, and what is proved of strings beyond."""

from dataclasses import asdict
from typing import TYPE_CHECKING, get_args

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st

from dashboard.charts.colors import FAILS, GENERALIZES, GREY
from dashboard.charts.scales import (
    AXIS,
    KIND_COLORS,
    OUTPUT_COLORS,
    SIDE,
    Drawing,
    class_color,
    reserve_height,
    share_axis,
    title_params,
)
from dashboard.choosing.opened import AnyModel, OpenedModel, remembered
from dashboard.choosing.strings import Chosen
from dashboard.placement import stretch
from dashboard.text import verbatim
from dashboard.words.languages import errors_by_kind
from seqcls.interpretability.certification import (
    Certification,
    SupportProof,
    certification_text,
    certify,
)
from seqcls.interpretability.domains import MAX_STRINGS, multisets_of
from seqcls.interpretability.mechanisms import forgetting_text
from seqcls.interpretability.network import Network, obstacle
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.interpretability.verdicts import (
    MAX_INPUTS,
    Errors,
    OutputVerdict,
    errors_up_to,
    output_verdict,
    output_verdict_text,
    unaffordable,
)
from seqcls.interpretability.wording import EMPTY, percent
from seqcls.questions import RunModel
from seqcls.results import ErrorKind
from seqcls.tasks.automaton import language_automaton
from sweeps.api import open_reader, proving
from sweeps.api.presentation import display_strings

if TYPE_CHECKING:
    from seqcls.proofs.forgetting import Forgetting
    from seqcls.proofs.prover import Proof

KINDS = tuple(KIND_COLORS)
HEIGHT = 220

MAP_SIDE = int(1.2 * SIDE)
"""Pixels of the map's plot; it is a square where the window is wide enough."""

_COLOR = class_color("kind", KIND_COLORS, "Misclassified", symbolOpacity=1)


def error_map(cells: pd.DataFrame, letters: tuple[str, str], longest: int, title: str) -> Drawing:
    """How often two letters occur in misclassified multisets, in cells of several counts.

    Args:
        cells: x, x2, y, y2 (edges), firsts, seconds (the counts in the cell, as text), kind,
            errors (multisets in the cell that are misclassified so), share (of the cell's
            multisets of that label), in (0, 1].
        letters: counted along the horizontal and the vertical axis.
        longest: length that was tried.
        title: above the drawing.
    """
    scale = alt.Scale(domain=[int(min(0, cells[["x", "y"]].min().min())), longest], nice=False)
    axis = alt.Axis(values=list(range(0, longest + 1, max(1, longest // 10))))
    first, second = letters
    return (
        alt.Chart(cells)
        .mark_rect()
        .encode(
            x=alt.X("x:Q", title=f"Letters {first} (left of 0: none)", scale=scale, axis=axis),
            x2="x2:Q",
            y=alt.Y("y:Q", title=f"Letters {second} (below 0: none)", scale=scale, axis=axis),
            y2="y2:Q",
            color=_COLOR,
            opacity=alt.Opacity(
                "share:Q",
                title="Share of the cell's strings",
                scale=alt.Scale(domain=[0, 1], range=[0.12, 1]),
                legend=alt.Legend(orient="bottom", format="%", values=[0.1, 0.5, 1]),
            ),
            tooltip=[
                alt.Tooltip("kind:N", title="Misclassified"),
                alt.Tooltip("firsts:N", title=f"Letters {first}"),
                alt.Tooltip("seconds:N", title=f"Letters {second}"),
                alt.Tooltip("errors:Q", title="Multisets wrong", format=","),
                alt.Tooltip("share:Q", title="Share of such strings", format=".1~%"),
            ],
        )
        .properties(height=MAP_SIDE, title=title, **reserve_height(MAP_SIDE, legend=True))
    )


def errors_by_length(frame: pd.DataFrame, longest: int) -> Drawing:
    """How many multisets of each length are misclassified.

    Args:
        frame: length, kind, errors.
        longest: length that was tried.
    """
    return (
        alt.Chart(frame)
        .mark_bar(width=3)
        .encode(
            x=alt.X(
                "length:Q",
                title="String length",
                scale=alt.Scale(domain=[0, longest + 1], nice=False),
            ),
            y=alt.Y("errors:Q", title="Multisets misclassified"),
            color=_COLOR,
            tooltip=[
                alt.Tooltip("length:Q", title="Length"),
                alt.Tooltip("kind:N", title="Misclassified"),
                alt.Tooltip("errors:Q", title="Multisets", format=","),
            ],
        )
        .properties(height=HEIGHT, title="By length", **reserve_height(HEIGHT, legend=True))
    )


CELL = 5
"""Counts in a cell; the count 0 has cells of its own."""


def likeliest_letters(errors: Errors) -> tuple[int, int]:
    """The two letters that misclassified strings hold most of, in order."""
    first, second = sorted(np.argsort(-errors.counts.sum(axis=0), kind="stable")[:2].tolist())
    return first, second


def cells_frame(network: Network, errors: Errors, letters: tuple[int, int]) -> pd.DataFrame:
    """x, x2, y, y2, firsts, seconds, kind, errors, share: see `error_map`."""
    everything = multisets_of(network.problem, errors.max_length)
    labels = network.problem.count_task.labels_of_counts(everything)
    side = -(-errors.max_length // CELL) + 1
    wrong = _bin(errors.counts, errors.label, letters, side)
    of_all = _bin(everything, labels, letters, side)
    place = np.flatnonzero(wrong)
    kind, x, y = np.unravel_index(place, (2, side, side))
    return pd.DataFrame(
        {
            "x": CELL * (x - 1),
            "x2": CELL * x,
            "y": CELL * (y - 1),
            "y2": CELL * y,
            "firsts": [_counts(value) for value in x.tolist()],
            "seconds": [_counts(value) for value in y.tolist()],
            "kind": [KINDS[value] for value in kind.tolist()],
            "errors": wrong[place],
            "share": wrong[place] / of_all[place],
        }
    )


def lengths_frame(errors: Errors) -> pd.DataFrame:
    """length, kind, errors; lengths without errors have no row."""
    table = errors.by_length()
    length, kind = np.nonzero(table)
    return pd.DataFrame(
        {
            "length": length,
            "kind": [KINDS[value] for value in kind.tolist()],
            "errors": table[length, kind],
        }
    )


def _bin(counts: np.ndarray, labels: np.ndarray, letters: tuple[int, int], side: int) -> np.ndarray:
    """How many multisets there are of each label and cell, flat."""
    x, y = (-(-counts[:, letter] // CELL) for letter in letters)
    return np.bincount((labels * side + x) * side + y, minlength=2 * side * side)


def _counts(cell: int) -> str:
    return f"{CELL * (cell - 1) + 1} to {CELL * cell}" if cell else "none"


SHORTEST = 20

all_errors = remembered(errors_up_to, "Trying every string")
proofs = remembered(certify, "Proving")


def show(chosen: Chosen) -> None:
    """An exhaustive check and proofs; they take seconds, so another epoch's are asked for."""
    model = chosen.model
    kept = model.stored.kept_epoch
    if model.epoch != kept and not st.toggle(
        f"Check epoch {model.epoch} (a few seconds) instead of the kept epoch {kept}",
        key="check_epoch",
    ):
        model = model.at(kept)
    shortest = 0 if model.problem.tries_empty else 1
    longest = model.problem.test.lengths[-1]
    st.subheader(f"All strings of {shortest} to {longest} {model.network.tokenizer.unit}s")
    if (too_many := unaffordable(model.problem)) is not None:
        st.info(verbatim(f"Not every string is tried: {too_many}"))
    else:
        _exhaustive(model)
    st.subheader("All longer strings")
    reason = obstacle(model.problem)
    if reason is not None:
        st.info(verbatim(f"Nothing is proved about longer strings: {reason}."))
        return
    _beyond(proofs(model))


def _exhaustive(model: OpenedModel) -> None:
    errors = all_errors(model)
    st.markdown(verbatim(errors_sentence(errors, model.problem.tries_empty)))
    if not errors.texts:
        return
    _picture(model, errors)
    stretch(errors_by_length(lengths_frame(errors), errors.max_length), "errors_by_length")
    kinds = ["false negative" if label else "false positive" for label in errors.label[:SHORTEST]]
    st.markdown(f"**The shortest {min(SHORTEST, len(errors.texts))}**")
    texts, logits = errors.texts[:SHORTEST], errors.logits[:SHORTEST]
    listed = pd.DataFrame({"string": texts, "kind": kinds, "logit": logits})
    st.dataframe(
        display_strings(listed, model.config),
        hide_index=True,
        column_config={"logit": st.column_config.NumberColumn("logit", format="%.4f")},
    )


def errors_sentence(errors: Errors, has_empty: bool) -> str:
    """What was tried, the empty string among it or not, and what came out, in a line or two."""
    wrong, positive = len(errors.texts), int(errors.label.sum())
    empty = "with" if has_empty else "without"
    said = (
        f"The order of letters does not matter, so a string is a multiset: {empty} the empty "
        f"string {EMPTY}, there are {errors.multisets:,}, and the model is "
    )
    if not wrong:
        return f"{said}right on every one."
    return (
        f"{said}wrong on {wrong:,} ({percent(wrong / errors.multisets)}): "
        f"{errors_by_kind(wrong - positive, positive)}. The shortest is "
        f"{errors.texts[0] or EMPTY}."
    )


def _picture(model: OpenedModel, errors: Errors) -> None:
    letters = model.network.tokenizer.alphabet
    pairs = {
        f"{first} and {second}": (i, j)
        for j, second in enumerate(letters)
        for i, first in enumerate(letters[:j])
    }
    likely = likeliest_letters(errors)
    default = next(name for name, pair in pairs.items() if pair == likely)
    name = st.segmented_control(
        "Letters on the axes",
        list(pairs),
        format_func=verbatim,
        default=default,
        required=True,
        key=f"map_letters {model.run_id}",
    )
    first, second = pairs[str(name)]
    frame = cells_frame(model.network, errors, (first, second))
    title = "Where the misclassified strings lie"
    with st.container(width=MAP_SIDE + AXIS):
        stretch(
            error_map(frame, (letters[first], letters[second]), errors.max_length, title),
            "error_map",
        )


def _beyond(certification: Certification) -> None:
    scope, *proofs_said = certification_text(certification)
    st.markdown(verbatim(scope))
    for said in proofs_said:
        st.markdown(f"- {verbatim(said)}")
    st.caption(
        "Shares cover all proportions of these letters, each equally likely. Bounds are certified "
        "by interval arithmetic over regions of attention, allowing for rounding."
    )
    with st.expander("Show data"):
        frame = pd.DataFrame(list(map(_row, certification.supports)))
        # Fewer digits would be no bounds.
        numbers = frame.select_dtypes("float").columns
        whole = {name: st.column_config.NumberColumn(format="plain") for name in numbers}
        st.dataframe(frame, hide_index=True, column_config=whole)


def _row(proof: SupportProof) -> dict[str, object]:
    return {
        "letters": proof.letters,
        "in the language": proof.label,
        "claim": proof.claim,
        "right": proof.right,
        "wrong": proof.wrong,
        "nothing proved": proof.open,
        "least logit": proof.margin,
        "safe share": proof.safe_share,
    }


# Of a recurrent model: every string there is.


def _prove(model: RunModel, epoch: int | None) -> "Proof":
    return proving.prove(open_reader(), model, epoch)


def _read_proof(model: RunModel, epoch: int | None) -> "Proof | None":
    return proving.stored_proof(open_reader(), model, epoch)


def _forgetting(model: TrainedModel, string: str) -> "Forgetting | None":
    from seqcls.proofs.forgetting import find_forgetting

    automaton = language_automaton(model.task)
    return None if automaton is None else find_forgetting(model, automaton, string)


every_string = remembered(_prove, "Proving")
stored_proof = remembered(_read_proof)
forgetting = remembered(_forgetting)


def moves_by_repetition(found: "Forgetting") -> Drawing:
    """How far a model's state moves away while a word repeats, and where its answer turns."""
    frame = pd.DataFrame(
        {
            "repetitions": range(len(found.distances)),
            "distance": found.distances,
            "logit": found.margins,
            "answer": np.where(found.margins > 0, "right", "wrong"),
        }
    )
    base = alt.Chart(frame).encode(
        x=alt.X("repetitions:Q", title="Repetitions"),
        y=alt.Y("distance:Q", title="Largest change of a unit"),
    )
    points = base.mark_point(filled=True, size=45, opacity=1).encode(
        color=class_color("answer", {"right": GENERALIZES, "wrong": FAILS}, "Answer"),
        tooltip=[
            alt.Tooltip("repetitions:Q", title="Repetitions"),
            alt.Tooltip("distance:Q", title="Change", format=".3~g"),
            alt.Tooltip("logit:Q", title="Logit, where right above 0", format=".3~f"),
            alt.Tooltip("answer:N", title="Answer"),
        ],
    )
    return alt.layer(base.mark_line(color=GREY), points).properties(
        height=HEIGHT,
        title=title_params(
            "Its state moves away",
            subtitle="From the first state after which the rest of the string should be answered "
            "the same; color: the answer to the whole string.",
        ),
        **reserve_height(HEIGHT, legend=True),
    )


def _show_forgetting(opened: AnyModel, string: str) -> None:
    if (found := forgetting(opened, string)) is None:
        return
    st.markdown(verbatim(forgetting_text(found.record(), opened.model.tokenizer.display)))
    stretch(moves_by_repetition(found), "moves_by_repetition")


def show_every_string(opened: AnyModel) -> None:
    """Whether a recurrent model is right on every string: as it is stored; else it takes up to a
    minute, so it is asked for.
    """
    st.caption(
        "Regions of the network's states are looked for that every token leads into each other, "
        "with the right answer in each; or a string on which the model is wrong."
    )
    proof = stored_proof(opened, opened.epoch)
    if proof is None:
        if not st.toggle("Prove it", key="every_string", bind="query-params"):
            return
        proof = every_string(opened, opened.epoch)
    from seqcls.proofs.certificate import to_text
    from seqcls.proofs.prover import proof_text

    for said in proof_text(opened.model, proof):
        st.markdown(verbatim(said))
    if proof.certificate is not None:
        text = to_text(proof.certificate)
        st.download_button("Certificate", text, "proof.json", "application/json", on_click="ignore")
    if proof.string is not None:
        _show_forgetting(opened, proof.string)
    if proof.outcome == "not decided":
        st.caption(
            f"`seqcls model prove {opened.run_id} --seconds 600` tries longer, and keeps the "
            "answer."
        )
    if proof.attempts:
        with st.expander("What was tried in vain"):
            st.dataframe(pd.DataFrame(map(asdict, proof.attempts)), hide_index=True)


# Of a model that writes: every input up to a length.

INPUTS_HEIGHT = 260


def wrong_by_length(frame: pd.DataFrame) -> alt.Chart:
    """Stacked bars, one for each length.

    Args:
        frame: length, kind (of error), wrong, inputs (of that length), share in [0, 1].
    """
    lengths = [str(length) for length in sorted(set(frame["length"]))]
    return (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            x=alt.X(
                "length:O", title="Input length (tokens)", sort=lengths, axis=alt.Axis(labelAngle=0)
            ),
            y=share_axis("share", "Inputs with a wrong output"),
            color=class_color("kind", OUTPUT_COLORS, "Output", columns=4),
            tooltip=[
                alt.Tooltip("kind:N", title="Output"),
                alt.Tooltip("length:O", title="Length"),
                alt.Tooltip("wrong:Q", title="Inputs", format=","),
                alt.Tooltip("inputs:Q", title="Of all of that length", format=","),
                alt.Tooltip("share:Q", title="Share", format=".2~%"),
            ],
        )
        .properties(
            height=INPUTS_HEIGHT,
            title=title_params("Errors by length"),
            **reserve_height(INPUTS_HEIGHT, legend=True),
        )
    )


ERROR_KINDS: tuple[ErrorKind, ...] = get_args(ErrorKind)

every_output = remembered(output_verdict, "Trying every input")


def show_outputs(opened: AnyModel) -> None:
    """What trying every input finds; it takes seconds, and so is asked for."""
    st.caption(
        f"Every input of the task up to the greatest length at which there are no more than "
        f"{MAX_STRINGS:,} strings and {MAX_INPUTS:,} inputs, at most the longest test length."
    )
    if not st.toggle("Try every input", key="every_input", bind="query-params"):
        return
    verdict = every_output(opened)
    for said in output_verdict_text(verdict):
        st.markdown(verbatim(said))
    if not verdict.wrong:
        return
    stretch(wrong_by_length(_by_length(verdict)), "all inputs by length")
    st.markdown(f"**The shortest {len(verdict.shortest)}**")
    display = opened.model.tokenizer.display
    rows = [
        [display(str(text)) for text in (each.string, each.label, each.predicted)]
        for each in verdict.shortest
    ]
    names = ["input", "target", "output"]
    shortest = pd.DataFrame(rows, columns=names)
    titles = {name: st.column_config.TextColumn(name.capitalize()) for name in names}
    st.dataframe(shortest, hide_index=True, column_config=titles)


def _by_length(verdict: OutputVerdict) -> pd.DataFrame:
    """A frame as `wrong_by_length` takes it; of a length without errors one row of none."""
    rows = [
        {
            "length": each.length,
            "kind": kind,
            "wrong": wrong,
            "inputs": each.inputs,
            "share": wrong / each.inputs,
        }
        for each in verdict.by_length
        for kind, wrong in (each.wrong or {ERROR_KINDS[0]: 0}).items()
    ]
    return pd.DataFrame(rows)
