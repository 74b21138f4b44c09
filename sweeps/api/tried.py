"""What was tried against the main causes of failing seeds, and one sweep of what was not."""

from collections.abc import Sequence
from dataclasses import dataclass

from seqcls.config import RunConfig
from seqcls.interpretability.remedies import change_fields
from sweeps.api.trials import Asker, RemedyTrial, tables_of
from sweeps.grid.spec import SweepSpec, parse_spec
from sweeps.store.database import Store
from sweeps.store.reads.selection import Selection

MOST_CAUSES = 8
"""Failing seeds of one configuration and one cause that are looked at: those of most seeds."""


@dataclass(frozen=True, eq=False)
class Tried:
    """Failing seeds of one configuration with one main cause, and what was tried against it."""

    config_id: int
    mechanism: str
    run_ids: tuple[int, ...]
    """The seeds whose errors mainly come from it."""
    trials: tuple[RemedyTrial, ...]
    """Every suggestion against it, as for a run of them: first what mended most of them."""

    @property
    def best(self) -> RemedyTrial | None:
        """The first of the remedies that were trained; None where none was."""
        return next((trial for trial in self.trials if trial.results), None)


def remedies_tried(store: Store, selection: Selection) -> tuple[Tried, ...]:
    """What stored causes and trained remedies say, first where most seeds were mended.

    Args:
        selection: whose failing seeds. What came of a remedy is told wherever it was trained.
    """
    asker = Asker(store, selection)
    causes = sorted(asker.causes(), key=lambda cause: -len(cause[2]))
    tried = [
        Tried(*cause, tuple(sorted(asker.ask(cause[0], [cause[1]]), key=_share_left)))
        for cause in causes[:MOST_CAUSES]
    ]
    return tuple(sorted(tried, key=_mended_and_seeds, reverse=True))


def _share_left(trial: RemedyTrial) -> float:
    """The share of seeds that a remedy does not mend; of an untried one it is taken as a half."""
    results = trial.results.values()
    # Laplace's rule of succession, as in `sweeps.api.trials.rank`.
    return 1 - (sum(results) + 1) / (len(results) + 2)


def _mended_and_seeds(tried: Tried) -> tuple[int, int]:
    return (sum(tried.best.results.values()) if tried.best else -1, len(tried.run_ids))


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
