"""Causes of errors of runs, and whether rounding decides their outcome.

A run is trained again with other rounding: from initial values moved by one unit in the last place,
and in double precision. If its confusion matrix changes, its outcome depends on rounding: it does
not follow from the configuration, and may differ on another machine or engine.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, astuple
from typing import Any

import numpy as np
import pandas as pd

from seqcls.config import RunConfig, default_fields
from seqcls.engines.choice import ENGINES
from seqcls.errors import ConfigError, SeqclsError, UnknownRunError
from seqcls.interpretability.mechanisms import NOT_LEARNED, ORDER, SAMPLE
from seqcls.problem import Problem, missing_plugin, resolve
from seqcls.results import Cause, Confusion, RangeCounts, Weights
from sweeps.access import is_read_only
from sweeps.results import LEARNED_AT, RANGE_COLUMNS
from sweeps.statistics.intervals import wilson
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_writer, try_to_store
from sweeps.store.reads import checkpoints, explained, misclassified, queries
from sweeps.store.reads.selection import Selection
from sweeps.store.tables import RunState

TIMES = 8
"""Default number of times that each run is trained again from moved values."""

DOUBLE = "float64"
PRECISIONS = ("float32", DOUBLE)


def in_both_precisions(store: Store) -> pd.DataFrame:
    """Compares runs that are stored in single and in double precision.

    Returns:
        One row a pair of finished runs that differ only in `precision`: run_id_float32,
        run_id_float64, model_seed, sweeps, the cells of both (as tn_float32 and so on; missing of
        tasks that are no languages) and wrong, and sensitive, true where any of these differ.
    """
    done = queries.runs(store).rename(columns={"id": "run_id"})
    done = done[done["state"] == RunState.DONE]
    alike = [*(name for name in default_fields() if name != "precision"), "model_seed"]
    cells = ["tn", "fp", "fn", "tp", "wrong"]
    single, double = (
        done.loc[done["precision"] == x, [*alike, "sweeps", "run_id", *cells]] for x in PRECISIONS
    )
    ends = tuple(f"_{x}" for x in PRECISIONS)
    pairs = single.merge(double.drop(columns="sweeps"), on=alike, suffixes=(ends[0], ends[1]))
    both = [[f"{cell}{end}" for cell in cells] for end in ends]
    first, second = (pairs[names].to_numpy(dtype=float) for names in both)
    # NaN marks the cells of tasks that are no languages, and does not equal itself.
    differ = (first != second) & ~(np.isnan(first) & np.isnan(second))
    ids = [*(f"run_id{end}" for end in ends), "model_seed", "sweeps"]
    return pairs[[*ids, *both[0], *both[1]]].assign(sensitive=differ.any(axis=1))


def perturb(store: Store, run_ids: Sequence[int], times: int = TIMES) -> None:
    """Trains finished runs again with other rounding, and stores the results.

    Args:
        times: trainings of each from moved values, all in one group.

    Raises:
        UnknownRunError: one is not finished.
        ConfigError: the task of one is no language, or it was trained elsewhere.
    """
    known = queries.runs(store, Selection(run_ids=tuple(run_ids))).set_index("id").to_dict("index")
    for run_id in run_ids:
        if (state := known[run_id]["state"]) != RunState.DONE:
            raise UnknownRunError(f"run {run_id} is {state}, not finished")
        if reason := queries.why_no_weights(config := queries.run_config(store, run_id)):
            raise ConfigError(f"run {run_id} cannot be trained again: {reason}")
        resolve(config).require_language(
            f"run {run_id}: of each training the confusion matrix is kept",
            "; `seqcls sweep SPEC --precision float64` trains the same runs in double precision, "
            "and `seqcls model sensitive` then lists those with another number of errors",
        )
    for run_id in run_ids:
        seed, engine = known[run_id]["model_seed"], known[run_id]["engine"]
        config = queries.run_config(store, run_id)
        own = _engine_that_can(resolve(config), str(engine))
        # Stored run by run, since each takes a while: an interruption loses only one.
        outcomes = train_perturbed(config, int(seed), times, engine=own)
        writer.record_findings(store, run_id, "perturbation", outcomes)


def _engine_that_can(problem: Problem, stored: str) -> str:
    """Returns the engine that a run is stored with, without its device; `auto` where it cannot
    train the run any more.
    """
    name = stored.partition(" on ")[0]
    can = any(x.name == name and x.obstacle(problem, "auto") is None for x in ENGINES)
    return name if can else "auto"


def train_perturbed(
    config: RunConfig, model_seed: int, times: int = TIMES, *, engine: str = "auto"
) -> list[Confusion]:
    """Returns the confusion matrices of a run trained with other rounding.

    First from initial values moved by one unit in the last place, each parameter up or down, with
    one generator for each time; then, unless the run has double precision, from the unmoved values
    in double precision. Trainings that diverge are left out.

    Args:
        engine: the one that trained the run.
    """
    # Imported where they are used: PyTorch takes a second or two to load.
    from seqcls.engines.member import draw_initial
    from seqcls.evaluation import evaluate
    from seqcls.training import train_group

    (initial,) = draw_initial([(resolve(config), model_seed)])
    # Seeded by run and repetition, so that the trainings are reproducible.
    moved = [moved_values(initial, np.random.default_rng([model_seed, i])) for i in range(times)]
    groups = [(config, moved, engine)]
    if config.precision != DOUBLE:
        unmoved = {name: values.astype(DOUBLE) for name, values in initial.items()}
        # auto, since the run's engine may not be compiled for double precision.
        groups.append((config.model_copy(update={"precision": DOUBLE}), [unmoved], "auto"))
    found: list[Confusion] = []
    for own, values, on in groups:
        problem = resolve(own)
        group = [(problem, model_seed)] * len(values)
        trained = train_group(group, engine=on, initial=values)
        if weights := [member.kept_weights for member in trained if member.failure is None]:
            found += [tested.confusion for tested in evaluate(problem, weights, engine=on)]
    return found


def moved_values(weights: Weights, rng: np.random.Generator) -> Weights:
    """Moves each parameter up or down by one unit in the last place.

    Zeros stay zero: they are constants, such as the embedding of padding.
    """
    moved = {}
    for name, values in weights.items():
        # The direction has the dtype of the values, or nextafter would step in double precision.
        away = np.where(rng.random(values.shape) < 0.5, -np.inf, np.inf).astype(values.dtype)
        moved[name] = np.where(values == 0, values, np.nextafter(values, away))
    return moved


def attribute(store: Store, run_ids: Sequence[int], sample: int = SAMPLE) -> int:
    """Attributes the errors of finished runs and stores the causes, where not stored already.

    Args:
        sample: errors of each that are examined, spread evenly from the shortest to the longest.

    Returns:
        The number of runs attributed now. A run whose task is neither a language nor a transduction
        has no causes.

    Raises:
        ConfigError: the tasks of all of them are neither.
    """
    known = explained.causes(store, run_ids).groupby("run_id")["strings"].sum()
    number = 0
    for run_id in _with_causes(store, run_ids):
        done = queries.run_status(store, run_id).state == RunState.DONE
        wrong = int(misclassified.string_errors(store, run_id)["occurrences"].sum()) if done else 0
        # Causes from a sample of another size are found anew.
        if int(known.get(run_id, 0)) != min(sample, wrong):
            writer.record_findings(store, run_id, "cause", causes_of(store, run_id, sample))
            number += 1
    return number


def causes_of_run(store: Store, run_id: int, learned_at: float = LEARNED_AT) -> pd.DataFrame:
    """Returns the causes of a run: as stored, or else found, and stored where this process may
    write.

    Args:
        learned_at: as for `sweeps.store.reads.explained.causes`.

    Raises:
        UnknownRunError: it has no model.
    """
    # Raises for a run without a model, before anything is attributed.
    checkpoints.weights(store, run_id)
    stored = explained.causes(store, [run_id])
    if len(stored) or misclassified.string_errors(store, run_id).empty:
        return causes_judged(store, [run_id], learned_at)
    if not is_read_only():
        with try_to_store("causes"):
            attribute(open_writer(store), [run_id])
            return causes_judged(store, [run_id], learned_at)
    found = [row for x in _with_causes(store, [run_id]) for row in _find(store, x, learned_at)]
    return pd.DataFrame(found, columns=stored.columns)


def causes_judged(
    store: Store, run_ids: Sequence[int], learned_at: float, sample: int = SAMPLE
) -> pd.DataFrame:
    """Returns the stored causes of these runs, at a threshold of learning.

    The causes of runs stored as not learned that have learned at this threshold are found anew, and
    not stored.

    Returns:
        The columns of `sweeps.store.reads.explained.causes`.
    """
    known = explained.causes(store, run_ids, learned_at)
    if learned_at == LEARNED_AT:
        return known
    stored = explained.causes(store, run_ids)
    unlearned = set(stored.loc[stored["mechanism"] == NOT_LEARNED, "run_id"].tolist())
    # Stored as not learned, but learned by this threshold: these need other causes.
    again = sorted(
        unlearned - set(explained.not_learned(store, unlearned, learned_at)["run_id"].tolist())
    )
    found: list[dict[str, Any]] = []
    for run_id in again:
        # Its weights may be gone since.
        with suppress(SeqclsError):
            found += _find(store, run_id, learned_at, sample)
    if not found:
        return known
    rows = [known[~known["run_id"].isin(again)], pd.DataFrame(found, columns=known.columns)]
    both = pd.concat([part for part in rows if len(part)])
    return both.sort_values(["run_id", "number"], ignore_index=True)


def _find(
    store: Store, run_id: int, learned_at: float, sample: int = SAMPLE
) -> list[dict[str, Any]]:
    """Finds the causes of a run, as rows."""
    found = causes_of(store, run_id, sample, learned_at)
    return [{"run_id": run_id, "number": n, **asdict(cause)} for n, cause in enumerate(found)]


def causes_of(
    store: Store, run_id: int, sample: int = SAMPLE, learned_at: float = LEARNED_AT
) -> list[Cause]:
    """Finds the causes of a run's errors, the most frequent first.

    Args:
        sample: errors that are examined; strings count as often as they occur in the test set.
        learned_at: the accuracy on trained lengths from which on a run has learned.
    """
    # Imported where it is used: PyTorch takes a second or two to load.
    from seqcls.interpretability.causes import attributions, summed_up
    from sweeps.api.models import trained_model

    model, errors = trained_model(store, run_id), misclassified.string_errors(store, run_id)
    wrong: list[str] = errors["string"].repeat(errors["occurrences"].tolist()).tolist()
    not_learned = why_not_learned(store, run_id, learned_at)
    return summed_up(attributions(model, wrong, sample, not_learned=not_learned))


def why_not_learned(store: Store, run_id: int, learned_at: float = LEARNED_AT) -> str | None:
    """Returns the evidence that a run has not learned the trained lengths; None where it has."""
    from seqcls.interpretability.mechanisms import not_learned_text
    from sweeps.api.presentation import words_of

    found = explained.not_learned(store, [run_id], learned_at)
    if found.empty:
        return None
    row = found.astype(object).iloc[0]
    counts = RangeCounts(**{name: row[name] for name in RANGE_COLUMNS})
    words = words_of(queries.run_config(store, run_id))
    losses = queries.epochs(store, run_id)["train_loss"].tolist()
    best_epoch = None if pd.isna(row["best_epoch"]) else int(row["best_epoch"])
    return not_learned_text(counts, words, losses, best_epoch)


LEAD = {NOT_LEARNED: 0, ORDER: 1}
"""Ranks of causes that lead however few errors have them: longer strings are not judged before the
first is mended, and no training mends the second. All others follow by their share."""


def leading_causes(causes: pd.DataFrame) -> "pd.Series[Any]":
    """Returns the mechanism of most errors of each run, by run_id, over all heads and tokens.

    Those of `LEAD` always lead.

    Args:
        causes: the frame of `sweeps.store.reads.explained.causes`.
    """
    groups = causes.groupby(["run_id", "mechanism"], sort=False, as_index=False)
    summed = groups[["share"]].sum()
    summed["lead"] = summed["mechanism"].map(LEAD).fillna(len(LEAD))
    # The order is stable: of equals the first is that of the most frequent cause.
    ranked = summed.sort_values(["run_id", "lead", "share"], ascending=[True, True, False])
    first: pd.Series[Any] = ranked.drop_duplicates("run_id").set_index("run_id")["mechanism"]
    return first


def causes_by_configuration(runs: pd.DataFrame, causes: pd.DataFrame) -> pd.DataFrame:
    """Computes the share of failing seeds by leading mechanism, of every configuration.

    Args:
        runs: a row a failing run: id, config_id.
        causes: the frame of `sweeps.store.reads.explained.causes` of these runs.

    Returns:
        config_id, mechanism, seeds (whose errors it causes most), failing (attributed seeds of
        the configuration), share, low, high (Wilson interval), in [0, 1].
    """
    leading = runs.set_index("id")[["config_id"]].join(leading_causes(causes), how="inner")
    counted = leading.value_counts().rename("seeds").reset_index()
    counted["failing"] = counted["config_id"].map(leading["config_id"].value_counts())
    pairs = counted[["seeds", "failing"]].itertuples(index=False)
    shares = [astuple(wilson(int(seeds), int(n))) for seeds, n in pairs]
    counted[["share", "low", "high"]] = np.array(shares, dtype=float).reshape(-1, 3)
    order = ["config_id", "seeds", "mechanism"]
    return counted.sort_values(order, ascending=[True, False, True], ignore_index=True)


def _with_causes(store: Store, run_ids: Sequence[int]) -> list[int]:
    """Returns those of these runs whose errors can be attributed.

    Raises:
        ConfigError: none of the runs can be.
    """
    reasons = {run: why_without(queries.run_config(store, run)) for run in run_ids}
    if reasons and None not in reasons.values():
        about = "causes are found by asking models of languages or transductions"
        raise ConfigError(f"{about}: {next(iter(reasons.values()))}")
    return [run for run, reason in reasons.items() if reason is None]


def why_without(config: RunConfig) -> str | None:
    """Returns why causes of runs of a configuration cannot be found; None where they can."""
    elsewhere = queries.why_no_weights(config) or missing_plugin(config)
    return elsewhere or resolve(config).lacks("causes")
