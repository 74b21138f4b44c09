"""Why runs fail: their errors attributed to causes, and whether rounding decides their outcome.

A run is trained again with other rounding: from initial values moved by the least that their
precision can hold, and in double precision. If its confusion matrix is another one then, it hangs
on rounding: nothing that the configuration says decides what comes of it, and another machine or
engine may make something else of it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, astuple
from typing import Any

import numpy as np
import pandas as pd

from seqcls.config import RunConfig, default_fields
from seqcls.errors import ConfigError, PluginMissingError, SeqclsError, UnknownRunError
from seqcls.interpretability.mechanisms import NOT_LEARNED, ORDER, SAMPLE
from seqcls.problem import missing_plugin, resolve
from seqcls.results import Cause, Confusion, RangeCounts, Weights
from sweeps.access import is_read_only
from sweeps.results import LEARNED_AT, RANGE_COLUMNS
from sweeps.statistics.intervals import wilson
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import to_write, try_to_store
from sweeps.store.reads import explained, misclassified, queries
from sweeps.store.reads.selection import View
from sweeps.store.tables import RunState

TIMES = 8
"""How often each run is trained again from moved values, unless asked for more."""

DOUBLE = "float64"


def in_both_precisions(store: Store) -> pd.DataFrame:
    """Runs that are stored in single and in double precision, and whether rounding decides them.

    Returns:
        One row a pair of finished runs that differ in nothing but `precision`: run_id_float32,
        run_id_float64, model_seed, sweeps, the cells of both (as tn_float32 and so on) and wrong,
        and sensitive, true where any of these differ. Of tasks that are no languages there are no
        cells.
    """
    done = queries.runs(store)
    done = done[done["state"] == RunState.DONE]
    single, double = (done[done["precision"] == x] for x in ("float32", "float64"))
    alike = [*(name for name in default_fields() if name != "precision"), "model_seed"]
    kept = ["id", "tn", "fp", "fn", "tp", "wrong"]
    pairs = single[[*alike, *kept, "sweeps"]].merge(
        double[[*alike, *kept]], on=alike, suffixes=("_float32", "_float64")
    )
    pairs["sensitive"] = [
        any(_differ(pair[f"{cell}_float32"], pair[f"{cell}_float64"]) for cell in kept[1:])
        for pair in pairs.to_dict("records")
    ]
    pairs = pairs.rename(columns={f"id_{x}": f"run_id_{x}" for x in ("float32", "float64")})
    ids = ["run_id_float32", "run_id_float64", "model_seed", "sweeps"]
    cells = [f"{cell}_{x}" for x in ("float32", "float64") for cell in kept[1:]]
    return pairs[[*ids, *cells, "sensitive"]]


def _differ(first: Any, second: Any) -> bool:
    """Whether two numbers differ; of none there is nothing to differ."""
    return not (pd.isna(first) and pd.isna(second)) and bool(first != second)


def perturb(store: Store, run_ids: Sequence[int], times: int = TIMES) -> None:
    """Trains finished runs again with other rounding, and stores the results.

    Args:
        times: how often each is trained again from moved values, all together in one group.

    Raises:
        UnknownRunError: one is not finished.
        ConfigError: the task of one is no language.
    """
    runs = queries.runs(store, View(run_ids=tuple(run_ids)))
    known = {run["id"]: run for run in runs.to_dict("records")}
    for run_id in run_ids:
        if known[run_id]["state"] != RunState.DONE:
            raise UnknownRunError(f"run {run_id} is {known[run_id]['state']}, not finished")
        resolve(queries.run_config(store, run_id)).require_language(
            f"run {run_id}: of each training the confusion matrix is kept",
            "; `seqcls sweep SPEC --precision float64` trains the same runs in double precision, "
            "and `seqcls model sensitive` then lists those with another number of errors",
        )
    for run_id in run_ids:
        seed, engine = known[run_id]["model_seed"], known[run_id]["engine"]
        config = queries.run_config(store, run_id)
        outcomes = train_perturbed(config, int(seed), times, engine=str(engine))
        writer.record_perturbations(store, run_id, outcomes)


def train_perturbed(
    config: RunConfig, model_seed: int, times: int = TIMES, *, engine: str = "auto"
) -> list[Confusion]:
    """What a run comes to with other rounding.

    First from initial values moved by one unit in the last place, each parameter up or down, drawn
    by a generator of its own for each time; then from the same initial values in double precision,
    where the run's own is another. Trainings that diverge have no model, and so are left out.

    Args:
        engine: the one that trained the run.
    """
    # Imported where it is used: PyTorch takes a second or two to load.
    from seqcls.engines.member import draw_initial

    (initial,) = draw_initial([(resolve(config), model_seed)])
    moved = [moved_values(initial, np.random.default_rng([model_seed, i])) for i in range(times)]
    trained = _train_and_test(config, model_seed, moved, engine)
    if config.precision != DOUBLE:
        double = config.model_copy(update={"precision": DOUBLE})
        unmoved = {name: values.astype(DOUBLE) for name, values in initial.items()}
        trained += _train_and_test(double, model_seed, [unmoved], "auto")
    return trained


def _train_and_test(
    config: RunConfig, model_seed: int, initial: Sequence[Weights], engine: str
) -> list[Confusion]:
    from seqcls.evaluation import evaluate
    from seqcls.training import train_group

    problem = resolve(config)
    trained = train_group([(problem, model_seed)] * len(initial), engine=engine, initial=initial)
    kept = [member.kept_weights for member in trained if member.failure is None]
    if not kept:
        return []
    return [tested.confusion for tested in evaluate(problem, kept, engine=engine)]


def moved_values(weights: Weights, rng: np.random.Generator) -> Weights:
    """Parameters, each moved up or down by one unit in the last place; zeros stay zero.

    A zero is what a constant is drawn as, such as the embedding of padding.
    """
    moved = {}
    for name, values in weights.items():
        away = np.where(rng.random(values.shape) < 0.5, -np.inf, np.inf).astype(values.dtype)
        moved[name] = np.where(values == 0, values, np.nextafter(values, away))
    return moved


def attribute(store: Store, run_ids: Sequence[int], sample: int = SAMPLE) -> int:
    """Attributes the errors of finished runs and stores the causes, where not stored already.

    Args:
        sample: errors of each that are looked at, spread evenly from the shortest to the longest.

    Returns:
        How many runs were attributed now. One whose task is neither a language nor a transduction
        has no causes.

    Raises:
        ConfigError: the tasks of all of them are neither.
    """
    waiting = list(_runs_without_causes(store, _with_causes(store, run_ids), sample))
    for run_id, wrong in waiting:
        writer.record_causes(store, run_id, causes_of(store, run_id, wrong, sample))
    return len(waiting)


def causes_of_run(store: Store, run_id: int, learned_at: float = LEARNED_AT) -> pd.DataFrame:
    """Why a run fails: as stored, or else found, and stored where this process may write.

    Args:
        learned_at: as for `sweeps.store.reads.explained.causes`.

    Raises:
        UnknownRunError: it has no model.
    """
    # A run without a model says so here, before anything is attributed.
    queries.weights(store, run_id)
    stored = explained.causes(store, [run_id])
    if len(stored) or misclassified.string_errors(store, run_id).empty:
        return causes_judged(store, [run_id], learned_at)
    if not is_read_only():
        with try_to_store("causes"):
            attribute(to_write(store), [run_id])
            return causes_judged(store, [run_id], learned_at)
    waiting = _runs_without_causes(store, _with_causes(store, [run_id]), SAMPLE)
    found = [row for run, _ in waiting for row in _find(store, run, SAMPLE, learned_at)]
    return pd.DataFrame(found, columns=stored.columns)


def causes_judged(
    store: Store, run_ids: Sequence[int], learned_at: float, sample: int = SAMPLE
) -> pd.DataFrame:
    """The stored causes of these runs, by an accuracy from which on a run has learned.

    Those of runs that were looked into as not having learned, and have by this accuracy, are found
    anew, and not stored.

    Returns:
        As `sweeps.store.reads.explained.causes`.
    """
    known = explained.causes(store, run_ids, learned_at)
    if learned_at == LEARNED_AT:
        return known
    stored = explained.causes(store, run_ids)
    told = set(stored.loc[stored["mechanism"] == NOT_LEARNED, "run_id"].tolist())
    again = sorted(told - set(explained.not_learned(store, told, learned_at)["run_id"].tolist()))
    found: list[dict[str, Any]] = []
    for run_id in again:
        # Its weights may be gone since.
        with suppress(SeqclsError):
            found += _find(store, run_id, sample, learned_at)
    if not found:
        return known
    rows = [known[~known["run_id"].isin(again)], pd.DataFrame(found, columns=known.columns)]
    both = pd.concat([part for part in rows if len(part)])
    return both.sort_values(["run_id", "number"], ignore_index=True)


def _find(store: Store, run_id: int, sample: int, learned_at: float) -> list[dict[str, Any]]:
    """The rows of a run's causes, found now."""
    wrong = wrong_strings(misclassified.string_errors(store, run_id))
    found = causes_of(store, run_id, wrong, sample, learned_at)
    return [{"run_id": run_id, "number": n, **asdict(cause)} for n, cause in enumerate(found)]


def wrong_strings(errors: pd.DataFrame) -> list[str]:
    """Misclassified strings, each as often as it occurs in the test set, as wherever errors are
    counted.

    Args:
        errors: as `sweeps.store.reads.misclassified.string_errors`, in its order.
    """
    strings: list[str] = errors["string"].repeat(errors["occurrences"].tolist()).tolist()
    return strings


def causes_of(
    store: Store, run_id: int, wrong: Sequence[str], sample: int, learned_at: float = LEARNED_AT
) -> list[Cause]:
    """The causes of a run's errors, the most frequent first.

    Args:
        wrong: its misclassified test strings, the shortest first, each as often as it occurs.
        learned_at: the accuracy on trained lengths from which on a run has learned.
    """
    # Imported where it is used: PyTorch takes a second or two to load.
    from seqcls.interpretability.causes import attributions, summed_up
    from sweeps.api.models import trained_model

    model = trained_model(store, run_id)
    not_learned = why_not_learned(store, run_id, learned_at)
    return summed_up(attributions(model, wrong, sample, not_learned=not_learned))


def why_not_learned(store: Store, run_id: int, learned_at: float = LEARNED_AT) -> str | None:
    """How it shows that a run has not learned the trained lengths; None where it does not."""
    from seqcls.interpretability.sentences import not_learned_text
    from sweeps.api.presentation import words_of

    found = explained.not_learned(store, [run_id], learned_at)
    if found.empty:
        return None
    row = found.astype(object).iloc[0]
    counts = RangeCounts(**{name: row[name] for name in RANGE_COLUMNS})
    words = words_of(queries.run_config(store, run_id))
    losses = queries.epochs(store, run_id)["train_loss"].tolist()
    kept = None if pd.isna(row["best_epoch"]) else int(row["best_epoch"])
    return not_learned_text(counts, words, losses, kept)


LEAD = {NOT_LEARNED: 0, ORDER: 1}
"""Causes that lead however few errors have them: nothing is known of longer strings before the
first is mended, and no training mends the second. All others follow by their share."""


def leading_causes(causes: pd.DataFrame) -> pd.DataFrame:
    """The mechanism of most errors of each run, whatever head and tokens it is about.

    Those of `LEAD` always lead.

    Args:
        causes: as `sweeps.store.reads.explained.causes`.

    Returns:
        run_id, mechanism, share (of the run's errors that were looked at), strings (looked at).
    """
    summed = causes.groupby(["run_id", "mechanism"], sort=False)[["share", "strings"]].sum()
    # A stable sort: of equals the first stays, which is that of the most frequent cause.
    ranked = summed.reset_index().sort_values("share", ascending=False, kind="stable")
    ranked = ranked.sort_values("mechanism", key=_lead, kind="stable")
    first = ranked.drop_duplicates("run_id").sort_values("run_id", ignore_index=True)
    looked_at = causes.groupby("run_id")["strings"].sum()
    return first.assign(strings=first["run_id"].map(looked_at).astype(int))


def _lead(mechanisms: "pd.Series[str]") -> "pd.Series[int]":
    return mechanisms.map(lambda name: LEAD.get(name, len(LEAD)))


def causes_by_configuration(runs: pd.DataFrame, causes: pd.DataFrame) -> pd.DataFrame:
    """The share of failing seeds by leading mechanism, of every configuration.

    Args:
        runs: a row a failing run: id, config_id.
        causes: as `sweeps.store.reads.explained.causes`, of these runs.

    Returns:
        config_id, mechanism, seeds (whose errors it causes most), failing (attributed seeds of
        the configuration), share, low, high (Wilson interval), in [0, 1].
    """
    attributed = leading_causes(causes).merge(
        runs[["id", "config_id"]], left_on="run_id", right_on="id"
    )
    failing = attributed.groupby("config_id").size()
    counted = attributed.groupby(["config_id", "mechanism"]).size().rename("seeds").reset_index()
    counted["failing"] = counted["config_id"].map(failing)
    pairs = zip(counted["seeds"], counted["failing"], strict=True)
    shares = [astuple(wilson(int(seeds), int(n))) for seeds, n in pairs]
    columns = ["share", "low", "high"]
    counted = counted.join(pd.DataFrame(shares, columns=columns, dtype=float))
    return counted.sort_values(["config_id", "seeds"], ascending=[True, False], ignore_index=True)


def _with_causes(store: Store, run_ids: Sequence[int]) -> list[int]:
    """Those of these runs whose errors can be attributed.

    Raises:
        ConfigError: there are some, and none of them is.
    """
    left = {run: queries.run_config(store, run) for run in run_ids}
    asked = "causes are found by asking models"
    why_not: list[tuple[Callable[[RunConfig], str | None], type[ConfigError], str]] = [
        (queries.why_no_weights, ConfigError, f"{asked}, and of each "),
        (missing_plugin, PluginMissingError, f"{asked}: "),
        (
            lambda config: resolve(config).lacks("causes"),
            ConfigError,
            "causes are found for languages and transductions, and ",
        ),
    ]
    for why, error, said in why_not:
        reasons = {run: why(config) for run, config in left.items()}
        if reasons and None not in reasons.values():
            raise error(f"{said}{next(iter(reasons.values()))}")
        left = {run: left[run] for run, reason in reasons.items() if reason is None}
    return list(left)


def _runs_without_causes(
    store: Store, run_ids: Sequence[int], sample: int
) -> Iterator[tuple[int, list[str]]]:
    """Runs without causes of so many errors, with their errors, the shortest first."""
    known = explained.causes(store, run_ids).groupby("run_id")["strings"].sum()
    for run_id in run_ids:
        if queries.run_status(store, run_id).state != RunState.DONE:
            continue
        wrong = wrong_strings(misclassified.string_errors(store, run_id))
        if wrong and int(known.get(run_id, 0)) != min(sample, len(wrong)):
            yield run_id, wrong
