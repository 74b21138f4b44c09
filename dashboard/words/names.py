"""What configurations and models are called on a page."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from dashboard import data
from dashboard.charts.colors import OKABE_ITO
from dashboard.text import format_value
from seqcls.imported import PREFIX
from sweeps.api import naming
from sweeps.api.naming import names_of
from sweeps.api.old_pages import reading
from sweeps.api.old_pages.judging_naming import settings_changed
from sweeps.api.old_pages.reading import Selection

COLORS = "colors of configurations"
"""Those that the session has seen."""


_names_beside = data.cached(names_of, reading.configs_revision)
settings_of = data.cached(naming.settings_of, reading.configs_revision)


def configuration_names(config_ids: Sequence[int], view: Selection | None = None) -> dict[int, str]:
    """What configurations are called beside each other, and beside all others of a view.

    Args:
        config_ids: which configurations.
        view: what a page shows: a configuration has one name in all of its tables and charts.
    """
    shown = set(config_ids)
    if view is not None:
        counts = data.configurations(view)
        shown.update(counts.loc[counts["picked"] > 0, "config_id"].tolist())
    named = _names_beside(tuple(sorted(shown)))
    return {config_id: named[config_id] for config_id in config_ids}


def names_with_settings(config_ids: Sequence[int], view: Selection) -> dict[str, str]:
    """The names of configurations, each with the settings that are not usual, for tooltips."""
    settings = settings_of(tuple(config_ids))
    return {
        name: list_settings(settings_changed(settings[config_id]))
        for config_id, name in configuration_names(config_ids, view).items()
    }


def list_settings(settings: Mapping[str, Any]) -> str:
    """Settings as specifications and `--where` name them, in one line."""
    return ", ".join(f"{x}={format_value(y) or repr('')}" for x, y in settings.items())


def sweep_names(config_ids: Sequence[int], memberships: pd.DataFrame) -> "pd.Series[str]":
    """The sweeps that each configuration belongs to, joined; indexed by config_id."""
    chosen = memberships[memberships["config_id"].isin(config_ids)]
    joined = chosen.groupby("config_id")["sweep"].agg(", ".join)
    return joined.reindex(list(config_ids), fill_value="no sweep")


def settings_that_differ(config_ids: Sequence[int]) -> pd.DataFrame:
    """The settings that are not the same in all that read them, the most telling first.

    Returns:
        A row a configuration, indexed by config_id; missing where it does not read a setting.
    """
    known = settings_of(tuple(dict.fromkeys(config_ids)))
    table = pd.DataFrame(list(known.values()), index=pd.Index(known), dtype=object)
    fields = sorted(map(str, table), key=naming.place_of)
    # A foreign one may be missing from some.
    return table[[x for x in fields if table[x].nunique(dropna=not x.startswith(PREFIX)) > 1]]


def colors(config_ids: Sequence[int]) -> dict[int, str]:
    """A color for each of a few configurations, which it keeps when others come or go.

    Args:
        config_ids: at most as many as the palette has colors.
    """
    kept: dict[int, str] = st.session_state.setdefault(COLORS, {})
    kept |= assign_colors(sorted(config_ids), sorted(data.settings().index), kept)
    return {config_id: kept[config_id] for config_id in sorted(config_ids)}


def assign_colors(
    config_ids: Sequence[int], known: Sequence[int], kept: Mapping[int, str]
) -> dict[int, str]:
    """Colors that no two of these configurations share.

    Args:
        config_ids: the configurations, in order.
        known: all that there are, in the order in which they came: a new one begins with the
            color of its place.
        kept: the colors that configurations were shown in. Where two have the same, the later
            one gets another.
    """
    chosen: dict[int, str] = {}
    for config_id in sorted(config_ids, key=lambda config_id: config_id not in kept):
        place = known.index(config_id)
        turned = [OKABE_ITO[(place + step) % len(OKABE_ITO)] for step in range(len(OKABE_ITO))]
        first = [kept[config_id]] if config_id in kept else []
        chosen[config_id] = next(x for x in [*first, *turned] if x not in chosen.values())
    return chosen
