"""What configurations come to over their seeds."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from sweeps.api.selecting import selection_of
from sweeps.statistics.intervals import median_intervals, wilson
from sweeps.store.database import Store
from sweeps.store.reads import frames
from sweeps.store.reads.overview import settings
from sweeps.store.reads.queries import names_of
from sweeps.store.reads.selection import as_list


def configurations(
    store: Store, sweep: str | Sequence[str] | None = None, **chosen: Any
) -> pd.DataFrame:
    """One row a configuration, those first of which the greatest share of seeds generalizes.

    A seed is judged on longer strings only if it has learned: if it is right on strings of the
    lengths that it was trained on.

    Args:
        store: the database.
        sweep: only this sweep's, or these sweeps'.
        chosen: which of their runs, as for `sweeps.api.runs`: `model_seeds=0`, `learned_at=0.95`,
            `hidden_size=16`.

    Returns:
        name; seeds (finished); judged (of which it is known whether they have learned), learned,
        and learned_low and learned_high, the 95% interval of their share (Wilson 1927);
        judged_beyond (of those that learned, tested on longer strings), generalize, and
        generalize_low and generalize_high likewise; accuracy_beyond, the median on longer strings
        of the seeds that learned, in [0, 1], and beyond_low and beyond_high, its 95% interval
        (bootstrap; missing of fewer than six); config_id; and the settings that differ. An interval
        of no seed is missing.

    Raises:
        UnknownRunError: there is no such sweep.
        ConfigError: there is no such field, or a seed is no seed.
    """
    selection = selection_of(store, [] if sweep is None else as_list(sweep), **chosen)
    with store.read() as connection:
        runs = frames.runs(connection, selection)
    runs = runs[runs["picked"]]
    table = frames.configurations(runs)
    for name, of in (("learned", "judged"), ("generalize", "judged_beyond")):
        ends = [wilson(x, n) if n else None for x, n in zip(table[name], table[of], strict=True)]
        table[f"{name}_low"] = [None if x is None else x.low for x in ends]
        table[f"{name}_high"] = [None if x is None else x.high for x in ends]
    learned = runs[runs["learned"].fillna(False).astype(bool)]
    medians = median_intervals(learned, "accuracy_beyond", ["config_id"]).set_index("config_id")
    for name, of in (("accuracy_beyond", "median"), ("beyond_low", "low"), ("beyond_high", "high")):
        table[name] = table["config_id"].map(medians[of]).astype(float)
    ids = table["config_id"].tolist()
    table["name"] = table["config_id"].map(names_of(store, ids))
    share = table["generalize"] / table["judged_beyond"].where(table["judged_beyond"] > 0)
    table = table.assign(share=share.fillna(-1.0))
    table = table.sort_values(["share", "learned", "config_id"], ascending=[False, False, True])
    shown = [
        *("name", "seeds", "judged", "learned", "learned_low", "learned_high"),
        *("judged_beyond", "generalize", "generalize_low", "generalize_high"),
        *("accuracy_beyond", "beyond_low", "beyond_high", "config_id"),
    ]
    of_them = settings(store).reindex(ids)
    differ = of_them.loc[:, of_them.astype(str).nunique() > 1]
    return table[shown].join(differ, on="config_id").reset_index(drop=True)
