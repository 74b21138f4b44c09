"""What would help a failing run: suggestions, the sweeps that try them, and their results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from seqcls.canonical import canonical_json
from seqcls.config import RunConfig
from seqcls.fields.fields_read import fields_unread
from seqcls.interpretability.causes.mechanisms import ORDER
from seqcls.interpretability.remedies import Suggestion, changed, named_fields, suggestions
from seqcls.interpretability.rounded import p_value_text, percent
from seqcls.problem import obstacle_of, resolve
from sweeps.analysis.compared_configurations import outcomes_of
from sweeps.analysis.tried_remedies import loops, ranked
from sweeps.grid.spec import SweepSpec, parse_spec
from sweeps.statistics.seed_by_seed import Comparison, compare
from sweeps.store.databases.engine import Store
from sweeps.store.reading import queries
from sweeps.store.reading.selection import View
from sweeps.store.schema.tables import RunState


@dataclass(frozen=True, eq=False)
class Trial:
    """A suggestion, how it is tried, and what came of it."""

    suggestion: Suggestion
    spec: SweepSpec
    """The same seeds with one field changed."""
    comparison: Comparison | None
    """The changed configuration (a) against this one (b); None where no seed of it is trained."""
    waiting: int = 0
    """Seeds of the changed configuration that are queued or in training."""
    lost: int = 0
    """Seeds whose training failed."""
    mended: tuple[int, int] = (0, 0)
    """In how many of how many seeds of this database the remedy mended this cause."""

    @property
    def is_begun(self) -> bool:
        """Whether any of it is trained, or will be."""
        return self.comparison is not None or self.waiting > 0


def trials(store: Store, run_id: int, mechanisms: Sequence[str]) -> tuple[Trial, ...]:
    """What may help the configuration of a run against these mechanisms; first what mended most.

    Args:
        store: where to read.
        run_id: a run of the configuration; all its finished runs are compared.
        mechanisms: the most frequent first.
    """
    alike = queries.runs(store, View(config_ids=(queries.config_id_of(store, run_id),)))
    config = queries.run_config(store, run_id)
    seeds = sorted(int(seed) for seed in alike["model_seed"])
    before = outcomes_of(alike)
    by_meaning = _by_meaning(queries.configs(store))
    trials = []
    for suggestion, mended in ranked(loops(store), suggestions(resolve(config), mechanisms)):
        other = changed(config, suggestion.fields)
        same = tuple(by_meaning.get(_meaning(other), []))
        tried = queries.runs(store, View(config_ids=same))
        spec = trial_spec(other, suggestion, seeds)
        states = tried["state"].value_counts()
        waiting = int(states.get(RunState.QUEUED, 0) + states.get(RunState.RUNNING, 0))
        lost = int(states.get(RunState.FAILED, 0))
        trials.append(Trial(suggestion, spec, _compared(tried, before), waiting, lost, mended))
    return tuple(trials)


def _by_meaning(configs: Mapping[int, RunConfig]) -> dict[str, list[int]]:
    ids: dict[str, list[int]] = {}
    for config_id, config in configs.items():
        # The fields that a plug-in reads are unknown unless it is installed.
        if obstacle_of(config) is None:
            ids.setdefault(_meaning(config), []).append(config_id)
    return ids


def _meaning(config: RunConfig) -> str:
    """What a configuration says of its models: an LSTM's number of heads says nothing."""
    unread = fields_unread(config)
    return canonical_json({k: v for k, v in config.changed.items() if k not in unread})


def mechanisms_of(frame: pd.DataFrame) -> list[str]:
    """The mechanisms of stored causes, `order not seen` first, then that of most errors.

    Args:
        frame: as `sweeps.store.results.explained.causes`, of one run or of several.
    """
    shares = frame.groupby("mechanism", sort=False)["share"].sum()
    ranked = shares.sort_values(ascending=False, kind="stable").index
    return sorted(map(str, ranked), key=lambda name: name != ORDER)


def trial_spec(config: RunConfig, suggestion: Suggestion, seeds: Sequence[int]) -> SweepSpec:
    """The sweep that tries a suggestion.

    Args:
        config: with the field changed.
        suggestion: what it is.
        seeds: those of the runs that it is compared with.
    """
    return parse_spec(
        {
            "name": f"{suggestion.field}={suggestion.value} for {config.key[:8]}",
            "description": f"Against {suggestion.mechanism}: {suggestion.text}.",
            "model_seeds": list(seeds),
            "fixed": named_fields(config),
        }
    )


def all_spec(config: RunConfig, tried: Sequence[Trial]) -> SweepSpec:
    """One sweep that tries all of these, with the same seeds.

    Args:
        config: that they change.
        tried: at least one.
    """
    fields = [named_fields(changed(config, trial.suggestion.fields)) for trial in tried]
    shared = {
        name: value
        for name, value in fields[0].items()
        if all(name in each and each[name] == value for each in fields)
    }
    changes = [{x: value for x, value in each.items() if x not in shared} for each in fields]
    return parse_spec(
        {
            "name": f"remedies for {config.key[:8]}",
            "description": "; ".join(trial.suggestion.text for trial in tried),
            "model_seeds": list(tried[0].spec.model_seeds),
            "fixed": shared,
            **({"configurations": changes} if len(changes) > 1 else {}),
        }
    )


def record_sentence(trial: Trial) -> str | None:
    """How often the remedy mended this cause; None where it was never tried."""
    mended, seeds = trial.mended
    if not seeds:
        return None
    return f"mended {trial.suggestion.mechanism} in {mended} of {seeds} seeds of this database"


def trial_sentence(trial: Trial) -> str:
    """What came of a suggestion, in a line."""
    comparison = trial.comparison
    if comparison is None and trial.waiting:
        return f"in training: none of {trial.waiting} seeds is done yet"
    if comparison is None and trial.lost:
        return "training failed for every seed that was tried"
    if comparison is None:
        return "not tried yet"
    more = f"; {trial.waiting} more in training" if trial.waiting else ""
    return _came_of_it(comparison) + more


def _came_of_it(comparison: Comparison) -> str:
    (a, b), (n, m) = comparison.failing, comparison.runs
    said = f"trained: {round(a.value * n)} of {n} seeds fail, against {round(b.value * m)} of {m}"
    if comparison.p_value is None:
        return f"{said}; no seed is in both"
    table = comparison.table
    helped = f"of {table.pairs} seeds in both it mends {table.only_second}"
    medians = " against ".join(percent(value) for value in comparison.medians)
    return (
        f"{said}; {helped} and breaks {table.only_first} (exact McNemar "
        f"{p_value_text(comparison.p_value)}); median accuracy {medians}"
    )


def _compared(tried: pd.DataFrame, before: pd.DataFrame) -> Comparison | None:
    outcomes = outcomes_of(tried)
    return None if outcomes.empty or before.empty else compare(outcomes, before)
