"""Failing seeds, their causes and what was tried, as cards show them; one sweep of all remedies."""

from collections.abc import Sequence
from dataclasses import dataclass

from seqcls.config import RunConfig
from seqcls.interpretability.remedies import change_fields
from sweeps.api.trials import (
    Asker,
    RemedyTrial,
    first_budgets,
    judging,
    known_results,
    rank,
    results_of,
    tables_of,
)
from sweeps.grid.spec import SweepSpec, parse_spec
from sweeps.store.database import Store
from sweeps.store.reads.selection import Selection
from sweeps.store.tables import RunState


@dataclass(frozen=True, eq=False)
class Loop:
    """Failing seeds of one configuration, the main cause of most, and what was tried against it."""

    config_id: int
    model: int
    """The id of the same model's configuration of the smallest budget."""
    config: RunConfig
    finished: int
    failing: int
    explained: int
    """Failing seeds whose causes are known."""
    mechanism: str
    run_ids: tuple[int, ...]
    """The seeds whose errors mainly come from it."""
    trials: tuple[RemedyTrial, ...]
    """Every suggestion against it, as for a run of them."""

    @property
    def best(self) -> RemedyTrial | None:
        """The first of the remedies that were trained here; None where none was."""
        return next((trial for trial in self.trials if trial.results), None)


def loops(store: Store, selection: Selection | None = None) -> tuple[Loop, ...]:
    """What stored causes and trained remedies tell, the most telling first.

    Args:
        selection: whose failing seeds. What came of a remedy is told wherever it was trained.
    """
    selection = selection or Selection()
    asker, first = Asker(store, selection), first_budgets(store)
    causes = [
        (*cause, asker.ask(config_id, [mechanism]))
        for cause in asker.causes()
        for config_id, mechanism, _ in [cause]
    ]
    if not causes:
        return ()
    if selection == judging(selection):
        known = results_of(
            (asker.configs[x], first.get(x, x), trial) for x, *_, own in causes for trial in own
        )
    else:
        known = known_results(store, selection)
    found = []
    for config_id, mechanism, run_ids, tried in causes:
        runs = asker.runs[asker.runs["config_id"] == config_id]
        found.append(
            Loop(
                config_id,
                first.get(config_id, config_id),
                asker.configs[config_id],
                int((runs["state"] == RunState.DONE).sum()),
                int(runs["failing"].sum()),
                int(runs["mechanism"].notna().sum()),
                mechanism,
                run_ids,
                rank(tried, known),
            )
        )
    return tuple(sorted(found, key=_mended_and_seeds, reverse=True))


def _mended_and_seeds(loop: Loop) -> tuple[int, int]:
    return (sum(loop.best.results.values()) if loop.best else -1, len(loop.run_ids))


def all_spec(run_id: int, config: RunConfig, tried: Sequence[RemedyTrial]) -> SweepSpec:
    """One sweep that tries all remedies of a model, with the same seeds."""
    changed = [change_fields(config, x.suggestion.fields) for x in tried]
    return parse_spec(
        {
            "name": f"remedies for model {run_id}",
            "description": "; ".join(trial.suggestion.text for trial in tried),
            "model_seeds": list(tried[0].spec.model_seeds),
            "parents": {x.key: config.key for x in changed},
            **tables_of(changed),
        }
    )
