"""What would help failing runs: suggestions, the sweeps that try them, and what came of them.

A remedy against *not learned* is judged by accuracy on trained lengths, whatever becomes of longer
strings: it mended a seed that has learned with it. Any other mended one if it generalizes with it,
or makes no error where nothing longer is tested; of seeds that have not learned, with it or without
it, such a remedy says nothing, and so they do not count.

Bounded, whatever the database holds: the configurations with most explained seeds are looked at.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from seqcls.config import RunConfig
from seqcls.fields import fields_unread
from seqcls.interpretability.mechanisms import NOT_LEARNED
from seqcls.interpretability.remedies import Suggestion, change_fields, named_fields, suggestions
from seqcls.interpretability.wording import p_value_text, percent
from seqcls.problem import obstacle_of, resolve
from seqcls.text import canonical_json
from sweeps.api.comparisons import chance_of, why_unpaired
from sweeps.api.failures import LEAD, leading_causes
from sweeps.grid.spec import SweepSpec, parse_spec
from sweeps.results import Outcome
from sweeps.statistics.chance import Difference, compare_shares
from sweeps.statistics.differences import Outcomes
from sweeps.store.databases.engine import Store
from sweeps.store.reads import explained, queries
from sweeps.store.reads.budgets import budget_models
from sweeps.store.reads.selection import View
from sweeps.store.tables import RunState

MOST_CONFIGURATIONS = 12
MOST_SEEDS = 200
"""The most seeds of a configuration."""


@dataclass(frozen=True)
class TriedRemedy:
    """A remedy that was trained with seeds that failed without it."""

    suggestion: Suggestion
    config_id: int
    """The id of the configuration with the change."""
    results: Mapping[int, bool]
    """Whether it mended each model seed that failed by the cause, was trained with the change, and
    is a measure of it."""
    broken: int
    """Seeds that needed no mending, and do with it."""
    left_out: int
    """Seeds that failed by the cause, and are no measure: they have not learned; where that is to
    mend, it is not known whether they did."""
    run_ids: tuple[int, ...]
    """The runs with the change of the seeds that failed by the cause."""

    @property
    def seeds(self) -> int:
        """Seeds that are a measure of it."""
        return len(self.results)

    @property
    def mended(self) -> int:
        """Those of them that it mended."""
        return sum(self.results.values())


@dataclass(frozen=True)
class Loop:
    """Failing seeds of one configuration, the main cause of most, and what was tried against it."""

    config_id: int
    model: int
    """The id of the same model's configuration of the smallest budget."""
    config: RunConfig
    finished: int
    failing: int
    mechanism: str
    run_ids: tuple[int, ...]
    """The seeds whose errors mainly come from it."""
    tried: tuple[TriedRemedy, ...]
    """The best first."""
    untried: tuple[Suggestion, ...]

    @property
    def best(self) -> TriedRemedy | None:
        """The remedy that mended most; None where none was tried."""
        return self.tried[0] if self.tried else None


def loops(store: Store) -> tuple[Loop, ...]:
    """What stored causes and trained remedies tell, the most telling first."""
    explained_runs = _main_mechanisms(store)
    if explained_runs.empty:
        return ()
    ids = [int(x) for x in explained_runs["config_id"].unique()]
    configs = queries.configs(store, ids)
    # What a plug-in reads is unknown unless it is installed.
    configs = {key: config for key, config in configs.items() if obstacle_of(config) is None}
    all_loops = []
    others = _others(store, explained_runs, configs)
    first = {x: min(model.items())[1] for model in budget_models(store) for x in model.values()}
    runs = queries.finished_seeds(store, {*ids, *others.values()})
    for _, alike in explained_runs.groupby(["config_id", "mechanism"]):
        config_id, mechanism = int(alike["config_id"].iloc[0]), str(alike["mechanism"].iloc[0])
        if config_id in configs:
            config = configs[config_id]
            model = first.get(config_id, config_id)
            all_loops.append(_loop(config_id, model, config, mechanism, alike, runs, others))
    return tuple(sorted(all_loops, key=_mended_and_seeds, reverse=True))


def _mended_and_seeds(loop: Loop) -> tuple[int, int]:
    return (loop.best.mended if loop.best else -1, len(loop.run_ids))


def record(tried_loops: Iterable[Loop], suggestion: Suggestion) -> tuple[int, int]:
    """How often a remedy mended the cause that it is suggested for: in so many of so many seeds.

    A seed that was trained with several budgets counts once, with the largest.
    """
    by_budget = sorted(tried_loops, key=lambda loop: loop.config.max_num_epochs)
    results = {
        (loop.model, seed): mended
        for loop in by_budget
        for each in loop.tried
        if _same(each.suggestion, suggestion)
        for seed, mended in each.results.items()
    }
    return sum(results.values()), len(results)


def rank(
    tried_loops: Iterable[Loop], suggested: Sequence[Suggestion]
) -> list[tuple[Suggestion, tuple[int, int]]]:
    """Suggestions with their records, those first that mended most; untried ones count as half."""
    known = tuple(tried_loops)
    records = [(each, record(known, each)) for each in suggested]
    return sorted(records, key=lambda each: -(each[1][0] + 1) / (each[1][1] + 2))


def _same(first: Suggestion, second: Suggestion) -> bool:
    """Whether both are the same remedy against the same cause, whatever the field was before."""
    names = ("mechanism", "field", "reason")
    return all(getattr(first, name) == getattr(second, name) for name in names)


def _main_mechanisms(store: Store) -> pd.DataFrame:
    """run_id, config_id and the main mechanism of failing runs whose causes are stored."""
    of = explained.failing_runs(store, MOST_CONFIGURATIONS, MOST_SEEDS)
    main = leading_causes(explained.causes(store, of["run_id"].tolist()))
    return main.merge(of, on="run_id").sort_values("run_id").reset_index(drop=True)


def _others(
    store: Store, explained_runs: pd.DataFrame, configs: dict[int, RunConfig]
) -> dict[str, int]:
    """The stored configurations with one suggested change, by key."""
    pairs = explained_runs[["config_id", "mechanism"]].drop_duplicates()
    keys = {
        change_fields(configs[config_id], each.fields).key
        for config_id, mechanism in pairs.itertuples(index=False)
        if config_id in configs
        for each in suggestions(resolve(configs[config_id]), [mechanism])
    }
    return queries.config_ids_by_key(store, keys)


def _loop(
    config_id: int,
    model: int,
    config: RunConfig,
    mechanism: str,
    alike: pd.DataFrame,
    runs: pd.DataFrame,
    others: dict[str, int],
) -> Loop:
    before = runs[runs["config_id"] == config_id]
    tried, untried = [], []
    for suggestion in suggestions(resolve(config), [mechanism]):
        other = others.get(change_fields(config, suggestion.fields).key)
        trained = runs[runs["config_id"] == other] if other is not None else runs.head(0)
        came = _came_of_it(suggestion, before, trained, set(alike["run_id"]))
        if came is None:
            untried.append(suggestion)
        else:
            tried.append(came)
    best_first = sorted(tried, key=lambda each: (each.broken - each.mended, each.broken))
    return Loop(
        config_id,
        model,
        config,
        len(before),
        int((before["wrong"] > 0).sum()),
        mechanism,
        tuple(int(x) for x in alike["run_id"]),
        tuple(best_first),
        tuple(untried),
    )


def _came_of_it(
    suggestion: Suggestion, before: pd.DataFrame, trained: pd.DataFrame, failed: set[int]
) -> TriedRemedy | None:
    mechanism = suggestion.mechanism
    sides = (_judge(mechanism, before), _judge(mechanism, trained))
    both = sides[0].merge(sides[1], on="model_seed", suffixes=("", "_after"))
    by_cause = both["id"].isin(failed)
    if not by_cause.any():
        return None
    counts, fails = both["judged"] & both["judged_after"], both["failing_after"]
    measured = by_cause & counts
    seeds = both.loc[measured, "model_seed"]
    return TriedRemedy(
        suggestion,
        int(trained["config_id"].iloc[0]),
        {int(seed): not failing for seed, failing in zip(seeds, fails[measured], strict=True)},
        int((counts & ~both["failing"] & fails).sum()),
        int((by_cause & ~counts).sum()),
        tuple(int(x) for x in both.loc[by_cause, "id_after"]),
    )


def _judge(mechanism: str, runs: pd.DataFrame) -> pd.DataFrame:
    """Finished runs with whether each is a measure of a remedy against this mechanism (judged), and
    whether the remedy leaves it, or finds it, to be mended (failing).

    Args:
        runs: outcome, accuracy_within and wrong of each.
    """
    unlearned = runs["outcome"] == Outcome.NOT_LEARNED.value
    if mechanism == NOT_LEARNED:
        return runs.assign(judged=runs["accuracy_within"].notna(), failing=unlearned)
    unknown = runs["outcome"] == Outcome.NOT_KNOWN.value
    fails = (runs["outcome"] != Outcome.GENERALIZES.value) & (~unknown | (runs["wrong"] > 0))
    return runs.assign(judged=~unlearned, failing=fails.astype(bool))


@dataclass(frozen=True, eq=False)
class RemedyTrial:
    """A suggestion, how it is tried, and what came of it."""

    suggestion: Suggestion
    spec: SweepSpec
    """The same seeds with one field changed."""
    comparison: Difference | None
    """How many seeds fail of the changed configuration (a) and of this one (b), by what the
    suggestion is to mend; None where there is no seed of it, or of this one, to judge by."""
    medians: tuple[float, float] | None = None
    """Medians of both over the accuracy of these seeds."""
    waiting: int = 0
    """Seeds of the changed configuration that are queued or in training."""
    lost: int = 0
    """Seeds whose training failed."""
    mended: tuple[int, int] = (0, 0)
    """In how many of how many seeds of this database the remedy mended this cause."""
    left_out: tuple[int, int] = (0, 0)
    """Seeds of both that are no measure of it, as `TriedRemedy.left_out`."""

    @property
    def is_begun(self) -> bool:
        """Whether any of it is trained, or will be."""
        return self.comparison is not None or self.waiting > 0 or self.left_out[0] > 0

    def record(self) -> dict[str, Any]:
        """What programs read of it."""
        comparison = self.comparison
        return {
            **asdict(self.suggestion),
            "mended": dict(zip(("seeds", "of"), self.mended, strict=True)),
            "left_out": list(self.left_out),
            "sweep": self.spec.name,
            "trained": None
            if comparison is None
            else {
                "failing": [list(counts) for counts in comparison.counts or ()],
                "pairs": None if comparison.table is None else asdict(comparison.table),
                "method": comparison.method,
                "p_value": comparison.p_value,
                "medians": list(self.medians or ()),
            },
        }


def trials(store: Store, run_id: int, mechanisms: Sequence[str]) -> tuple[RemedyTrial, ...]:
    """What may help the configuration of a run against these mechanisms; first what mended most.

    Args:
        run_id: a run of the configuration; all its finished runs are compared.
        mechanisms: the most frequent first.
    """
    alike = queries.runs(store, View(config_ids=(queries.config_id_of(store, run_id),)))
    config = queries.run_config(store, run_id)
    seeds = sorted(int(seed) for seed in alike["model_seed"])
    by_meaning = _by_meaning(queries.configs(store))
    trials = []
    ranked = rank(loops(store), suggestions(resolve(config), mechanisms))
    others = [change_fields(config, suggestion.fields) for suggestion, _ in ranked]
    same = [by_meaning.get(_meaning(other), []) for other in others]
    every = queries.runs(store, View(config_ids=tuple({x for ids in same for x in ids})))
    for (suggestion, mended), other, ids in zip(ranked, others, same, strict=True):
        tried = every[every["config_id"].isin(ids)]
        spec = trial_spec(other, suggestion, seeds)
        states = tried["state"].value_counts()
        waiting = int(states.get(RunState.QUEUED, 0) + states.get(RunState.RUNNING, 0))
        lost = int(states.get(RunState.FAILED, 0))
        paired = why_unpaired(other, config) is None
        comparison, medians, left_out = _compare_trials(
            suggestion.mechanism, tried, alike, paired=paired
        )
        trials.append(
            RemedyTrial(suggestion, spec, comparison, medians, waiting, lost, mended, left_out)
        )
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
    """The mechanisms of stored causes: those that lead first, then that of most errors.

    Args:
        frame: as `sweeps.store.reads.explained.causes`, of one run or of several.
    """
    shares = frame.groupby("mechanism", sort=False)["share"].sum()
    ranked = shares.sort_values(ascending=False, kind="stable").index
    return sorted(map(str, ranked), key=lambda name: LEAD.get(name, len(LEAD)))


def trial_spec(config: RunConfig, suggestion: Suggestion, seeds: Sequence[int]) -> SweepSpec:
    """The sweep that tries a suggestion.

    Args:
        config: with the field changed.
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


def all_spec(run_id: int, config: RunConfig, tried: Sequence[RemedyTrial]) -> SweepSpec:
    """One sweep that tries all remedies of a model, with the same seeds."""
    return parse_spec(
        {
            "name": f"remedies for model {run_id}",
            "description": "; ".join(trial.suggestion.text for trial in tried),
            "model_seeds": list(tried[0].spec.model_seeds),
            **tables_of([change_fields(config, x.suggestion.fields) for x in tried]),
        }
    )


def tables_of(configs: Sequence[RunConfig]) -> dict[str, Any]:
    """What a specification says of fields so that it has these configurations, in this order.

    Args:
        configs: at least one, all different.
    """
    fields = [named_fields(config) for config in configs]
    shared = {
        name: value
        for name, value in fields[0].items()
        if all(name in each and each[name] == value for each in fields)
    }
    own = [{x: value for x, value in each.items() if x not in shared} for each in fields]
    return {"fixed": shared, **({"configurations": own} if len(own) > 1 else {})}


def record_sentence(trial: RemedyTrial) -> str | None:
    """How often the remedy mended this cause; None where it was never tried."""
    mended, seeds = trial.mended
    if not seeds:
        return None
    return f"mended {trial.suggestion.mechanism} in {mended} of {seeds} seeds of this database"


def trial_sentence(trial: RemedyTrial) -> str:
    """What came of a suggestion, in a line."""
    comparison, mechanism = trial.comparison, trial.suggestion.mechanism
    left_out = _left_out_sentence(mechanism, *trial.left_out)
    if comparison is None and trial.left_out[0]:
        return f"trained, and no seeds to compare: {left_out}"
    if comparison is None and trial.waiting:
        return f"in training: none of {trial.waiting} seeds is done yet"
    if comparison is None and trial.lost:
        return "training failed for every seed that was tried"
    if comparison is None:
        return "not tried yet"
    more = f"{trial.waiting} more in training" if trial.waiting else ""
    said = (_comparison_sentence(trial, comparison), left_out, more)
    return "; ".join(filter(None, said))


def _left_out_sentence(mechanism: str, changed: int, before: int) -> str:
    """How many seeds say nothing of a remedy, and why; or nothing."""
    if not changed and not before:
        return ""
    without = f" and {before} without it" if before else ""
    return f"{changed} with it{without} left out: {why_left_out(mechanism)}"


def why_left_out(mechanism: str) -> str:
    """Why seeds are no measure of a remedy against this mechanism, in two or three words."""
    return "not judged on trained lengths" if mechanism == NOT_LEARNED else "not learned"


def _comparison_sentence(trial: RemedyTrial, comparison: Difference) -> str:
    lacks, where = "fail", ""
    if trial.suggestion.mechanism == NOT_LEARNED:
        lacks, where = "have not learned", " on trained lengths"
    assert comparison.counts is not None
    assert comparison.p_value is not None
    (first, n), (second, m) = comparison.counts
    said = f"trained: {first} of {n} seeds {lacks}, against {second} of {m}"
    if (table := comparison.table) is not None:
        said += (
            f"; of {table.pairs} seeds in both it mends {table.only_second} and breaks "
            f"{table.only_first}"
        )
    medians = " against ".join(percent(value) for value in trial.medians or ())
    return (
        f"{said} ({comparison.method}, {p_value_text(comparison.p_value)}: {chance_of(comparison)})"
        f"; median accuracy{where} {medians}"
    )


def _compare_trials(
    mechanism: str, *runs: pd.DataFrame, paired: bool
) -> tuple[Difference | None, tuple[float, float] | None, tuple[int, int]]:
    """The runs with a change against those without, and how many of both are no measure of it."""
    on = "accuracy_within" if mechanism == NOT_LEARNED else "accuracy"
    finished = [each[each["state"] == RunState.DONE] for each in runs]
    done = [_judge(mechanism, each.drop_duplicates("model_seed")) for each in finished]
    judged = [each[each["judged"]] for each in done]
    first, second = (
        each[["model_seed", "failing"]].assign(accuracy=each[on].astype(float)) for each in judged
    )
    left_out = [len(every) - len(kept) for every, kept in zip(done, judged, strict=True)]
    skipped = (left_out[0], left_out[1])
    if first.empty or second.empty:
        return None, None, skipped
    fails = [Outcomes.of(each, "failing") for each in (first, second)]
    medians = (float(first["accuracy"].median()), float(second["accuracy"].median()))
    return compare_shares(*fails, paired=paired), medians, skipped
