"""Runs trained again with other rounding: from initial values moved by the least that their
precision can hold, and in double precision.

A run whose confusion matrix is another one then hangs on rounding: nothing that the configuration
says decides what comes of it, and another machine or engine may make something else of it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from seqcls.config import RunConfig, default_fields
from seqcls.errors import ConfigError, UnknownRunError
from seqcls.problem import resolve
from seqcls.results import Confusion, Weights
from sweeps.store import writer
from sweeps.store.databases.engine import Store
from sweeps.store.reading import queries
from sweeps.store.reading.selection import View
from sweeps.store.schema.tables import RunState

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
    done = queries.runs(store.reader())
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
        store: the database, open for writing.
        run_ids: finished runs.
        times: how often each is trained again from moved values, all together in one group.

    Raises:
        UnknownRunError: one is not finished.
        ConfigError: the task of one is no language.
    """
    reader = store.reader()
    runs = queries.runs(reader, View(run_ids=tuple(run_ids)))
    known = {run["id"]: run for run in runs.to_dict("records")}
    for run_id in run_ids:
        if known[run_id]["state"] != RunState.DONE:
            raise UnknownRunError(f"run {run_id} is {known[run_id]['state']}, not finished")
        if reason := resolve(queries.run_config(reader, run_id)).no_language:
            raise ConfigError(
                f"run {run_id}: of each training the confusion matrix is kept, and {reason}; "
                "`seqcls sweep SPEC --precision float64` trains the same runs in double precision, "
                "and `seqcls sensitive` then lists those with another number of errors"
            )
    for run_id in run_ids:
        seed, engine = known[run_id]["model_seed"], known[run_id]["engine"]
        config = queries.run_config(reader, run_id)
        outcomes = perturbed(config, int(seed), times, engine=str(engine))
        writer.record_perturbations(store, run_id, outcomes)


def perturbed(
    config: RunConfig, model_seed: int, times: int = TIMES, *, engine: str = "auto"
) -> list[Confusion]:
    """What a run comes to with other rounding.

    First from initial values moved by one unit in the last place, each parameter up or down, drawn
    by a generator of its own for each time; then from the same initial values in double precision,
    where the run's own is another. Trainings that diverge have no model, and so are left out.

    Args:
        config: of the run.
        model_seed: likewise.
        times: how often from moved values, all together in one group.
        engine: the one that trained the run.
    """
    # Imported where it is used: PyTorch takes a second or two to load.
    from seqcls.engines.initial import draw_initial

    (initial,) = draw_initial([(resolve(config), model_seed)])
    moved = [moved_values(initial, np.random.default_rng([model_seed, i])) for i in range(times)]
    trained = _trained(config, model_seed, moved, engine)
    if config.precision != DOUBLE:
        double = config.model_copy(update={"precision": DOUBLE})
        unmoved = {name: values.astype(DOUBLE) for name, values in initial.items()}
        trained += _trained(double, model_seed, [unmoved], "auto")
    return trained


def _trained(
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
    return {name: _moved(values, rng) for name, values in weights.items()}


def _moved(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    away = np.where(rng.random(values.shape) < 0.5, -np.inf, np.inf).astype(values.dtype)
    return np.where(values == 0, values, np.nextafter(values, away))
