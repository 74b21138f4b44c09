"""Reads of who has learned by which budget, over the configurations that are one model."""

import json
from collections.abc import Collection
from typing import TYPE_CHECKING

from sweeps.grid.budgets import models_by_budget
from sweeps.store.database import Store
from sweeps.store.reads import frames
from sweeps.store.reads.queries import config_texts
from sweeps.store.reads.selection import Selection
from sweeps.store.tables import RunState

if TYPE_CHECKING:
    import pandas as pd

Seeds = dict[int, bool]
"""Whether each model seed that is known on trained lengths has learned."""


def budget_models(store: Store) -> list[dict[int, int]]:
    """The models with several budgets: as `sweeps.grid.budgets.models_by_budget`."""
    with store.read() as connection:
        texts = config_texts(connection)
    return models_by_budget({key: json.loads(text) for key, text in texts.items()})


def seeds_judged(
    store: Store, selection: Selection, config_ids: Collection[int]
) -> dict[int, Seeds]:
    """What finished seeds in scope of these configurations have come to on trained lengths."""
    with store.read() as connection:
        runs = frames.runs(connection, frames.of_configurations(selection, config_ids))
    judged = runs[(runs["state"] == RunState.DONE) & (runs["tested_within"].fillna(0) > 0)]
    found: dict[int, Seeds] = {}
    rows = judged.sort_values("model_seed")[["config_id", "model_seed", "learned"]]
    for config_id, seed, learned in rows.itertuples(index=False):
        found.setdefault(config_id, {})[seed] = bool(learned)
    return found


def seeds_of_sweep(store: Store, sweep: str, learned_at: float) -> "pd.DataFrame":
    """The runs of a sweep, and which of them have learned.

    Returns:
        config_id, model_seed, done, judged and learned (0 or 1), epochs (missing where not done);
        in the order of configurations and seeds.
    """
    with store.read() as connection:
        runs = frames.runs(connection, Selection((sweep,), learned_at=learned_at))
    done = runs["state"] == RunState.DONE
    counts = {
        "done": done,
        "judged": done & (runs["tested_within"].fillna(0) > 0),
        "learned": runs["learned"].fillna(False),
    }
    seeds = runs[["config_id", "model_seed"]].assign(
        **{name: of.astype("int64") for name, of in counts.items()}, epochs=runs["epochs"]
    )
    return seeds.sort_values(["config_id", "model_seed"], ignore_index=True)
