"""The page of its question: for each task its answer, its table, and one picture."""

from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import data, filters, outside, page
from dashboard.results import sections
from dashboard.results.maps import MAPPED
from dashboard.results.words import MEASURED, OTHERS
from dashboard.section import Section, figure
from dashboard.text import plain
from dashboard.words.columns import column_of
from sweeps.api import baselines, by_settings, outcomes
from sweeps.api.selecting import Selection
from sweeps.statistics.populations import CLASS

LENGTHS, MAP, SETTINGS = PICTURES = ("By length", "Map", "Settings")

# Letters of a name from which on no four pictures are beside each other.
LONG = 26

configurations = data.cached(sections.configurations)
groups = data.cached(sections.groups)
by_length = data.cached(sections.by_length)
heat_map = data.cached(sections.heat_map)
settings = data.cached(sections.settings)
pair = data.cached(sections.pair)
counts_of = data.cached(outcomes.counts_of)
proposed_baseline = data.cached(baselines.proposed_baseline)
networks_of = data.cached(baselines.networks_of)
axes_of = data.cached(by_settings.axes_of)
from_outside = data.cached(outside.sections)


def show() -> None:
    """Draws the page."""
    st.title("Which configurations generalize to longer strings?", anchor=False)
    selections = filters.selections()
    counts = {task: counts_of(selection) for task, selection in selections.items()}
    if not any(len(table) for table in counts.values()):
        st.info(filters.why_empty())
        return
    _say_unknown_rows(counts)
    answer, middle, right = st.columns([6, 2, 2], vertical_alignment="bottom")
    chosen = _choose_baselines(counts, right)
    measure = None
    if any(chosen.values()):
        measure = _one_of("Compared by", [*MEASURED], "measure", middle, "What differs most")
    for number, (task, selection) in enumerate(selections.items()):
        place = st.container() if number else answer
        if len(selections) > 1:
            place.header(plain(filters.task_name(task)), anchor=False)
        if len(counts[task]):
            _task(task, selection, chosen[task], measure, number, place)


def _say_unknown_rows(counts: Mapping[str, pd.DataFrame]) -> None:
    """Says which rows the link selects that no table has."""
    known = {str(x) for table in counts.values() for x in table["config_id"]}
    for requested in st.query_params.get_all("rows"):
        if requested not in known:
            sentence = (
                f"The link asks for rows {requested[:60]}, which is not among these configurations."
            )
            st.warning(page.plain(sentence))


def _one_of(
    label: str,
    options: Sequence[str],
    key: str,
    place: DeltaGenerator | None,
    usual: str,
    meaning: str | None = None,
) -> str | None:
    """One of a list, whose key the link has; None where none is chosen.

    Args:
        place: of the box; None above the first task, where it holds for all.
    """
    if place is None:
        chosen = st.session_state.get(key)
        return chosen if chosen in options else None
    page.say_not_offered(key, options)
    chosen = place.selectbox(
        label,
        options,
        index=None,
        placeholder=usual,
        key=key,
        bind="query-params",
        help=meaning,
    )
    return chosen if chosen in options else None


def _choose_baselines(
    counts: Mapping[str, pd.DataFrame], place: DeltaGenerator
) -> dict[str, int | None]:
    """For each task the configuration that others are compared with: the one that was chosen, or
    has the same network; else the proposed one.
    """
    usual = {
        task: proposed_baseline(dict(zip(table["config_id"], table["seeds"], strict=True)))
        for task, table in counts.items()
    }
    names = {x: name for table in counts.values() for x, name in _names(table).items()}
    networks = networks_of(tuple(names))
    # One of each network: the other tasks' follow it.
    first = {network: x for x, network in reversed(networks.items())}
    offered = {name: x for x, name in names.items() if first[networks[x]] == x}
    proposed = next((x for x in usual.values() if x is not None), None)
    if proposed is None:
        return usual
    requested = _one_of(
        "Baseline", list(offered), "baseline", place, names[proposed],
        "Every other row is compared with it. Proposed: of those with the most seeds the one that "
        "changes the fewest settings.",
    )  # fmt: skip
    if requested is None:
        return usual
    alike = {x for x in names if networks[x] == networks[offered[requested]]}
    return {
        task: next((x for x in _names(table) if x in alike), usual[task])
        for task, table in counts.items()
    }


def _names(table: pd.DataFrame) -> dict[int, str]:
    return {int(x): str(y) for x, y in zip(table["config_id"], table["name"], strict=True)}


def _task(
    task: str,
    selection: Selection,
    baseline: int | None,
    measure: str | None,
    number: int,
    answer: DeltaGenerator,
) -> None:
    ids = tuple(counts_of(selection)["config_id"].tolist())
    table, two = st.container(), st.container()
    bar = st.container(
        horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"
    )
    # Chosen once, above the first task, for all of them.
    picture = str(st.session_state.get("show") or LENGTHS)
    if not number:
        picture = page.choose("Picture", PICTURES, "show", hidden=True, place=bar)
    right = bar.container(horizontal=True, width="content", gap="small")
    columns, by = _more(ids, number, right)
    if by is None:
        found = configurations(selection, baseline, measure, tuple(columns))
    # Classes are compared over all tasks, since a task's language is of one class.
    elif by == CLASS:
        found = groups(filters.of_every_task(), by)
    else:
        found = groups(selection, by, ids)
    with answer:
        page.say(found.says)
    if found.table is None:
        return
    key, order = f"results {number}", ids
    chosen: tuple[int, ...] = ()
    with table:
        if by is None:
            chosen = _select(found, key)
            order = tuple(found.table["config_id"].tolist())
        else:
            page.table(found.table, f"{key} {by}", shown=found.shown)
    if len(chosen) == 2:
        with two:
            for place, section in enumerate(pair(selection, *chosen)):
                page.render(section, f"{key} pair {place}", across=2)
    pictured = _draw(picture, selection, chosen or order, measure, number)
    _downloads(right, found, pictured, task, number)
    for place, section in enumerate(from_outside(selection)):
        page.render(section, f"{key} outside {place}")


def _more(ids: Sequence[int], number: int, place: DeltaGenerator) -> tuple[list[str], str | None]:
    """Columns that are shown besides, and by what rows are summed up; chosen once for all tasks."""
    read = data.read_settings(tuple(ids))
    classes = [CLASS] if CLASS not in read and data.classes().nunique() > 1 else []
    by = [*map(str, read), *classes]
    titles = {column_of(x).title: x for x in [*OTHERS, *map(str, read)]}
    if number:
        columns = [x for x in st.session_state.get("columns") or [] if x in titles]
        return [titles[x] for x in columns], st.session_state.get("by")
    page.say_not_offered("by", by)
    with place.popover("Columns", icon=":material/view_column:", type="tertiary"):
        columns = st.multiselect(
            "Columns besides",
            list(titles),
            key="columns",
            bind="query-params",
            placeholder="Those that differ",
            select_all=False,
        )
        group = _one_of("Rows", by, "by", st.container(), "Configurations",
                        "A row a value, in which each configuration weighs the same.")  # fmt: skip
    return [titles[x] for x in columns], group


def _select(found: Section, key: str) -> tuple[int, ...]:
    """The table; the ids of the rows that are selected, which the link has."""
    assert found.table is not None
    ids = found.table["config_id"].tolist()
    requested = [int(x) for x in st.query_params.get_all("rows") if x.isdecimal()]
    rows = [place for place, x in enumerate(ids) if x in requested]
    # Rows are selected by their places: other rows are another table.
    which = sha256(repr(ids).encode()).hexdigest()[:12]
    height = 38 + page.ROW * 12
    chosen = page.table(
        found.table, f"{key} {which}", "multi-row", shown=found.shown, selected=rows, height=height
    )
    every = {*data.languages()}
    # The tables of all tasks share the parameter: each keeps the rows of the others.
    others = [x for x in requested if x not in ids and x in every]
    # In the order in which they were selected: what differs is the first less the second.
    now = {ids[row] for row in chosen}
    selected = [x for x in dict.fromkeys([*requested, *(ids[row] for row in chosen)]) if x in now]
    if [*others, *selected] != requested:
        st.query_params["rows"] = [str(x) for x in (*others, *selected)]
    return tuple(selected)


def _draw(
    picture: str, selection: Selection, ids: tuple[int, ...], measure: str | None, number: int
) -> Section | None:
    """The chosen picture of these configurations."""
    if picture == LENGTHS:
        found = by_length(selection, ids)
    elif picture == SETTINGS:
        found = settings(selection, ids, measure or "generalizes")
    else:
        axes = axes_of(ids)
        if len(axes) < 2:
            st.caption("A map needs two settings in which the configurations differ.")
            return None
        across, up, measured, facet = _axes(axes, number)
        found = heat_map(selection, ids, across, up, measured, facet)
    page.say(found.says)
    page.say_legend(found)
    longest = max((len(x.title) for x in found.panels), default=0)
    beside = 4 if len(found.panels) % 4 == 0 and longest < LONG else 3
    if (run := page.draw(found, f"picture {number} {picture}", beside)) is not None:
        page.to_model(int(run))
    return found


def _axes(axes: Sequence[str], number: int) -> tuple[str, str, str, str | None]:
    """The map's two axes, its measure and its facet; chosen once for all tasks."""
    boxes = [None] * 4 if number else st.columns(4)
    across = _one_of("Across", axes, "across", boxes[0], axes[0]) or axes[0]
    others = [x for x in axes if x != across]
    up = _one_of("Up", others, "up", boxes[1], others[0]) or others[0]
    measured = _one_of("Shows", [*MAPPED], "of", boxes[2], "generalize") or "generalize"
    left = [x for x in others if x != up]
    return across, up, measured, _one_of("A map for each", left, "facet", boxes[3], "One map")


def _downloads(
    bar: DeltaGenerator, found: Section, pictured: Section | None, task: str, number: int
) -> None:
    """The picture as it is selected, with its title and legend; the table with its numbers."""
    with bar:
        if pictured is not None and pictured.panels:
            title = f"{filters.task_name(task)}, {pictured.title.lower()}: {filters.describe()}"
            # Drawn only on a click, since drawing starts a JavaScript engine.
            for kind in ("svg", "png"):
                st.download_button(
                    f"Figure {kind.upper()}",
                    partial(figure, pictured, title, kind),
                    f"{pictured.title.lower().replace(' ', '_')}.{kind}",
                    key=f"{kind} {number}",
                    icon=":material/image:",
                    type="tertiary",
                    on_click="ignore",
                )
        table = found.table
        assert table is not None
        st.download_button(
            "Table CSV",
            lambda: table.to_csv(index=False),
            "configurations.csv",
            "text/csv",
            key=f"csv {number}",
            icon=":material/table:",
            type="tertiary",
            on_click="ignore",
        )


show()
