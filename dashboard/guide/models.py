"""The report's models, as a database has them, and the guide's sentences on them."""

from functools import lru_cache

import pandas as pd

from seqcls.errors import UnknownRunError
from sweeps.api import Store, configs, find_run, reading, run_config
from sweeps.api.reading import Selection
from sweeps.grid.spec import load_specs

DEFAULT = "all_initializations"
ENUMERATED = "all_fixed_length_sequences"
WIDER = "increased_dimensionality"
SMALLER_START = "lower_magnitude_initializations"
SMALLER_OUTPUTS = "default_embeddings_initialization"
MORE_HEADS = "increased_num_attention_heads"


@lru_cache(maxsize=16)
def _report_keys(sweep: str) -> frozenset[str]:
    """The keys of the configurations that a sweep of the report has.

    The guide's sentences hold for these models; a sweep of the same name may be of others.
    """
    (spec,) = load_specs(f"report/{sweep}")
    return frozenset(config.key for config in spec.configs())


def find(store: Store, sweep: str, model_seed: int) -> int:
    """The run of one of the report's models.

    Raises:
        UnknownRunError: this database does not have it.
    """
    name = f"{sweep}/{model_seed}"
    run_id = find_run(store, name)
    # Users may name their own sweep as the report's; the guide would be wrong of it.
    if run_config(store, run_id).key not in _report_keys(sweep):
        raise UnknownRunError(f"run {name} is not the report's: a sweep of that name has others")
    return run_id


def report(store: Store) -> pd.DataFrame:
    """The finished models of the report's sweeps, with the columns of `models`; a row a sweep."""
    frames = [_in_sweep(store, spec.name) for spec in load_specs("report")]
    return pd.concat(frames, ignore_index=True)


def _in_sweep(store: Store, sweep: str) -> pd.DataFrame:
    models = reading.models(store, Selection(sweeps=(sweep,)))
    known = configs(store, models["config_id"].unique().tolist())
    ids = [key for key, config in known.items() if config.key in _report_keys(sweep)]
    return models[models["config_id"].isin(ids)].assign(sweep=sweep)


def failing(models: pd.DataFrame, sweep: str) -> str:
    """Number of models of a sweep that misclassify a test string, as `7 of 8`.

    Args:
        models: the `report`.
        sweep: its name.

    Raises:
        UnknownRunError: none of them is trained.
    """
    models = models[models["sweep"] == sweep]
    if models.empty:
        raise UnknownRunError(f"no model of {sweep} is in this database")
    return f"{int((models['errors'] > 0).sum()) or 'none'} of {len(models)}"


def learned_sentence(store: Store, models: pd.DataFrame) -> str:
    """Counts the report's failing models, and those that had learned; names the others."""
    # Sweeps of the report may share models: each counts once.
    models = models.drop_duplicates("run_id")
    wrong = models[models["errors"] > 0]
    if wrong.empty:
        return f"Of the report's {len(models):,} models none fails."
    summary = f"Of the report's {len(models):,} models {len(wrong):,} fail"
    unlearned = wrong[["run_id", "model_seed", "sweep"]].merge(
        reading.not_learned(store, wrong["run_id"].tolist()), on="run_id"
    )
    if unlearned.empty:
        return f"{summary}; all of these had learned the trained lengths."
    listed = "; ".join(
        f"seed {row['model_seed']} of `{row['sweep']}` is wrong on {row['wrong_within']:,} of the "
        f"{row['tested_within']:,} {row['within_from']} strings of trained lengths"
        for row in unlearned.to_dict("records")
    )
    return (
        f"{summary}. {len(wrong) - len(unlearned):,} of these had learned the trained lengths, and "
        f"{len(unlearned):,} had not ({listed})."
    )


def seed_by_seed(models: pd.DataFrame) -> str:
    """The errors of both ways of drawing strings, for the seeds that were trained both ways."""
    frame = models[models["sweep"].isin((DEFAULT, ENUMERATED))]
    table = frame.pivot_table(index="model_seed", columns="sweep", values="errors").dropna()
    if table.empty or len(table.columns) < 2:
        raise UnknownRunError("no seed is trained both ways")
    listed = "; ".join(
        f"seed {seed} misclassifies {int(row[DEFAULT]):,} after balanced strings and "
        f"{int(row[ENUMERATED]):,} after all of nine letters"
        for seed, row in table.iterrows()
    )
    few = "One seed settles" if len(table) == 1 else f"{len(table)} seeds settle"
    return f"Seed by seed, {listed}. {few} nothing; train more."
