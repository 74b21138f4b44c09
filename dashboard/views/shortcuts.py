"""What shortcut readers reach on a test, beside what models reach; and which kinds of strings a
model is right on.

Pages show what is stored: no shortcut reader is asked on their way.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from dashboard import data, layout
from dashboard.text import verbatim
from dashboard.words import measures, names
from seqcls.config import RunConfig
from seqcls.interpretability.wording import percent, percents
from seqcls.problem import obstacle_of, resolve
from seqcls.results import DRAWN
from seqcls.shortcuts import READERS
from sweeps.api.old_pages import reading
from sweeps.api.old_pages.reading import Selection
from sweeps.api.presentation import border_sentence, display_strings
from sweeps.results import BORDER_SHARES, of_learned
from sweeps.statistics.intervals import wilson

FEW_TESTS = 4
"""Tests of which a chart has the lines of their shortcut readers."""

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


MOST_SAID = 12
"""Configurations that are named at most."""

WHEN_NO_BETTER = (
    "The best shortcut reader of the test lies within the 95% interval of the median accuracy, or "
    "above it. The interval is over seeds, of fewer than six over test strings."
)


# Beside the accuracies of configurations.


def best_readers(config_ids: Sequence[int]) -> pd.DataFrame:
    """The best shortcut reader of each configuration's test, in the order of these configurations.

    Returns:
        shortcut_reader, shortcut_within and shortcut_beyond trained lengths, shortcut_whole
        (shares of test strings), tested (test strings) and all_read (whether the models were tested
        on all of them); missing where it is not known.
    """
    best = data.best_shortcuts(tuple(config_ids)).set_index("config_id")
    shares = {name: f"shortcut_{name}" for name in ("reader", "within", "beyond", "whole")}
    best = best.rename(columns=shares)
    return best.reindex(list(config_ids)).reset_index(drop=True)


def within_and_beyond(table: pd.DataFrame, name: str = "shortcut") -> "pd.Series[str]":
    """Accuracies within and beyond trained lengths, as texts that sort as the numbers do.

    Args:
        table: shortcut_within and shortcut_beyond, as `best_readers` has them; or others.
        name: what the columns' names begin with.
    """
    pairs = zip(table[f"{name}_within"], table[f"{name}_beyond"], strict=True)
    texts = [_pair(within, beyond) for within, beyond in pairs]
    return pd.Series(texts, index=table.index, dtype=object)


def _pair(within: float, beyond: float) -> str | None:
    if pd.isna(within) and pd.isna(beyond):
        return None
    texts = ["none" if pd.isna(share) else percent(share, 1) for share in (within, beyond)]
    # As text a space sorts before every digit.
    missing = 3 - len(texts[0].rstrip("%").split(".")[0])
    return f"{' ' * missing}{' / '.join(texts)}"


def judge(table: pd.DataFrame) -> pd.DataFrame:
    """Which configurations have a median model that is no better than the best shortcut reader.

    It is none where the reader is right on no fewer test strings than the lower end of the 95%
    interval of the median accuracy says: the interval over seeds or, of fewer than six, over test
    strings.

    Args:
        table: config_id, median_accuracy, low (of its interval over seeds; missing where there is
            none), and the columns of `best_readers`.

    Returns:
        decided_by (what decides the language, of all that readers look at, so that they take no
        shortcut) and no_better, in the same order.
    """
    decided = decided_by_readers(table)
    rows = zip(table.to_dict("records"), decided, strict=True)
    no_better = [by is None and _reaches(row) for row, by in rows]
    return pd.DataFrame({"decided_by": decided, "no_better": no_better})


def _reaches(row: Mapping[Hashable, Any]) -> bool:
    """Whether the best reader may be as good as the models of a configuration."""
    accuracy, reached, low = row["median_accuracy"], row["shortcut_whole"], row["low"]
    if pd.isna(accuracy) or pd.isna(reached) or not row["all_read"]:
        return False
    return bool(reached >= (_low(accuracy, row["tested"]) if pd.isna(low) else low))


def _low(accuracy: float, tested: float) -> float:
    return wilson(accuracy * tested, tested).low


def decided_by_readers(table: pd.DataFrame) -> "pd.Series[str]":
    """What decides the language of each configuration of whose test readers were asked.

    Args:
        table: config_id and shortcut_reader.
    """
    known = table.loc[table["shortcut_reader"].notna(), "config_id"]
    deciding = data.deciding(known.tolist())
    return pd.Series([deciding.get(x) for x in table["config_id"]], index=table.index, dtype=object)


def sentences(table: pd.DataFrame) -> dict[int, str]:
    """What is said of each configuration that is no better than a shortcut reader, by its id.

    Args:
        table: config_id, no_better, median_accuracy, shortcut_reader and shortcut_whole.
    """
    return {
        row["config_id"]: _sentence(row, row["median_accuracy"])
        for row in table.to_dict("records")
        if row["no_better"]
    }


def _sentence(row: Mapping[Hashable, Any], accuracy: float) -> str:
    reader, reached = row["shortcut_reader"], row["shortcut_whole"]
    phrase = _PHRASES.get(reader, f"the shortcut reader {reader}")
    strings = measures.words_of([row["config_id"]]).words.plural("test")
    return (
        f"No better than {phrase}: {percent(accuracy)} against {percent(reached)} of the {strings}"
    )


def decided_sentence(table: pd.DataFrame) -> str:
    """What is said of tasks that a reader may know, which takes no shortcut there.

    Args:
        table: config_id, decided_by.
    """
    by = list(dict.fromkeys(table["decided_by"].dropna()))
    if not by:
        return ""
    languages = table["config_id"].map(data.languages())
    number, of = languages[table["decided_by"].notna()].nunique(), languages.nunique()
    whose = "This task is" if of == 1 else "These tasks are"
    if number < of:
        whose = f"Of these {of:,} tasks, {number:,} {'is' if number == 1 else 'are'}"
    return f"{whose} decided by {' or '.join(by)}: to read nothing else is no shortcut."


def in_a_list(sentence: str) -> str:
    """What is said of a configuration, after its name."""
    return sentence[:1].lower() + sentence[1:]


def show_no_better(table: pd.DataFrame) -> None:
    """Names the configurations that are no better than a shortcut reader, if any are.

    Args:
        table: of configurations, as for `sentences`.
        view: what the page shows.
    """
    if decided := decided_sentence(table):
        st.caption(decided)
    said = sentences(table)
    if not said:
        return
    named = names.configuration_names(list(said))
    title = f"No better than a shortcut: {len(said):,} of {len(table):,} configurations"
    with st.expander(title, key="no_better"):
        for config_id, sentence in list(said.items())[:MOST_SAID]:
            st.markdown(f"{verbatim(named[config_id])}: {verbatim(in_a_list(sentence))}.")
        more = f" The first {MOST_SAID} of {len(said):,}." if len(said) > MOST_SAID else ""
        st.caption(f"{WHEN_NO_BETTER}{more}")


# On border pairs and on the random strings of the same test.


def border_medians(view: Selection) -> pd.DataFrame:
    """Medians of the columns of `BORDER_SHARES`, by config_id; of tests that have border pairs.

    On longer strings those of seeds that learned.
    """
    return _of_learned(view).groupby("config_id")[list(BORDER_SHARES)].median()


def _of_learned(view: Selection) -> pd.DataFrame:
    outcomes = data.models(view).set_index("run_id")["outcome"]
    return of_learned(data.border_accuracies(view), outcomes)


def with_border(models: pd.DataFrame) -> pd.DataFrame:
    """Models with the columns of `BORDER_SHARES`, missing where a test has no border pairs."""
    found = data.border_accuracies(Selection(run_ids=tuple(models["run_id"].tolist())))
    return models.merge(found.drop(columns="config_id"), on="run_id", how="left")


def describe_border(view: Selection) -> str:
    """Calls `sweeps.api.presentation.border_sentence` with the models of a view."""
    found = data.border_accuracies(view)
    return border_sentence(_of_learned(view) if len(found) > 1 else found)


def say_border(view: Selection) -> None:
    """Says it, where there is anything to be said."""
    if said := describe_border(view):
        st.markdown(said, help=measures.BORDER)


def say_unpaired(view: Selection) -> None:
    """Says at which lengths tests lack the border pairs that they ask for, where any do."""
    config_ids = data.border_accuracies(view)["config_id"].drop_duplicates()
    if said := data.without_pairs(tuple(config_ids.tolist())):
        st.caption(said)


# Lines on accuracy by length.


def lines(
    config_ids: tuple[int, ...], named: Mapping[int, str], width: int
) -> tuple[pd.DataFrame | None, str]:
    """The best shortcut reader of each test by length, and why there is none where that is known.

    Args:
        config_ids: the configurations of a chart.
        named: what they are called there.
        width: lengths that make one point.

    Returns:
        What `accuracy_by_length` takes as readers, or None; and a sentence, which may be empty.
    """
    points = _points(config_ids, width)
    if points.empty:
        return None, ""
    read: dict[int, list[tuple[Any, ...]]] = {}
    for config_id, *point in points.itertuples(index=False, name=None):
        read.setdefault(config_id, []).append(tuple(point))
    tests = {config_id: tuple(own) for config_id, own in read.items()}
    sharing = {test: [x for x in tests if tests[x] == test] for test in tests.values()}
    if len(sharing) > FEW_TESTS:
        return None, (
            "The lines of shortcut readers are left out: these configurations have "
            f"{len(sharing)} different tests or trainings."
        )
    if len(sharing) == 1 and len(tests) == len(set(config_ids)):
        first = points[points["config_id"] == config_ids[0]]
        return first.assign(configuration=None, rank=0, of=1), ""
    return points.assign(
        configuration=points["config_id"].map(named),
        rank=[sharing[tests[x]].index(x) for x in points["config_id"]],
        of=[len(sharing[tests[x]]) for x in points["config_id"]],
    ), ""


@data.shared
def _points(config_ids: tuple[int, ...], width: int) -> pd.DataFrame:
    """config_id, reader (in words), middle (length), value."""
    best = reading.best_shortcut(data.shortcut_scores(config_ids))
    length = best["length"].astype(int)
    first = length if width == 1 else ((length - 1) // width * width + 1).where(length > width, 0)
    best = best.assign(first=first)
    summed = best.groupby(["config_id", "reader", "first"], as_index=False)[["tested", "right"]]
    counts = summed.sum()
    last = reading.last_lengths(counts["first"], width)
    return pd.DataFrame(
        {
            "config_id": counts["config_id"],
            "reader": counts["reader"].map(lambda name: READERS.get(name, name)),
            "middle": (counts["first"] + last) / 2,
            "value": counts["right"] / counts["tested"],
        }
    )


# In one model.


def say_no_better(run_id: int, config_id: int) -> None:
    """Says where a model is no better than the best shortcut reader of its test."""
    row = best_readers([config_id]).assign(config_id=config_id).iloc[0].to_dict()
    model = data.model(run_id)
    if pd.isna(row["shortcut_whole"]) or model.empty or not row["all_read"]:
        return
    accuracy = float(model["accuracy"].iloc[0])
    if row["shortcut_whole"] < _low(accuracy, row["tested"]):
        return
    told = pd.DataFrame({"config_id": [config_id], "shortcut_reader": [row["shortcut_reader"]]})
    if decided := decided_sentence(told.assign(decided_by=decided_by_readers(told))):
        st.caption(decided)
        return
    st.markdown(f"**{verbatim(_sentence(row, accuracy))}.**")


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
