"""Where a model's errors lie: by length, by the task's own features, and token by token."""

import html
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from dashboard import data, elements, placement
from dashboard.charts.legend import deduplicate_legends
from dashboard.charts.scales import kind_color, kind_shape, title_params
from dashboard.text import verbatim
from dashboard.views import output_errors
from dashboard.views.output_errors import FEW_LENGTHS, errors_by_length, name_bins
from seqcls.config import REPORT_TASK, RunConfig
from seqcls.errors import InvalidStringError
from seqcls.kinds.places import PlacesKind
from seqcls.problem import Problem, missing_plugin, resolve
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import FIRST_LETTER, Tokenizer
from seqcls.tasks.places import AtEveryPlace

HEIGHT = 400


def feature_plane(errors: pd.DataFrame, x: str, y: str) -> alt.Chart:
    """One point a string.

    Args:
        errors: string, kind, length, logit, occurrences, and the two features: first, second.
        x: the name of the first, along the horizontal axis, such as `a's` or `nesting depth`.
        y: the name of the second, along the vertical axis.
    """
    return (
        alt.Chart(errors)
        .mark_point(size=40, filled=True, opacity=0.8)
        .encode(
            x=alt.X("first:Q", **_count_axis(errors["first"], x)),
            y=alt.Y("second:Q", **_count_axis(errors["second"], y)),
            color=kind_color(errors["kind"]),
            shape=kind_shape(errors["kind"]),
            tooltip=[
                alt.Tooltip("string:N", title="String"),
                alt.Tooltip("kind:N", title="Kind"),
                alt.Tooltip("length:Q", title="Length"),
                alt.Tooltip("first:Q", title=x),
                alt.Tooltip("second:Q", title=y),
                alt.Tooltip("logit:Q", title="Logit", format=".4f"),
                alt.Tooltip("occurrences:Q", title="Occurrences"),
            ],
        )
        .properties(height=HEIGHT, title=title_params(f"Errors by {x} and {y}"))
    )


def _count_axis(values: "pd.Series[Any]", name: str) -> dict[str, Any]:
    low, high = float(values.min()), float(values.max())
    return {
        "title": name[:1].upper() + name[1:] if "'" not in name else name,
        "axis": alt.Axis(tickMinStep=1, format="d"),
        "scale": alt.Scale(domain=[min(0.0, low), max(1.0, high)]),
    }


WIDTH = 5
"""Lengths in one bar, where the longest test strings are not few letters long."""

MAX_POINTS = 5_000
LENGTH = "length"


def show(run_id: int, errors: pd.DataFrame, config: RunConfig) -> None:
    """Two charts side by side; of models that write outputs, those of `outputs`.

    Args:
        run_id: the model.
        errors: its misclassified test strings, the shortest first.
        config: its configuration.
    """
    if reason := missing_plugin(config):
        st.caption(verbatim(f"Where in these strings the errors lie is not known here: {reason}."))
        return
    if "output" in errors:
        output_errors.show(run_id, config)
        return
    errors = errors.head(MAX_POINTS)
    place, (left, right) = st.container(), st.columns(2)
    width = 1 if resolve(config).test.lengths[-1] <= FEW_LENGTHS else WIDTH
    with left:
        chart, _ = deduplicate_legends(placement.build(errors_by_length, _by_length(run_id, width)))
        placement.show(chart, "errors by length")
    with right:
        values = features(config, tuple(errors["string"]))
        across, up = _axes(config, [str(name) for name in values])
        drawn = errors.assign(first=values[across].to_numpy(), second=values[up].to_numpy())
        chart, keys = deduplicate_legends(placement.build(feature_plane, drawn, across, up))
        placement.show(chart, "errors by features")
    with place:
        placement.show_keys(keys)
    if len(errors) == MAX_POINTS:
        st.caption(f"The chart on the right shows the {MAX_POINTS:,} shortest strings.")


@lru_cache(maxsize=32)
def features(config: RunConfig, strings: tuple[str, ...]) -> pd.DataFrame:
    """The features by which the task distinguishes strings, a column each, with their length."""
    tokens = token_strings(config, strings)
    columns = dict(resolve(config).task.features(tokens))
    return pd.DataFrame({**columns, LENGTH: tokens.lengths})


def token_strings(config: RunConfig, strings: Sequence[str]) -> TokenStrings:
    """Strings in the notation of a task's alphabet.

    Raises:
        InvalidStringError: one is not of this alphabet, or too long to be spelled out.
    """
    tokenizer = resolve(config).tokenizer
    rows = [[x - FIRST_LETTER for x in tokenizer.encode(text)[1:]] for text in strings]
    return TokenStrings.of_lists(tokenizer.num_letters, rows)


def _axes(config: RunConfig, names: list[str]) -> tuple[str, str]:
    """The two features that are drawn; those that matter most in the task come first."""
    first = best_axes(config, names)
    columns = st.columns(2)
    across, up = (
        column.selectbox(label, names, index=names.index(feature), key=f"{key} {config.key[:12]}")
        for column, label, feature, key in zip(
            columns, ("Horizontal axis", "Vertical axis"), first, ("across", "up"), strict=True
        )
    )
    return across, up


def best_axes(config: RunConfig, names: Sequence[str]) -> tuple[str, str]:
    """The two features to begin with: required letters, the task's own features, then counts."""
    counts = [f"{letter}'s" for letter in resolve(config).task.alphabet]
    required = [f"{letter}'s" for letter in config.required_letters]
    task_features = [name for name in names if name not in {*counts, LENGTH}]
    order = required if config.task == REPORT_TASK else task_features
    ranked = [x for x in dict.fromkeys([*order, *task_features, *counts, LENGTH]) if x in names]
    return ranked[0], ranked[1] if len(ranked) > 1 else ranked[0]


@data.shared
def _by_length(run_id: int, width: int) -> pd.DataFrame:
    scores = data.scores_by_length((run_id,), width)
    scores["lengths"] = name_bins(scores)
    kept = scores[["first_length", "last_length", "lengths"]]
    parts = []
    of_kinds = [
        ("false positive", scores["fp"], scores["fp"] + scores["tn"]),
        ("false negative", scores["fn"], scores["fn"] + scores["tp"]),
    ]
    if scores["fp"].isna().all():
        of_kinds = [("wrong", scores["wrong"], scores["tested"])]
    for kind, wrong, tested in of_kinds:
        part = kept.assign(kind=kind, strings=wrong, tested=tested)
        part["rate"] = part["strings"] / part["tested"].where(part["tested"] > 0)
        parts.append(part[part["strings"] > 0])
    return pd.concat(parts)


MOST_TOKENS = 300
"""That are shown of each string."""

BEFORE = 20
"""Tokens that are shown before the first wrong one, where it is far behind."""

END = "END"
GOES_ON = "\N{HORIZONTAL ELLIPSIS}"


def show_alignment(config: RunConfig, errors: pd.DataFrame) -> None:
    """Draws the first of some errors; nothing where models write no outputs.

    Args:
        config: of the model.
        errors: string, target, output, first_wrong and error_kind, where they are of outputs.
    """
    if "output" not in errors or errors.empty or missing_plugin(config) is not None:
        return
    error = errors.iloc[0]
    problem = resolve(config)
    at_places = isinstance(problem.kind, PlacesKind)
    try:
        rows = places_of(problem, dict(error)) if at_places else align(problem.tokenizer, error)
    except InvalidStringError:
        # Of what stands in a database nothing is certain.
        st.caption("This output cannot be read.")
        return
    first_wrong = int(error["first_wrong"])
    elements.show_picture(problem.task, error["string"], first_wrong)
    start = max(0, first_wrong - BEFORE) if first_wrong >= MOST_TOKENS else 0
    st.html(alignment_table(rows, first_wrong, start, placement.ground().background))
    part = f" Shown from token {start + 1:,} on." if start else ""
    if at_places:
        st.caption(f"{FIRST_WRONG}{part}")
        return
    st.caption(
        "Marked: the first wrong token of the output; dimmed: those after it. END: the string ends "
        f"there.{part}"
    )


FIRST_WRONG = (
    "At each token what is right and what the model answers. Marked: the first wrong place."
)


def places_of(problem: Problem, error: Mapping[Any, Any]) -> dict[str, list[str]]:
    """A string from `CLS` on, with what is right and what is answered at each place.

    Raises:
        InvalidStringError: one cannot be read.
    """
    kind, task = problem.kind, problem.task
    assert isinstance(kind, PlacesKind)
    assert isinstance(task, AtEveryPlace)
    ids = problem.tokenizer.encode(error["string"])[1:]
    return {
        problem.kind.words.string.capitalize(): [
            "CLS",
            *(problem.tokenizer.alphabet[x - FIRST_LETTER] for x in ids),
        ],
        "Target": list(kind.read_texts(task, error["target"])),
        "Output": list(kind.read_texts(task, error["output"])),
    }


def align(tokenizer: Tokenizer, error: "pd.Series[Any]") -> dict[str, list[str]]:
    """Input, target and output as tokens, each with what follows its last one, where it is known.

    Raises:
        InvalidStringError: one is not of this alphabet.
    """
    # A model that was trained elsewhere may write tokens that the task does not have.
    known = tokenizer.with_tokens_of(error["output"])
    rows = {
        name: [known.alphabet[x - FIRST_LETTER] for x in known.encode(error[column])[1:]]
        for name, column in (("Input", "string"), ("Target", "target"), ("Output", "output"))
    }
    target, output = rows["Target"], rows["Output"]
    if error["error_kind"] == "stopped early":
        output.append(END)
    elif output == target:
        output.append(GOES_ON)
    target.append(END)
    return rows


def alignment_table(rows: dict[str, list[str]], first_wrong: int, start: int, ground: str) -> str:
    """The strings as HTML, one below the other.

    Args:
        rows: tokens by what they are; the output is the last.
        first_wrong: tokens of the output that are right before the first wrong one.
        start: tokens of each that are left out at its beginning.
        ground: the color of the page, over which long strings are scrolled.
    """
    body = "".join(
        f'<tr><th scope="row" style="background:{ground}">{html.escape(name)}</th>'
        + "".join(_cells(tokens, first_wrong if name == "Output" else None, start))
        + "</tr>"
        for name, tokens in rows.items()
    )
    return f'<div class="aligned" tabindex="0"><table><tbody>{body}</tbody></table></div>'


def _cells(tokens: Sequence[str], first_wrong: int | None, start: int) -> list[str]:
    return [
        _cell(token, None if first_wrong is None else place - first_wrong)
        for place, token in list(enumerate(tokens))[start : start + MOST_TOKENS]
    ]


def _cell(token: str, behind: int | None) -> str:
    """A token; `behind` places after the first wrong one."""
    text = html.escape(token)
    if behind == 0:
        return f"<td><mark>{text}</mark></td>"
    return f'<td class="after">{text}</td>' if behind and behind > 0 else f"<td>{text}</td>"
