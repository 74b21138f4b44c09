"""Which configurations generalize to long strings, and which of their seeds fail."""

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from dashboard import data, filters, links, placement, share
from dashboard.charts.colors import OKABE_ITO
from dashboard.charts.scales import BLANK
from dashboard.text import verbatim
from dashboard.views import (
    accuracy_by_length,
    budgets,
    configurations,
    importance,
    populations,
    scores,
    seeds,
    shortcuts,
)
from dashboard.views.scores import MAX_MODELS, MAX_ROWS
from dashboard.words import measures, names, outcomes
from seqcls.interpretability.wording import percent
from seqcls.kinds import Measure
from seqcls.theory.table import NOT_KNOWN
from sweeps.api.old_pages.reading import Selection
from sweeps.results import BORDER_SHARES, Outcome, setting_names

# Pixels of the table; it scrolls beyond.
MOST_HEIGHT = 388

# Columns that are shown only where they say something.
RARE = ("unfinished", "failed", "beyond_seeds", "unlearned_seeds", "every_length")

# Of models that are judged on trained and on longer lengths, these say the same less well.
FAILING = ("failing", "failing_share", "failing_interval", "failing_seeds")

GENERALIZING = ("generalize_of", "generalizing_share", "generalizing_interval")

# Columns of languages alone.
CELLS = ("false_positives", "false_negatives")

# The columns of results, in order; the settings that differ come after them.
RESULTS = (
    "generalize_of", "generalizing_share", "generalizing_interval", "every_length", "learned_of",
    "failing", "failing_share", "failing_interval", "predicted", "median_solved_length",
    "median_accuracy", "interval", "random", "border", "shortcut",
    "beyond_seeds", "unlearned_seeds", "failing_seeds", "seeds", "unfinished", "failed",
    "false_positives", "false_negatives",
)  # fmt: skip

# Columns that are left out first, until all others fit: the rest of the page says as much.
EXPENDABLE = (
    "sweeps", "generalizing_share", "seeds", "failing_share", "unlearned_seeds", "failing_interval",
    "failing_seeds", "interval", "beyond_seeds", "shortcut",
)  # fmt: skip

# Pixels that columns have in a window of 1,440, beside the boxes that select rows.
ROOM = 1026

# Pixels of a column, about, whose width follows from what is in it.
UNSET = 95

SEEDS, WIDE = ("failing_seeds", "unlearned_seeds", "beyond_seeds"), 220
"""Columns that list seeds, and the pixels that they have at most."""

SWEEPS, CONFIGURATION = "sweeps", "configuration"

AT_ONCE = 50
"""Configurations that are asked at once whether causes can be found."""


def show() -> None:
    header = share.header("Which models generalize to longer strings?")
    view = filters.current()
    counts = data.configurations(view)
    if not _glance(counts, view):
        return
    table = configurations.table(view)
    if table.empty:
        picked = " and ".join(filters.describe_picked(view)) or "is tested"
        st.success(f"No model that matches the filters {picked}. Clear them in the sidebar.")
        return
    share.offer(
        header,
        "configurations",
        lambda: configurations.table(view),
        view,
        only=filters.describe_filters(),
    )
    chosen, is_selected = _table(table, view)
    if not scores.counts(view, _ids(chosen)):
        st.info("None of the selected configurations has a model that is trained and tested.")
        return
    drawn = _order(chosen, is_selected)
    _outcomes(drawn, view)
    if said := data.trained_on(_ids(chosen)) or data.without_pairs(_ids(chosen)):
        st.caption(verbatim(said))
    configurations.show_predictions(chosen, _names(chosen, view))
    populations.show(view)
    shortcuts.show_no_better(chosen, view)
    _by_length(drawn, view)
    _by_seed(drawn, view, is_long=len(drawn) < len(chosen))
    budgets.show(_ids(chosen), view)
    importance.show(chosen, view, _names(chosen, view))


def _glance(counts: pd.DataFrame, view: Selection) -> bool:
    """Numbers of runs; False where there is nothing more to show."""
    if counts.empty:
        filters.say_none(
            "No run matches the filters. Clear them in the sidebar, or choose other seeds."
        )
        return False
    total = counts.drop(columns="config_id").sum()
    done, failing = int(total["seeds"]), int(total["failing"])
    words = measures.words_of(counts["config_id"]).words
    if done:
        came_to = data.count_outcomes(view)
        st.markdown(
            f"**{verbatim(outcomes.headline(came_to, words))}**",
            help=verbatim(outcomes.meaning(words, view.learned_at, view.below)),
        )
        further = len(data.trained_further(view))
        known = (outcomes.details(came_to, words), budgets.describe_further(further))
        if said := " ".join(filter(None, known)):
            st.caption(verbatim(said))
    # In a row that wraps: in columns, names would be cut off at 820 pixels.
    with st.container(horizontal=True, gap="medium", key="glance"):
        st.metric("Models tested", f"{done:,}", help=measures.TESTED, width="content")
        if view.picks:
            st.metric(
                "Match the filters",
                f"{int(counts['picked'].sum()):,}",
                help="Models that are listed and drawn. Shares and medians are over all that are "
                "tested.",
                width="content",
            )
        # Of models that are judged on trained and on longer lengths, it says the same less well.
        if not done or configurations.count_outcomes(counts)[Outcome.NOT_KNOWN].any():
            st.metric(
                "Failing models",
                f"{failing:,} ({percent(failing / done, 0)})" if done else "none yet",
                help=verbatim(measures.failing(view.below, words)),
                width="content",
            )
        st.metric("Queued or in training", f"{int(total['unfinished']):,}", width="content")
        st.metric("Training failed", f"{int(total['failed']):,}", width="content")
    if total["failed"]:
        st.caption("The Sweeps page says why training failed.")
    if not done and total["unfinished"]:
        st.info(
            "None of these runs has finished yet, so there is nothing to compare. The sidebar "
            "shows their progress; resume them there if no worker is training them."
        )
    elif not done:
        st.info("There is no model to compare: training failed for all of these runs.")
    return bool(done)


def _table(table: pd.DataFrame, view: Selection) -> tuple[pd.DataFrame, bool]:
    """The table of configurations; the rows to draw, and whether they were selected."""
    st.subheader("Configurations")
    others, results = [SWEEPS, *setting_names(table)], _results(table)
    with st.container(horizontal=True, vertical_alignment="center"):
        first = "Highest share of failing seeds first."
        if table["judged_beyond"].any():
            first = "Lowest share that generalizes first, of the seeds that learned."
        elif table["judged"].any():
            first = "Lowest share of seeds that learned first."
        st.caption(f"{first} Select rows to draw only those, two to compare them.")
        shown = links.columns([*results, *others], "the configuration")
    table = table.assign(
        configuration=_names(table, view),
        **{x: shortcuts.within_and_beyond(table, x) for x in ("random", "border", "shortcut")},
    )
    columns = measures.setting_columns(
        others[1:], table[CONFIGURATION]
    ) | measures.configuration_columns(
        view.below, measures.words_of(table["config_id"]), view.learned_at
    )
    for name in SEEDS:
        # Wide enough for what is in it: which seeds these are is not to be guessed.
        longest = max((len(x) for x in table[name] if isinstance(x, str)), default=0)
        columns[name]["width"] = round(min(max(columns[name]["width"], 7 * longest + 20), WIDE))
    every = [CONFIGURATION, *shown]
    if "columns" not in st.query_params:
        # Until columns are chosen those are shown for which there is room.
        empty = {x for x in ("interval", "median_solved_length") if table[x].isna().all()}
        shown = [name for name in shown if name not in {*others[1:], *CELLS, *empty}]
        widths = {name: columns[name].get("width") or UNSET for name in (CONFIGURATION, *shown)}
        shown = _fitting(shown, widths)
    links.say_what_is_not("config", table["config_id"])
    selected = links.selectable(
        table[every],
        table["config_id"].tolist(),
        "config",
        mode="multi-row",
        columns=columns,
        most=MOST_HEIGHT,
        order=[CONFIGURATION, *shown],
    )
    rows = table[table["config_id"].isin(selected)]
    _two(rows)
    return (rows, True) if len(rows) else (table[table["seeds"] > 0], False)


def _order(chosen: pd.DataFrame, is_selected: bool) -> pd.DataFrame:
    """The rows of the charts: those of one language, which have the beginnings of their names in
    common, stand together.
    """
    few = chosen.head(MAX_ROWS if is_selected else len(OKABE_ITO))
    if len(few) < len(chosen):
        which = "selected " if is_selected else ""
        st.caption(
            f"The charts show the first {len(few)} of {len(chosen)} {which}configurations. Select "
            "rows in the table to draw others."
        )
    language = few["config_id"].map(data.languages())
    place = language.map({name: i for i, name in enumerate(dict.fromkeys(language))})
    return few.assign(language=language, place=place).sort_values("place", kind="stable")


def _fitting(shown: list[str], widths: Mapping[str, int]) -> list[str]:
    """The columns for which there is room beside those that name the rows.

    Args:
        shown: the columns, in order.
        widths: the pixels of these and of those that name the rows.
    """
    too_wide, left_out = sum(widths.values()) - ROOM, set()
    for name in EXPENDABLE:
        # How many fail says nothing without of how many.
        if too_wide > 0 and name in shown and not (name == "seeds" and "failing" in shown):
            too_wide -= widths[name]
            left_out.add(name)
    return [name for name in shown if name not in left_out]


def _results(table: pd.DataFrame) -> list[str]:
    """The columns of results that say something of these configurations."""
    results = [x for x in RESULTS if x not in RARE or table[x].astype(bool).any()]
    if not configurations.count_outcomes(table)[Outcome.NOT_KNOWN].any():
        results = [x for x in results if x not in FAILING]
    if not table["judged"].any():
        results.remove("learned_of")
    # Where none has learned, there is none that could generalize.
    if not table["judged_beyond"].any():
        results = [x for x in results if x not in GENERALIZING]
    if (table["predicted"] == NOT_KNOWN).all():
        results.remove("predicted")
    if table["shortcut_reader"].isna().all():
        results.remove("shortcut")
    if table[list(BORDER_SHARES)].isna().all(axis=None):
        results = [x for x in results if x not in ("random", "border")]
    if not measures.has_cells(table["config_id"]):
        results = [x for x in results if x not in CELLS]
    return results


def _two(rows: pd.DataFrame) -> None:
    """A link to what the two selected rows differ in."""
    tested = rows[rows["seeds"] > 0]["config_id"].tolist()
    if len(tested) == 2:
        links.to_compare_two("config", tested, "Compare these two")


def _ids(table: pd.DataFrame) -> tuple[int, ...]:
    return tuple(table["config_id"].tolist())


def _names(table: pd.DataFrame, view: Selection) -> list[str]:
    return list(names.configuration_names(_ids(table), view).values())


def _outcomes(chosen: pd.DataFrame, view: Selection) -> None:
    """A bar for each configuration, of what its seeds came to."""
    few = chosen[chosen["seeds"] > 0]
    if few["judged"].any():
        told = names.names_with_settings(_ids(few), view)
        chart = placement.build(configurations.outcome_bars, few, told)
        placement.show_under_keys(chart, "outcomes")
    if said := configurations.describe_unknown(chosen, data.models(view)):
        st.caption(said)


def _by_length(chosen: pd.DataFrame, view: Selection) -> None:
    st.subheader("By string length")
    ids = _ids(chosen)
    measure, width = _length_controls(scores.offered_measures(ids), scores.first_width(ids))
    drawable = scores.drawable(chosen["seeds"], len(OKABE_ITO), scores.MAX_READ)
    if len(chosen) > drawable:
        st.caption(
            f"The chart shows the first {drawable} of these {len(chosen)} configurations, one "
            "color each."
        )
        chosen = chosen.head(drawable)
    lines = scores.lines(view, _ids(chosen), measure, width)
    if lines is None:
        return
    if lines.most is not None:
        st.caption(
            f"The chart shows up to {lines.most} models of each configuration, evenly from the "
            "worst to the best. Medians and intervals are over all of them."
        )
    if lines.without_readers:
        st.caption(lines.without_readers)
    accuracy_by_length.show(lines.given, lines.colors, "by_length")
    st.caption(
        f"{verbatim(measure.meaning)} Hover over a line to see its seed; click it to look inside "
        "the model. Coinciding lines are offset so that each is visible."
    )


def _length_controls(measures_of: Mapping[str, Measure], width: int) -> tuple[Measure, int]:
    row = st.container(horizontal=True, gap="medium", key="controls")
    said = verbatim(" ".join(f"{name}: {known.meaning}" for name, known in measures_of.items()))
    titles = list(measures_of)
    measure = links.choice(
        "Measure", titles, "measure", titles[0], place=row, help=said, format_func=verbatim
    )
    said = "Few test strings have any one length; together they make a steadier line."
    widths = [1, 5, 10, 20]
    chosen = links.choice("Lengths per point", widths, "lengths", width, place=row, help=said)
    return measures_of[measure], chosen


def _by_seed(chosen: pd.DataFrame, view: Selection, is_long: bool) -> None:
    st.subheader("Seed by seed")
    drawable = scores.drawable(chosen["seeds"], MAX_ROWS, MAX_MODELS)
    if len(chosen) > drawable:
        st.caption(f"The charts show the first {drawable} of these {len(chosen)} configurations.")
        chosen = chosen.head(drawable)
    ids = _ids(chosen)
    number = sum(scores.counts(view, ids).values())
    if number > MAX_MODELS:
        st.caption(
            f"The charts show {MAX_MODELS:,} of its {number:,} models, evenly from the worst to "
            "the best."
        )
    models, told = scores.by_seed(view, ids), _apart(chosen, names.names_with_settings(ids, view))
    strip = placement.build(seeds.every_seed, models, told)
    clicked = placement.show_under_keys(strip, "every_seed", click=seeds.CLICKED_POINT)
    links.open_clicked(clicked, seeds.CLICKED_POINT)
    label = "Accuracy of each seed as a grid"
    place = placement.unfold(len(models), label, "seed_grid", is_long=is_long)
    if place is not None:
        with place:
            _grid(models, told, view)
    st.caption("Click a point or a cell to look inside the model.")


def _apart(chosen: pd.DataFrame, told: Mapping[str, str]) -> dict[str, str]:
    """Names with an empty one before those of each further language: rows stand in groups."""
    apart: dict[str, str] = {}
    for place, (name, settings) in zip(chosen["place"].tolist(), told.items(), strict=True):
        if place:
            apart.setdefault(BLANK * place, "")
        apart[name] = settings
    return apart


def _grid(models: pd.DataFrame, told: Mapping[str, str], view: Selection) -> None:
    grid = placement.build(seeds.seed_grid, models, told)
    clicked = placement.show(grid, "seed_grid", click=seeds.CLICKED_CELL)
    links.open_clicked(clicked, seeds.CLICKED_CELL)
    matching = " that matches the filters" if view.picks else ""
    st.caption(f"An empty cell has no finished model of that seed{matching}.")


show()
