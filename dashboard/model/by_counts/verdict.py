"""All strings up to the longest test length, and what is proved of those beyond."""

import pandas as pd
import streamlit as st

from dashboard.charts.errors.misclassified import MAP_SIDE, error_map, errors_by_length
from dashboard.charts.style.encodings import AXIS
from dashboard.elements.placement import stretch
from dashboard.figures.misclassified_frames import cells_frame, lengths_frame, likeliest_letters
from dashboard.model.choosing.strings import Chosen
from dashboard.model.opened import OpenedModel, remembered
from dashboard.text import verbatim
from seqcls.interpretability.model.obstacle import obstacle
from seqcls.interpretability.rounded import percent
from seqcls.interpretability.verdicts.by_counts import unaffordable
from seqcls.interpretability.verdicts.certification import Certification, SupportProof, certify
from seqcls.interpretability.verdicts.misclassified import Errors, errors_up_to
from seqcls.interpretability.verdicts.text import certification_text
from seqcls.interpretability.wording import EMPTY
from sweeps.analysis.answer_sentences import displayed

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
    st.subheader(f"All strings of {shortest} to {longest} letters")
    if (too_many := unaffordable(model.problem)) is not None:
        st.info(verbatim(f"Not every string is tried: {too_many}"))
    else:
        _exhaustive(model)
    st.subheader("All longer strings")
    reason = obstacle(model.problem)
    if reason is not None:
        st.info(verbatim(f"Nothing is proved of longer strings: {reason}."))
        return
    _beyond(proofs(model))


def _exhaustive(model: OpenedModel) -> None:
    errors = all_errors(model)
    st.markdown(verbatim(errors_sentence(errors, model.problem.tries_empty)))
    if not errors.texts:
        return
    _picture(model, errors)
    stretch(errors_by_length(lengths_frame(errors), errors.max_length), "errors_by_length")
    shortest = errors.page(0, SHORTEST)
    kinds = ["false negative" if label else "false positive" for label in shortest.label]
    st.markdown(f"**The shortest {min(SHORTEST, len(errors.texts))}**")
    listed = pd.DataFrame({"string": shortest.texts, "kind": kinds, "logit": shortest.logits})
    st.dataframe(
        displayed(listed, model.config),
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
        f"{said}wrong on {wrong:,} ({percent(wrong / errors.multisets)}): {wrong - positive:,} "
        f"false positives and {positive:,} false negatives. The shortest is "
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
