"""Who has learned by which budget, as pages show it."""

from collections.abc import Mapping, Sequence

import pandas as pd

from sweeps.store.database import Store
from sweeps.store.reads import frames
from sweeps.store.reads.budgets import Seeds, budget_models, seeds_judged
from sweeps.store.reads.selection import Selection
from sweeps.store.tables import RunState


def learned_by_budget(
    store: Store, selection: Selection, models: Sequence[Mapping[int, int]] | None = None
) -> "pd.DataFrame":
    """How many seeds of a model have learned by each of its budgets; of models with several.

    A seed counts at a budget with what it came to there. Where it was not trained with it, but had
    learned with the last smaller one, it counts as learned: nobody trains it again. Where it had
    not, nothing is known of it at this budget.

    Returns:
        model (the id of its configuration of the smallest budget in scope), config_id, budget
        (epochs that training may take), trained (seeds that are judged at this budget), learned
        (seeds), seeds (of which that is known), unknown (seeds that had not learned before and are
        not judged at this budget); models in the order of ids, and budgets ascending.
    """
    stored = budget_models(store) if models is None else models
    judged = seeds_judged(store, selection, [x for model in stored for x in model.values()])
    rows = []
    for model in stored:
        there = {budget: x for budget, x in model.items() if x in judged}
        latest: Seeds = {}
        for budget, config_id in there.items() if len(there) > 1 else ():
            here = judged[config_id]
            unknown = sum(not learned and seed not in here for seed, learned in latest.items())
            latest |= here
            rows.append(
                {
                    "model": next(iter(there.values())),
                    "config_id": config_id,
                    "budget": budget,
                    "trained": len(here),
                    "learned": sum(latest.values()),
                    "seeds": len(latest) - unknown,
                    "unknown": unknown,
                }
            )
    columns = ["model", "config_id", "budget", "trained", "learned", "seeds", "unknown"]
    return pd.DataFrame(rows, columns=columns, dtype="int64")


def trained_further(
    store: Store, selection: Selection, models: Sequence[Mapping[int, int]] | None = None
) -> tuple[int, ...]:
    """Finished runs of seeds that were trained with a larger budget too, both in scope.

    They are the same model, of which the largest budget says more: as two, a seed counts twice.
    """
    stored = budget_models(store) if models is None else models
    ids = [config_id for model in stored for config_id in model.values()]
    runs: dict[int, dict[int, int]] = {}
    with store.read() as connection:
        found = frames.runs(connection, frames.of_configurations(selection, ids))
    done = found.loc[found["state"] == RunState.DONE, ["run_id", "config_id", "model_seed"]]
    for run_id, config_id, seed in done.itertuples(index=False):
        runs.setdefault(config_id, {})[seed] = run_id
    further = []
    for model in stored:
        seen: set[int] = set()
        for config_id in reversed([*model.values()]):
            here = runs.get(config_id, {})
            further += [run_id for seed, run_id in here.items() if seed in seen]
            seen |= here.keys()
    return tuple(sorted(further))
