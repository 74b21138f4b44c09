"""Configurations that are one model but for its budget."""

import json

from sweeps.grid.budgets import models_by_budget
from sweeps.store.database import Store
from sweeps.store.reads.queries import config_texts


def budget_models(store: Store) -> list[dict[int, int]]:
    """The models with several budgets: as `sweeps.grid.budgets.models_by_budget`."""
    texts = config_texts(store)
    return models_by_budget({key: json.loads(text) for key, text in texts.items()})
