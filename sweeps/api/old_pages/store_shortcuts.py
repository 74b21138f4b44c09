"""What the best shortcut reader of each test reaches, beside what models do."""

from collections.abc import Collection

import pandas as pd
from sqlalchemy import func, select

from sweeps.store.database import Store
from sweeps.store.reads.shortcuts import best_shortcut, shortcut_scores, shortcut_shares, tests_of
from sweeps.store.statements import one_of
from sweeps.store.tables import Run


def best_shortcuts(store: Store, config_ids: Collection[int]) -> pd.DataFrame:
    """What the best reader of each configuration's test reaches: worked out once for each test.

    Returns:
        config_id, reader, within, beyond and whole, as `shortcut_shares`, tested (strings, each as
        often as it occurs) and all_read (whether the models were tested on all of them); no row of
        a test that no readers were asked about.
    """
    tests = tests_of(store, config_ids)
    best = best_shortcut(shortcut_scores(store, set(tests["first"])))
    strings = best.groupby("config_id", as_index=False)["tested"].sum()
    shares = shortcut_shares(best).merge(strings, on="config_id").rename(columns={"config_id": "x"})
    found = tests[["config_id", "first"]].rename(columns={"first": "x"})
    found = found.merge(shares, on="x").drop(columns="x")
    query = select(Run.config_id, func.max(Run.tested)).group_by(Run.config_id)
    with store.read() as connection:
        read_of = query.where(one_of(Run.config_id, found["config_id"]))
        tested = dict(connection.execute(read_of).all())
    return found.assign(all_read=found["config_id"].map(tested) == found["tested"])
