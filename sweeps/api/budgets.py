"""More training for the seeds of a sweep that have not learned, and more seeds for a sweep."""

import json
import math
import numbers
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any, NamedTuple

import pandas as pd

from seqcls.config import RunConfig, are_imported
from seqcls.errors import ConfigError, Parameter, PluginMissingError, SpecError
from seqcls.interpretability.remedies import change_fields
from seqcls.interpretability.wording import percents
from seqcls.problem import missing_plugin, obstacle_of
from seqcls.text import count
from sweeps.api.selecting import selection_of
from sweeps.api.sweeping import submit
from sweeps.api.trials import spec_of
from sweeps.grid.budgets import budget_fields
from sweeps.grid.seeds import EXPECTED, Until
from sweeps.grid.spec import SweepSpec, parse_spec, spec_as_written
from sweeps.grid.written_spec import MAX_RUNS
from sweeps.results import LEARNED_AT, OutcomeCounts
from sweeps.statistics.intervals import PairTable
from sweeps.store.database import Store
from sweeps.store.reads import frames, queries, sweep_queries
from sweeps.store.reads.overview import budget_models
from sweeps.store.reads.selection import Selection
from sweeps.store.tables import RunState
from sweeps.work.more_seeds import known_of

Budget = str | int
"""A training budget: a multiple of the previous epochs, `4x`, or a number of epochs."""

LOOKS = "95%, however often one looks"

_BUDGET = re.compile(r"([0-9]{1,18})|([0-9]{1,6}(?:\.[0-9]{1,6})?)x")


class MoreTraining(NamedTuple):
    """The sweep that trains the runs of another that have not learned with more epochs."""

    spec: SweepSpec | None
    """None where there is no such run."""
    sentences: list[str]
    """A description, a line each."""


def more_training(
    store: Store,
    sweep: str,
    budget: Budget,
    *,
    learned_at: float = LEARNED_AT,
    name: str | None = None,
) -> MoreTraining:
    """Plans a sweep that gives the runs of another that have not learned a larger budget.

    It trains the same configurations with a larger `max_num_epochs`, each with its seeds that have
    not learned. A seed that learned with a budget below the new one is left out. Nothing is
    written. Arguments and errors are those of `more`.
    """
    selection = selection_of(store, (sweep,), learned_at=learned_at)
    sweep_id = sweep_queries.find_sweep(store, sweep)
    factor, epochs = _parse_budget(budget)
    runs, judged, has_learned = _judge(store, selection)
    waiting = runs[judged & ~has_learned].sort_values(["config_id", "model_seed"])
    configs = queries.configs(store, [int(x) for x in waiting["config_id"].unique()])
    changed = {
        config_id: _larger(budget, config, epochs or math.ceil(factor * config.max_num_epochs))
        for config_id, config in configs.items()
    }
    # A seed that learned with a budget in between needs no second training.
    since = _learned_since(store, waiting, changed, selection.learned_at)
    # Configurations that differ only by the budget become one.
    members: dict[RunConfig, set[int]] = {}
    parents: dict[str, str] = {}
    ended_early = 0
    rows = waiting[["config_id", "model_seed", "epochs"]].itertuples(index=False)
    for config_id, seed, used in rows:
        if (config_id, seed) not in since:
            members.setdefault(changed[config_id], set()).add(int(seed))
            parents.setdefault(changed[config_id].key, configs[config_id].key)
            # A larger budget changes nothing where another rule ended the training.
            ended_early += int(used < configs[config_id].max_num_epochs)
    learned, done = int(has_learned.sum()), runs["state"] == RunState.DONE
    # A proved run has learned, though no test judges it.
    unknown = int((done & ~judged & ~has_learned).sum())
    lacks = {
        "learned with a larger budget": len(since),
        "not judged on trained lengths": unknown,
        "not trained yet, or failed in training": int((~done).sum()),
    }
    listed = "; ".join(f"{number:,} {what}" for what, number in lacks.items() if number)
    known = f"{sweep}: {learned:,} of {len(runs):,} have learned{f' ({listed})' * bool(listed)}; "
    if not members:
        none = f"{known}none is left to train with this budget."
        return MoreTraining(None, [none])
    record = sweep_queries.sweep_record(store, sweep_id)
    times = str(budget).removesuffix("x")
    longer = count(int(times), "epoch") if times == str(budget) else f"{times} times the epochs"
    about = f"The seeds of {record.name} that have not learned, with {longer}."
    submitted = json.loads(record.spec)
    options = {key: submitted[key] for key in ("checkpoints", "verdict") if key in submitted}
    spec = spec_of(name or f"{sweep}-{budget}", about, members, parents, **options)
    _refuse_another(store, spec)
    sentences = [f"{known}{spec.name} trains {spec.num_runs():,} with a larger budget."]
    if ended_early:
        sentences.append(
            f"Training of {ended_early:,} of these {spec.num_runs():,} ended before the budget "
            "that they had: patience or min_validation_loss may end it again."
        )
    return MoreTraining(spec, sentences)


def more(
    store: Store,
    sweep: str,
    budget: Budget,
    *,
    learned_at: float = LEARNED_AT,
    name: str | None = None,
) -> str | None:
    """Queues those runs of a sweep that have not learned, with a larger budget, as a sweep.

    Args:
        sweep: its name.
        budget: `4x`, a multiple of the budget of each configuration, or a number of epochs.
        learned_at: the accuracy on strings of trained lengths from which on a run has learned.
        name: of the new sweep; by default `heads-4x` for `heads`.

    Returns:
        The name of the new sweep, for `work`; None where no run is known not to have learned.

    Raises:
        UnknownRunError: there is no such sweep.
        ConfigError: the budget is none or is no larger, or another sweep has the name.
        SpecError: no sweep can have the name.
    """
    spec = more_training(store, sweep, budget, learned_at=learned_at, name=name).spec
    if spec is None:
        return None
    submit(store, [spec])
    return spec.name


def seeds(store: Store, sweep: str, until: str, *, most: int | None = None) -> SweepSpec:
    """Lets a sweep grow until a share is known: its workers add seeds until then.

    The interval that decides is a confidence sequence, which is valid at any number of looks.

    Args:
        sweep: its name.
        until: `share ± 10 %`, until the interval of the share that generalizes, of seeds that
            learned, is at most so wide to either side for each configuration; `learned ± 10 %`,
            the same of the share that learned; `share apart` or `learned apart`, until the shares
            of its two configurations differ, by pairs where the same seed starts both from the
            same weights.
        most: the maximum number of seeds of a configuration; by default, that of the sweep.

    Returns:
        The new specification of the sweep, which is stored.

    Raises:
        UnknownRunError: there is no such sweep.
        ConfigError: its results are imported, so that it has no seeds to train, or it needs a
            package that is not installed here.
        SpecError: the rule is none, or no number of seeds can fulfill it.
    """
    sweep_id = sweep_queries.find_sweep(store, sweep)
    submitted = _specification(store, sweep)
    if not until.strip():
        # In a specification an empty rule is valid: no seeds are added.
        raise SpecError(f"sweep {sweep!r}: until={until!r}: expected {EXPECTED}")
    trained = queries.config_ids_of_sweep(store, sweep_id)
    for config in queries.configs(store, trained).values():
        if (reason := missing_plugin(config)) is not None:
            raise PluginMissingError(f"sweep {sweep!r}: {reason}")
    changes = {"until": until, **({} if most is None else {"most_seeds": most})}
    spec = parse_spec({**submitted, **changes})
    submit(store, [spec])
    return spec


def _specification(store: Store, sweep: str) -> dict[str, Any]:
    """Returns the specification of a sweep that was trained here, as a table."""
    record = sweep_queries.sweep_record(store, sweep_queries.find_sweep(store, sweep))
    submitted: dict[str, Any] = json.loads(record.spec)
    if are_imported(submitted.get("fixed", {})) or "model_seeds" not in submitted:
        raise ConfigError(
            f"sweep {sweep!r} has no seeds to train: its results are imported; expected a sweep "
            "that was trained here"
        )
    return submitted


def more_seeds(store: Store, sweep: str, number: int) -> SweepSpec:
    """Returns the specification of a sweep with this many more seeds of each configuration.

    Raises:
        UnknownRunError: there is no such sweep.
        ConfigError: it has no seeds to train.
        SpecError: it would have too many runs.
    """
    spec = spec_as_written(_specification(store, sweep))
    combinations = math.prod(map(len, spec.axes.values()))
    own = [len(spec.seeds_of(entry)) for entry in spec.configurations for _ in range(combinations)]
    return spec.with_seeds([seeds + number for seeds in own])


def seed_sentences(store: Store, sweep_ids: Sequence[int] | None = None) -> list[str]:
    """Describes the shares for which sweeps grow, as far as they are known, a line each."""
    sentences: list[str] = []
    for sweep_id, submitted in sweep_queries.sweeps_to_grow(store, sweep_ids).items():
        spec = spec_as_written(json.loads(submitted))
        # Without a package its configurations need, the meaning of a seed is unknown here.
        with suppress(ConfigError):
            if spec.until:
                names = queries.names_of_sweep(store, sweep_id)
                sentences += _known_of_share(spec, names, *known_of(store, sweep_id, spec))
    return sentences


def _known_of_share(
    spec: SweepSpec,
    names: Mapping[str, str],
    counts: Sequence[OutcomeCounts],
    pairs: PairTable | None,
) -> Iterator[str]:
    until = Until.parse(spec.until)
    verb = "learned" if until.share == "learned" else "of those that learned generalize"
    spans = [percents(x.low, x.high) for x in until.intervals(counts, pairs)]
    for place, (config, seed_counts) in enumerate(zip(spec.configs(), counts, strict=True)):
        share, n = until.fraction(seed_counts)
        span = "" if until.within is None else f" ({LOOKS}: {spans[place]})"
        subject = f"{spec.name}, {names[config.key]}" if len(names) > 1 else spec.name
        yield f"{subject}: {count(seed_counts.models, 'seed')}, {share:,} of {n:,} {verb}{span}"
    if until.within is None:
        what = "seeds are not paired"
        if pairs is not None:
            learned = " that both learned" * (until.share == "generalizes")
            what = f"seeds{learned} are paired: {count(int(pairs.pairs), 'pair')}"
        yield f"{spec.name}: difference of both shares ({what}; {LOOKS}): {spans[0]}"
    if list(until.seeds_needed(counts, MAX_RUNS, pairs)) != [
        seed_counts.models for seed_counts in counts
    ]:
        most = f"{spec.name}: at most {count(spec.most_seeds, 'seed')}"
        yield f"{most}, which is too few for {spec.until!r}"


def _parse_budget(budget: Budget) -> tuple[Fraction, int | None]:
    """Reads a budget as a factor and, where it is absolute, a number of epochs."""
    # Neither 4.0 nor True, which would be 1.
    written = isinstance(budget, str | numbers.Integral) and not isinstance(budget, bool)
    match = _BUDGET.fullmatch(str(budget)) if written else None
    if match is None or (match[2] and Fraction(match[2]) <= 1):
        raise ConfigError(
            Parameter("budget", budget),
            ": expected more than once the epochs, as 4x, or a number of epochs, as 192",
        )
    # A Fraction keeps 1.1x of 10 epochs at 11: as a float the ceiling would be 12.
    return Fraction(match[2] or 1), int(match[1]) if match[1] else None


def _larger(budget: Budget, config: RunConfig, epochs: int) -> RunConfig:
    """Returns the configuration with a larger budget."""
    if (reason := obstacle_of(config)) is not None:
        raise ConfigError(reason)
    try:
        if epochs <= config.max_num_epochs:
            raise ConfigError(f"expected more epochs than {config.max_num_epochs:,}, as they had")
        return change_fields(config, budget_fields(config, epochs))
    except ConfigError as error:
        raise ConfigError(Parameter("budget", budget), f": {error}") from None


def _learned_since(
    store: Store, waiting: pd.DataFrame, changed: Mapping[int, RunConfig], learned_at: float
) -> set[tuple[int, int]]:
    """Returns the seeds, by configuration, that learned with a budget between the two.

    Seeds that were trained with the new budget too are left out: they stay in the sweep.
    """
    models = {x: model for model in budget_models(store) for x in model.values() if x in changed}
    others = {x for model in models.values() for x in model.values()}
    selection = Selection(config_ids=tuple(sorted(others)), learned_at=learned_at)
    runs, judged, has_learned = _judge(store, selection)
    keys = zip(runs["config_id"][judged], runs["model_seed"][judged], strict=True)
    known = dict(zip(keys, has_learned[judged], strict=True))
    since = set()
    for config_id, seed in waiting[["config_id", "model_seed"]].itertuples(index=False):
        learned: dict[int, bool] = {}
        for budget, other in models.get(config_id, {}).items():
            if other == config_id:
                # Budgets come in ascending order: only what followed the present one may count.
                learned.clear()
            elif budget <= changed[config_id].max_num_epochs and (other, seed) in known:
                learned[budget] = known[other, seed]
        # The result with the largest of them counts.
        largest = max(learned, default=0)
        if learned.get(largest) and largest < changed[config_id].max_num_epochs:
            since.add((int(config_id), int(seed)))
    return since


def _judge(
    store: Store, selection: Selection
) -> tuple[pd.DataFrame, "pd.Series[bool]", "pd.Series[bool]"]:
    """Returns the runs in scope, and masks of those judged on trained lengths and those that
    learned.
    """
    runs = frames.runs(store, selection)
    judged = (runs["state"] == RunState.DONE) & (runs["tested_within"].fillna(0) > 0)
    return runs, judged.astype(bool), runs["learned"].fillna(False).astype(bool)


def _refuse_another(store: Store, spec: SweepSpec) -> None:
    """Refuses the name of an existing sweep that was not made by the same request."""
    if spec.name not in sweep_queries.sweep_names(store).values():
        return
    known = sweep_queries.sweep_record(store, sweep_queries.find_sweep(store, spec.name))
    # The description names the sweep and the budget, so that the same request may be repeated.
    if known.description != spec.description:
        raise ConfigError(
            f"there is a sweep {spec.name!r} already, which was not made by this; choose a name "
            "with ",
            Parameter("name", "…"),
        )
