"""Remedies for failing runs: suggestions, the sweeps that try them, and their results.

A remedy against *not learned* mended a seed that has learned with it, judged on trained lengths
alone. Any other remedy mended a seed that generalizes with it, or makes no error where nothing
longer is tested; seeds that have not learned, with or without it, do not count.

A configuration is the trial of a remedy if the fields that its models read are those of the remedy.
Only the configurations with most explained seeds are evaluated, so that the work is bounded.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
from sweeps.store.reads import explained, frames, queries
from sweeps.store.reads.overview import budget_models, judge_on, longer_lengths
from sweeps.store.reads.selection import Selection
from sweeps.store.tables import RunState

MOST_CONFIGURATIONS = 12
MOST_CAUSES = 8
"""Maximum number of pairs of a configuration and a cause: those with most failing seeds."""

MOST_SEEDS = 200
"""Maximum number of failing seeds of a configuration."""


@dataclass(frozen=True, eq=False)
class RemedyTrial:
    """A suggestion, the sweep that tries it, and its results."""

    suggestion: Suggestion
    spec: SweepSpec
    """The same seeds with one field changed."""
    comparison: Difference | None
    """Shares of seeds that fail, of the changed configuration (a) and of this one (b), judged as
    the cause requires; None where one has no seed to judge."""
    medians: tuple[float, float] | None = None
    """Median accuracies of these seeds of both."""
    waiting: int = 0
    """Seeds of the changed configuration that are queued or in training."""
    lost: int = 0
    """Seeds whose training failed."""
    left_out: tuple[int, int] = (0, 0)
    """Seeds of both that do not count: they have not learned; against *not learned*, those of which
    learning is unknown."""
    results: Mapping[int, bool] = field(default_factory=dict)
    """True for each counted model seed that failed by the cause and is mended; without pairs, for
    each seed with the change that does not fail."""
    broken: int = 0
    """Number of seeds that fail only with the change; 0 without pairs."""
    run_ids: tuple[int, ...] = ()
    """The counted runs with the change."""
    longer: range | None = None
    """The common lengths of the longer strings, where those of the two differ."""
    mended: tuple[int, int] = (0, 0)
    """Numbers of seeds in this database that the remedy mended of this cause, and of all tried."""

    @property
    def remedy(self) -> "Remedy":
        """The cause, the changed field and the reason."""
        return self.suggestion.mechanism, self.suggestion.field, self.suggestion.reason

    @property
    def is_begun(self) -> bool:
        """True if a seed is trained, or will be."""
        return self.comparison is not None or self.waiting > 0 or self.left_out[0] > 0

    def record(self) -> dict[str, Any]:
        """Returns the trial as JSON data."""
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
    """Returns trials of remedies for the configuration of a run, those that mended most first.

    Args:
        run_id: a run of the configuration; all its finished runs in the selection are compared.
        mechanisms: the causes, the most frequent first.
        selection: picks the failing seeds. Trials count in whatever sweep they were trained.
    """
    selection, config_id = selection or Selection(), queries.config_id_of(store, run_id)
    resolve(queries.run_config(store, run_id))
    asker = Asker(store, selection, [config_id])
    # The run may lie outside the sweeps and seeds of the selection.
    if asker.runs.empty:
        asker = Asker(store, judging(selection), [config_id])
    return rank(asker.ask(config_id, mechanisms), known_results(store, selection))


def judging(selection: Selection) -> Selection:
    """Selects all runs, with the thresholds of a selection."""
    return Selection(below=selection.below, learned_at=selection.learned_at)


Remedy = tuple[str, str, str]
"""A mechanism, the field that is changed against it, and the reason."""

Results = Mapping[Remedy, Mapping[tuple[int, int], bool]]
"""True for each remedy and seed, (configuration, model seed), of which it mended the cause."""


def known_results(store: Store, selection: Selection) -> Results:
    """Returns the results of every remedy that was trained in this database."""
    asker = Asker(store, judging(selection))
    # A model with several budgets has the id of the configuration with the smallest one.
    first = {x: min(model.items())[1] for model in budget_models(store) for x in model.values()}
    return results_of(
        (asker.configs[x], first.get(x, x), trial)
        for x, mechanism, _ in asker.causes()
        for trial in asker.ask(x, [mechanism])
    )


def results_of(tried: Iterable[tuple[RunConfig, int, RemedyTrial]]) -> Results:
    """Merges the results of trials; a seed with several budgets counts once, with the largest.

    Args:
        tried: each trial with its configuration, and the id of that with the smallest budget.
    """
    found: dict[Remedy, dict[tuple[int, int], bool]] = {}
    # The largest budget comes last, and so overwrites the others.
    for _, model, trial in sorted(tried, key=lambda entry: entry[0].max_num_epochs):
        seeds = found.setdefault(trial.remedy, {})
        seeds |= {(model, seed): mended for seed, mended in trial.results.items()}
    return found


def rank(tried: Sequence[RemedyTrial], known: Results) -> tuple[RemedyTrial, ...]:
    """Sorts trials by the share that the remedy mended, as known; untried ones count as half."""
    seeds = [known.get(trial.remedy, {}).values() for trial in tried]
    recorded = [replace(x, mended=(sum(y), len(y))) for x, y in zip(tried, seeds, strict=True)]
    # Laplace's rule of succession: a remedy that was never tried counts as mending half.
    return tuple(sorted(recorded, key=lambda trial: -(trial.mended[0] + 1) / (trial.mended[1] + 2)))


class Asker:
    """Evaluates remedies of some configurations, read once for all of them; by default, of those
    with most explained seeds.
    """

    def __init__(
        self, store: Store, selection: Selection, config_ids: Sequence[int] | None = None
    ) -> None:
        if config_ids is None:
            config_ids = explained.most_explained(store, selection, MOST_CONFIGURATIONS)
        self._store = store
        # A trial is another configuration, often of another sweep.
        self._anywhere = replace(selection, sweeps=(), config_ids=None, run_ids=None)
        runs = frames.runs(store, frames.of_configurations(selection, config_ids))
        # Bounded, since the causes of every one of these are read.
        failing = runs[runs["failing"] == 1].groupby("config_id").head(MOST_SEEDS)
        causes = explained.causes(store, failing["run_id"].tolist(), selection.learned_at)
        main = runs["run_id"].map(leading_causes(causes))
        self.runs = runs.assign(mechanism=main.astype(object))
        known = queries.configs(store) if config_ids else {}
        # The fields that a plug-in reads are unknown unless it is installed.
        every = {x: config for x, config in known.items() if obstacle_of(config) is None}
        self.configs = {x: every[x] for x in config_ids if x in every}
        # By their meaning, so that a trial is found in whatever sweep it was trained.
        self._alike: dict[str, list[int]] = {}
        for config_id, config in every.items():
            self._alike.setdefault(_meaning(config), []).append(config_id)

    def causes(self) -> Iterator[tuple[int, str, tuple[int, ...]]]:
        """Yields the main causes of picked seeds of each configuration, with the runs they have."""
        for (config_id, mechanism), alike in self.runs.groupby(["config_id", "mechanism"]):
            if config_id in self.configs and alike["picked"].any():
                run_ids = tuple(alike["run_id"].astype(int))
                yield int(str(config_id)), str(mechanism), run_ids

    def ask(self, config_id: int, mechanisms: Sequence[str]) -> tuple[RemedyTrial, ...]:
        """Returns a trial for every suggestion against these mechanisms."""
        config = self.configs[config_id]
        before = self.runs[self.runs["config_id"] == config_id]
        epochs = before.loc[before["failing"] == 1, "epochs"].median()
        suggested = suggestions(resolve(config), mechanisms, None if pd.isna(epochs) else epochs)
        others = [change_fields(config, suggestion.fields) for suggestion in suggested]
        ids = [self._alike.get(_meaning(other), []) for other in others]
        tried = frames.of_configurations(self._anywhere, {x for some in ids for x in some})
        every = frames.runs(self._store, tried)
        return tuple(
            self._try(suggestion, other, every[every["config_id"].isin(some)], before)
            for suggestion, other, some in zip(suggested, others, ids, strict=True)
        )

    def _try(
        self, suggestion: Suggestion, other: RunConfig, after: pd.DataFrame, before: pd.DataFrame
    ) -> RemedyTrial:
        """Compares the seeds with the change of a suggestion with those without it, by the share
        that fails.
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
    """Failing seeds of one configuration with one main cause, and the remedies against it."""

    config_id: int
    mechanism: str
    run_ids: tuple[int, ...]
    """The runs with this main cause."""
    trials: tuple[RemedyTrial, ...]
    """Every suggestion against it, those that mended most of these seeds first."""

    @property
    def best(self) -> RemedyTrial | None:
        """The first of the remedies that were trained; None where none was."""
        return next((trial for trial in self.trials if trial.results), None)

    @property
    def mended(self) -> int:
        """The number of seeds the best remedy mended; -1 where none was trained."""
        return sum(self.best.results.values()) if self.best else -1


def remedies_tried(store: Store, selection: Selection) -> tuple[Tried, ...]:
    """Returns trials of remedies by configuration and main cause, those with most mended first.

    Args:
        selection: picks the failing seeds. Trials count in whatever sweep they were trained.
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
    """Adds two columns to finished runs: judged, if they count for remedies against a mechanism,
    and lacks, if they fail in the sense of it.

    Args:
        mechanism: the cause to be mended.
        runs: outcome, accuracy_within and failing of each.
    """
    unlearned = runs["outcome"] == Outcome.NOT_LEARNED.value
    if mechanism == NOT_LEARNED:
        return runs.assign(judged=runs["accuracy_within"].notna(), lacks=unlearned)
    unknown = runs["outcome"] == Outcome.NOT_KNOWN.value
    lacks = ~runs["outcome"].isin(GENERALIZING) & (~unknown | (runs["failing"] == 1))
    return runs.assign(judged=~unlearned, lacks=lacks.astype(bool))


def _meaning(config: RunConfig) -> str:
    """Returns the fields that a configuration's models read, as JSON: an LSTM reads no heads."""
    unread = fields_unread(config)
    return canonical_json({k: v for k, v in config.changed.items() if k not in unread})


def mechanisms_of(frame: pd.DataFrame) -> list[str]:
    """Ranks the mechanisms of stored causes: first those that no training mends, then not learned,
    then by the number of errors.

    Args:
        frame: the frame of `sweeps.store.reads.explained.causes`, of one run or of several.
    """
    shares = frame.groupby("mechanism", sort=False)["share"].sum()
    ranked = shares.sort_values(ascending=False, kind="stable").index
    return sorted(map(str, ranked), key=lambda name: (name != ORDER, name != NOT_LEARNED))


def trial_spec(
    before: RunConfig, config: RunConfig, suggestion: Suggestion, seeds: Sequence[int]
) -> SweepSpec:
    """Returns the sweep that tries a suggestion.

    Args:
        before: the configuration that it is for.
        config: the configuration with the field changed.
        seeds: those of the runs that it is compared with.
    """
    # The key's digits distinguish trials of one remedy for several configurations.
    name = f"{suggestion.field}={suggestion.value} for {config.key[:8]}"
    about = f"Against {suggestion.mechanism}: {suggestion.text}."
    return spec_of(name, about, {config: seeds}, {config.key: before.key})


def all_spec(run_id: int, config: RunConfig, tried: Sequence[RemedyTrial]) -> SweepSpec:
    """Returns one sweep that tries all remedies of a model, with the same seeds."""
    changed = [change_fields(config, x.suggestion.fields) for x in tried]
    about = "; ".join(trial.suggestion.text for trial in tried)
    members = dict.fromkeys(changed, tried[0].spec.model_seeds)
    parents = {x.key: config.key for x in changed}
    return spec_of(f"remedies for model {run_id}", about, members, parents)


def spec_of(
    name: str,
    description: str,
    members: Mapping[RunConfig, Collection[int]],
    parents: Mapping[str, str],
    **options: Any,
) -> SweepSpec:
    """Returns the specification of some configurations, in their order, with their model seeds.

    Args:
        parents: the key of the configuration from which each was made, by its key.
        options: other keys of the specification.
    """
    fields = [named_fields(config) for config in members]
    seeds = [tuple(sorted(own)) for own in members.values()]
    # Only values that all share: a field that one of them lacks has its default there.
    shared = {x: y for x, y in fields[0].items() if all(x in z and z[x] == y for z in fields)}
    # The most frequent seeds are those of the sweep, and only other entries name their own.
    usual = Counter(seeds).most_common(1)[0][0]
    table: dict[str, Any] = {"name": name, "description": description, "fixed": shared}
    # A single configuration has no entry: all its fields are fixed.
    if len(fields) > 1:
        table["configurations"] = [
            {x: y for x, y in named.items() if x not in shared}
            | ({} if own == usual else {"model_seeds": list(own)})
            for named, own in zip(fields, seeds, strict=True)
        ]
    return parse_spec({**options, **table, "model_seeds": list(usual), "parents": dict(parents)})


def sentences(trial: RemedyTrial) -> list[str]:
    """Describes the results of a suggestion for this configuration, and in the database."""
    mended, seeds = trial.mended
    mended_text = f"mended {trial.suggestion.mechanism} in {mended} of {count(seeds, 'seed')}"
    where = f"{mended_text} of this database"
    if not trial.is_begun:
        where = f"elsewhere in this database it {mended_text}"
    return [trial_sentence(trial), *([where] if seeds else [])]


def trial_sentence(trial: RemedyTrial) -> str:
    """Describes the results of a suggestion for this configuration."""
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
    # Learning is judged on trained lengths.
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
    """Returns why seeds do not count for remedies against a mechanism, in two or three words."""
    return "not judged on trained lengths" if mechanism == NOT_LEARNED else "not learned"
