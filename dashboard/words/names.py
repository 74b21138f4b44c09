"""What configurations and models are called on a page."""

from collections.abc import Mapping, Sequence
from functools import partial

import pandas as pd
import streamlit as st

from dashboard import data
from dashboard.charts.colors import OKABE_ITO
from seqcls.imported import PREFIX
from sweeps.api import reading

CHIPS = "chips"
"""The column of what tells the configurations of a table apart, a chip each."""

MOST_SHOWN = 80
"""Characters of a setting in a name."""

COLORS = "colors of configurations"
"""Those that the session has seen."""


@partial(data.shared, of=reading.members_revision)
def configuration_names(config_ids: Sequence[int]) -> dict[int, str]:
    """What each configuration is called, beside these others: no two the same."""
    return told_apart(config_ids, data.memberships(), data.settings())


@partial(data.shared, of=reading.members_revision)
def _name_parts(config_ids: Sequence[int]) -> dict[int, list[str]]:
    return parts_apart(config_ids, data.memberships(), data.settings())


def told_apart(
    config_ids: Sequence[int], memberships: pd.DataFrame, settings: pd.DataFrame
) -> dict[int, str]:
    """Names as `parts_apart` finds them, each in one text."""
    parts = parts_apart(config_ids, memberships, settings)
    return {config_id: ", ".join(some) for config_id, some in parts.items()}


def parts_apart(
    config_ids: Sequence[int], memberships: pd.DataFrame, settings: pd.DataFrame
) -> dict[int, list[str]]:
    """Each configuration's sweeps, with the settings that tell it from others of the same sweeps.

    Where all are of the same sweeps, their settings alone are named. No two are called the same:
    what neither sweeps nor settings tell apart has its number besides.

    Args:
        config_ids: which configurations.
        memberships: config_id, sweep.
        settings: the fields that differ, indexed by config_id.

    Returns:
        The parts of each name.
    """
    sweeps = sweep_names(config_ids, memberships)
    chosen = memberships[memberships["config_id"].isin(config_ids)]
    each = chosen.groupby("config_id")["sweep"].agg(list).to_dict()
    names: dict[int, list[str]] = {}
    alike = sweeps.groupby(sweeps, sort=False)
    for label, group in alike:
        varied = _varied_settings(settings.loc[group.index])
        for row in varied.itertuples():
            known = zip(varied.columns, row[1:], strict=True)
            settled = [f"{name}={_short(value)}" for name, value in known if not pd.isna(value)]
            config_id = int(str(row.Index))
            own = [] if settled and len(alike) == 1 else each.get(config_id, [label])
            names[config_id] = [*map(str, own), *settled]
    while len(twice := _called_the_same(names)):
        for config_id in twice:
            names[config_id] = [*names[config_id], f"configuration {config_id}"]
    return {config_id: names[config_id] for config_id in config_ids}


def _called_the_same(names: Mapping[int, Sequence[str]]) -> list[int]:
    called: dict[str, list[int]] = {}
    for config_id, parts in names.items():
        called.setdefault(", ".join(parts), []).append(config_id)
    return [config_id for some in called.values() if len(some) > 1 for config_id in some]


def _short(value: object) -> str:
    """A value as part of a name."""
    text = str(value)
    return text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 1] + "…"


def _varied_settings(settings: pd.DataFrame) -> pd.DataFrame:
    """The settings that are not the same in all rows; a foreign one may be missing from some."""
    return settings.loc[
        :,
        [x for x in settings if settings[x].nunique(dropna=not str(x).startswith(PREFIX)) > 1],
    ]


def sweep_names(config_ids: Sequence[int], memberships: pd.DataFrame) -> "pd.Series[str]":
    """The sweeps that each configuration belongs to, joined; indexed by config_id."""
    chosen = memberships[memberships["config_id"].isin(config_ids)]
    joined = chosen.groupby("config_id")["sweep"].agg(", ".join)
    return joined.reindex(list(config_ids), fill_value="no sweep")


def settings_that_differ(config_ids: Sequence[int]) -> pd.DataFrame:
    """The settings in which these configurations differ, indexed by config_id."""
    return _varied_settings(data.settings().loc[list(dict.fromkeys(config_ids))])


def chips_of(config_ids: Sequence[int]) -> list[list[str]]:
    """The names of configurations, row by row, in the parts that are shown as chips."""
    named = _name_parts(list(dict.fromkeys(config_ids)))
    return [named[config_id] for config_id in config_ids]


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
