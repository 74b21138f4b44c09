"""What configurations and models are called on a page."""

from collections.abc import Sequence

import pandas as pd

from dashboard import data


def configuration_names(config_ids: Sequence[int]) -> dict[int, str]:
    """What each configuration is called, beside these others."""
    return told_apart(config_ids, data.memberships(), data.settings())


def told_apart(
    config_ids: Sequence[int], memberships: pd.DataFrame, settings: pd.DataFrame
) -> dict[int, str]:
    """Each configuration's sweeps, with the settings that tell it from others of the same sweeps.

    Where all are of the same sweeps, their settings alone are named.

    Args:
        config_ids: which configurations.
        memberships: config_id, sweep.
        settings: the fields that differ, indexed by config_id.
    """
    sweeps = sweep_names(config_ids, memberships)
    names: dict[int, str] = {}
    alike = sweeps.groupby(sweeps, sort=False)
    for label, group in alike:
        own = settings.loc[group.index]
        own = own.loc[:, [name for name in own if own[name].nunique() > 1]]
        for row in own.itertuples():
            settled = [f"{name}={row[1 + i]}" for i, name in enumerate(own.columns)]
            parts = settled if settled and len(alike) == 1 else [str(label), *settled]
            names[int(str(row.Index))] = ", ".join(parts)
    return {config_id: names[config_id] for config_id in config_ids}


def sweep_names(config_ids: Sequence[int], memberships: pd.DataFrame) -> "pd.Series[str]":
    """The sweeps that each configuration belongs to, joined; indexed by config_id."""
    own = memberships[memberships["config_id"].isin(config_ids)]
    joined = own.groupby("config_id")["sweep"].agg(", ".join)
    return joined.reindex(list(config_ids), fill_value="no sweep")
