"""What `seqcls causes` and `seqcls sensitive` do, and how they show it."""

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
import typer

from seqcls.interpretability.rounded import percent
from sweeps.analysis import causes, rounding
from sweeps.cli.commands.any_model import show
from sweeps.cli.commands.printing import count, print_json, print_table
from sweeps.results.summaries import differing_fields
from sweeps.store.databases.engine import Store
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reading import queries, sweep_queries
from sweeps.store.reading.selection import View
from sweeps.store.results import explained
from sweeps.store.schema.tables import RunState


def show_causes(db: str | None, sweep: str, sample: int, as_json: bool) -> None:
    """Attributes what is not attributed yet, stores it, and prints the causes."""
    reader = open_reader(db)
    runs = causes.failing_runs(reader, sweep)
    ids = [int(own) for own in runs["id"]]
    if ids:
        causes.attribute(open_writer(db), ids, sample)
    found = explained.causes(reader, ids)
    table = causes.table(runs, found)
    if as_json:
        show(True, [], _record(sweep, runs, found, table))
        return
    if runs.empty:
        typer.echo(f"no finished run of sweep {sweep!r} misclassifies a test string")
        return
    print_table(_shown_table(runs, table), f"{count(len(ids), 'failing run')} of {sweep}")
    print_table(_shown_causes(runs, found), "by run, of the errors that were looked at")


def show_sensitivity(db: str | None, meant: Sequence[str], times: int, as_json: bool) -> None:
    """Trains runs again with other rounding, and prints which of them hang on it."""
    reader = open_reader(db)
    ids = list(dict.fromkeys(run_id for own in meant for run_id in _runs_meant(reader, own)))
    known = explained.perturbations(reader, ids).groupby("run_id").size()
    precision = queries.runs(reader).set_index("id")["precision"]
    waiting = [
        own for own in ids if known.get(own, 0) != rounding.trainings(str(precision[own]), times)
    ]
    if waiting:
        rounding.perturb(open_writer(db), waiting, times)
    found = explained.sensitivity(reader)
    found = found[found["run_id"].isin(ids)]
    if as_json:
        print_json(found)
        return
    number = int(found["sensitive"].sum())
    title = (
        f"{number} of {count(len(found), 'run')} come to another confusion matrix with other "
        f"rounding: {times} times from initial values moved by one unit in the last place, and "
        "once in double precision"
    )
    print_table(perturbed_table(reader, found[found["sensitive"]]), title)


def perturbed_table(store: Store, found: pd.DataFrame) -> pd.DataFrame:
    """Runs and how many test strings they misclassify, from the least to the most.

    Args:
        store: where to read.
        found: as `sweeps.store.results.explained.sensitivity`.
    """
    runs = queries.runs(store).set_index("id")
    shown = found[["run_id", "times", "wrong", "least", "most"]].copy()
    for place, name in enumerate(("sweeps", "model_seed"), start=1):
        shown.insert(place, name, [runs.loc[run_id, name] for run_id in found["run_id"]])
    shown["sweeps"] = shown["sweeps"].map(", ".join)
    return shown


def _runs_meant(store: Store, reference: str) -> Iterator[int]:
    """The finished runs of a sweep, or the one run of that reference.

    Raises:
        UnknownRunError: there is neither such a sweep nor such a run, or the run is not finished.
    """
    if reference in set(sweep_queries.sweeps(store)["name"]):
        runs = queries.runs(store, View((reference,)))
        yield from (int(own) for own in runs.loc[runs["state"] == RunState.DONE, "id"])
        return
    if "/" not in reference and not reference.isdecimal():
        sweep_queries.find_sweep(store, reference)
    yield queries.find_run(store, reference)


def _shown_table(runs: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """Configurations by the fields in which they differ, with mechanisms and their shares."""
    shown = table[["mechanism", "seeds", "failing"]].copy()
    shown["share (95%)"] = [
        f"{row['share']:.0%} ({row['low']:.0%} to {row['high']:.0%})"
        for row in table.to_dict("records")
    ]
    settings = runs.drop_duplicates("config_id").set_index("config_id")
    for place, name in enumerate(differing_fields(runs)):
        shown.insert(place, name, table["config_id"].map(settings[name]))
    return shown


def _shown_causes(runs: pd.DataFrame, found: pd.DataFrame) -> pd.DataFrame:
    shown = found.drop(columns="number")
    shown.insert(1, "seed", shown["run_id"].map(runs.set_index("id")["model_seed"]))
    shown["head"] = shown["head"].astype("Int64")
    for name in ("share", "agreement"):
        shown[name] = ["" if pd.isna(x) else percent(x, 1) for x in shown[name]]
    return shown


def _record(
    sweep: str, runs: pd.DataFrame, found: pd.DataFrame, table: pd.DataFrame
) -> dict[str, Any]:
    return {
        "sweep": sweep,
        "failing": len(runs),
        "causes": _rows(found),
        "by_configuration": _rows(table),
    }


def _rows(frame: pd.DataFrame) -> list[dict[Any, Any]]:
    return frame.astype(object).where(frame.notna(), None).to_dict("records")
