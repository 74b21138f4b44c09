"""What would help failing runs: suggestions, the sweeps that try them, and what came of them.

A remedy against *not learned* is judged by accuracy on trained lengths, whatever becomes of longer
strings: it mended a seed that has learned with it. Any other mended one if it generalizes with it,
or makes no error where nothing longer is tested; of seeds that have not learned, with it or without
it, such a remedy says nothing, and so they do not count.

Pages, reports and the command all have it from here. Another configuration is the trial of
a remedy by what its models read, whatever else it says. Bounded, whatever the database holds: the
configurations with most explained seeds are looked at.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import pandas as pd

from seqcls.config import RunConfig
from seqcls.fields import fields_unread
from seqcls.interpretability.mechanisms import NOT_LEARNED, ORDER
from seqcls.interpretability.remedies import Suggestion, change_fields, named_fields, suggestions
from seqcls.interpretability.rows import record
from seqcls.interpretability.wording import p_value_text, percent
from seqcls.problem import obstacle_of, resolve
from seqcls.text import canonical_json, count
from sweeps.api.failures import leading_causes
from sweeps.api.questions import chance_of, why_unpaired
from sweeps.grid.spec import SweepSpec, parse_spec
from sweeps.results import GENERALIZING, Outcome, describe_longer
from sweeps.statistics.chance import Difference, compare_shares
from sweeps.store.database import Store
from sweeps.store.reads import explained, queries
from sweeps.store.reads.overview import budget_models, judge_on, longer_lengths
from sweeps.store.reads.selection import Selection
from sweeps.store.tables import RunState

MOST_CONFIGURATIONS = 12
MOST_CAUSES = 8
"""Failing seeds of one configuration and one cause that are looked at: those of most seeds."""

MOST_SEEDS = 200
"""The most seeds of a configuration."""


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
    left_out: tuple[int, int] = (0, 0)
    """Seeds of both that are no measure of it: they have not learned; where that is to mend, it is
    not known whether they did."""
    results: Mapping[int, bool] = field(default_factory=dict)
    """Whether it mended each model seed that failed by the cause and is a measure of it; where
    seeds of both share only their number, whether each with the change needs no mending."""
    broken: int = 0
    """Seeds that needed no mending, and do with it; none where seeds are no pairs."""
    run_ids: tuple[int, ...] = ()
    """The runs with the change that are a measure of it."""
    longer: range | None = None
    """The lengths of the longer strings that both are judged on, where their own are others."""
    mended: tuple[int, int] = (0, 0)
    """In how many of how many seeds of this database the remedy mended this cause."""

    @property
    def remedy(self) -> "Remedy":
        """What is changed against what, and why."""
        return self.suggestion.mechanism, self.suggestion.field, self.suggestion.reason

    @property
    def is_begun(self) -> bool:
        """Whether any of it is trained, or will be."""
        return self.comparison is not None or self.waiting > 0 or self.left_out[0] > 0

    def record(self) -> dict[str, Any]:
        """What programs read of it."""
        trained, comparison = None, self.comparison
        if comparison is not None:
            trained = {
                "failing": [list(counts) for counts in comparison.counts or ()],
                "pairs": comparison.table and asdict(comparison.table),
                "method": comparison.method,
                "p_value": comparison.p_value,
                "medians": list(self.medians or ()),
            }
        return {
            **record(self.suggestion),
            "mended": {"seeds": self.mended[0], "of": self.mended[1]},
            "left_out": list(self.left_out),
            "sweep": self.spec.name,
            "trained": trained,
        }


def trials(
    store: Store, run_id: int, mechanisms: Sequence[str], selection: Selection | None = None
) -> tuple[RemedyTrial, ...]:
    """What may help the configuration of a run against these mechanisms; first what mended most.

    Args:
        run_id: a run of the configuration; all its finished runs in the selection are compared.
        mechanisms: the most frequent first.
        selection: whose failing seeds. What came of a remedy is told wherever it was trained.
    """
    selection, config_id = selection or Selection(), queries.config_id_of(store, run_id)
    resolve(queries.run_config(store, run_id))
    asker = Asker(store, selection, [config_id])
    # The run may lie outside the sweeps and seeds of the selection.
    if asker.runs.empty:
        asker = Asker(store, judging(selection), [config_id])
    return rank(asker.ask(config_id, mechanisms), known_results(store, selection))


def judging(selection: Selection) -> Selection:
    """All runs, judged as the selection does."""
    return Selection(below=selection.below, learned_at=selection.learned_at)


Remedy = tuple[str, str, str]
"""A mechanism, the field that is changed against it, and why: whatever the field was before."""

Results = Mapping[Remedy, Mapping[tuple[int, int], bool]]
"""Whether each remedy mended its cause, by the seed of a model that failed by it."""


def known_results(store: Store, selection: Selection) -> Results:
    """What came of every remedy that was trained, anywhere in this database."""
    asker, first = Asker(store, judging(selection)), first_budgets(store)
    return results_of(
        (asker.configs[x], first.get(x, x), trial)
        for x, mechanism, _ in asker.causes()
        for trial in asker.ask(x, [mechanism])
    )


def first_budgets(store: Store) -> dict[int, int]:
    """The configuration of the smallest budget of each that is one model with several."""
    return {x: min(model.items())[1] for model in budget_models(store) for x in model.values()}


def results_of(tried: Iterable[tuple[RunConfig, int, RemedyTrial]]) -> Results:
    """The results of trials; a seed that was trained with several budgets counts once, with the
    largest.

    Args:
        tried: each trial with its configuration, and the model that this is with some budget.
    """
    found: dict[Remedy, dict[tuple[int, int], bool]] = {}
    # The largest budget comes last, and so overwrites the others.
    for _, model, trial in sorted(tried, key=lambda entry: entry[0].max_num_epochs):
        seeds = found.setdefault(trial.remedy, {})
        seeds |= {(model, seed): mended for seed, mended in trial.results.items()}
    return found


def rank(tried: Sequence[RemedyTrial], known: Results) -> tuple[RemedyTrial, ...]:
    """Trials with their records, those first that mended most; untried ones count as half."""
    seeds = [known.get(trial.remedy, {}).values() for trial in tried]
    recorded = [replace(x, mended=(sum(y), len(y))) for x, y in zip(tried, seeds, strict=True)]
    # Laplace's rule of succession: a remedy that was never tried counts as mending half.
    return tuple(sorted(recorded, key=lambda trial: -(trial.mended[0] + 1) / (trial.mended[1] + 2)))


class Asker:
    """What came of the remedies of some configurations, read once for all of them; of those with
    most explained seeds where none are named.
    """

    def __init__(
        self, store: Store, selection: Selection, config_ids: Sequence[int] | None = None
    ) -> None:
        if config_ids is None:
            config_ids = explained.most_explained(store, selection, MOST_CONFIGURATIONS)
        self._store = store
        # What is tried is another configuration, often of another sweep.
        self._anywhere = replace(selection, sweeps=(), config_ids=None, run_ids=None)
        runs = queries.seeds_of(store, config_ids, selection)
        # Bounded, since the causes of every one of these are read.
        failing = runs[runs["failing"] == 1].groupby("config_id").head(MOST_SEEDS)
        causes = explained.causes(store, failing["run_id"].tolist(), selection.learned_at)
        main = runs["run_id"].map(leading_causes(causes))
        self.runs = runs.assign(mechanism=main.astype(object))
        known = queries.configs(store) if config_ids else {}
        # What a plug-in reads is unknown unless it is installed.
        every = {x: config for x, config in known.items() if obstacle_of(config) is None}
        self.configs = {x: every[x] for x in config_ids if x in every}
        # By meaning, so that a trial is found whatever sweep trained it.
        self._alike: dict[str, list[int]] = {}
        for config_id, config in every.items():
            self._alike.setdefault(_meaning(config), []).append(config_id)

    def causes(self) -> Iterator[tuple[int, str, tuple[int, ...]]]:
        """The main causes of the picked seeds of each configuration, with the runs that have it."""
        for (config_id, mechanism), alike in self.runs.groupby(["config_id", "mechanism"]):
            if config_id in self.configs and alike["picked"].any():
                run_ids = tuple(alike["run_id"].astype(int))
                yield int(str(config_id)), str(mechanism), run_ids

    def ask(self, config_id: int, mechanisms: Sequence[str]) -> tuple[RemedyTrial, ...]:
        """Every suggestion against these mechanisms, and what came of it."""
        config = self.configs[config_id]
        before = self.runs[self.runs["config_id"] == config_id]
        epochs = before.loc[before["failing"] == 1, "epochs"].median()
        suggested = suggestions(resolve(config), mechanisms, None if pd.isna(epochs) else epochs)
        others = [change_fields(config, suggestion.fields) for suggestion in suggested]
        ids = [self._alike.get(_meaning(other), []) for other in others]
        every = queries.seeds_of(self._store, {x for some in ids for x in some}, self._anywhere)
        return tuple(
            self._try(suggestion, other, every[every["config_id"].isin(some)], before)
            for suggestion, other, some in zip(suggested, others, ids, strict=True)
        )

    def _try(
        self, suggestion: Suggestion, other: RunConfig, after: pd.DataFrame, before: pd.DataFrame
    ) -> RemedyTrial:
        """What came of a suggestion: the seeds with the change against those without, by how many
        lack what is to be mended.
        """
        mechanism, states, longer = suggestion.mechanism, after["state"].value_counts(), None
        config = self.configs[int(before["config_id"].iloc[0])]
        if len(after):
            ids = {*before["config_id"], *after["config_id"]}
            longer = longer_lengths(self._store, ids)
        done = []
        for runs in (after, before):
            judged = judge_on(self._store, runs, longer, self._anywhere.below)
            judged = judged[judged["state"] == RunState.DONE].drop_duplicates("model_seed")
            done.append(_judge(mechanism, judged))
        tried, alone = (runs[runs["judged"]].set_index("model_seed") for runs in done)
        paired = why_unpaired(other, config) is None
        comparison = medians = None
        if len(tried) and len(alone):
            lacking = (x["lacks"].astype(float).to_dict() for x in (tried, alone))
            comparison = compare_shares(*lacking, paired=paired)
            on = "accuracy_within" if mechanism == NOT_LEARNED else "accuracy"
            medians = (float(tried[on].median()), float(alone[on].median()))
        lacks = tried["lacks"].rename("lacks_after")
        both = alone.join(lacks, how="inner")
        # Without pairs, no seed with the change is the counterpart of one that failed.
        by_cause = both.loc[both["mechanism"] == mechanism, "lacks_after"] if paired else lacks
        return RemedyTrial(
            suggestion,
            trial_spec(config, other, suggestion, sorted(map(int, before["model_seed"]))),
            comparison,
            medians,
            waiting=int(states.get(RunState.QUEUED, 0) + states.get(RunState.RUNNING, 0)),
            lost=int(states.get(RunState.FAILED, 0)),
            left_out=(len(done[0]) - len(tried), len(done[1]) - len(alone)),
            results={int(str(seed)): not lacks for seed, lacks in by_cause.items()},
            broken=int((~both["lacks"] & both["lacks_after"]).sum()) if paired else 0,
            run_ids=tuple(tried["run_id"].astype(int)),
            longer=longer,
        )


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

    @property
    def mended(self) -> int:
        """How many seeds the best remedy mended; -1 where none was trained."""
        return sum(self.best.results.values()) if self.best else -1


def remedies_tried(store: Store, selection: Selection) -> tuple[Tried, ...]:
    """What stored causes and trained remedies say, first where most seeds were mended.

    Args:
        selection: whose failing seeds. What came of a remedy is told wherever it was trained.
    """
    asker, cases = Asker(store, selection), []
    for config_id, mechanism, run_ids in sorted(asker.causes(), key=lambda x: -len(x[2])):
        tried = asker.ask(config_id, [mechanism])
        own = {x.remedy: {(config_id, y): z for y, z in x.results.items()} for x in tried}
        cases.append(Tried(config_id, mechanism, run_ids, rank(tried, own)))
        if len(cases) == MOST_CAUSES:
            break
    return tuple(sorted(cases, key=lambda x: (x.mended, len(x.run_ids)), reverse=True))


def _judge(mechanism: str, runs: pd.DataFrame) -> pd.DataFrame:
    """Finished runs with whether each is a measure of a remedy against this mechanism (judged), and
    whether the remedy leaves it, or finds it, to be mended (lacks).

    Args:
        mechanism: what is to be mended.
        runs: outcome, accuracy_within and failing of each.
    """
    unlearned = runs["outcome"] == Outcome.NOT_LEARNED.value
    if mechanism == NOT_LEARNED:
        return runs.assign(judged=runs["accuracy_within"].notna(), lacks=unlearned)
    unknown = runs["outcome"] == Outcome.NOT_KNOWN.value
    lacks = ~runs["outcome"].isin(GENERALIZING) & (~unknown | (runs["failing"] == 1))
    return runs.assign(judged=~unlearned, lacks=lacks.astype(bool))


def _meaning(config: RunConfig) -> str:
    """What a configuration says of its models: an LSTM's number of heads says nothing."""
    unread = fields_unread(config)
    return canonical_json({k: v for k, v in config.changed.items() if k not in unread})


def mechanisms_of(frame: pd.DataFrame) -> list[str]:
    """The mechanisms of stored causes: what no training mends, then whether a run learned, then
    that of most errors.

    Args:
        frame: as `sweeps.store.reads.explained.causes`, of one run or of several.
    """
    shares = frame.groupby("mechanism", sort=False)["share"].sum()
    ranked = shares.sort_values(ascending=False, kind="stable").index
    return sorted(map(str, ranked), key=lambda name: (name != ORDER, name != NOT_LEARNED))


def trial_spec(
    before: RunConfig, config: RunConfig, suggestion: Suggestion, seeds: Sequence[int]
) -> SweepSpec:
    """The sweep that tries a suggestion.

    Args:
        before: the configuration that it is for.
        config: with the field changed.
        seeds: those of the runs that it is compared with.
    """
    # The key's digits tell apart trials of one remedy for several configurations.
    name = f"{suggestion.field}={suggestion.value} for {config.key[:8]}"
    about = f"Against {suggestion.mechanism}: {suggestion.text}."
    return _spec(name, about, seeds, before, [config])


def all_spec(run_id: int, config: RunConfig, tried: Sequence[RemedyTrial]) -> SweepSpec:
    """One sweep that tries all remedies of a model, with the same seeds."""
    changed = [change_fields(config, x.suggestion.fields) for x in tried]
    about = "; ".join(trial.suggestion.text for trial in tried)
    seeds = tried[0].spec.model_seeds
    return _spec(f"remedies for model {run_id}", about, seeds, config, changed)


def _spec(
    name: str,
    description: str,
    seeds: Sequence[int],
    before: RunConfig,
    changed: Sequence[RunConfig],
) -> SweepSpec:
    return parse_spec(
        {
            "name": name,
            "description": description,
            "model_seeds": list(seeds),
            "parents": {x.key: before.key for x in changed},
            **tables_of(changed),
        }
    )


def tables_of(configs: Sequence[RunConfig]) -> dict[str, Any]:
    """What a specification says of fields so that it has these configurations, in this order.

    Args:
        configs: at least one, all different.
    """
    fields = [named_fields(config) for config in configs]
    first, *others = fields
    # Only what all have alike: a field that one of them lacks has its default there.
    shared = {
        x: value for x, value in first.items() if all(x in y and y[x] == value for y in others)
    }
    own = [{x: value for x, value in named.items() if x not in shared} for named in fields]
    return {"fixed": shared, **({"configurations": own} if len(own) > 1 else {})}


def sentences(trial: RemedyTrial) -> list[str]:
    """What came of a suggestion, in a clause; where it was tried, how often it mended this cause in
    another.
    """
    mended, seeds = trial.mended
    mended_text = f"mended {trial.suggestion.mechanism} in {mended} of {count(seeds, 'seed')}"
    where = f"{mended_text} of this database"
    if not trial.is_begun:
        where = f"elsewhere in this database it {mended_text}"
    return [trial_sentence(trial), *([where] if seeds else [])]


def trial_sentence(trial: RemedyTrial) -> str:
    """What came of a suggestion for this configuration."""
    found, mechanism = trial.comparison, trial.suggestion.mechanism
    left_out, (changed, before) = "", trial.left_out
    if changed or before:
        without = f" and {before} without it" if before else ""
        left_out = f"{changed} with it{without} left out: {why_left_out(mechanism)}"
    if found is None:
        if changed:
            return f"trained, and no seeds to compare: {left_out}"
        if trial.waiting:
            return f"in training: none of {count(trial.waiting, 'seed')} is done yet"
        if trial.lost:
            return "training failed for every seed that was tried"
        return "not tried on this configuration" if trial.mended[1] else "not tried yet"
    lacks, where = "fail", ""
    # That it has learned is judged on trained lengths.
    longer = describe_longer([trial.longer]).removesuffix(".")
    if mechanism == NOT_LEARNED:
        lacks, where, longer = "have not learned", " on trained lengths", ""
    (first, n), (second, m) = found.counts or ((0, 0), (0, 0))
    sentence = f"trained: {first} of {count(n, 'seed')} {lacks}, against {second} of {m}"
    if (table := found.table) is not None:
        both = count(int(table.pairs), "seed")
        sentence += (
            f"; of {both} in both it mends {table.only_second} and breaks {table.only_first}"
        )
    sentence += f" ({found.method}, {p_value_text(found.p_value or 0.0)}: {chance_of(found)})"
    medians = f"median accuracy{where} {' against '.join(map(percent, trial.medians or ()))}"
    more = f"{trial.waiting} more in training" if trial.waiting else ""
    parts = (sentence, medians, longer[:1].lower() + longer[1:], left_out, more)
    return "; ".join(filter(None, parts))


def why_left_out(mechanism: str) -> str:
    """Why seeds are no measure of a remedy against this mechanism, in two or three words."""
    return "not judged on trained lengths" if mechanism == NOT_LEARNED else "not learned"
