"""What configurations and models are called on a page."""

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from dashboard import data
from dashboard.charts.colors import OKABE_ITO
from sweeps.api import reading

COLORS = "colors of configurations"
"""Those that the session has seen."""


_names = data.cached(reading.names_of, reading.configs_revision)
settings_of = data.cached(reading.settings_of, reading.configs_revision)


def configuration_names(config_ids: Sequence[int]) -> dict[int, str]:
    """What configurations are called, in the order in which they are given."""
    return dict(_names(tuple(config_ids)))


def sweep_names(config_ids: Sequence[int], memberships: pd.DataFrame) -> "pd.Series[str]":
    """The sweeps that each configuration belongs to, joined; indexed by config_id."""
    chosen = memberships[memberships["config_id"].isin(config_ids)]
    joined = chosen.groupby("config_id")["sweep"].agg(", ".join)
    return joined.reindex(list(config_ids), fill_value="no sweep")


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
