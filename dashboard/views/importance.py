"""Which settings matter in a language: how far each moves a measure, and every configuration."""

import math
from collections.abc import Sequence
from numbers import Real

import altair as alt
import pandas as pd
import streamlit as st

from dashboard import data, links, placement
from dashboard.charts.colors import GREY, OKABE_ITO
from dashboard.charts.pointing import chart_with_names
from dashboard.charts.scales import (
    LABEL_WIDTH,
    LOW_TO_HIGH,
    Drawing,
    rows,
    title_params,
)
from dashboard.text import format_value, verbatim
from dashboard.views.heat_map import NOT_READ
from dashboard.words import languages, measures
from seqcls.interpretability.wording import percent
from sweeps.api.old_pages.judging_importance import MEASURES
from sweeps.api.old_pages.judging_naming import say_value
from sweeps.api.old_pages.reading import Selection
from sweeps.results import GENERALIZING, JUDGED_BEYOND, describe_longer
from sweeps.statistics.intervals import FEWEST

ROW = 34
FURNITURE = 90

FORMATS = {
    "Median accuracy": ".1~%",
    "Median solved length": ".1f",
    "Failing share": ".0%",
    "Share that learned": ".0%",
    "Share that generalizes": ".0%",
}

OF_WHICH = {
    "Failing share": " of models fail",
    "Share that learned": " of models learned",
    "Share that generalizes": " of those that learned generalize",
}
"""What a share is of, in a sentence."""

KNOWN_BY = {"Share that learned": "judged", "Share that generalizes": "judged_beyond"}
"""Columns of the models that these measures are shares of."""


def effect_text(value: float, measure: str) -> str:
    """A value of a measure as text."""
    if measure == "Median solved length":
        return f"{value:.1f} tokens"
    return percent(value, 1 if measure == "Median accuracy" else 0)


def importance_chart(frame: pd.DataFrame, measure: str) -> alt.LayerChart | alt.FacetChart:
    """A row a setting: the difference between its worst and its best value, with its interval.

    Args:
        frame: field, moves, low, high (differences), worst, at_worst, best, at_best, values; in
            the order in which settings are to stand.
        measure: what is moved, one of `FORMATS`.
    """
    unit = FORMATS[measure]
    share = unit.endswith("%")
    low = min(0.0, float(frame["low"].fillna(0).min()))
    top = max(0.01 if share else 1.0, float(frame[["moves", "high"]].max().max()))
    x = alt.X(
        "moves:Q",
        title=f"{measure}: worst value against best" + ("" if share else " (tokens)"),
        # In a narrow window it is longer than the axis, and has the room of the names.
        axis=alt.Axis(format=".2~%" if share else "d", titleAnchor="end"),
        scale=alt.Scale(domain=[low, top]),
    )
    fields = list(frame["field"])
    y = rows(fields, "field", grid=False)
    tooltip = [
        alt.Tooltip("field:N", title="Setting"),
        alt.Tooltip("moves:Q", title=f"Moves the {measure.lower()} by", format=unit),
        alt.Tooltip("low:Q", title="95% interval, from", format=unit),
        alt.Tooltip("high:Q", title="to", format=unit),
        alt.Tooltip("worst:N", title="Worst value"),
        alt.Tooltip("at_worst:Q", title=f"{measure} (worst)", format=unit),
        alt.Tooltip("best:N", title="Best value"),
        alt.Tooltip("at_best:Q", title=f"{measure} (best)", format=unit),
        alt.Tooltip("values:Q", title="Values"),
    ]
    base = alt.Chart(frame).encode(y)
    spans = base.mark_rule(color=GREY, strokeWidth=3).encode(alt.X("low:Q"), alt.X2("high:Q"))
    points = base.mark_point(filled=True, size=110, opacity=1, color=OKABE_ITO[0]).encode(
        x, tooltip=tooltip
    )
    title = title_params(
        f"What moves the {measure.lower()}",
        subtitle="A point is the difference between a setting's worst and best value; the bar, "
        "its 95% interval.",
    )
    return alt.layer(spans, points).properties(height=ROW * len(frame) + FURNITURE, title=title)


# Parallel coordinates: each configuration a line through its settings to what it comes to.

AXIS_HEIGHT, FURNITURE_HEIGHT = 260, 130
"""Pixels of an axis, and of what stands above and below all of them."""

NARROW = 75
"""Pixels between two axes, below which their names do not fit side by side."""

OUTCOME = "failing share"
STEPS = 20
WRITTEN = (0.0, 0.5, 1.0)
"""Where the outcome is written beside its axis."""


def places(table: pd.DataFrame, fields: Sequence[str], outcome: str = OUTCOME) -> pd.DataFrame:
    """One row a configuration and axis, its value placed between 0 and 1.

    Args:
        table: a row a configuration: its name (configuration), the outcome's column, the fields.
        fields: the axes, from the left; the outcome is the last.
        outcome: a share or a length, such as `failing share`, whose column is failing_share.

    Returns:
        configuration, the outcome, axis, line (the number of the axis), place, value (as text).
    """
    rows = []
    for field in fields:
        texts = pd.Series([_text(value) for value in table[field]], index=table.index)
        ranks = dict(zip(texts, map(_rank, table[field]), strict=True))
        values = sorted(ranks, key=lambda text: ranks[text])
        place_of = {value: i / max(1, len(values) - 1) for i, value in enumerate(values)}
        rows.append(_axis(table, outcome, field, texts.map(place_of), texts))
    low, top = _ends(table, outcome)
    place = ((table[_column(outcome)] - low) / (top - low)).clip(lower=0)
    texts = pd.Series(
        [_describe_value(x, outcome) for x in table[_column(outcome)]], index=table.index
    )
    rows.append(_axis(table, outcome, outcome, place, texts))
    return pd.concat(
        [axis_rows.assign(line=i) for i, axis_rows in enumerate(rows)], ignore_index=True
    )


def _column(outcome: str) -> str:
    return outcome.replace(" ", "_")


def _ends(table: pd.DataFrame, outcome: str) -> tuple[float, float]:
    """The values at the ends of the outcome's axis: of lengths 0 and the greatest; of shares that
    lie close together the twentieths around them, so that differences are seen.
    """
    values = table[_column(outcome)]
    if _is_length(outcome):
        return 0.0, max(1.0, float(values.max()))
    low, top = float(values.min()), float(values.max())
    if top - low >= 0.5 or values.isna().all():
        return 0.0, 1.0
    # Rounded first: 0.95 is a hair more than 19 twentieths.
    low = min(math.floor(round(low * STEPS, 9)), STEPS - 1)
    return low / STEPS, max(math.ceil(round(top * STEPS, 9)), low + 1) / STEPS


def _is_length(outcome: str) -> bool:
    return outcome.endswith("length")


def _describe_value(value: float, outcome: str) -> str:
    return f"{value:g}" if _is_length(outcome) else percent(value, 1)


def _text(value: object) -> str:
    if _is_missing(value):
        return NOT_READ
    return format_value(value)


def _rank(value: object) -> tuple[int, float, str]:
    """The sort key of a value: numbers by size, then words, then what is missing."""
    if _is_missing(value):
        return 2, 0.0, ""
    if isinstance(value, Real):
        return 0, float(value), ""
    return 1, 0.0, str(value)


def _is_missing(value: object) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))


def _axis(
    table: pd.DataFrame,
    outcome: str,
    name: str,
    place: "pd.Series[float]",
    value: "pd.Series[str]",
) -> pd.DataFrame:
    base = table[["configuration", _column(outcome)]]
    return base.assign(axis=name, place=place, value=value)


def parallel_coordinates(
    frame: pd.DataFrame, outcome: str = OUTCOME
) -> alt.LayerChart | alt.FacetChart:
    """A line a configuration, from the left to the right, colored by its outcome.

    Args:
        frame: as `places` makes it.
        outcome: likewise.
    """
    (low, top), column, said = _ends(frame, outcome), _column(outcome), outcome.capitalize()
    exact = ".1~f" if _is_length(outcome) else ".1~%"
    x, y = _axes(list(dict.fromkeys(frame["axis"])))
    lines = (
        chart_with_names(frame, list(dict.fromkeys(frame["configuration"])))
        .mark_line(strokeWidth=2, opacity=1)
        .encode(
            x,
            y,
            detail=alt.Detail("configuration:N"),
            order=alt.Order("line:Q"),
            color=alt.Color(
                f"{column}:Q",
                title=said,
                scale=alt.Scale(scheme=LOW_TO_HIGH, domain=[low, top], reverse=outcome == OUTCOME),
                legend=alt.Legend(
                    format=exact,
                    orient="right",
                    values=[low + (top - low) * place for place in WRITTEN],
                ),
            ),
            tooltip=[
                alt.Tooltip("configuration:N", title="Configuration"),
                alt.Tooltip(f"{column}:Q", title=said, format=exact),
            ],
        )
    )
    title = title_params("Settings of every configuration", subtitle="A line is one configuration.")
    return alt.layer(lines, _values(frame, x, y, outcome)).properties(
        height=AXIS_HEIGHT + FURNITURE_HEIGHT, title=title
    )


def _axes(names: list[str]) -> tuple[alt.X, alt.Y]:
    """An upright axis for each setting: its name below, in lines, or upright in a narrow window."""
    narrow = f"width < {NARROW * len(names)}"
    x = alt.X(
        "axis:N",
        title=None,
        sort=names,
        scale=alt.Scale(type="point", padding=0.4),
        axis=alt.Axis(
            labelExpr=f"{narrow} ? datum.label : split(datum.label, '_')",
            labelAngle={"expr": f"{narrow} ? -90 : 0"},
            labelAlign={"expr": f"{narrow} ? 'right' : 'center'"},
            labelBaseline={"expr": f"{narrow} ? 'middle' : 'top'"},
            labelLimit=LABEL_WIDTH,
            labelOverlap=False,
            grid=True,
        ),
    )
    return x, alt.Y("place:Q", axis=None, scale=alt.Scale(domain=[0, 1], nice=False))


def _values(frame: pd.DataFrame, x: alt.X, y: alt.Y, outcome: str) -> alt.Chart:
    """What each place on an axis stands for, beside it and above the line."""
    marks = frame[frame["axis"] != outcome].drop_duplicates(["axis", "value"])
    # Of a number a scale is enough: shares lie as close together as they like.
    shares = pd.DataFrame({"axis": outcome, "place": WRITTEN})
    low, top = _ends(frame, outcome)
    shares["value"] = [_describe_value(low + (top - low) * x, outcome) for x in WRITTEN]
    marks = pd.concat([marks[shares.columns], shares], ignore_index=True)
    # No longer than it is to the next axis.
    between = f"width / {frame['axis'].nunique()} - 8"
    room = alt.ExprRef(f"datum.axis == '{outcome}' ? 0 : {between}")
    texts = alt.Chart(marks).mark_text(
        align="left", dx=5, dy=-7, fontSize=11, clip=False, limit=room
    )
    return texts.encode(x, y, alt.Text("value:N"))


MOST_LINES = 150
MOST_AXES = 8


def show(table: pd.DataFrame, view: Selection, named: list[str]) -> None:
    """A section for configurations that differ in any setting; nothing where they do not.

    Args:
        table: one row a configuration: config_id, seeds, and what these come to.
        view: which models of them.
        named: what the configurations are called, row by row.
    """
    table = table.assign(
        configuration=named,
        share_that_learned=table["learned_share"],
        share_that_generalizes=table["generalizing_share"],
    )
    table = table[table["seeds"] > 0]
    table = table.assign(language=table["config_id"].map(data.languages()))
    # A single configuration of a language has nothing to be compared with.
    several = table[table["language"].duplicated(keep=False)]
    if several.empty:
        return
    known = several["language"].unique()
    st.subheader("Which setting matters?")
    seeds = {name: several["seeds"][several["language"] == name].sum() for name in known}
    language = languages.choose(pd.Series(seeds))
    said = measures.words_of(several.loc[several["language"] == language, "config_id"])
    of_language = several[several["language"] == language]
    measure = links.choice(
        "What it moves",
        [x for x in MEASURES if x not in KNOWN_BY or (of_language[KNOWN_BY[x]] > 0).sum() > 1],
        "moves",
        next(iter(MEASURES)),
        help=verbatim(
            f"Median accuracy: {said.accuracy} Median solved length: "
            f"{measures.solved_length(said.words)} Failing share: of seeds. "
            f"{measures.failing(view.below, said.words)} Share that generalizes: of the seeds that "
            "learned."
        ),
    )
    configs = several[several["language"] == language]
    ids = tuple(configs["config_id"].astype(int))
    effects = data.importance(view, ids, measure)
    longer = data.longer_lengths(ids) if measure == "Share that generalizes" else None
    if longer is not None:
        alike = data.models_alike(view, ids)
        judged = alike[alike["outcome"].isin(JUDGED_BEYOND)]
        right = judged["outcome"].isin(GENERALIZING).groupby(judged["config_id"]).mean()
        configs = configs.assign(share_that_generalizes=configs["config_id"].map(right))
    if effects.empty:
        st.caption(
            "Its configurations differ in no setting that their "
            f"{verbatim(said.words.task)} and network read."
        )
        return
    if view.picks:
        st.caption(
            "Only configurations with a model that matches the filters are compared, each by all "
            "its models."
        )
    if effects["moves"].max() > 0:
        _say(effects.iloc[0], measure, language)
    else:
        same = effect_text(effects["at_best"].iloc[0], measure)
        st.caption(f"{measure}: {same} with every value of every setting.")
    placement.show(placement.build(importance_chart, effects, measure), "importance")
    st.caption(
        f"{measure} of a value: the mean over the configurations with it; configurations whose "
        f"{verbatim(said.words.task)} or network does not use the setting are left out. Settings "
        "that always change together are grouped, since their effects cannot be separated. "
        + describe_longer([longer])
    )
    _parallel(configs, effects, measure.lower())


def _say(first: pd.Series, measure: str, language: str) -> None:
    """The setting that moves most, between which values, and how sure that is."""
    names = ", ".join(verbatim(name) for name in first["fields"])
    verb = "(changed together) move" if len(first["fields"]) > 1 else "moves"
    worst, best = (effect_text(first[name], measure) for name in ("at_worst", "at_best"))
    of = OF_WHICH.get(measure, "")
    st.markdown(
        f"In {verbatim(language)}, {names} {verb} the {measure.lower()} most: {worst}{of} with "
        f"{_values_of(first, 'worst')}, {best} with {_values_of(first, 'best')} (difference "
        f"{effect_text(first['moves'], measure)}, {_interval(first, measure)})."
    )
    kind = "Newcombe" if MEASURES[measure].is_share else "bootstrap over seeds"
    seeds = "seed by seed" if first["paired"] else "as independent samples"
    others = "" if first["alike"] else " They differ in other settings too, which may be the cause."
    st.caption(
        f"Interval: {kind}, the configurations compared {seeds}.{others} The setting and its worst "
        "and best value were chosen from these same models; the interval does not take this choice "
        "into account."
    )


def _values_of(first: pd.Series, end: str) -> str:
    """The values of the settings that move most, in words."""
    values = first[end].split(", ")
    if len(values) != len(first["fields"]):
        return verbatim(first[end])
    return verbatim(", ".join(map(say_value, first["fields"], values)))


def _interval(first: pd.Series, measure: str) -> str:
    if pd.isna(first["low"]):
        return f"no interval: a configuration has fewer than {FEWEST} seeds"
    # Without minus signs of a keyboard, which read as dashes here.
    ends = [
        effect_text(first[end], measure).replace("-", "\N{MINUS SIGN}") for end in ("low", "high")
    ]
    unsure = "; it includes 0, so more seeds are needed to tell" if first["low"] <= 0 else ""
    return f"95% interval {' to '.join(ends)}{unsure}"


def _parallel(table: pd.DataFrame, effects: pd.DataFrame, outcome: str) -> None:
    fields = [name for names in effects["fields"] for name in names][:MOST_AXES]
    if len(fields) < 2:
        return
    column = outcome.replace(" ", "_")
    if column.startswith("share_that"):
        table = table.dropna(subset=[column])
    # As in the weights: where no tested length is solved, none is.
    table = table.fillna({column: 0})
    few = table.sort_values(column, ascending=outcome != OUTCOME, kind="stable").head(MOST_LINES)
    label, rows = "Settings of every configuration", len(few) * (len(fields) + 1)
    is_long = len(table) > len(OKABE_ITO)
    if (place := placement.unfold(rows, label, "parallel", is_long=is_long)) is None:
        return
    settings = data.read_settings(tuple(table["config_id"].astype(int)))[fields]
    joined = few[["config_id", "configuration", column]].join(settings, on="config_id")
    with place:
        if len(few) < len(table):
            st.caption(f"The chart shows the worst {MOST_LINES} of {len(table):,} configurations.")
        placement.show(placement.build(_lines, joined, fields, outcome), "parallel")


def _lines(joined: pd.DataFrame, fields: list[str], outcome: str) -> Drawing:
    return parallel_coordinates(places(joined, fields, outcome), outcome)
