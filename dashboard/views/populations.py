"""Populations of languages: which classes are learned, by which networks."""

from collections.abc import Sequence

import altair as alt
import pandas as pd
import streamlit as st

from dashboard import data, layout, placement
from dashboard.charts.colors import GENERALIZES, INK, OKABE_ITO
from dashboard.charts.parts import Layers
from dashboard.charts.pointing import chart_with_names
from dashboard.charts.scales import class_color, rows, title_params
from seqcls.interpretability.wording import percent
from sweeps.api.languages import MODELS, MOST_BY_DRAWN, PARTS, READER, Populations
from sweeps.api.old_pages.reading import Selection
from sweeps.naming import say_setting
from sweeps.results import BORDER_SHARES, describe_longer

TITLE = "Over languages"

MOST = 100
"""Populations that are drawn."""

SHARES = {"learned": OKABE_ITO[4], "generalize": GENERALIZES}
STRINGS = {"random": OKABE_ITO[0], "border": OKABE_ITO[1]}
"""What is drawn side by side, and its color."""

COLUMNS = {
    "languages": "Languages",
    **{
        f"{part}{x}": f"{part.title()}{x.replace('_', ' ')}"
        for part in SHARES
        for x in ("", "_95%")
    },
    **{x: BORDER_SHARES.get(x, x.replace("_", ", ")).capitalize() for x in PARTS},
}
"""What the columns of the table are called."""

ROW, FURNITURE = 34, 110
"""Pixels of a population, and of what stands above and below all."""


def show(view: Selection) -> None:
    """Draws the section of the page; nothing where no configurations differ only by the language.

    Args:
        view: which models; results do not pick among them, so that shares are of all languages.
    """
    found = data.populations(view)
    if found.shares.empty:
        return
    st.subheader(TITLE)
    table = found.texts().drop(columns="seeds")
    height = layout.table_height(len(table), 390)
    st.dataframe(table, hide_index=True, height=height, column_config=COLUMNS)
    shown = Populations(found.by, found.shares.head(MOST), found.accuracies)
    named = names(shown)
    spec = placement.build(share_points, shown, named)
    placement.show_under_keys(spec, "language_shares")
    if len(found.accuracies):
        spec = placement.build(accuracy_bars, shown, named)
        placement.show_under_keys(spec, "language_accuracies")
    elif found.shares["seeds"].sum() > MOST_BY_DRAWN:
        st.caption(
            f"Accuracies by how strings were drawn are left out of more than {MOST_BY_DRAWN:,} "
            "models; filter for one class or network."
        )
    if said := describe_longer(found.longer):
        st.caption(said)
    st.caption(
        "Each row has all configurations that differ only by the language. A language counts by "
        f"the share of its seeds that have learned, with {percent(view.learned_at, 1)} of strings "
        "of trained lengths right, and by the share of these that generalize. Intervals of 95% are "
        "over languages: seeds of one language are no further languages."
        + (f" The charts show the first {MOST}." if len(found.shares) > MOST else "")
    )


def names(found: Populations) -> list[str]:
    """What populations are called: their settings, row by row."""
    rows = found.shares[found.by].to_dict("records")
    return [
        ", ".join(say_setting(x, row[x], row.get("architecture", "")) for x in found.by if row[x])
        for row in rows
    ]


def share_points(found: Populations, named: Sequence[str]) -> Layers:
    """The shares of languages that are learned, and generalized on, with intervals over languages.

    Args:
        found: the populations.
        named: what they are called, row by row.
    """
    parts = [
        pd.DataFrame(
            {
                "configuration": list(named),
                "share": part,
                "value": found.shares[part],
                "low": found.shares[f"{part}_low"],
                "high": found.shares[f"{part}_high"],
                "languages": found.shares[f"{part}_languages"],
            }
        )
        for part in SHARES
    ]
    frame = pd.concat(parts).dropna(subset=["value"])
    base = chart_with_names(frame, named).encode(
        rows(named), alt.YOffset("share:N", sort=list(SHARES)), class_color("share", SHARES)
    )
    tooltip = [
        alt.Tooltip("configuration:N", title="Population"),
        alt.Tooltip("share:N", title="Share"),
        alt.Tooltip("value:Q", title="Of languages", format=".0%"),
        alt.Tooltip("low:Q", title="95% interval, from", format=".0%"),
        alt.Tooltip("high:Q", title="to", format=".0%"),
        alt.Tooltip("languages:Q", title="Languages"),
    ]
    layers = alt.layer(
        base.mark_rule(strokeWidth=2, opacity=0.6).encode(_x("low", "Languages"), alt.X2("high:Q")),
        base.mark_point(filled=True, size=60, opacity=1).encode(
            _x("value", "Languages"), tooltip=tooltip
        ),
    )
    return _set_size(
        layers,
        named,
        "How many languages are learned, and generalized on?",
        "Generalize: of the seeds that learned. Intervals are over languages.",
    )


def accuracy_bars(found: Populations, named: Sequence[str]) -> Layers:
    """Accuracies on random strings and at the border as two bars, with the best reader's beside.

    Args:
        found: the populations, with accuracies.
        named: what they are called, row by row.
    """
    known = found.accuracies[found.accuracies["strings"].isin(STRINGS)]
    frame = known.merge(found.shares[found.by].assign(configuration=list(named)))
    base = chart_with_names(frame, named).encode(
        rows(named), alt.YOffset("strings:N", sort=list(STRINGS))
    )
    tooltip = [
        alt.Tooltip("configuration:N", title="Population"),
        alt.Tooltip("name:N", title="Of"),
        alt.Tooltip("strings:N", title="Strings"),
        alt.Tooltip("median:Q", title="Median over languages", format=".1%"),
        alt.Tooltip("n:Q", title="Languages"),
    ]
    models = base.transform_filter(alt.datum.name == MODELS)
    readers = base.transform_filter(alt.datum.name == READER)
    layers = alt.layer(
        models.mark_bar().encode(
            _x("median", "Accuracy"), class_color("strings", STRINGS), tooltip=tooltip
        ),
        readers.mark_tick(thickness=3, color=INK).encode(_x("median", "Accuracy"), tooltip=tooltip),
    )
    return _set_size(
        layers,
        named,
        "Does accuracy on random strings hold at the border?",
        "Medians over languages. A dark tick is the best shortcut reader of the same strings.",
    )


def _x(field: str, title: str) -> alt.X:
    scale = alt.Scale(domain=[0, 1])
    return alt.X(f"{field}:Q", title=title, axis=alt.Axis(format="%"), scale=scale)


def _set_size(layers: Layers, named: Sequence[str], title: str, subtitle: str) -> Layers:
    height = ROW * len(named) + FURNITURE
    return layers.properties(height=height, title=title_params(title, subtitle=subtitle))
