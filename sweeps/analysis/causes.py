"""Why the runs of a sweep fail: their errors attributed, stored, and summed up over seeds."""

from collections.abc import Iterator, Sequence
from dataclasses import astuple

import pandas as pd

from seqcls.errors import ConfigError, PluginMissingError
from seqcls.interpretability.causes.mechanisms import ORDER, SAMPLE
from seqcls.problem import missing_plugin, resolve
from seqcls.results import Cause
from sweeps.statistics.intervals import wilson
from sweeps.store import writer
from sweeps.store.databases.engine import Store
from sweeps.store.reading import queries
from sweeps.store.results import explained
from sweeps.store.schema.tables import RunState
from sweeps.store.strings import string_queries


def attribute(store: Store, run_ids: Sequence[int], sample: int = SAMPLE) -> int:
    """Attributes the errors of finished runs and stores the causes, where not stored already.

    Args:
        store: the database, open for writing.
        run_ids: failing runs.
        sample: errors of each that are looked at, spread evenly from the shortest to the longest.

    Returns:
        How many runs were attributed now. One whose task is neither a language nor a transduction
        has no causes.

    Raises:
        ConfigError: the tasks of all of them are neither.
    """
    reader = store.reader()
    waiting = list(_not_attributed(reader, _with_causes(reader, run_ids), sample))
    for run_id, wrong in waiting:
        writer.record_causes(store, run_id, causes_of(reader, run_id, wrong, sample))
    return len(waiting)


def causes_of(store: Store, run_id: int, wrong: Sequence[str], sample: int) -> list[Cause]:
    """The causes of a run's errors, the most frequent first.

    Args:
        store: where the run is.
        run_id: a finished run.
        wrong: its misclassified test strings, the shortest first, each as often as it occurs.
        sample: how many of them to look at.
    """
    # Imported where it is used: PyTorch takes a second or two to load.
    from seqcls.interpretability.causes.causes import attributions, summed_up
    from sweeps.analysis.opened_models import trained_model

    return summed_up(attributions(trained_model(store, run_id), wrong, sample))


def leading(causes: pd.DataFrame) -> pd.DataFrame:
    """The mechanism of most errors of each run, whatever head and tokens it is about.

    `order not seen` always leads: no training fixes it.

    Args:
        causes: as `sweeps.store.results.explained.causes`.

    Returns:
        run_id, mechanism, share (of the run's errors that were looked at), strings (looked at).
    """
    summed = causes.groupby(["run_id", "mechanism"], sort=False)[["share", "strings"]].sum()
    # A stable sort: of equals the first stays, which is that of the most frequent cause.
    ranked = summed.reset_index().sort_values("share", ascending=False, kind="stable")
    ranked = ranked.sort_values("mechanism", key=lambda names: names != ORDER, kind="stable")
    first = ranked.drop_duplicates("run_id").sort_values("run_id", ignore_index=True)
    looked_at = causes.groupby("run_id")["strings"].sum()
    return first.assign(strings=first["run_id"].map(looked_at).astype(int))


def table(runs: pd.DataFrame, causes: pd.DataFrame) -> pd.DataFrame:
    """The share of failing seeds by leading mechanism, of every configuration.

    Args:
        runs: a row a failing run: id, config_id.
        causes: as `sweeps.store.results.explained.causes`, of these runs.

    Returns:
        config_id, mechanism, seeds (whose errors it causes most), failing (attributed seeds of
        the configuration), share, low, high (Wilson interval), in [0, 1].
    """
    attributed = leading(causes).merge(runs[["id", "config_id"]], left_on="run_id", right_on="id")
    failing = attributed.groupby("config_id").size()
    counted = attributed.groupby(["config_id", "mechanism"]).size().rename("seeds").reset_index()
    counted["failing"] = counted["config_id"].map(failing)
    pairs = zip(counted["seeds"], counted["failing"], strict=True)
    shares = [astuple(wilson(int(seeds), int(n))) for seeds, n in pairs]
    columns = ["share", "low", "high"]
    counted = counted.join(pd.DataFrame(shares, columns=columns, dtype=float))
    return counted.sort_values(["config_id", "seeds"], ascending=[True, False], ignore_index=True)


def _with_causes(store: Store, run_ids: Sequence[int]) -> list[int]:
    configs = {run: queries.run_config(store, run) for run in run_ids}
    absent = {run: queries.why_no_weights(config) for run, config in configs.items()}
    if run_ids and all(absent.values()):
        raise ConfigError(f"causes are found by asking models, and of each {absent[run_ids[0]]}")
    configs = {run: config for run, config in configs.items() if absent[run] is None}
    run_ids = list(configs)
    lacking = {run: missing_plugin(config) for run, config in configs.items()}
    if run_ids and all(lacking.values()):
        raise PluginMissingError(f"causes are found by asking models: {lacking[run_ids[0]]}")
    configs = {run: config for run, config in configs.items() if lacking[run] is None}
    run_ids = list(configs)
    reasons = {run: resolve(config).no_causes for run, config in configs.items()}
    known = [run for run, reason in reasons.items() if reason is None]
    if run_ids and not known:
        raise ConfigError(
            f"causes are found for languages and transductions, and {reasons[run_ids[0]]}"
        )
    return known


def _not_attributed(
    store: Store, run_ids: Sequence[int], sample: int
) -> Iterator[tuple[int, list[str]]]:
    """Runs without causes of so many errors, with their errors, the shortest first."""
    known = explained.causes(store, run_ids).groupby("run_id")["strings"].sum()
    for run_id in run_ids:
        if queries.run_status(store, run_id).state != RunState.DONE:
            continue
        errors = string_queries.string_errors(store, run_id)
        # Each as often as it occurs in the test set, as everywhere that errors are counted.
        wrong = errors["string"].repeat(errors["occurrences"].tolist()).tolist()
        if wrong and int(known.get(run_id, 0)) != min(sample, len(wrong)):
            yield run_id, wrong
