"""Budgets of training, and configurations that are one model with several budgets.

A budget is the maximum number of epochs, `max_num_epochs`; training may end earlier. Early ends are
disabled by a patience or a minimum number of epochs at least as large as the budget; such a value
grows with the budget, so that they stay disabled.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from seqcls.config import RunConfig, default_fields
from seqcls.text import canonical_json

BUDGET = "max_num_epochs"
EARLIEST = ("min_num_epochs", "patience")
"""Fields that determine when training may end before its budget."""

BUDGET_FIELDS = (BUDGET, *EARLIEST)

_Values = tuple[Any, ...]


def budget_fields(config: RunConfig, epochs: int) -> dict[str, int]:
    """Returns the fields to change so that the same model is trained for this many epochs."""
    grown = {
        name: max(value, epochs)
        for name in EARLIEST
        if (value := getattr(config, name)) >= config.max_num_epochs
    }
    return {BUDGET: epochs, **grown}


def models_by_budget(configs: Mapping[int, Mapping[str, Any]]) -> list[dict[int, int]]:
    """Returns the models with several budgets: the configurations of each by budget.

    Configurations are one model if they differ only in the budget and the fields that grow with it,
    as by `budget_fields`. Models trained elsewhere have no known budget.

    Args:
        configs: the stored fields of each configuration, by id.

    Returns:
        For each model, in the order of the first ids, the ids by budget, smallest budget first.
    """
    # Where all have one budget, no model has several.
    if len({fields.get(BUDGET) for fields in configs.values()}) < 2:
        return []
    defaults = default_fields()
    alike: dict[str, dict[_Values, dict[int, int]]] = {}
    for config_id, stored in configs.items():
        if stored.get("imported"):
            continue
        known = {**{name: defaults[name] for name in BUDGET_FIELDS}, **stored}
        other = {
            name: value
            for name, value in stored.items()
            if name not in BUDGET_FIELDS and value != defaults.get(name)
        }
        same = alike.setdefault(canonical_json(other), {})
        same.setdefault(tuple(known[name] for name in EARLIEST), {})[known[BUDGET]] = config_id
    found = [model for same in alike.values() for model in _join(same) if len(model) > 1]
    return sorted(found, key=lambda model: min(model.values()))


def _join(same: Mapping[_Values, Mapping[int, int]]) -> Iterator[dict[int, int]]:
    """Joins models by budget in which the same fields are disabled from ending training early.

    Two that share a budget are not joined: a sweep that varies early ends compares models.

    Args:
        same: ids by budget, by the values of `EARLIEST`.
    """
    joined: list[tuple[set[_Values], dict[int, int]]] = []
    for values, by_budget in same.items():
        model = dict(by_budget)
        # A limit at the budget or above never ends training: all such values mean the same.
        meanings = {tuple(None if x >= budget else x for x in values) for budget in by_budget}
        endless = {meaning for meaning in meanings if None in meaning}
        for known, other in [pair for pair in joined if pair[0] & endless]:
            if not other.keys() & model.keys():
                joined.remove((known, other))
                endless, model = endless | known, other | model
        joined.append((endless, model))
        joined.sort(key=lambda pair: min(pair[1].values()))
    yield from (dict(sorted(model.items())) for _, model in joined)
