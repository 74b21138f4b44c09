"""How a transduction's model fails: kinds of errors, and where its outputs leave the targets."""

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st

from dashboard import data, elements, placement
from dashboard.charts.colors import GREY, INK, OKABE_ITO
from dashboard.charts.scales import (
    KIND_COLORS,
    LOW_TO_HIGH,
    Drawing,
    class_color,
    kind_color,
    title_params,
)
from seqcls.config import RunConfig
from seqcls.evaluation import distinct_test_strings
from seqcls.kinds import MISCLASSIFIED, Words
from seqcls.kinds.transduction import edits, target_lengths
from seqcls.models.positions import longest_readable
from seqcls.problem import Problem, resolve
from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks.paragraph import CHARACTERS, LINES, Paragraph
from sweeps.api.old_pages.reading import ErrorSearch

HEIGHT = 400

FEW_LENGTHS = 40
"""That are drawn one by one, where strings of no other lengths are tested."""


def name_bins(bins: pd.DataFrame) -> list[str]:
    """What the lengths of each row are called, from its first_length and last_length."""
    return [
        f"{first}" if first == last else f"{first} to {last}"
        for first, last in zip(bins["first_length"], bins["last_length"], strict=True)
    ]


def errors_by_length(errors: pd.DataFrame, words: Words = MISCLASSIFIED) -> alt.Chart:
    """Stacked bars.

    Args:
        errors: first_length and last_length of each bar, lengths (as text), kind, strings
            (misclassified), tested (strings of that label, if any, and those lengths), rate in
            [0, 1].
        words: what the errors are called.
    """
    missed, tested = words.missed.capitalize(), words.plural("test")
    length = f"{words.string.capitalize()} length"
    labelled = " with that label" if set(errors["kind"]) <= set(KIND_COLORS) else ""
    # A label at the end of the axis stays within the chart.
    axis = alt.Axis(tickMinStep=1, labelFlush=12)
    return (
        alt.Chart(errors)
        .mark_bar()
        .encode(
            x=alt.X("begins:Q", bin="binned", title=length, axis=axis),
            x2="ends:Q",
            y=alt.Y(
                "strings:Q",
                title=f"{missed} {tested}",
                stack=True,
                axis=alt.Axis(tickMinStep=1),
            ),
            color=kind_color(errors["kind"]),
            tooltip=[
                alt.Tooltip("kind:N", title="Kind"),
                alt.Tooltip("lengths:N", title="Lengths"),
                alt.Tooltip("strings:Q", title=f"{missed} {words.plural('')}"),
                alt.Tooltip("tested:Q", title=f"Of {tested}{labelled}"),
                alt.Tooltip("rate:Q", title="Share", format=".2~%"),
            ],
        )
        # A bar of one length stands in the middle above it.
        .transform_calculate(begins=alt.datum.first_length - 0.5, ends=alt.datum.last_length + 0.5)
        .properties(height=HEIGHT, title=title_params("Errors by length"))
    )


PLACES_HEIGHT = 400


def first_wrong_positions(places: pd.DataFrame, right: str = "Right tokens") -> Drawing:
    """Cells colored by the number of inputs, with a line where as many tokens are right as it has.

    Args:
        places: first_length and last_length of each cell, lengths (as text), first_place and
            last_place (tokens that are right before the first wrong one), places (as text),
            strings.
        right: what is counted before the first wrong one.
    """
    top = int(places["last_length"].max())
    most = max(int(places["last_place"].max()), top)
    x = alt.Scale(domain=[0, top + 1], nice=False)
    y = alt.Scale(domain=[-0.5, most + 0.5], nice=False)
    whole = alt.Axis(tickMinStep=1, format="d")
    cells = (
        alt.Chart(places)
        .transform_calculate(
            left=alt.datum.first_length - 0.5,
            right=alt.datum.last_length + 0.5,
            low=alt.datum.first_place - 0.5,
            high=alt.datum.last_place + 0.5,
        )
        .mark_rect()
        .encode(
            x=alt.X("left:Q", title="Input length", scale=x, axis=whole),
            x2="right:Q",
            y=alt.Y("low:Q", title=f"{right} before the first wrong one", scale=y, axis=whole),
            y2="high:Q",
            color=alt.Color(
                "strings:Q",
                title="Test inputs",
                scale=alt.Scale(scheme=LOW_TO_HIGH, domainMin=0),
                legend=alt.Legend(orient="bottom", format="d", tickMinStep=1),
            ),
            tooltip=[
                alt.Tooltip("lengths:N", title="Input lengths"),
                alt.Tooltip("places:N", title=right),
                alt.Tooltip("strings:Q", title="Test inputs"),
            ],
        )
    )
    ends = pd.DataFrame({"left": [0, top + 1], "low": [0, top + 1]})
    line = (
        alt.Chart(ends)
        .mark_line(color=INK, strokeDash=[4, 4], clip=True)
        .encode(x="left:Q", y="low:Q")
    )
    title = title_params(
        "Where outputs go wrong first",
        subtitle=f"Dashed: as many {right[0].lower()}{right[1:]} as the input has tokens.",
    )
    return alt.layer(cells, line).properties(height=PLACES_HEIGHT, title=title)


FEATURE_HEIGHT = 300


def by_feature(measured: pd.DataFrame, feature: str, trained: int) -> Drawing:
    """A line a measure.

    Args:
        measured: value (of the feature), measure, share (in [0, 1], a rate of errors may be more),
            of (how many strings or tokens), tested (strings).
        feature: what is counted, such as `lines`.
        trained: the most that training has.
    """
    names = list(dict.fromkeys(measured["measure"]))
    whole = alt.Axis(tickMinStep=1, format="d")
    # Dashed too: colors alone would not tell lines apart for everybody.
    lines = (
        alt.Chart(measured)
        .mark_line(point=True)
        .encode(
            x=alt.X("value:Q", title=feature.capitalize(), scale=alt.Scale(zero=True), axis=whole),
            y=alt.Y("share:Q", title="Share", axis=alt.Axis(format="%")),
            color=class_color(
                "measure", dict(zip(names, OKABE_ITO, strict=False)), orient="bottom"
            ),
            strokeDash=alt.StrokeDash(
                "measure:N", title=None, scale=alt.Scale(domain=names, range=[[1, 0], [6, 3]])
            ),
            tooltip=[
                alt.Tooltip("measure:N", title="Measure"),
                alt.Tooltip("value:Q", title=feature.capitalize()),
                alt.Tooltip("share:Q", title="Value", format=".2~%"),
                alt.Tooltip("of:Q", title="Out of", format=","),
                alt.Tooltip("tested:Q", title="Test inputs"),
            ],
        )
    )
    rule = (
        alt.Chart(pd.DataFrame({"value": [trained]}))
        .mark_rule(color=GREY, strokeDash=[4, 4])
        .encode(x="value:Q")
    )
    title = title_params(
        f"Outputs by number of {feature}", subtitle=f"Dashed: the most {feature} in training."
    )
    return alt.layer(lines, rule).properties(height=FEATURE_HEIGHT, title=title)


EXACT, ERRORS = "Exact match", "Character error rate"


def show_by_features(run_id: int, config: RunConfig) -> None:
    """Two charts side by side; nothing where the task draws no pictures."""
    problem = resolve(config)
    if elements.page_of(problem.task) is None:
        return
    shares = _measure_features(run_id, config)
    for column, feature in zip(st.columns(2), (CHARACTERS, LINES), strict=True):
        with column:
            rows = shares[shares["feature"] == feature]
            chart = placement.build(by_feature, rows, feature, _most_trained(problem, feature))
            placement.show(chart, f"outputs by {feature}")
    st.caption(
        "Exact match: the share of outputs that are the whole text. Character error rate: edits "
        "from outputs to texts over the characters of the texts, line breaks among them."
    )


@data.shared
def _measure_features(run_id: int, config: RunConfig) -> pd.DataFrame:
    """feature, value, measure, share, of, tested: by each feature, of readable strings."""
    problem = resolve(config)
    test = distinct_test_strings(problem.test)
    lengths = target_lengths(test.targets)
    end = longest_readable(problem.network)
    encode = problem.tokenizer.encode
    errors = data.string_errors(run_id, ErrorSearch())[["string", "output", "target"]]
    wrong = {
        text: edits(list(encode(output)), list(encode(target)))
        for text, output, target in errors.to_numpy().tolist()
    }
    times = test.occurrences
    counted = pd.DataFrame(
        {
            "tested": times,
            "right": times * [text not in wrong for text in test.texts],
            "edits": times * np.array([wrong.get(text, 0) for text in test.texts]),
            "tokens": times * lengths,
            **problem.task.features(test.strings),
        }
    )
    counted = counted[(test.strings.lengths + 1 + lengths) <= (np.inf if end is None else end)]
    return pd.concat([_by(counted, feature) for feature in (CHARACTERS, LINES)])


def _by(counted: pd.DataFrame, feature: str) -> pd.DataFrame:
    sums = counted.groupby(feature)[["tested", "right", "edits", "tokens"]].sum().reset_index()
    sums = sums.rename(columns={feature: "value"})
    kept = sums[["value", "tested"]].assign(feature=feature)
    shares = {EXACT: ("right", "tested"), ERRORS: ("edits", "tokens")}
    parts = [
        kept.assign(measure=name, share=sums[part] / sums[of], of=sums[of])
        for name, (part, of) in shares.items()
    ]
    return pd.concat(parts)


def _most_trained(problem: Problem, feature: str) -> int:
    """The feature in the longest inputs of training, whose lines are as few as they may be."""
    task = problem.task
    assert isinstance(task, Paragraph)
    longest = task.draw_input(np.random.default_rng(0), problem.train.lengths[-1])
    strings = TokenStrings.of_lists(problem.tokenizer.num_letters, [longest.tolist()])
    return int(task.features(strings)[feature][0])


WIDTH = 5


def show(run_id: int, config: RunConfig) -> None:
    """Two charts side by side; of pictures two more."""
    problem = resolve(config)
    width = 1 if problem.test.lengths[-1] <= FEW_LENGTHS else WIDTH
    left, right = st.columns(2)
    with left:
        chart = placement.build(errors_by_length, _kinds(run_id, width), problem.kind.words)
        placement.show(chart, "errors by length")
    with right:
        named = next(x.title for x in problem.kind.error_columns() if x.name == "first_wrong")
        chart = placement.build(first_wrong_positions, _positions(run_id, width), named)
        placement.show(chart, "first wrong places")
    show_by_features(run_id, config)


@data.shared
def _kinds(run_id: int, width: int) -> pd.DataFrame:
    """Rows for `errors_by_length`."""
    errors = data.error_kinds_by_length(run_id, width).rename(columns={"error_kind": "kind"})
    tested = data.scores_by_length((run_id,), width)[["first_length", "tested"]]
    errors = errors.merge(tested, on="first_length")
    return errors.assign(lengths=name_bins(errors), rate=errors["strings"] / errors["tested"])


@data.shared
def _positions(run_id: int, width: int) -> pd.DataFrame:
    """Rows for `first_wrong_positions`."""
    places = data.first_wrong_places(run_id, width)
    first = places["first_wrong"] // width * width
    places = places.assign(first_place=first, last_place=first + width - 1)
    grouped = ["first_length", "last_length", "first_place", "last_place"]
    sums = places.groupby(grouped)["strings"].sum().reset_index()
    spans = sums[["first_place", "last_place"]].set_axis(["first_length", "last_length"], axis=1)
    return sums.assign(lengths=name_bins(sums), places=name_bins(spans))
