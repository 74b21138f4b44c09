"""Misclassified test strings of a model: counts, lengths, kinds, and the strings."""

from typing import Any, get_args

import altair as alt
import pandas as pd

from dashboard import marks
from dashboard.model.words import COLUMNS as COLUMNS
from dashboard.section import Panel, Section, colors_present
from dashboard.words.sentences import say
from seqcls.interpretability.wording import percents
from seqcls.problem import obstacle_of, resolve
from seqcls.results import ErrorKind
from seqcls.shortcuts import READERS
from seqcls.text import count
from sweeps.api import Selection, Store, border_accuracies, deciding, reading, run_config
from sweeps.api.presentation import border_sentence, display_of, display_strings, words_of
from sweeps.statistics.intervals import wilson

LISTED = 1_000
"""Wrong strings of the table at most."""

BARS = 40
"""Bars at most: of more lengths, several share one."""

CELLS = ("tn", "fp", "fn", "tp")
OF_LENGTHS = ("within", "beyond", "whole")
KINDS = ("false positive", "false negative", *marks.OUTPUT_ERRORS, "wrong")
"""Kinds of errors, as names of colors."""


def counts(store: Store, run_id: int) -> Section:
    """The confusion of a model, in all and by length; of outputs, how many are wrong, and how."""
    config = run_config(store, run_id)
    scores, errors = reading.length_scores(store, [run_id]), reading.string_errors(store, run_id)
    strings = words_of(config).plural("test")
    tested, longest = int(scores["tested"].sum()), int(scores["length"].max())
    if errors.empty:
        says = [say("none_wrong", tested=tested, strings=strings, longest=longest)]
    else:
        says = [_say_wrong(errors, tested, strings, display_of(config))]
    trained = None
    if obstacle_of(config) is None:
        problem = resolve(config)
        # The model has no positions for them.
        if (left := problem.test.epoch_size - tested) > 0:
            says.append(say("untested", left=left))
        trained = problem.trained_lengths if problem.config.knows_trained_lengths else None
    scores, kinds = _with_kinds(scores, errors)
    table = _by_range(scores, trained, kinds)
    shown = tuple(str(name) for name in table if table[name].notna().any())
    if errors.empty:
        return Section("", tuple(says), table, shown=shown)
    panels = [Panel.of(_errors_by_length(scores, trained, kinds))]
    caption = say("by_length_caption", strings=strings)
    if "first_wrong" in errors:
        panels.append(Panel.of(_first_wrong(errors, longest)))
        caption = f"{caption} {say('first_wrong_caption')}"
    legend = () if len(kinds) == 1 else colors_present(errors["kind"], KINDS)
    return Section("", tuple(says), table, tuple(panels), caption, legend, shown=shown)


def _say_wrong(errors: pd.DataFrame, tested: int, strings: str, display: Any) -> str:
    wrong = int(errors["occurrences"].sum())
    by_kind = errors.groupby("kind")["occurrences"].sum().sort_values(ascending=False)
    shortest = display(errors["string"].iloc[0]) or "the empty string"
    values = {"wrong": wrong, "tested": tested, "strings": strings, "shortest": shortest}
    if set(by_kind.index) <= {"wrong"}:
        return say("some_wrong", **values)
    kinds = {*get_args(ErrorKind)}
    parts = [f"{n:,} {x}" if x in kinds else count(int(n), str(x)) for x, n in by_kind.items()]
    return say("some_wrong_by_kind", kinds=", ".join(parts), **values)


def _with_kinds(scores: pd.DataFrame, errors: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, str]]:
    """Counts by length, and the column of each kind of error: of outputs as they are stored."""
    if scores["fp"].notna().any():
        return scores, {"false positive": "fp", "false negative": "fn"}
    if errors.empty or not {*errors["kind"]} <= {*marks.OUTPUT_ERRORS}:
        return scores, {"wrong": "wrong"}
    sums = errors.groupby(["length", "kind"])["occurrences"].sum().unstack(fill_value=0)
    found = scores.merge(sums.astype(float), left_on="length", right_index=True, how="left")
    kinds = [kind for kind in marks.OUTPUT_ERRORS if kind in sums]
    return found.fillna(dict.fromkeys(kinds, 0.0)), {kind: kind for kind in kinds}


def _by_range(scores: pd.DataFrame, trained: range | None, kinds: dict[str, str]) -> pd.DataFrame:
    """A row for trained lengths, for longer ones, and for all."""
    parts = {"all": scores}
    if trained is not None:
        within = scores["length"].between(trained[0], trained[-1])
        beyond = scores["length"] > trained[-1]
        parts = {f"{trained[0]} to {trained[-1]} (trained)": scores[within]} | (
            {"longer": scores[beyond]} if beyond.any() else {}
        ) | parts  # fmt: skip
    rows = []
    names = [*CELLS, *(x for x in kinds.values() if x not in (*CELLS, "wrong"))]
    for name, part in parts.items():
        # Without `min_count` the sum of nothing known would be 0.
        sums = part[[*names, "tested", "wrong"]].sum(min_count=1)
        if not sums["tested"] > 0:
            continue
        right = 1 - sums["wrong"] / sums["tested"]
        cells = {cell: sums[cell] for cell in names}
        rows.append(
            {"of_lengths": name, **cells, "wrong_strings": sums["wrong"]}
            | {"tested_strings": sums["tested"], "right_share": right}
        )
    return pd.DataFrame(rows)


def _width(longest: int) -> int:
    return max(1, -(-longest // BARS))


def _first_of_bar(lengths: "pd.Series[Any]", longest: int) -> "pd.Series[Any]":
    """The least length that shares a bar with each."""
    width = _width(longest)
    # One bar a length, where there are few; the empty string then has its own.
    return lengths if width == 1 else (lengths - 1).clip(lower=0) // width * width + 1


def _errors_by_length(scores: pd.DataFrame, trained: range | None, kinds: dict[str, str]) -> Any:
    """Bars of the share that is wrong of the test strings of each length, by kind of error."""
    longest = int(scores["length"].max())
    width, first = _width(longest), _first_of_bar(scores["length"], longest)
    sums = scores.assign(first=first).groupby("first")[[*kinds.values(), "tested"]].sum()
    parts = [
        pd.DataFrame({"strings": sums[column], "of": sums["tested"], "kind": kind})
        for kind, column in kinds.items()
    ]
    frame = pd.concat(parts).reset_index()
    frame = frame[frame["of"] > 0].assign(share=frame["strings"] / frame["of"].clip(lower=1))
    # The kinds are stacked.
    frame["high"] = frame.groupby("first")["share"].cumsum()
    frame["low"] = frame["high"] - frame["share"]
    frame["start"], frame["end"] = frame["first"] - 0.45, frame["first"] + width - 0.55
    frame["lengths"] = [f"{x}" if width == 1 else f"{x} to {x + width - 1}" for x in frame["first"]]
    base = alt.Chart(frame).mark_bar()
    bars = base.encode(
        marks.x_axis("start:Q", "Length", domainMin=0),
        alt.X2("end:Q"),
        marks.y_axis("low:Q", "Wrong", form="%", domainMin=0),
        alt.Y2("high:Q"),
        marks.color("kind", KINDS),
        tooltip=marks.tips(
            kind="Error",
            lengths="Length",
            strings="Test strings:,",
            of="Of:,",
            share="Share:.2~%",
        ),
    )
    layers = bars if trained is None else alt.layer(marks.trained_band(trained), bars)
    return layers.properties(height=200)


def _first_wrong(errors: pd.DataFrame, longest: int) -> Any:
    """Cells by input length and by how many tokens are right before the first wrong one."""
    width = _width(longest)
    high = _width(int(errors["first_wrong"].max()) + 1)
    places = errors.assign(
        length=_first_of_bar(errors["length"], longest),
        place=errors["first_wrong"] // high * high,
    )
    cells = places.groupby(["length", "place"])["occurrences"].sum().reset_index()
    left = cells["length"] - 0.5
    cells = cells.assign(left=left, right=left + width, above=cells["place"] + high)
    chart = alt.Chart(cells).mark_rect()
    return chart.encode(
        marks.x_axis("left:Q", "Length", domainMin=0),
        alt.X2("right:Q"),
        marks.y_axis("place:Q", "Right before the first wrong token"),
        alt.Y2("above:Q"),
        alt.Color(
            "occurrences:Q",
            title="Test inputs",
            scale=alt.Scale(range=["~accent soft", "~accent"], domainMin=0),
            legend=None,
        ),
        tooltip=marks.tips(
            length="Length, from:", place="Right tokens, from:", occurrences="Test inputs:,"
        ),
    ).properties(height=200)


def by_drawn(store: Store, run_id: int) -> Section | None:
    """Accuracy on each kind of test string, and on border pairs; None without kinds."""
    accuracies = reading.accuracy_by_drawn(store, [run_id])
    sentence = border_sentence(border_accuracies(store, Selection(run_ids=(run_id,))))
    # With one kind alone, the counts above are complete.
    if len(accuracies) < 2 and not sentence:
        return None
    right = accuracies["tested"] - accuracies["wrong"]
    shares = [wilson(*pair) for pair in zip(right, accuracies["tested"], strict=True)]
    table = pd.DataFrame(
        {
            "drawn": accuracies["drawn"],
            "right_share": [share.value for share in shares],
            "interval": [percents(share.low, share.high) for share in shares],
            "tested_strings": accuracies["tested"],
            "wrong_strings": accuracies["wrong"],
        }
    )
    worst = table.sort_values("right_share").iloc[0]
    kinds = say("by_drawn", drawn=worst["drawn"], right=worst["right_share"])
    return Section("Which kinds of strings are hard?", (kinds, *filter(None, [sentence])), table)


def shortcuts(store: Store, run_id: int, config_id: int) -> Section | None:
    """Accuracy of shortcut readers on the same test; None if none applies."""
    config = run_config(store, run_id)
    if obstacle_of(config) is None and not resolve(config).kind.shortcut_readers:
        return None
    title = "What does a shortcut reach?"
    if config.imported:
        return Section(title, (say("no_training_strings"),))
    scores = reading.shortcut_scores(store, (config_id,))
    if scores.empty:
        return Section(title, (say("no_readers"),))
    shares = reading.shortcut_shares(scores).sort_values("whole", ascending=False)
    table = pd.DataFrame({"reader": shares["reader"].map(lambda name: READERS.get(name, name))})
    table[list(OF_LENGTHS)] = shares[list(OF_LENGTHS)].to_numpy()
    # A reader that could not be fitted has one row, with the reason and no length.
    without = scores[scores["length"].isna()].drop_duplicates("reader")
    says = [_beside_best(store, run_id, config_id)]
    for reason, rows in without.groupby("reason", sort=False):
        named = "; ".join(READERS.get(name, name) for name in rows["reader"])
        says.append(say("not_fitted", reason=reason, readers=named))
    shown = ("reader", *(x for x in OF_LENGTHS if table[x].notna().any()))
    return Section(title, tuple(filter(None, says)), table, shown=shown)


def _beside_best(store: Store, run_id: int, config_id: int) -> str:
    """Compares the model with the best shortcut reader of its test."""
    best, model = reading.best_shortcuts(store, (config_id,)), reading.model(store, run_id)
    if best.empty or model.empty or not best["all_read"].iloc[0]:
        return ""
    reader, reached, tested = best[["reader", "whole", "tested"]].iloc[0]
    accuracy = float(model["accuracy"].iloc[0])
    values = {"reader": f"a reader of {READERS.get(reader, reader)}", "reached": reached}
    # The model is better where the reader stays below the interval of its accuracy.
    if reached < wilson(accuracy * tested, tested).low:
        return say("better_than_shortcut", accuracy=accuracy, **values)
    if (by := deciding(store, (config_id,))[config_id]) is not None:
        return say("decided_by", by=by)
    if reached == 1:
        # Where copying is the task, a copy of the input is no shortcut.
        return say("right_shortcut", **values)
    return say("no_better", accuracy=accuracy, **values)


def strings(store: Store, run_id: int) -> Section | None:
    """The wrong test strings, the shortest first; a click gives one as it is shown.

    Its table has them as they are stored, too.
    """
    errors, config = reading.string_errors(store, run_id), run_config(store, run_id)
    if errors.empty:
        return None
    some = errors.head(LISTED)
    kind = None if obstacle_of(config) is not None else resolve(config).kind
    table = display_strings(some, config).assign(
        stored=some["string"],
        string=lambda frame: frame["string"].replace("", "the empty string"),
        model_logit=some["logit"],
    )
    table = table.rename(columns={"output": "model_output"})
    columns = ["string", "target", "model_output", "kind", "first_wrong", "drawn", "length"]
    shown = [name for name in [*columns, "model_logit", "occurrences"] if name in table]
    if "model_output" not in table and kind is not None and not kind.cells:
        shown.remove("kind")
    shown = [name for name in shown if table[name].notna().any()]
    words = words_of(config)
    title = f"Which {words.plural('test')} are wrong?"
    more = say("shortest_listed", listed=LISTED, wrong=len(errors))
    says = (more,) if len(errors) > LISTED else ()
    return Section(title, says, table[[*shown, "stored"]], opens="string", shown=tuple(shown))
