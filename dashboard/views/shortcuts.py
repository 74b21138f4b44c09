"""What shortcut readers reach on a test, beside what models reach; and which kinds of strings a
model is right on.

Pages show what is stored: no shortcut reader is asked on their way.
"""

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from dashboard import data, layout
from dashboard.text import verbatim
from dashboard.words import measures
from seqcls.config import RunConfig
from seqcls.interpretability.wording import percent, percents
from seqcls.problem import obstacle_of, resolve
from seqcls.results import DRAWN
from seqcls.shortcuts import READERS
from sweeps.api.old_pages import reading
from sweeps.api.old_pages.reading import Selection
from sweeps.api.presentation import border_sentence, display_strings
from sweeps.statistics.intervals import wilson

EXAMPLES = 5
"""Test strings of each kind that a model is right on, and as many that it gets wrong."""

_PHRASES: Mapping[str, str] = {
    "length": "a reader of the length",
    "ends": "a reader of the first and last letters",
    "counts": "a linear reader of letter counts",
    "counts_trees": "a reader of letter counts by decision trees",
    "bigrams": "a linear reader of the bigrams that occur",
    "trigrams": "a linear reader of the trigrams that occur",
    "identity": "a copy of the input",
    "most_frequent": "the most frequent output",
    "aligned": "a linear reader of the token at the same place and its neighbors",
}
"""Shortcut readers in sentences."""


def say_border(run_id: int) -> None:
    """Says how a model does on random strings and on border pairs, where its test has these."""
    if said := border_sentence(data.border_accuracies(Selection(run_ids=(run_id,)))):
        st.markdown(said, help=measures.BORDER)


def say_no_better(run_id: int, config_id: int) -> None:
    """Says where a model is no better than the best shortcut reader of its test."""
    best, model = data.best_shortcuts((config_id,)), data.model(run_id)
    if best.empty or model.empty or not best["all_read"].iloc[0]:
        return
    reader, reached, tested = best[["reader", "whole", "tested"]].iloc[0]
    accuracy = float(model["accuracy"].iloc[0])
    if reached < wilson(accuracy * tested, tested).low:
        return
    phrase = _PHRASES.get(reader, f"the shortcut reader {reader}")
    if (by := data.deciding((config_id,))[config_id]) is not None:
        told = f"This task is decided by {by}: to read nothing else is no shortcut."
        st.caption(told)
    elif reached == 1:
        # Where copying is the task, a copy of the input is no shortcut.
        st.caption(f"{phrase.capitalize()} is right on every test string, so it is no shortcut.")
    else:
        strings = measures.words_of([config_id]).words.plural("test")
        shares = f"{percent(accuracy)} against {percent(reached)} of the {strings}"
        st.markdown(f"**{verbatim(f'No better than {phrase}: {shares}')}.**")


def show(run_id: int, config_id: int, config: RunConfig) -> None:
    """Draws what a model is right on by how the strings were drawn, and its test's readers."""
    kind = None if obstacle_of(config) is not None else resolve(config).kind
    if kind is not None and not (kind.cells or kind.shortcut_readers):
        return
    folded = st.expander(TITLE, key="shortcuts", on_change="rerun")
    if not folded.open:
        return
    with folded:
        _by_drawn(run_id, config)
        _readers(config_id, config)


TITLE = "Kinds of negatives and shortcut readers"


def _by_drawn(run_id: int, config: RunConfig) -> None:
    known = obstacle_of(config) is None
    if known and not resolve(config).kind.cells:
        return
    counts = data.accuracy_by_drawn((run_id,))
    if counts.empty:
        st.caption(
            "How each test string was drawn is not stored with this test set, so accuracy by kind "
            "of negative string is not known."
        )
        return
    right = counts["tested"] - counts["wrong"]
    each = [wilson(*pair) for pair in zip(right, counts["tested"], strict=True)]
    said = ", ".join(
        f"{drawn} {percent(share.value, 0)}"
        for drawn, share in zip(counts["drawn"], each, strict=True)
    )
    st.markdown(f"Right on test strings by how they were drawn: *{said}*.")
    table = pd.DataFrame(
        {
            "drawn": counts["drawn"],
            "accuracy": [share.value for share in each],
            "interval": [percents(share.low, share.high) for share in each],
            "tested": counts["tested"],
        }
    )
    st.dataframe(
        table,
        hide_index=True,
        column_config={
            "drawn": st.column_config.TextColumn("Drawn", help=measures.DRAWN),
            "accuracy": st.column_config.NumberColumn("Accuracy", format="percent"),
            "interval": st.column_config.TextColumn("Accuracy, 95%"),
            "tested": st.column_config.NumberColumn("Test strings"),
        },
        height=layout.table_height(len(table)),
    )
    strings = data.strings_by_drawn(run_id, EXAMPLES)
    # The hardest kind first.
    strings = strings.sort_values("drawn", key=lambda kinds: -kinds.map(DRAWN.index), kind="stable")
    answer = strings["right"].map({True: "right", False: "wrong"})
    st.caption(
        f"Up to {EXAMPLES} strings of each kind that the model gets wrong, and as many that it "
        "gets right, evenly from the shortest to the longest."
    )
    st.dataframe(
        display_strings(strings, config).assign(answer=answer)[
            ["drawn", "answer", "string", "length"]
        ],
        hide_index=True,
        column_config={
            "drawn": st.column_config.TextColumn("Drawn", help=measures.DRAWN),
            "answer": st.column_config.TextColumn("Answer"),
            "string": st.column_config.TextColumn("String", width="large"),
            "length": st.column_config.NumberColumn("Length"),
        },
        height=layout.table_height(len(strings), 390),
    )


def _readers(config_id: int, config: RunConfig) -> None:
    if config.imported:
        st.caption("Shortcut readers are fitted on training strings, which are not known here.")
        return
    scores = data.shortcut_scores((config_id,))
    if scores.empty:
        st.caption(
            "No shortcut readers have been asked about this test yet. Workers ask them when there "
            "is nothing to train; `seqcls db readers` asks them now."
        )
        return
    shares = reading.shortcut_shares(scores).sort_values("whole", ascending=False)
    st.markdown("What shortcut readers, fitted on the training strings, reach on the same test:")
    st.dataframe(
        pd.DataFrame(
            {
                "reader": shares["reader"].map(lambda name: READERS.get(name, name)),
                **{name: shares[name] for name in ("within", "beyond", "whole")},
            }
        ),
        hide_index=True,
        column_config={
            "reader": st.column_config.TextColumn("What it reads", width="medium"),
            "within": st.column_config.NumberColumn("Trained lengths", format="percent"),
            "beyond": st.column_config.NumberColumn("Other lengths", format="percent"),
            "whole": st.column_config.NumberColumn("All", format="percent"),
        },
        height=layout.table_height(len(shares)),
    )
    without = scores[scores["length"].isna()]
    for reason, rows in without.groupby("reason", sort=False):
        named = "; ".join(READERS.get(name, name) for name in dict.fromkeys(rows["reader"]))
        st.caption(f"Not fitted, since {verbatim(str(reason))}: {verbatim(named)}.")
